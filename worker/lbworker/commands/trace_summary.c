/* SPDX-License-Identifier: MIT */
/* trace_summary.c - `lbworker trace summary FOLDER [--svg FILE]`: where the time of traced steps
 * went, on each rank.
 *
 * Reads every *.pt.trace.json below FOLDER. A span of cat "kernel" is compute, or communication
 * where its name begins with nccl; "gpu_memcpy" and "gpu_memset" are copies; in a trace of the CPU
 * "cpu_op" spans are one or the other by their name. Time is split, as HolisticTraceAnalysis does
 * it, over the moments from the first span of the device to the last; without any, over all steps
 * ("user_annotation" named ProfilerStep#N), or from the first span to the last: compute alone,
 * communication alone, both at once, copies alone, nothing. */
#include <ftw.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "worker/lbworker/commands/command.h"

enum { TRACE_BYTES_MAX = 1 << 30, TOP = 12, OPEN_FILES = 16, NAME_BYTES = 64 };

enum { COMPUTE_PART, EXCHANGE_PART, BOTH_PART, COPY_PART, IDLE_PART, PARTS };
static const struct {
	const char *name, *color;
} parts[PARTS] = {
	[COMPUTE_PART] = { "compute", "#4a7fb5" }, [EXCHANGE_PART] = { "communication", "#b5534a" },
	[BOTH_PART] = { "overlap", "#6a9f58" },    [COPY_PART] = { "copy", "#c98a3b" },
	[IDLE_PART] = { "idle", "#d8d8d8" },
};

/* something begins (+1) or ends (-1) */
struct edge {
	double us;
	int compute, exchange, copy, step;
};

struct kernel {
	char name[NAME_BYTES];
	double us;
	int64_t count;
};

struct rank_time {
	int rank;
	double part_us[PARTS];
};

struct summary {
	struct edge *edge;
	size_t edges, room;
	struct kernel *kernel;
	size_t kernels;
	size_t files, steps;
	double part_us[PARTS];
	bool has_steps, has_device; /* the file at hand */
	struct rank_time *rank;
	size_t ranks;
};

/* --- reading ---------------------------------------------------------------------------------- */

static void add_edges(struct summary *s, double start, double us, struct edge what)
{
	if (s->edges + 2 > s->room) {
		s->room = s->room ? 2 * s->room : 4096;
		s->edge = xrealloc(s->edge, s->room * sizeof(*s->edge));
	}
	what.us = start;
	s->edge[s->edges++] = what;
	s->edge[s->edges++] = (struct edge){ start + us, -what.compute, -what.exchange, -what.copy,
					     -what.step };
}

static void count_kernel(struct summary *s, const char *name, double us)
{
	size_t i = 0;

	while (i < s->kernels && strncmp(s->kernel[i].name, name, NAME_BYTES - 1) != 0)
		i++;
	if (i == s->kernels) {
		s->kernel = xrealloc(s->kernel, (s->kernels + 1) * sizeof(*s->kernel));
		s->kernel[s->kernels++] = (struct kernel){ .us = 0 };
		snprintf(s->kernel[i].name, NAME_BYTES, "%s", name);
	}
	s->kernel[i].us += us;
	s->kernel[i].count++;
}

static bool is_copy(const char *cat, const char *name)
{
	if (strcmp(cat, "cpu_op") == 0)
		return strcmp(name, "upload") == 0 || strcmp(name, "download") == 0 ||
		       strcmp(name, "zero") == 0;
	return strcmp(cat, "gpu_memcpy") == 0 || strcmp(cat, "gpu_memset") == 0;
}

static bool is_exchange(const char *cat, const char *name)
{
	return strcmp(cat, "cpu_op") == 0 ? strcmp(name, "exchange") == 0
					  : strncasecmp(name, "nccl", 4) == 0;
}

static bool is_on_device(const char *cat)
{
	return strcmp(cat, "kernel") == 0 || strncmp(cat, "gpu_mem", 7) == 0;
}

static void add_event(struct summary *s, const json_t *event)
{
	const char *cat = js_str(event, "cat", ""), *name = js_str(event, "name", "");
	double start = js_real(event, "ts", 0), us = js_real(event, "dur", 0);

	if (strcmp(js_str(event, "ph", ""), "X") != 0)
		return;
	if (strcmp(cat, "user_annotation") == 0 && strncmp(name, "ProfilerStep#", 13) == 0) {
		s->steps++;
		if (!s->has_device)
			add_edges(s, start, us, (struct edge){ .step = 1 });
	} else if (is_on_device(cat) || (!s->has_device && strcmp(cat, "cpu_op") == 0)) {
		bool exchange = is_exchange(cat, name), copy = is_copy(cat, name);
		add_edges(s, start, us,
			  (struct edge){ .compute = !copy && !exchange,
					 .exchange = exchange,
					 .copy = copy });
		count_kernel(s, name, us);
	}
}

