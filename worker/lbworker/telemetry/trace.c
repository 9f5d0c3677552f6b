/* SPDX-License-Identifier: MIT */
/* trace.c - spans are kept in memory while a step runs and written when it is over: one event a
 * line, in the JSON object format of the Trace Event Format, with the fields of PyTorch's
 * profiler. */
#include "worker/lbworker/telemetry/trace.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { FOLDER_MODE = 0755, SIZES = 3 };
enum { HOST_TRACK = 0, EXCHANGE_TRACK = 1, DEVICE_TRACK = 7, NCCL_TRACK = 20 };

struct span {
	const char *name; /* a literal */
	double start_us, end_us;
	size_t size[SIZES]; /* what the operation worked on; 0: nothing more */
	bool is_exchange;   /* with other ranks */
	bool on_device;     /* the device's own times: marks until the trace ends */
	uint32_t start_mark, end_mark;
};

/* When an operation was called, and where that is in the device's queue. */
struct moment {
	double host_us;
	uint32_t mark;
};

struct trace {
	const struct backend *inner;
	struct backend table;
	struct span *span;
	size_t spans, room;
	struct device *device; /* of the marks; NULL: none was made */
	double first_us;       /* host time at the first mark */
};

static struct trace *current; /* operations know their device, but not us */

static struct span *next_span(struct trace *t)
{
	if (t->spans == t->room) {
		t->room = t->room ? 2 * t->room : 1024;
		t->span = xrealloc(t->span, t->room * sizeof(*t->span));
	}
	return &t->span[t->spans++];
}

static void add_span(struct trace *t, const char *name, double start_us, size_t a, size_t b,
		     size_t c)
{
	double end_us = clock_mono_us();

	*next_span(t) = (struct span){
		.name = name, .start_us = start_us, .end_us = end_us, .size = { a, b, c }
	};
}

void trace_exchanges(struct trace *t, const struct comm_span *span, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*next_span(t) = (struct span){ .name = "exchange",
					       .start_us = span[i].start_us,
					       .end_us = span[i].end_us,
					       .size = { span[i].bytes },
					       .is_exchange = true };
}

/* As NCCL calls what sends and receives, so that readers of PyTorch's profiles know it. */
void trace_arrays(struct trace *t, const struct arrays_span *span, size_t count)
{
	for (size_t i = 0; i < count; i++)
		*next_span(t) = (struct span){ .name = "ncclDevKernel_SendRecv",
					       .start_us = span[i].start_us,
					       .end_us = span[i].start_us,
					       .size = { span[i].bytes },
					       .is_exchange = true,
					       .on_device = true,
					       .start_mark = span[i].from_mark,
					       .end_mark = span[i].to_mark };
}

void trace_anchor(struct trace *t, struct device *device)
{
	if (!t->inner->mark)
		return;
	t->device = device;
	t->first_us = clock_mono_us();
	(void)t->inner->mark(device);
}

void trace_span(struct trace *t, const char *name, double start_us)
{
	if (t)
		add_span(t, name, start_us, 0, 0, 0);
}

static struct moment begin(struct device *dev)
{
	const struct backend *be = current->inner;
	struct moment now = { .host_us = clock_mono_us() };

	if (be->mark) {
		if (!current->device)
			current->first_us = now.host_us;
		current->device = dev;
		now.mark = be->mark(dev);
	}
	return now;
}

static void end(struct device *dev, const char *name, struct moment start, size_t a, size_t b,
		size_t c)
{
	add_span(current, name, start.host_us, a, b, c);
	if (!current->inner->mark)
		return;
	struct span *s = &current->span[current->spans - 1];
	s->on_device = true;
	s->start_mark = start.mark;
	s->end_mark = current->inner->mark(dev);
}

/* --- the table: every operation, timed ------------------------------------------------------ */

static void traced_gemm(struct device *dev, const struct gemm *g)
{
	struct moment start = begin(dev);

	current->inner->gemm(dev, g);
	end(dev,
	    g->then == GEMM_GELU   ? "gemm_gelu"
	    : g->then              ? "gemm_gelu_backward"
	    : g->sum_a || g->sum_b ? "gemm_bias_backward"
				   : "gemm",
	    start, g->m, g->n, g->k);
}

