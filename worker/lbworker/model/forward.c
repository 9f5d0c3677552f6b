/* SPDX-License-Identifier: MIT */
/* forward.c - the program of one micro-batch: forward, head with loss, backward.
 *
 * What backward needs again is kept per layer (struct layer_kept); everything else lives in one
 * set of buffers that all layers share (activations.h). */
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/model/activations.h"
#include "worker/lbworker/model/context.h"
#include "worker/lbworker/model/split.h"
#include "worker/lbworker/model/tables.h"

/* What is wanted of a pass. */
struct head_pass {
	bool gradients, accumulate;
	float scale;
	double *loss_sum; /* device; of this pass, or added to when is_summed */
	bool is_summed;
	void (*behind)(void *arg); /* may be NULL */
	void *arg;
};

/* --- forward -------------------------------------------------------------------------------- */

/* Where the document of each token begins: behind a separator, or where the sequence does. */
static void feed_documents(const struct model *m, const int32_t *tokens)
{
	size_t rows = m->batch * m->options.seq;
	int32_t *begin = xmalloc(rows * sizeof(*begin));

	for (size_t i = 0; i < rows; i++) {
		size_t at = i % m->options.seq;
		begin[i] = at == 0                                 ? 0
			   : tokens[i - 1] == m->options.separator ? (int32_t)at
								   : begin[i - 1];
	}
	m->backend->upload(m->device, m->activations->shared.begin, begin, rows * sizeof(*begin));
	free(begin);
}

static void feed_some(const struct model *m, size_t at, const int32_t *tokens,
		      const int32_t *targets, size_t from, size_t rows)
{
	struct model_activations *a = m->activations;

	m->backend->upload(m->device, a->tokens + at, tokens + from, rows * sizeof(*tokens));
	m->backend->upload(m->device, a->targets + at, targets + from, rows * sizeof(*targets));
}

/* Of each sequence what is ours, one run or two. */
static void feed(const struct model *m, const int32_t *tokens, const int32_t *targets)
{
	size_t run = context_run(m);

	if (m->activations->shared.begin)
		feed_documents(m, tokens);
	if (!context_is_shared(m)) {
		feed_some(m, 0, tokens, targets, 0, m->batch * m->seq);
		return;
	}
	for (size_t row = 0; row < m->batch * m->seq; row += run)
		feed_some(m, row, tokens, targets,
			  row / m->seq * m->options.seq + context_position(m, row % m->seq), run);
}

/* Rows of the stream before the first layer; all that follows works on these. */
static void begin(const struct model *m, size_t first, size_t rows)
{
	struct model_activations *a = m->activations;
	void *x = m->whole ? a->shared.delta : a->layer[0].x;

	a->shared.first = first;
	a->shared.rows = rows;
	model_soon(m, m->units - 1);
	model_soon(m, 0);
	model_soon(m, 1 + model_first_layer(m));
	model_need(m, m->units - 1);
	model_need(m, 0);
	tables_forward(m, x, first, rows);
	split_reduce(m, &a->shared, a->layer[0].x, a->shared.delta, rows, m->shape.dim);
	model_release(m, 0);
}

/* The stream has come from the stage before. */
static void begin_behind(const struct model *m)
{
	m->activations->shared.first = 0;
	m->activations->shared.rows = m->batch * m->seq;
	model_need(m, m->units - 1);
}

static void through_layers(const struct model *m)
{
	struct model_activations *a = m->activations;
	const void *before = NULL;

	for (size_t l = model_first_layer(m); l < model_end_layer(m); l++) {
		model_need(m, 1 + l);
		if (l + 1 < model_end_layer(m))
			model_soon(m, 2 + l);
		else if (model_is_last_stage(m))
			model_soon(m, model_unit_of_head(m));
		layer_forward(m, l, &a->layer[l], &a->shared, before);
		model_release(m, 1 + l);
		before = layer_stream(m, &a->layer[l]);
	}
	norm_forward(m, model_outer(m, PARAM_FINAL_NORM), model_outer(m, PARAM_FINAL_NORM_BIAS),
		     &a->final_norm, a->final, a->last, before, a->shared.delta,
		     split_rows(m, a->shared.rows));
}