static char **found; /* of nftw(), which takes nothing along */
static size_t found_count;

static int on_file(const char *path, const struct stat *st, int kind, struct FTW *where)
{
	(void)st;
	(void)where;
	if (kind != FTW_F || !text_ends_with(path, ".pt.trace.json"))
		return 0;
	found = xrealloc(found, (found_count + 1) * sizeof(*found));
	found[found_count++] = xstrdup(path);
	return 0;
}

/* --- adding up -------------------------------------------------------------------------------- */

static int by_time(const void *a, const void *b)
{
	const struct edge *x = a, *y = b;

	return (x->us > y->us) - (x->us < y->us);
}

static int by_size(const void *a, const void *b)
{
	const struct kernel *x = a, *y = b;

	return (x->us < y->us) - (x->us > y->us);
}

/* Copies behind others count as those; who computes does not idle. */
static int part_of(const struct edge *at)
{
	if (at->compute > 0)
		return at->exchange > 0 ? BOTH_PART : COMPUTE_PART;
	if (at->exchange > 0)
		return EXCHANGE_PART;
	return at->copy > 0 ? COPY_PART : IDLE_PART;
}

/* Walks the edges of one file in time. */
static void split_time(struct summary *s, struct rank_time *rank)
{
	struct edge now = { 0 };

	if (s->edges)
		qsort(s->edge, s->edges, sizeof(*s->edge), by_time);
	for (size_t i = 0; i + 1 < s->edges; i++) {
		const struct edge *e = &s->edge[i];
		now = (struct edge){ e->us, now.compute + e->compute, now.exchange + e->exchange,
				     now.copy + e->copy, now.step + e->step };
		double us = s->edge[i + 1].us - e->us;
		int part = part_of(&now);
		/* Work that runs on behind the host's step still counts. */
		if (now.step > 0 || !s->has_steps || part != IDLE_PART) {
			s->part_us[part] += us;
			rank->part_us[part] += us;
		}
	}
	s->edges = 0;
}

static struct rank_time *rank_of(struct summary *s, const json_t *root)
{
	int number = (int)js_int(json_object_get(root, "distributedInfo"), "rank", 0);
	size_t i = 0;

	while (i < s->ranks && s->rank[i].rank != number)
		i++;
	if (i == s->ranks) {
		s->rank = xrealloc(s->rank, (s->ranks + 1) * sizeof(*s->rank));
		s->rank[s->ranks++] = (struct rank_time){ .rank = number };
	}
	return &s->rank[i];
}

static int add_file(struct summary *s, const char *path, struct err *err)
{
	json_t *root = js_load(path, TRACE_BYTES_MAX, err);
	const json_t *events = json_is_array(root) ? root : json_object_get(root, "traceEvents");
	size_t before = s->steps, i;
	const json_t *event;

	if (!root)
		return -1;
	s->has_device = false;
	json_array_foreach(events, i, event) {
		s->has_device = s->has_device || is_on_device(js_str(event, "cat", ""));
	}
	json_array_foreach(events, i, event) {
		add_event(s, event);
	}
	s->has_steps = s->steps > before && !s->has_device;
	split_time(s, rank_of(s, root));
	s->files++;
	json_decref(root);
	return 0;
}

/* --- telling ---------------------------------------------------------------------------------- */

static double total(const struct summary *s)
{
	double us = 0;

	for (int p = 0; p < PARTS; p++)
		us += s->part_us[p];
	return us > 0 ? us : 1;
}

static int by_rank(const void *a, const void *b)
{
	return ((const struct rank_time *)a)->rank - ((const struct rank_time *)b)->rank;
}

/* In ms; hidden: the share of communication behind compute. */
static void print_ranks(const struct summary *s, FILE *to)
{
	fprintf(to, "  rank");
	for (int p = 0; p < PARTS; p++)
		fprintf(to, " %13s", parts[p].name);
	fprintf(to, "   hidden\n");
	for (size_t r = 0; r < s->ranks; r++) {
		const double *us = s->rank[r].part_us;
		double exchange = us[EXCHANGE_PART] + us[BOTH_PART];
		fprintf(to, "  %4d", s->rank[r].rank);
		for (int p = 0; p < PARTS; p++)
			fprintf(to, " %13.3f", us[p] / 1e3);
		fprintf(to, "  %5.1f %%\n", exchange > 0 ? 100 * us[BOTH_PART] / exchange : 0);
	}
}

