/* SPDX-License-Identifier: MIT */
/* trace.c - spans are kept in memory while a step runs and written when it is over: one event a line,
 * in the JSON object format of the Trace Event Format, with the fields of PyTorch's profiler. */
#include "worker/lbworker/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/mem.h"

enum { FOLDER_MODE = 0755, SIZES = 3 };

struct span {
	const char *name;		/* a literal */
	double start_us, end_us;
	size_t size[SIZES];		/* what the operation worked on; 0: nothing more */
	bool on_device;			/* the device's own times: marks until the trace ends */
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
	struct device *device;		/* of the marks; NULL: none was made */
	double first_us;		/* host time at the first mark */
};

static struct trace *current;		/* operations know their device, but not us */

static void add_span(struct trace *t, const char *name, double start_us, size_t a, size_t b,
		     size_t c)
{
	double end_us = clock_mono_us();

	if (t->spans == t->room) {
		t->room = t->room ? 2 * t->room : 1024;
		t->span = xrealloc(t->span, t->room * sizeof(*t->span));
	}
	t->span[t->spans++] = (struct span){ .name = name, .start_us = start_us,
					       .end_us = end_us, .size = { a, b, c } };
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
	end(dev, g->then == GEMM_GELU ? "gemm_gelu" : g->then ? "gemm_gelu_backward"
		 : g->sum_a || g->sum_b ? "gemm_bias_backward" : "gemm", start, g->m, g->n, g->k);
}

static void traced_embed_forward(struct device *dev, void *out, const float *table,
				 const int32_t *tokens, size_t rows, size_t dim)
{
	struct moment start = begin(dev);

	current->inner->embed_forward(dev, out, table, tokens, rows, dim);
	end(dev, "embed_forward", start, rows, dim, 0);
}

static void traced_embed_backward(struct device *dev, float *dtable, const void *dout,
				  const int32_t *tokens, size_t rows, size_t dim)
{
	struct moment start = begin(dev);

	current->inner->embed_backward(dev, dtable, dout, tokens, rows, dim);
	end(dev, "embed_backward", start, rows, dim, 0);
}

static void traced_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum,
				   const void *x, const void *delta, const float *weight,
				   size_t rows, size_t dim, float eps)
{
	struct moment start = begin(dev);

	current->inner->rmsnorm_forward(dev, out, rstd, sum, x, delta, weight, rows, dim, eps);
	end(dev, "rmsnorm_forward", start, rows, dim, 0);
}

static void traced_rmsnorm_backward(struct device *dev, void *dx, float *dweight,
				    const void *dout, const void *x, const float *rstd,
				    const float *weight, size_t rows, size_t dim,
				    bool accumulate)
{
	struct moment start = begin(dev);

	current->inner->rmsnorm_backward(dev, dx, dweight, dout, x, rstd, weight, rows, dim,
					 accumulate);
	end(dev, "rmsnorm_backward", start, rows, dim, 0);
}

static void traced_rope(struct device *dev, void *qkv, const float *table,
			const struct attention *a, bool inverse)
{
	struct moment start = begin(dev);

	current->inner->rope(dev, qkv, table, a, inverse);
	end(dev, "rope", start, a->batch, a->seq, a->heads);
}

static void traced_attention_forward(struct device *dev, void *out, float *lse,
				     const void *qkv, const struct attention *a)
{
	struct moment start = begin(dev);

	current->inner->attention_forward(dev, out, lse, qkv, a);
	end(dev, "attention_forward", start, a->batch, a->seq, a->heads);
}

static void traced_attention_backward(struct device *dev, void *dqkv, const void *dout,
				      const void *out, const float *lse, const void *qkv,
				      const struct attention *a)
{
	struct moment start = begin(dev);

	current->inner->attention_backward(dev, dqkv, dout, out, lse, qkv, a);
	end(dev, "attention_backward", start, a->batch, a->seq, a->heads);
}

static void traced_swiglu_forward(struct device *dev, void *out, const void *gate_up,
				  size_t rows, size_t width)
{
	struct moment start = begin(dev);

	current->inner->swiglu_forward(dev, out, gate_up, rows, width);
	end(dev, "swiglu_forward", start, rows, width, 0);
}

static void traced_swiglu_backward(struct device *dev, void *dgate_up, const void *dout,
				   const void *gate_up, size_t rows, size_t width)
{
	struct moment start = begin(dev);

	current->inner->swiglu_backward(dev, dgate_up, dout, gate_up, rows, width);
	end(dev, "swiglu_backward", start, rows, width, 0);
}

