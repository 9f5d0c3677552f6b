/* SPDX-License-Identifier: MIT */
/* inspect.c - lbworker inspect MODEL --recipe R: what a recipe would make of each matrix of a saved
 * model, without training.
 *
 * Only weights are there to be looked at: the slots forward.w and input.w. Pieces of one matrix,
 * like query, key and value, are looked at one by one here; a scale of the whole tensor is shared
 * by all of them in training. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/commands/command.h"
#include "worker/lbworker/commands/infer.h"
#include "worker/lbworker/commands/words.h"
#include "worker/lbworker/recipes/recipe.h"

enum { FORWARD_W = 1, INPUT_W = 3, OUTLIER_RMS = 6 };

/* Root of the mean square, and the share of numbers beyond so many times that. */
struct spread {
	double rms, outliers;
};

static struct spread spread_of(const float *x, size_t count)
{
	struct spread s = { 0 };

	for (size_t i = 0; i < count; i++)
		s.rms += (double)x[i] * (double)x[i];
	s.rms = sqrt(s.rms / (double)count);
	for (size_t i = 0; i < count; i++)
		s.outliers += fabs((double)x[i]) > OUTLIER_RMS * s.rms;
	s.outliers /= (double)count;
	return s;
}

/* Tables lie before the layers. */
static bool is_product(const struct model *m, const struct model_tensor *t)
{
	return t->columns > 0 && t->offset >= m->unit[1].first;
}

static void print_slot(const struct model *m, const struct model_tensor *t,
		       const struct recipe *recipe, int slot)
{
	const float *x = m->weights + t->offset;
	size_t count = t->rows * t->columns;
	bool in_out = m->shape.family == MODEL_GPT2 && !strstr(t->name, "lm_head");
	const struct stored shape = { t->rows, t->columns, t->columns,
				      in_out == (slot == INPUT_W) };
	struct operand_stats stats = { 0 };
	const struct operand_use use = { .cast = &recipe->slot[slot], .stats = &stats };
	struct spread spread = spread_of(x, count);
	float *out = xmalloc(count * sizeof(*out));

	m->backend->quantize(m->device, out, x, &shape, &use);
	printf("%-44s %-9s %7.2f %10.4f %10.4f %10.4g %10.4g %10.4f\n", t->name,
	       recipe_slot_names[slot],
	       stats.error > 0 ? 10 * log10(stats.power / stats.error) : (double)INFINITY,
	       100.0 * (double)stats.saturated / (double)count,
	       100.0 * (double)stats.zeroed / (double)count, (double)stats.amax, spread.rms,
	       100 * spread.outliers);
	free(out);
}

static void print_model(const struct model *m, const struct recipe *recipe)
{
	static const int slots[] = { FORWARD_W, INPUT_W };

	printf("%-44s %-9s %7s %10s %10s %10s %10s %10s\n", "tensor", "slot", "SQNR,dB",
	       "saturated%", "zeroed%", "amax", "rms", "beyond 6r%");
	for (size_t i = 0; i < m->tensors; i++)
		for (int s = 0; s < 2; s++)
			if (is_product(m, &m->tensor[i]) && recipe->slot[slots[s]].format.bits > 0)
				print_slot(m, &m->tensor[i], recipe, slots[s]);
}

static int inspect(const char *model, const char *recipe_name, struct err *err)
{
	const struct infer_arguments a = { .model = model, .device = DEVICE_CPU };
	struct infer f = { 0 };
	struct recipe recipe;

	if (recipe_find(&recipe, recipe_name, err))
		return -1;
	int rc = infer_read(&f, &a, err) || infer_open(&f, &a, err) ? -1 : 0;
	if (rc == 0)
		print_model(f.model, &recipe);
	infer_close(&f);
	recipe_clear(&recipe);
	return rc;
}

int command_inspect(int argc, char **argv)
{
	const char *recipe = NULL;
	const struct word_option options[] = { { "--recipe", .text = &recipe }, { 0 } };
	char **rest = xcalloc((size_t)argc, sizeof(*rest));
	struct err err = { 0 };
	size_t count;
	int status;

	if (words_parse(options, argc, argv, rest, &count, &err))
		status = command_failed(&err);
	else if (count != 1 || !recipe)
		status = command_usage(
			"inspect takes a MODEL and --recipe NAME (`lbworker recipes`)");
	else
		status = inspect(rest[0], recipe, &err) ? command_failed(&err) : EXIT_DONE;
	free(rest);
	return status;
}
