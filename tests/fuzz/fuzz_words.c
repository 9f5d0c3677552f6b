/* SPDX-License-Identifier: MIT */
/* fuzz_words.c - what people type: words of a command line, names, selectors of runs, durations,
 * memory. */
#include "tests/fuzz/fuzz.h"

#include "common/base/names.h"
#include "common/base/shell_words.h"
#include "common/base/strv.h"
#include "common/config/amounts.h"
#include "common/config/keys.h"
#include "common/config/run_spec.h"
#include "common/team/selector.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), **words = shell_words(text, NULL);
	struct selector selector;
	struct err err = { 0 };
	int64_t value;

	strv_free(words);
	if (name_check(text, NULL) == 0)
		fuzz_check(strchr(text, '/') == NULL && strstr(text, "..") == NULL &&
			   text[0] != '-');
	if (selector_parse(text, &selector, &err) == 0)
		selector_matches(&selector, "brisk-otter-39", "sweep", "ada");
	if (duration_parse(text, &value, NULL) == 0)
		fuzz_check(value >= 0);
	mem_parse_mb(text, NULL);
	free(text);
	return 0;
}