static void traced_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd,
				     void *sum, const void *x, const void *delta,
				     const float *weight, const float *bias, size_t rows,
				     size_t dim, float eps)
{
	struct moment start = begin(dev);

	current->inner->layernorm_forward(dev, out, mean, rstd, sum, x, delta, weight, bias, rows,
					  dim, eps);
	end(dev, "layernorm_forward", start, rows, dim, 0);
}

static void traced_layernorm_backward(struct device *dev, void *dx, float *dweight, float *dbias,
				      const void *dout, const void *x, const float *mean,
				      const float *rstd, const float *weight, size_t rows,
				      size_t dim, bool accumulate)
{
	struct moment start = begin(dev);

	current->inner->layernorm_backward(dev, dx, dweight, dbias, dout, x, mean, rstd, weight,
					   rows, dim, accumulate);
	end(dev, "layernorm_backward", start, rows, dim, 0);
}

static void traced_bias_forward(struct device *dev, void *y, const float *bias, size_t rows,
				size_t dim)
{
	struct moment start = begin(dev);

	current->inner->bias_forward(dev, y, bias, rows, dim);
	end(dev, "bias_forward", start, rows, dim, 0);
}

static void traced_bias_backward(struct device *dev, float *dbias, const void *dy, size_t rows,
				 size_t dim, bool accumulate)
{
	struct moment start = begin(dev);

	current->inner->bias_backward(dev, dbias, dy, rows, dim, accumulate);
	end(dev, "bias_backward", start, rows, dim, 0);
}

static void traced_positions_forward(struct device *dev, void *x, const float *table, size_t rows,
				     size_t seq, size_t dim)
{
	struct moment start = begin(dev);

	current->inner->positions_forward(dev, x, table, rows, seq, dim);
	end(dev, "positions_forward", start, rows, dim, 0);
}

static void traced_positions_backward(struct device *dev, float *dtable, const void *dx,
				      size_t rows, size_t seq, size_t dim, bool accumulate)
{
	struct moment start = begin(dev);

	current->inner->positions_backward(dev, dtable, dx, rows, seq, dim, accumulate);
	end(dev, "positions_backward", start, rows, dim, 0);
}

static void traced_gelu_forward(struct device *dev, void *out, const void *x, size_t count,
				enum gelu_form form)
{
	struct moment start = begin(dev);

	current->inner->gelu_forward(dev, out, x, count, form);
	end(dev, "gelu_forward", start, count, 0, 0);
}

static void traced_gelu_backward(struct device *dev, void *dx, const void *dout, const void *x,
				 size_t count, enum gelu_form form)
{
	struct moment start = begin(dev);

	current->inner->gelu_backward(dev, dx, dout, x, count, form);
	end(dev, "gelu_backward", start, count, 0, 0);
}

static void traced_cross_entropy(struct device *dev, float *loss, void *logits,
				 const int32_t *targets, size_t rows, size_t vocab, float scale)
{
	struct moment start = begin(dev);

	current->inner->cross_entropy(dev, loss, logits, targets, rows, vocab, scale);
	end(dev, "cross_entropy", start, rows, vocab, 0);
}

static void traced_adamw(struct device *dev, float *weight, void *m, void *v,
			 const float *grad, size_t count, const struct adamw *a,
			 const struct decision *d)
{
	struct moment start = begin(dev);

	current->inner->adamw(dev, weight, m, v, grad, count, a, d);
	end(dev, "adamw", start, count, 0, 0);
}

static void traced_upload(struct device *dev, void *to, const void *from_host, size_t bytes)
{
	struct moment start = begin(dev);

	current->inner->upload(dev, to, from_host, bytes);
	end(dev, "upload", start, bytes, 0, 0);
}

static void traced_download(struct device *dev, void *to_host, const void *from, size_t bytes)
{
	struct moment start = begin(dev);

	current->inner->download(dev, to_host, from, bytes);
	end(dev, "download", start, bytes, 0, 0);
}

static void traced_zero(struct device *dev, void *memory, size_t bytes)
{
	struct moment start = begin(dev);

	current->inner->zero(dev, memory, bytes);
	end(dev, "zero", start, bytes, 0, 0);
}

