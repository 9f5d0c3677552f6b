/* SPDX-License-Identifier: MIT */
/* fuzz_spool.c - a spool: read in pieces of any size (sixteen at most: each costs an open) it gives
 * the same lines, and every byte up to the last newline is consumed once; read with plain steps,
 * the same ones, too. */
#include "tests/fuzz/fuzz.h"

#include <string.h>

#include "common/base/json.h"
#include "common/run/spool.h"

static int on_line(const struct spool_line *line, void *arg)
{
	fuzz_check(json_is_object(line->line));
	++*(int *)arg;
	return 0;
}

static void on_bad(int64_t offset, const struct err *why, void *arg)
{
	fuzz_check(offset >= 0 && why->text[0]);
	++*(int *)arg;
}

static int64_t read_all(int64_t piece, int *lines)
{
	int64_t offset = 0;

	while (spool_read(fuzz_path("spool.jsonl"), &offset, piece, on_line, on_bad, lines, NULL) >
	       0)
		;
	return offset;
}

/* What the ledger would get of each line, added up. */
static int add_line(const struct spool_line *spool, void *arg)
{
	struct step_line step = { 0 };
	unsigned *sum = arg;

	if (spool->step)
		step = *spool->step;
	else if (spool->from_trainer && strcmp(js_str(spool->line, "type", ""), "step") == 0)
		step_line_of(spool->line, &step);
	*sum = *sum * 31 + (unsigned)spool->seq;
	*sum = *sum * 31 + (unsigned)step.step + (unsigned)step.rank + (unsigned)step.target_step;
	*sum = *sum * 31 + (step.loss > 0.5) + 2 * (step.mfu > 0.5) + 4 * (step.tokens_per_s > 0.5);
	return 0;
}

static void add_bad(int64_t offset, const struct err *why, void *arg)
{
	unsigned *sum = arg;

	(void)why;
	*sum = *sum * 31 + (unsigned)offset;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t end, piece = 1 + (int64_t)size / 16 + (size > 0 ? data[0] % 64 : 0);
	int64_t tree_end = 0, plain_end = 0;
	int at_once = 0, in_pieces = 0;
	unsigned tree = 0, plain = 0;

	fuzz_file("spool.jsonl", data, size);
	end = read_all(1 << 20, &at_once);
	fuzz_check(end <= (int64_t)size);
	fuzz_check(read_all(piece, &in_pieces) == end);
	fuzz_check(at_once == in_pieces);
	spool_read(fuzz_path("spool.jsonl"), &tree_end, 1 << 20, add_line, add_bad, &tree, NULL);
	spool_read_plain(fuzz_path("spool.jsonl"), &plain_end, 1 << 20, add_line, add_bad, &plain,
			 NULL);
	fuzz_check(tree_end == plain_end && tree == plain);
	return 0;
}
