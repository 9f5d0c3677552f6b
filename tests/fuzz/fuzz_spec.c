/* SPDX-License-Identifier: MIT */
/* fuzz_spec.c - a TOML file as a run spec: what is accepted prints as TOML that is accepted
 * again. */
#include "tests/fuzz/fuzz.h"

#include "common/config/run_spec.h"

static int read_spec(const char *text, size_t len, char **printed, struct err *err)
{
	struct run_spec spec = { 0 };
	struct toml toml = { 0 };
	int rc = -1;

	if (toml_parse(&toml, text, len, "spec.toml", err) == 0 &&
	    run_spec_read(&toml, &spec, err) == 0) {
		rc = 0;
		*printed = toml_print(&toml);
		run_spec_clear(&spec);
	}
	toml_clear(&toml);
	return rc;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	char *printed = NULL, *again = NULL;

	if (read_spec((const char *)data, size, &printed, &err) < 0) {
		fuzz_check(err.text[0] != '\0');
		return 0;
	}
	fuzz_check(read_spec(printed, strlen(printed), &again, &err) == 0);
	fuzz_check(strcmp(printed, again) == 0);
	free(printed);
	free(again);
	return 0;
}
