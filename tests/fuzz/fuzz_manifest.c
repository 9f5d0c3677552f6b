/* SPDX-License-Identifier: MIT */
/* fuzz_manifest.c - the manifest of a checkpoint that somebody else wrote. */
#include "tests/fuzz/fuzz.h"

#include "common/manifest/manifest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	struct manifest m = { 0 };

	fuzz_file("step-00000001/manifest.json", data, size);
	if (manifest_verify(fuzz_path("step-00000001"), MANIFEST_SIZES, &m, &err) < 0)
		fuzz_check(err.text[0] != '\0');
	else
		manifest_clear(&m);
	return 0;
}