static void print_text(const struct summary *s, FILE *to)
{
	double all = 0;

	fprintf(to, "%zu trace%s, %zu step%s, %.3f ms\n", s->files, s->files == 1 ? "" : "s",
		s->steps, s->steps == 1 ? "" : "s", total(s) / 1e3);
	for (int p = 0; p < PARTS; p++)
		fprintf(to, "  %-13s %12.3f ms  %5.1f %%\n", parts[p].name, s->part_us[p] / 1e3,
			100 * s->part_us[p] / total(s));
	if (s->ranks > 1)
		print_ranks(s, to);
	for (size_t i = 0; i < s->kernels; i++)
		all += s->kernel[i].us;
	for (size_t i = 0; i < s->kernels && i < TOP; i++)
		fprintf(to, "  %-24s %6" PRId64 " times %12.3f ms  %5.1f %%\n", s->kernel[i].name,
			s->kernel[i].count, s->kernel[i].us / 1e3,
			all > 0 ? 100 * s->kernel[i].us / all : 0);
}

/* A bar of the parts, then one bar for each of the top kernels. */
static void print_svg(const struct summary *s, FILE *to)
{
	const double width = 640, row = 22, left = 180;
	size_t kernels = s->kernels < TOP ? s->kernels : TOP;
	double x = 0, most = kernels ? s->kernel[0].us : 1;

	fprintf(to,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" "
		"font-family=\"sans-serif\" font-size=\"12\">\n",
		left + width + 120, row * (double)(kernels + 3));
	for (int p = 0; p < PARTS; p++) {
		double w = width * s->part_us[p] / total(s);
		fprintf(to,
			"<rect x=\"%.1f\" y=\"4\" width=\"%.1f\" height=\"16\" "
			"fill=\"%s\"><title>%s %.3f ms</title></rect>\n",
			left + x, w, parts[p].color, parts[p].name, s->part_us[p] / 1e3);
		fprintf(to, "<text x=\"%.0f\" y=\"38\" fill=\"%s\">%s %.1f %%</text>\n",
			left + 130 * p, p == IDLE_PART ? "#777" : parts[p].color, parts[p].name,
			100 * s->part_us[p] / total(s));
		x += w;
	}
	for (size_t i = 0; i < kernels; i++) {
		double y = row * (double)(i + 2) + 10,
		       w = most > 0 ? width * s->kernel[i].us / most : 0;
		fprintf(to, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">", left - 8, y + 11);
		command_put_text(s->kernel[i].name, to); /* a C++ template has "<" in it */
		fprintf(to,
			"</text><rect x=\"%.0f\" y=\"%.1f\" width=\"%.1f\" height=\"14\" "
			"fill=\"#4a7fb5\"/><text x=\"%.1f\" y=\"%.1f\">%.3f ms</text>\n",
			left, y, w, left + w + 6, y + 11, s->kernel[i].us / 1e3);
	}
	fputs("</svg>\n", to);
}

static int write_svg(const struct summary *s, const char *path, struct err *err)
{
	FILE *to = fopen(path, "we");

	if (!to)
		return err_errno(err, "%s", path);
	print_svg(s, to);
	bool good = !ferror(to);
	good = fclose(to) == 0 && good;
	return good ? 0 : err_errno(err, "%s", path);
}

static int summarize(const char *folder, const char *svg, struct err *err)
{
	struct summary s = { 0 };
	int rc = 0;

	if (nftw(folder, on_file, OPEN_FILES, FTW_PHYS) != 0)
		return err_errno(err, "%s", folder);
	if (found_count == 0)
		return err_set(err, ERR_USAGE,
			       "%s: there is no *.pt.trace.json below it; "
			       "profiling.enable_profiling writes them",
			       folder);
	for (size_t i = 0; i < found_count; i++) {
		rc = rc ? rc : add_file(&s, found[i], err);
		free(found[i]);
	}
	free(found);
	if (s.kernels)
		qsort(s.kernel, s.kernels, sizeof(*s.kernel), by_size);
	if (s.ranks)
		qsort(s.rank, s.ranks, sizeof(*s.rank), by_rank);
	if (rc == 0)
		print_text(&s, stdout);
	if (rc == 0 && svg)
		rc = write_svg(&s, svg, err);
	free(s.edge);
	free(s.kernel);
	free(s.rank);
	return rc;
}

int command_trace(int argc, char **argv)
{
	const char *svg = argc == 5 && strcmp(argv[3], "--svg") == 0 ? argv[4] : NULL;
	struct err err = { 0 };

	if ((argc != 3 && !svg) || strcmp(argv[1], "summary") != 0)
		return command_usage("trace summary FOLDER [--svg FILE]");
	return summarize(argv[2], svg, &err) ? command_failed(&err) : EXIT_DONE;
}
