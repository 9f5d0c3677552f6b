/* SPDX-License-Identifier: MIT */
/* fuzz_tokenizer.c - a tokenizer's file of any kind that somebody else wrote, and what it makes of
 * a text. */
#include "tests/fuzz/fuzz.h"

#include "common/base/log.h"
#include "worker/lbworker/text/tokenizer.h"

static void use(const struct tokenizer *t, const char *text, size_t len)
{
	struct encoder *e = encoder_create(t);
	struct tokens tokens = { 0 };
	struct err err = { 0 };
	struct buf out;

	buf_init(&out, 1 << 26);
	if (encoder_encode(e, text, len, true, &tokens, &err) < 0)
		fuzz_check(err.text[0] != '\0');
	for (size_t i = 0; i < tokens.count; i++) {
		fuzz_check(tokens.id[i] < tokenizer_vocab(t));
		tokenizer_put(t, tokens.id[i], i == 0, &out);
	}
	tokens_fini(&tokens);
	buf_fini(&out);
	encoder_destroy(e);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char text[] =
		"Hello  world's 1234 \n\n <s>e\xCC\x81\xFF\xE2\x96\x81 aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
		"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	struct err err = { 0 };

	log_init("fuzz", LOG_LEVEL_ERROR);
	fuzz_file("tokenizer", data, size);
	struct tokenizer *t = tokenizer_open(fuzz_path("tokenizer"), size % 2 ? "o200k" : NULL,
					     &err);
	if (!t) {
		fuzz_check(err.text[0] != '\0');
		return 0;
	}
	use(t, text, sizeof(text) - 1);
	use(t, (const char *)data, size < 4096 ? size : 4096);
	tokenizer_close(t);
	return 0;
}
