/* SPDX-License-Identifier: MIT */
/* fuzz_json.c - any bytes as JSON: refused with a reason, or printed and read back to the same
 * value. */
#include "tests/fuzz/fuzz.h"

#include "common/base/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	json_t *value = js_parse((const char *)data, size, &err), *again;
	char *line;

	fuzz_check(value || err.text[0]);
	if (value == NULL)
		return 0;
	line = js_line(value);
	fuzz_check(strchr(line, '\n') == NULL || strchr(line, '\n')[1] == '\0');
	again = js_parse(line, strcspn(line, "\n"), &err);
	fuzz_check(again && json_equal(value, again));
	json_decref(value);
	json_decref(again);
	free(line);
	return 0;
}
