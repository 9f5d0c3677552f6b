/* SPDX-License-Identifier: MIT */
/* fuzz_rows.c - rows of a poll, as a helper of another build may send them: read whole, or
 * refused. */
#include "tests/fuzz/fuzz.h"

#include "slurm/polled.h"
#include "slurm/wire.h"

/* An answer that tells of so many rows; true: they were believed. */
static bool is_believed(struct polled *p, size_t rows)
{
	json_t *body = json_pack("{s:I,s:I}", "rows", (json_int_t)rows, "last", (json_int_t)1);
	bool is_good = polled_answer(p, body) == 0;

	json_decref(body);
	return is_good;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = fuzz_text(data, size), *more = text;
	struct polled polled = { 0 };
	size_t rows = 0;

	polled_have(&polled);
	for (char *line = strsep(&more, "\n"); line; line = strsep(&more, "\n"))
		rows += polled_row(&polled, line);
	fuzz_check(rows == polled.coming);
	fuzz_check(!is_believed(&polled, rows + 1) && polled.last == 0);
	fuzz_check(is_believed(&polled, rows) && polled.count == rows);
	for (size_t i = 0; i < polled.count; i++) {
		const struct job_status *job = &polled.jobs[i];

		fuzz_check(strlen(job->ref.token) == TOKEN_HEX &&
			   strlen(job->ledger_id) == LEDGER_ID_HEX);
		fuzz_check(strlen(job->nodes) + strlen(job->failed_nodes) < size);
		fuzz_check(job->phase < JOB_PHASE_COUNT && job->cause < CAUSE_COUNT);
	}
	polled_clear(&polled);
	free(text);
	return 0;
}
