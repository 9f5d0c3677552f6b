/* SPDX-License-Identifier: MIT */
/* operands.c - what a slot of a recipe makes of a matrix, for comparisons with others' arithmetic:
 *
 *   operands SLOT ROWS COLUMNS      fp32 from stdin, as the product sees it to stdout; the sum goes
 *                                   along rows
 *   operands SLOT ROWS COLUMNS product   x x^T instead: [ROWS, ROWS]
 *   operands moments m|v COUNT      8-bit moments, there and back
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/load.h"
#include "worker/lbworker/optim/kept.h"
#include "worker/lbworker/recipes/recipe.h"

static struct operand_cast slot(const char *words)
{
	struct operand_cast cast;
	struct err err = { 0 };

	if (slot_parse(&cast, words, &err)) {
		fprintf(stderr, "operands: %s\n", err.text);
		exit(2);
	}
	return cast;
}

static void quantize(const struct backend *be, struct device *dev, const char *words, float *out,
		     const float *x, size_t rows, size_t columns)
{
	const struct stored shape = { rows, columns, columns, true };
	const struct operand_cast cast = slot(words);
	const struct operand_use use = { .cast = &cast };
	be->quantize(dev, out, x, &shape, &use);
}

static void multiply(const struct backend *be, struct device *dev, const char *words, float *out,
		     const float *x, size_t rows, size_t columns)
{
	struct operand_cast cast = slot(words);
	const struct operand_use use = { .cast = &cast };
	const struct gemm g = { .m = rows,
				.n = rows,
				.k = columns,
				.a = x,
				.b = x,
				.c = out,
				.lda = columns,
				.ldb = columns,
				.ldc = rows,
				.trans_b = true,
				.alpha = 1,
				.use_a = &use,
				.use_b = &use };

	be->gemm(dev, &g);
}

static void keep(const struct backend *be, struct device *dev, bool is_signed, float *out,
		 const float *x, size_t count)
{
	uint8_t *codes = malloc(count);
	float *scales = malloc((count / MOMENTS_SHARE + 1) * sizeof(*scales));

	if (!codes || !scales)
		exit(1);
	be->moments_put(dev, codes, scales, x, count, kept_map(is_signed));
	be->moments_get(dev, out, codes, scales, count, kept_map(is_signed));
	free(codes);
	free(scales);
}

int main(int argc, char **argv)
{
	const struct backend_options options = { .threads = 1 };
	const struct backend *be = backend_cpu();
	char why[BACKEND_TEXT_BYTES];

	if (argc != 4 && argc != 5)
		return 2;
	bool is_moment = strcmp(argv[1], "moments") == 0;
	size_t rows = is_moment ? 1 : strtoul(argv[2], NULL, 10);
	size_t columns = strtoul(argv[3], NULL, 10), count = rows * columns;
	size_t results = argc == 5 ? rows * rows : count;
	float *x = malloc(count * sizeof(*x)), *out = malloc(results * sizeof(*out));
	struct device *dev = be->open(&options, why);
	if (!x || !out || !dev || fread(x, sizeof(*x), count, stdin) != count)
		exit(1);
	if (is_moment)
		keep(be, dev, strcmp(argv[2], "m") == 0, out, x, count);
	else if (argc == 5)
		multiply(be, dev, argv[1], out, x, rows, columns);
	else
		quantize(be, dev, argv[1], out, x, rows, columns);
	bool written = fwrite(out, sizeof(*out), results, stdout) == results;
	be->close(dev);
	free(x);
	free(out);
	return written ? 0 : 1;
}