static void forward(const struct model *m, const struct head_pass *pass)
{
	(void)pass;
	if (model_is_first_stage(m))
		begin(m, 0, m->batch * m->seq);
	else
		begin_behind(m);
	through_layers(m);
}

/* --- head and loss, by chunks of rows ------------------------------------------------------- */

static struct linear head_of(const struct model *m)
{
	return (struct linear){ .weight = model_outer(m, PARAM_HEAD),
				.bias = ABSENT,
				.in = m->shape.dim,
				.out = m->shape.vocab,
				.scale = m->scales.head,
				.layer = m->shape.layers,
				.module = MODULE_OUTPUT };
}

static void cap_logits(const struct model *m, size_t rows)
{
	const struct model_shape *s = &m->shape;

	if (s->logit_softcap > 0)
		m->backend->softcap(m->device, m->activations->logits, rows * s->vocab,
				    (float)s->logit_softcap);
}

/* Of rows of logits, which become their gradient where it is wanted. */
static void losses_of(const struct model *m, const struct head_pass *pass, size_t row, size_t rows)
{
	struct model_activations *a = m->activations;
	const struct backend *be = m->backend;
	const bool trains = pass->gradients;
	const struct loss_terms terms = { .smoothing = trains ? m->options.smoothing : 0.0f,
					  .z_loss = trains ? m->options.z_loss : 0.0f,
					  .softcap = (float)m->shape.logit_softcap };
	const float scale = trains ? pass->scale : 0.0f;

	cap_logits(m, rows);
	if (terms.smoothing > 0 || terms.z_loss > 0 || terms.softcap > 0)
		be->cross_entropy_with(m->device, a->loss + row, a->logits, a->targets + row, rows,
				       m->shape.vocab, scale, &terms);
	else
		split_loss(m, &a->shared, a->loss + row, a->logits, a->targets + row, rows, scale);
}

/* Losses into a->loss; with gradients also shared.dnormed and the head's weight gradient. */
static void head_and_loss(const struct model *m, const struct head_pass *pass)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	struct linear head = head_of(m);
	size_t all = m->batch * m->seq, unit = model_unit_of_head(m);
	const void *final = split_gather(m, a->shared.gathered, a->final, all, s->dim);

	model_need(m, unit);
	if (pass->gradients)
		model_soon(m, model_end_layer(m)); /* the last one's unit */
	for (size_t row = 0; row < all; row += a->chunk_rows, head.chunk++) {
		size_t rows = all - row < a->chunk_rows ? all - row : a->chunk_rows;
		const void *x = (const char *) final +
				row * s->dim * compute_bytes(m->options.compute);
		linear_forward(m, &head, a->logits, x, rows, 0);
		losses_of(m, pass, row, rows);
		if (!pass->gradients)
			continue;
		linear_backward_weight(m, &head, a->logits, x, rows, pass->accumulate || row > 0);
		linear_backward_input(m, &head, model_row(m, a->shared.dnormed, row, s->dim),
				      a->logits, rows);
		backend_join(m->backend, m->device);
	}
	model_release(m, unit);
	if (pass->gradients)
		split_reduce(m, &a->shared, a->shared.dnormed, a->shared.dnormed, all, s->dim);
	if (pass->gradients && !s->tied)
		model_done(m, unit);
}

/* --- backward ------------------------------------------------------------------------------- */

/* From the gradient of what comes out of the last layer here, in shared.dx. */
static void backward_layers(const struct model *m, bool accumulate)
{
	struct model_activations *a = m->activations;

	for (size_t l = model_end_layer(m); l-- > model_first_layer(m);) {
		model_need(m, 1 + l);
		if (l > model_first_layer(m))
			model_soon(m, l);
		layer_again(m, l, &a->layer[l], &a->shared);
		layer_backward(m, l, &a->layer[l], &a->shared, accumulate);
		model_release(m, 1 + l);
		model_done(m, 1 + l);
	}
	if (model_is_first_stage(m)) {
		tables_backward(m, accumulate);
		model_done(m, 0);
	}
	model_done(m, m->units - 1);
}

