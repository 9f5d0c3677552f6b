/* SPDX-License-Identifier: MIT */
/* fuzz_spool.c - a spool: read in pieces of any size (sixteen at most: each costs an open) it gives
 * the same lines, and every byte up to the last newline is consumed once. */
#include "tests/fuzz/fuzz.h"

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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	int64_t end, piece = 1 + (int64_t)size / 16 + (size > 0 ? data[0] % 64 : 0);
	int at_once = 0, in_pieces = 0;

	fuzz_file("spool.jsonl", data, size);
	end = read_all(1 << 20, &at_once);
	fuzz_check(end <= (int64_t)size);
	fuzz_check(read_all(piece, &in_pieces) == end);
	fuzz_check(at_once == in_pieces);
	return 0;
}
