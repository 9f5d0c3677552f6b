/* SPDX-License-Identifier: MIT */
/* precision_log.c - statistics of operands, written down. */
#include "worker/lbworker/telemetry/precision_log.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "common/base/files.h"

/* NAN where there is no error, or nothing else. */
static double sqnr_db(const struct operand_stats *s)
{
	return s->error > 0 && s->power > 0 ? 10 * log10(s->power / s->error) : NAN;
}

enum { WHATS = 4, TAG_BYTES = 96 };

struct place {
	size_t layer;
	enum module module;
	int slot;
};

static double share(uint64_t part, uint64_t count)
{
	return count > 0 ? (double)part / (double)count : 0;
}

static void write_binades(FILE *to, const struct operand_stats *s)
{
	int first = 0, end = BINADES;

	while (first < end && s->binade[first] == 0)
		first++;
	while (end > first && s->binade[end - 1] == 0)
		end--;
	fprintf(to, ",\"binades\":[%d", first + BINADE_FIRST);
	for (int i = first; i < end; i++)
		fprintf(to, ",%" PRIu64, s->binade[i]);
	fputc(']', to);
}

static void write_line(FILE *to, int64_t step, const struct place *p, const struct operand_stats *s)
{
	double db = sqnr_db(s);

	fprintf(to,
		"{\"step\":%" PRId64 ",\"layer\":%zu,\"module\":\"%s\",\"slot\":\"%s\","
		"\"count\":%" PRIu64 ",\"saturated\":%.6g,\"zeroed\":%.6g",
		step, p->layer, module_names[p->module], recipe_slot_names[p->slot], s->count,
		share(s->saturated, s->count), share(s->zeroed, s->count));
	if (isfinite(s->amax) && isfinite(s->most_scale))
		fprintf(to, ",\"amax\":%.6g,\"scale_min\":%.6g,\"scale_max\":%.6g", (double)s->amax,
			(double)s->least_scale, (double)s->most_scale);
	if (isfinite(db))
		fprintf(to, ",\"sqnr_db\":%.4g", db);
	write_binades(to, s);
	fprintf(to, "}\n");
}

static void chart(struct tensorboard *tb, int64_t step, const struct place *p,
		  const struct operand_stats *s)
{
	static const char *const what[WHATS] = { "saturated", "zeroed", "amax", "sqnr_db" };
	const double value[WHATS] = { share(s->saturated, s->count), share(s->zeroed, s->count),
				      (double)s->amax, sqnr_db(s) };
	char tag[WHATS][TAG_BYTES];
	struct tb_scalar scalar[WHATS];

	for (int i = 0; i < WHATS; i++) {
		snprintf(tag[i], TAG_BYTES, "precision/%s/%s/layers.%zu.%s",
			 recipe_slot_names[p->slot], what[i], p->layer, module_names[p->module]);
		scalar[i] = (struct tb_scalar){ tag[i], value[i] };
	}
	tensorboard_add(tb, step, scalar, WHATS);
	snprintf(tag[0], TAG_BYTES, "precision/%s/log2/layers.%zu.%s", recipe_slot_names[p->slot],
		 p->layer, module_names[p->module]);
	tensorboard_add_histogram(
		tb, step, &(struct tb_histogram){ tag[0], BINADE_FIRST, s->binade, BINADES });
}

static void tell(const struct precision *precision, int64_t step, FILE *to, struct tensorboard *tb)
{
	struct place p;

	for (p.layer = 0; p.layer <= precision_layers(precision); p.layer++)
		for (p.module = MODULE_QKV; p.module < MODULE_COUNT; p.module++)
			for (p.slot = 0; p.slot < SLOTS; p.slot++) {
				const struct operand_stats *s = precision_stats(precision, p.layer,
										p.module, p.slot);
				if (!s || s->count == 0)
					continue;
				write_line(to, step, &p, s);
				if (tb)
					chart(tb, step, &p, s);
			}
}

int precision_log(const struct precision *precision, int64_t step, const char *path,
		  struct tensorboard *tb, struct err *err)
{
	FILE *to = file_append_lines(path);

	if (!to)
		return err_errno(err, "%s", path);
	tell(precision, step, to, tb);
	return fclose(to) ? err_errno(err, "%s", path) : 0;
}