static void backward(const struct model *m, const struct head_pass *pass)
{
	struct model_activations *a = m->activations;
	bool accumulate = pass->accumulate;

	m->backend->zero(m->device, a->shared.dx,
			 split_rows(m, m->batch * m->seq) * m->shape.dim *
				 compute_bytes(m->options.compute));
	norm_backward(m, model_outer(m, PARAM_FINAL_NORM), model_outer(m, PARAM_FINAL_NORM_BIAS),
		      &a->final_norm, a->shared.dx, a->shared.dnormed, a->last, accumulate);
	experts_push(m, a->layer, &a->shared, pass->scale);
	backward_layers(m, accumulate);
}

/* --- the two passes ------------------------------------------------------------------------- */

static int collect_loss(const struct model *m, double *loss_sum, struct err *err)
{
	char why[BACKEND_TEXT_BYTES];

	m->backend->download(m->device, loss_sum, m->activations->loss_sum, sizeof(*loss_sum));
	if (m->backend->finish(m->device, why))
		return err_set(err, ERR_INTERNAL, "%s", why);
	return 0;
}

/* `what` under a name that profilers show. */
static void named(const struct model *m, const char *name, const struct head_pass *pass,
		  void (*what)(const struct model *, const struct head_pass *))
{
	backend_range(m->backend, m->device, name);
	what(m, pass);
	backend_range_end(m->backend, m->device);
}

/* The number of a pass as a program of the device: the same number, the same operations. */
static uint64_t program_of(const struct model *m, const struct head_pass *pass)
{
	uint32_t scale;

	memcpy(&scale, &pass->scale, sizeof(scale));
	uint64_t watched = m->watch.program ? m->watch.program(m->watch.arg) : 0;
	/* a recipe of another step is another program */
	watched ^= precision_program(m->precision);
	return (watched ^ (uint64_t)scale) << 4 | (pass->behind ? 8 : 0) |
	       (pass->loss_sum != m->activations->loss_sum ? 4 : 0) | (pass->gradients ? 2 : 0) |
	       (pass->accumulate ? 1 : 0);
}

static void sum_losses(const struct model *m, const struct head_pass *pass)
{
	m->backend->sum_losses(m->device, pass->loss_sum, m->activations->loss, m->batch * m->seq,
			       pass->is_summed);
}

static void queue(const struct model *m, const struct head_pass *pass)
{
	named(m, "forward", pass, forward);
	named(m, "head and loss", pass, head_and_loss);
	sum_losses(m, pass);
	if (pass->gradients)
		named(m, "backward", pass, backward);
	if (pass->behind)
		pass->behind(pass->arg);
}

/* Tokens and targets are on the device; all the rest of a pass. */
static void run(const struct model *m, const struct head_pass *pass)
{
	const struct backend *be = m->backend;
	uint64_t program = program_of(m, pass);

	if (be->replay && be->replay(m->device, program)) {
		if (m->watch.replayed)
			m->watch.replayed(m->watch.arg);
		return;
	}
	if (be->record)
		be->record(m->device, program);
	queue(m, pass);
	if (be->record_end && !be->record_end(m->device, program))
		queue(m, pass);
}

int model_backprop(struct model *m, const int32_t *tokens, const int32_t *targets, float scale,
		   bool accumulate, double *loss_sum, struct err *err)
{
	const struct head_pass pass = { .gradients = true,
					.accumulate = accumulate,
					.scale = scale,
					.loss_sum = m->activations->loss_sum };
	feed(m, tokens, targets);
	run(m, &pass);
	return collect_loss(m, loss_sum, err);
}