static void traced_sum_squares(struct device *dev, double *sum, const float *x, size_t count)
{
	struct moment start = begin(dev);

	current->inner->sum_squares(dev, sum, x, count);
	end(dev, "sum_squares", start, count, 0, 0);
}

static void fill_table(struct trace *t)
{
	t->table = *t->inner;		/* what is not traced below is passed on */
	t->table.replay = NULL;		/* a recorded pass would be one span */
	t->table.record = NULL;
	t->table.record_end = NULL;
	t->table.gemm = traced_gemm;
	t->table.embed_forward = traced_embed_forward;
	t->table.embed_backward = traced_embed_backward;
	t->table.rmsnorm_forward = traced_rmsnorm_forward;
	t->table.rmsnorm_backward = traced_rmsnorm_backward;
	t->table.rope = traced_rope;
	t->table.attention_forward = traced_attention_forward;
	t->table.attention_backward = traced_attention_backward;
	t->table.swiglu_forward = traced_swiglu_forward;
	t->table.swiglu_backward = traced_swiglu_backward;
	t->table.layernorm_forward = traced_layernorm_forward;
	t->table.layernorm_backward = traced_layernorm_backward;
	t->table.bias_forward = traced_bias_forward;
	t->table.bias_backward = traced_bias_backward;
	t->table.positions_forward = traced_positions_forward;
	t->table.positions_backward = traced_positions_backward;
	t->table.gelu_forward = traced_gelu_forward;
	t->table.gelu_backward = traced_gelu_backward;
	t->table.cross_entropy = traced_cross_entropy;
	t->table.adamw = traced_adamw;
	t->table.upload = traced_upload;
	t->table.download = traced_download;
	t->table.zero = traced_zero;
	t->table.sum_squares = traced_sum_squares;
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

/* What the host did; for an operation on a device that is queueing it. Readers of PyTorch's profiles
 * find a step by the name that its profiler gives it. */
static void write_span(FILE *out, const struct span *s, size_t number, int64_t step)
{
	char whole[40];

	snprintf(whole, sizeof(whole), "ProfilerStep#%" PRId64, step);
	fprintf(out, ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":0,\"tid\":0,\"ts\":%.3f,"
		"\"dur\":%.3f", strcmp(s->name, "step") == 0 ? whole : s->name,
		!s->size[0] ? "user_annotation" : s->on_device ? "cuda_runtime" : "cpu_op",
		s->start_us, s->end_us - s->start_us);
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

	fprintf(out, ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":0,\"tid\":7,\"ts\":%.3f,"
		"\"dur\":%.3f,\"args\":{\"device\":0,\"stream\":7,\"correlation\":%zu,", s->name,
		is_copy(s->name) ? "gpu_memcpy" : strcmp(s->name, "zero") == 0 ? "gpu_memset" : "kernel",
		t->first_us + start, stop - start, number);
	write_sizes(out, s);
	fputs("}}", out);
}

static void write_track(FILE *out, int tid, const char *name)
{
	fprintf(out, ",\n{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":0,\"tid\":%d,\"args\":{\"name\":"
		"\"%s\"}}", tid, name);
}

static int write_file(const struct trace *t, const char *path, int64_t step, struct err *err)
{
	FILE *out = fopen(path, "we");
	int rc = 0;

	if (!out)
		return err_errno(err, "%s", path);
	/* HolisticTraceAnalysis looks for the rank with this very space before the number. */
	fprintf(out, "{\"schemaVersion\":1,\"distributedInfo\":{\"rank\": 0,\"world_size\": 1},"
		"\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n{\"ph\":\"M\",\"name\":\"process_name\","
		"\"pid\":0,\"args\":{\"name\":\"rank 0, %s\"}}", t->inner->name);
	write_track(out, 0, "host");
	if (t->device)
		write_track(out, 7, "stream 7, device 0");
	for (size_t i = 0; i < t->spans; i++)
		write_span(out, &t->span[i], i + 1, step);
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

int trace_end(struct trace *t, const char *folder, int64_t step, struct err *err)
{
	if (!t)
		return 0;
	char *parent = xasprintf("%s/iteration_%" PRId64, folder, step);
	char *path = xasprintf("%s/rank0.%.0f.pt.trace.json", parent, unix_ms());
	int rc = folder_make(parent, FOLDER_MODE, err) ? -1 : write_file(t, path, step, err);

	if (t->device)
		t->inner->marks_clear(t->device);
	free(path);
	free(parent);
	free(t->span);
	free(t);
	current = NULL;
	return rc;
}
