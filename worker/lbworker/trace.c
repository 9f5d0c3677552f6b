/* SPDX-License-Identifier: MIT */
/* trace.c - spans are kept in memory while a step runs and written when it is over: one event a line,
 * in the JSON array format of the Trace Event Format, which readers accept even when cut short. */
#include "worker/lbworker/trace.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "common/files.h"
#include "common/mem.h"

enum { FOLDER_MODE = 0755, SIZES = 3 };

struct span {
	const char *name;		/* a literal */
	double start_us, end_us;
	size_t size[SIZES];		/* what the operation worked on; 0: nothing more */
};

struct trace {
	const struct backend *inner;
	struct backend table;
	struct span *span;
	size_t spans, room;
};

static struct trace *current;		/* operations know their device, but not us */

double trace_now(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec;
}

static void add_span(struct trace *t, const char *name, double start_us, size_t a, size_t b,
		     size_t c)
{
	double end_us = trace_now();

	if (t->spans == t->room) {
		t->room = t->room ? 2 * t->room : 1024;
		t->span = xrealloc(t->span, t->room * sizeof(*t->span));
	}
	t->span[t->spans++] = (struct span){ name, start_us, end_us, { a, b, c } };
}

void trace_span(struct trace *t, const char *name, double start_us)
{
	if (t)
		add_span(t, name, start_us, 0, 0, 0);
}

/* --- the table: every operation, timed ------------------------------------------------------ */

static void traced_gemm(struct device *dev, const struct gemm *g)
{
	double start = trace_now();

	current->inner->gemm(dev, g);
	add_span(current, "gemm", start, g->m, g->n, g->k);
}

static void traced_embed_forward(struct device *dev, void *out, const float *table,
				 const int32_t *tokens, size_t rows, size_t dim)
{
	double start = trace_now();

	current->inner->embed_forward(dev, out, table, tokens, rows, dim);
	add_span(current, "embed_forward", start, rows, dim, 0);
}

static void traced_embed_backward(struct device *dev, float *dtable, const void *dout,
				  const int32_t *tokens, size_t rows, size_t dim)
{
	double start = trace_now();

	current->inner->embed_backward(dev, dtable, dout, tokens, rows, dim);
	add_span(current, "embed_backward", start, rows, dim, 0);
}

static void traced_rmsnorm_forward(struct device *dev, void *out, float *rstd, void *sum,
				   const void *x, const void *delta, const float *weight,
				   size_t rows, size_t dim, float eps)
{
	double start = trace_now();

	current->inner->rmsnorm_forward(dev, out, rstd, sum, x, delta, weight, rows, dim, eps);
	add_span(current, "rmsnorm_forward", start, rows, dim, 0);
}

static void traced_rmsnorm_backward(struct device *dev, void *dx, float *dweight,
				    const void *dout, const void *x, const float *rstd,
				    const float *weight, size_t rows, size_t dim,
				    bool accumulate)
{
	double start = trace_now();

	current->inner->rmsnorm_backward(dev, dx, dweight, dout, x, rstd, weight, rows, dim,
					 accumulate);
	add_span(current, "rmsnorm_backward", start, rows, dim, 0);
}

static void traced_rope(struct device *dev, void *qkv, const float *table,
			const struct attention *a, bool inverse)
{
	double start = trace_now();

	current->inner->rope(dev, qkv, table, a, inverse);
	add_span(current, "rope", start, a->batch, a->seq, a->heads);
}

static void traced_attention_forward(struct device *dev, void *out, float *lse,
				     const void *qkv, const struct attention *a)
{
	double start = trace_now();

	current->inner->attention_forward(dev, out, lse, qkv, a);
	add_span(current, "attention_forward", start, a->batch, a->seq, a->heads);
}

static void traced_attention_backward(struct device *dev, void *dqkv, const void *dout,
				      const void *out, const float *lse, const void *qkv,
				      const struct attention *a)
{
	double start = trace_now();

	current->inner->attention_backward(dev, dqkv, dout, out, lse, qkv, a);
	add_span(current, "attention_backward", start, a->batch, a->seq, a->heads);
}

static void traced_swiglu_forward(struct device *dev, void *out, const void *gate_up,
				  size_t rows, size_t width)
{
	double start = trace_now();

	current->inner->swiglu_forward(dev, out, gate_up, rows, width);
	add_span(current, "swiglu_forward", start, rows, width, 0);
}

static void traced_swiglu_backward(struct device *dev, void *dgate_up, const void *dout,
				   const void *gate_up, size_t rows, size_t width)
{
	double start = trace_now();

	current->inner->swiglu_backward(dev, dgate_up, dout, gate_up, rows, width);
	add_span(current, "swiglu_backward", start, rows, width, 0);
}

static void traced_layernorm_forward(struct device *dev, void *out, float *mean, float *rstd,
				     void *sum, const void *x, const void *delta,
				     const float *weight, const float *bias, size_t rows,
				     size_t dim, float eps)
{
	double start = trace_now();

	current->inner->layernorm_forward(dev, out, mean, rstd, sum, x, delta, weight, bias, rows,
					  dim, eps);
	add_span(current, "layernorm_forward", start, rows, dim, 0);
}

static void traced_layernorm_backward(struct device *dev, void *dx, float *dweight, float *dbias,
				      const void *dout, const void *x, const float *mean,
				      const float *rstd, const float *weight, size_t rows,
				      size_t dim, bool accumulate)
{
	double start = trace_now();

	current->inner->layernorm_backward(dev, dx, dweight, dbias, dout, x, mean, rstd, weight,
					   rows, dim, accumulate);
	add_span(current, "layernorm_backward", start, rows, dim, 0);
}