void model_queue(struct model *m, const int32_t *tokens, const int32_t *targets, float scale,
		 bool accumulate, double *loss_sum, void (*behind)(void *arg), void *arg)
{
	const struct head_pass pass = { .gradients = true,
					.accumulate = accumulate,
					.scale = scale,
					.loss_sum = loss_sum,
					.is_summed = accumulate,
					.behind = behind,
					.arg = arg };
	feed(m, tokens, targets);
	run(m, &pass);
}

int model_loss(struct model *m, const int32_t *tokens, const int32_t *targets, double *loss_sum,
	       struct err *err)
{
	const struct head_pass pass = { .loss_sum = m->activations->loss_sum };
	precision_evaluating(m->precision, true);
	feed(m, tokens, targets);
	run(m, &pass);
	precision_evaluating(m->precision, false);
	return collect_loss(m, loss_sum, err);
}

/* Logits of `rows` of the rows that came out of the last layer, to host memory. */
static int read_logits(struct model *m, size_t first, size_t rows, float *logits, struct err *err)
{
	const struct model_shape *s = &m->shape;
	struct model_activations *a = m->activations;
	const struct linear head = head_of(m);
	char why[BACKEND_TEXT_BYTES];
	size_t count;

	model_need(m, model_unit_of_head(m));
	for (size_t row = 0; row < rows; row += count) {
		count = rows - row < a->chunk_rows ? rows - row : a->chunk_rows;
		linear_forward(m, &head, a->logits, model_row(m, a->final, first + row, s->dim),
			       count, 0);
		cap_logits(m, count);
		m->backend->download_activations(m->device, logits + row * s->vocab, a->logits,
						 count * s->vocab);
	}
	return m->backend->finish(m->device, why) ? err_set(err, ERR_INTERNAL, "%s", why) : 0;
}

int model_logits(struct model *m, const int32_t *tokens, size_t first, size_t rows, float *logits,
		 struct err *err)
{
	feed(m, tokens, tokens);
	forward(m, NULL);
	return read_logits(m, first, rows, logits, err);
}

int model_extend(struct model *m, const int32_t *tokens, size_t first, size_t count, size_t rows,
		 float *logits, struct err *err)
{
	m->backend->upload(m->device, m->activations->tokens, tokens + first,
			   count * sizeof(*tokens));
	begin(m, first, count);
	through_layers(m);
	return read_logits(m, count - rows, rows, logits, err);
}

/* --- a stage of a pipeline -------------------------------------------------------------------- */

size_t model_stream_bytes(const struct model *m)
{
	return split_rows(m, m->batch * m->seq) * m->shape.dim * compute_bytes(m->options.compute);
}

void *model_stream_in(const struct model *m, int at)
{
	return m->under_way[at]->layer[model_first_layer(m)].x;
}

/* The norm behind the layers has added up their last sum; what it normed nobody reads here. */
void *model_stream_out(const struct model *m, int at)
{
	return m->under_way[at]->last;
}

void *model_stream_gradient(const struct model *m)
{
	return m->activations->shared.dx;
}

static struct head_pass pass_of(const struct model_half *half)
{
	return (struct head_pass){ .gradients = half->gradients,
				   .accumulate = half->accumulate,
				   .scale = half->scale,
				   .loss_sum = half->loss_sum,
				   .is_summed = half->accumulate };
}

void model_stage_forward(struct model *m, const int32_t *tokens, const int32_t *targets,
			 const struct model_half *half)
{
	const struct head_pass pass = pass_of(half);

	m->activations = m->under_way[half->at];
	feed(m, tokens, targets);
	named(m, "forward", &pass, forward);
	if (!model_is_last_stage(m))
		return;
	named(m, "head and loss", &pass, head_and_loss);
	sum_losses(m, &pass);
}

void model_stage_backward(struct model *m, const struct model_half *half)
{
	const struct head_pass pass = pass_of(half);

	m->activations = m->under_way[half->at];
	if (model_is_last_stage(m))
		named(m, "backward", &pass, backward);
	else
		backward_layers(m, half->accumulate);
}
