/* SPDX-License-Identifier: MIT */
/* fuzz_batch.c - a batch script: the job that sbatch would have made of it, or one line naming the
 * place. */
#include "tests/fuzz/fuzz.h"

#include "common/base/strv.h"
#include "slurm/batch/batch.h"
#include "slurm/batch/directives.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *none[] = { NULL };
	struct batch_request request = {
		.script = (const char *)data,
		.script_len = size,
		.file = "train.slurm",
		.env = none,
		.settings = none,
		.extra = none,
		.workdir = "/work",
		.now = 1800000000,
	};
	struct err err = { 0 };
	json_t *job;
	char **words = NULL;

	if (directives_check_script(request.script, size, request.file, &err) < 0) {
		fuzz_check(err.text[0] != '\0');
		return 0;
	}
	job = batch_resolve(&request, &words, &err);
	fuzz_check(job ? json_is_object(job) : err.text[0] != '\0');
	json_decref(job);
	strv_free(words);
	return 0;
}