static void traced_bias_forward(struct device *dev, void *y, const float *bias, size_t rows,
				size_t dim)
{
	double start = trace_now();

	current->inner->bias_forward(dev, y, bias, rows, dim);
	add_span(current, "bias_forward", start, rows, dim, 0);
}

static void traced_bias_backward(struct device *dev, float *dbias, const void *dy, size_t rows,
				 size_t dim, bool accumulate)
{
	double start = trace_now();

	current->inner->bias_backward(dev, dbias, dy, rows, dim, accumulate);
	add_span(current, "bias_backward", start, rows, dim, 0);
}

static void traced_positions_forward(struct device *dev, void *x, const float *table, size_t rows,
				     size_t seq, size_t dim)
{
	double start = trace_now();

	current->inner->positions_forward(dev, x, table, rows, seq, dim);
	add_span(current, "positions_forward", start, rows, dim, 0);
}

static void traced_positions_backward(struct device *dev, float *dtable, const void *dx,
				      size_t rows, size_t seq, size_t dim, bool accumulate)
{
	double start = trace_now();

	current->inner->positions_backward(dev, dtable, dx, rows, seq, dim, accumulate);
	add_span(current, "positions_backward", start, rows, dim, 0);
}

static void traced_gelu_forward(struct device *dev, void *out, const void *x, size_t count,
				enum gelu_form form)
{
	double start = trace_now();

	current->inner->gelu_forward(dev, out, x, count, form);
	add_span(current, "gelu_forward", start, count, 0, 0);
}

static void traced_gelu_backward(struct device *dev, void *dx, const void *dout, const void *x,
				 size_t count, enum gelu_form form)
{
	double start = trace_now();

	current->inner->gelu_backward(dev, dx, dout, x, count, form);
	add_span(current, "gelu_backward", start, count, 0, 0);
}

static void traced_cross_entropy(struct device *dev, float *loss, void *logits,
				 const int32_t *targets, size_t rows, size_t vocab, float scale)
{
	double start = trace_now();

	current->inner->cross_entropy(dev, loss, logits, targets, rows, vocab, scale);
	add_span(current, "cross_entropy", start, rows, vocab, 0);
}

static void traced_adamw(struct device *dev, float *weight, void *m, void *v,
			 const float *grad, size_t count, const struct adamw *a)
{
	double start = trace_now();

	current->inner->adamw(dev, weight, m, v, grad, count, a);
	add_span(current, "adamw", start, count, 0, 0);
}

static void traced_upload(struct device *dev, void *to, const void *from_host, size_t bytes)
{
	double start = trace_now();

	current->inner->upload(dev, to, from_host, bytes);
	add_span(current, "upload", start, bytes, 0, 0);
}

static void traced_download(struct device *dev, void *to_host, const void *from, size_t bytes)
{
	double start = trace_now();

	current->inner->download(dev, to_host, from, bytes);
	add_span(current, "download", start, bytes, 0, 0);
}

static void traced_zero(struct device *dev, void *memory, size_t bytes)
{
	double start = trace_now();

	current->inner->zero(dev, memory, bytes);
	add_span(current, "zero", start, bytes, 0, 0);
}

static double traced_sum_squares(struct device *dev, const float *x, size_t count)
{
	double start = trace_now(), sum = current->inner->sum_squares(dev, x, count);

	add_span(current, "sum_squares", start, count, 0, 0);
	return sum;
}

static void fill_table(struct trace *t)
{
	t->table = *t->inner;		/* what is not traced below is passed on */
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

static void write_span(FILE *out, const struct span *s)
{
	fprintf(out, ",\n{\"ph\":\"X\",\"name\":\"%s\",\"cat\":\"%s\",\"pid\":0,\"tid\":0,\"ts\":%.3f,"
		"\"dur\":%.3f", s->name, s->size[0] ? "op" : "loop", s->start_us,
		s->end_us - s->start_us);
	if (s->size[0]) {
		fprintf(out, ",\"args\":{\"size\":\"%zu", s->size[0]);
		for (int i = 1; i < SIZES && s->size[i]; i++)
			fprintf(out, "x%zu", s->size[i]);
		fputs("\"}", out);
	}
	fputc('}', out);
}

static int write_file(const struct trace *t, const char *path, struct err *err)
{
	FILE *out = fopen(path, "we");
	int rc = 0;

	if (!out)
		return err_errno(err, "%s", path);
	fprintf(out, "[{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":0,\"args\":{\"name\":"
		"\"rank 0, %s\"}}", t->inner->name);
	for (size_t i = 0; i < t->spans; i++)
		write_span(out, &t->span[i]);
	fputs("\n]\n", out);
	if (ferror(out))
		rc = err_errno(err, "%s", path);
	if (fclose(out) != 0 && rc == 0)
		rc = err_errno(err, "%s", path);
	return rc;
}

int trace_end(struct trace *t, const char *folder, int64_t step, struct err *err)
{
	if (!t)
		return 0;
	char *parent = xasprintf("%s/iteration_%" PRId64, folder, step);
	char *path = xasprintf("%s/rank0_trace.json", parent);
	int rc = folder_make(parent, FOLDER_MODE, err) ? -1 : write_file(t, path, err);

	free(path);
	free(parent);
	free(t->span);
	free(t);
	current = NULL;
	return rc;
}