#define UNPACK(...) __VA_ARGS__
#define TRACED(operation, parameters, arguments, a, b, c) \
	static void traced_##operation(struct device *dev, UNPACK parameters) \
	{ \
		struct moment start = begin(dev); \
\
		current->inner->operation(dev, UNPACK arguments); \
		end(dev, #operation, start, a, b, c); \
	}
#include "worker/lbworker/telemetry/traced_operations.h"
#undef TRACED

static void fill_table(struct trace *t)
{
	t->table = *t->inner;   /* what is not traced below is passed on */
	t->table.replay = NULL; /* a recorded pass would be one span */
	t->table.record = NULL;
	t->table.record_end = NULL;
	t->table.gemm = traced_gemm;
#define TRACED(operation, ...) t->table.operation = traced_##operation;
#include "worker/lbworker/telemetry/traced_operations.h"
#undef TRACED
}

struct trace *trace_begin(const struct backend *backend)
{
	struct trace *t = xcalloc(1, sizeof(*t));

	t->inner = backend;
	fill_table(t);
	current = t;
	return t;
}

const struct backend *trace_backend(struct trace *t)
{
	return &t->table;
}

/* --- the file ------------------------------------------------------------------------------- */

static bool is_copy(const char *name)
{
	return strcmp(name, "upload") == 0 || strcmp(name, "download") == 0;
}

static void write_sizes(FILE *out, const struct span *s)
{
	fprintf(out, "\"size\":\"%zu", s->size[0]);
	for (int i = 1; i < SIZES && s->size[i]; i++)
		fprintf(out, "x%zu", s->size[i]);
	fputc('"', out);
}

/* As PyTorch's profiler names them. */
static const char *device_name(const char *name)
{
	return strcmp(name, "upload") == 0     ? "Memcpy HtoD (Pinned -> Device)"
	       : strcmp(name, "download") == 0 ? "Memcpy DtoH (Device -> Pinned)"
	       : strcmp(name, "zero") == 0     ? "Memset (Device)"
					       : name;
}

/* What the host did; for an operation on a device that is queueing it. Readers of PyTorch's
 * profiles find a step by the name that its profiler gives it. */
static void write_span(FILE *out, const struct span *s, size_t number, int64_t step)
{
	char whole[40];

	snprintf(whole, sizeof(whole), "ProfilerStep#%" PRId64, step);
	fprintf(out,
		",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,"
		"\"dur\":%.3f",
		strcmp(s->name, "step") == 0 ? whole : s->name,
		!s->size[0] && !s->is_exchange ? "user_annotation"
		: s->on_device                 ? "cuda_runtime"
					       : "cpu_op",
		s->is_exchange ? EXCHANGE_TRACK : HOST_TRACK, s->start_us, s->end_us - s->start_us);
	if (s->size[0]) {
		fputs(",\"args\":{", out);
		write_sizes(out, s);
		if (s->on_device)
			fprintf(out, ",\"correlation\":%zu", number);
		fputc('}', out);
	}
	fputc('}', out);
}

/* What the device did, by its own clock, in words that PyTorch's profiler uses. */
static void write_device_span(FILE *out, const struct trace *t, const struct span *s, size_t number)
{
	double start = t->inner->mark_us(t->device, s->start_mark);
	double stop = t->inner->mark_us(t->device, s->end_mark);

	int track = s->is_exchange ? NCCL_TRACK : DEVICE_TRACK;

	fprintf(out,
		",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":0,\"tid\":%d,\"ts\":%.3f,"
		"\"dur\":%.3f,\"args\":{\"device\":0,\"stream\":%d,\"correlation\":%zu,",
		device_name(s->name),
		is_copy(s->name)               ? "gpu_memcpy"
		: strcmp(s->name, "zero") == 0 ? "gpu_memset"
					       : "kernel",
		track, t->first_us + start, stop - start, track, number);
	write_sizes(out, s);
	fputs("}}", out);
}

static void write_track(FILE *out, int tid, const char *name)
{
	fprintf(out,
		",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,\"args\":{\"name\":"
		"\"%s\"}}",
		tid, name);
}

static int write_file(const struct trace *t, const char *path, const struct trace_place *place,
		      struct err *err)
{
	FILE *out = fopen(path, "we");
	int rc = 0;

	if (!out)
		return err_errno(err, "%s", path);
	/* HolisticTraceAnalysis looks for the rank with this very space before the number. */
	fprintf(out,
		"{\"schemaVersion\":1,\"distributedInfo\":{\"rank\": %d,\"world_size\": %d},"
		"\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":\"rank %d, "
		"%s\"}}",
		place->rank, place->world, place->rank, t->inner->name);
	write_track(out, HOST_TRACK, "host");
	if (place->world > 1)
		write_track(out, EXCHANGE_TRACK, "exchanges with other ranks");
	if (t->device)
		write_track(out, DEVICE_TRACK, "stream 7, device 0");
	if (t->device && place->world > 1)
		write_track(out, NCCL_TRACK, "stream 20, device 0, communication");
	for (size_t i = 0; i < t->spans; i++)
		write_span(out, &t->span[i], i + 1, place->step);
	for (size_t i = 0; t->device && i < t->spans; i++)
		if (t->span[i].on_device)
			write_device_span(out, t, &t->span[i], i + 1);
	fputs("\n]}\n", out);
	if (ferror(out))
		rc = err_errno(err, "%s", path);
	if (fclose(out) != 0 && rc == 0)
		rc = err_errno(err, "%s", path);
	return rc;
}

static double unix_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

int trace_end(struct trace *t, const struct trace_place *place, struct err *err)
{
	if (!t)
		return 0;
	char *parent = path_join("%s/iteration_%" PRId64, place->folder, place->step);
	char *path = path_join("%s/rank%d.%.0f.pt.trace.json", parent, place->rank, unix_ms());
	int rc = folder_make(parent, FOLDER_MODE, err) ? -1 : write_file(t, path, place, err);

	if (t->device)
		t->inner->marks_clear(t->device);
	free(path);
	free(parent);
	free(t->span);
	free(t);
	current = NULL;
	return rc;
}
