/* SPDX-License-Identifier: MIT */
/* fuzz_request.c - bytes on lbd's socket, cut into lines as the daemon does, each taken for a
 * request. */
#include "tests/fuzz/fuzz.h"

#include "common/base/mem.h"
#include "common/run/verbs.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf in;
	const char *newline;

	buf_init(&in, CONTROL_MAX_BYTES);
	buf_add(&in, data, size);
	while (in.len > 0 && (newline = memchr(in.data, '\n', in.len)) != NULL) {
		size_t len = (size_t)(newline - in.data);
		struct err err = { 0 };
		enum verb verb = VERB_COUNT;
		json_t *args = verb_request_parse(in.data, len, &verb, &err);

		fuzz_check(args ? verb < VERB_COUNT && json_is_object(args) : err.text[0] != '\0');
		json_decref(args);
		buf_drop(&in, len + 1);
	}
	buf_fini(&in);
	return 0;
}
