/* SPDX-License-Identifier: MIT */
/* context.c - keys and values of whole sequences, from the ranks that share them, and their
 * gradients back to those.
 *
 * Attention runs on rows in the order of their sequence, of which only our queries are filled
 * in. */
#include "worker/lbworker/model/context.h"

#include "kernels/comm.h"

/* The t-th token of rank's part of a sequence. */
static size_t position_of(const struct model *m, int rank, size_t t)
{
	size_t run = context_run(m), last = 2 * (size_t)m->options.context.degree - 1;

	if (t < run)
		return (size_t)rank * run + t;
	return (last - (size_t)rank) * run + (t - run);
}

size_t context_position(const struct model *m, size_t t)
{
	return context_is_shared(m) ? position_of(m, m->options.context.rank, t) : t;
}

static size_t rows_of_ours(const struct model *m)
{
	return m->batch * m->seq;
}

/* The row in whole sequences of a row of rank's. */
static size_t whole_row(const struct model *m, int rank, size_t row)
{
	return row / m->seq * m->options.seq + position_of(m, rank, row % m->seq);
}

static void copy(const struct model *m, void *to, const void *from, size_t elements)
{
	m->backend->copy(m->device, to, from, elements * compute_bytes(m->options.compute));
}

/* Our rows of an array of whole sequences [.., width]. */
static void copy_ours(const struct model *m, void *whole, void *ours, size_t width, bool back)
{
	int rank = m->options.context.rank;

	for (size_t row = 0; row < rows_of_ours(m); row++) {
		void *there = model_row(m, whole, whole_row(m, rank, row), width);
		void *here = model_row(m, ours, row, width);
		copy(m, back ? here : there, back ? there : here, width);
	}
}

/* The same of lse [batch,H,T]. */
static void copy_lse(const struct model *m, float *whole, float *ours, bool back)
{
	size_t heads = m->shape.heads;

	for (size_t i = 0; i < m->batch * heads; i++)
		for (size_t t = 0; t < m->seq; t += context_run(m)) {
			float *there = whole + i * m->options.seq + context_position(m, t);
			float *here = ours + i * m->seq + t;
			m->backend->copy(m->device, back ? here : there, back ? there : here,
					 context_run(m) * sizeof(float));
		}
}

/* --- keys and values of a row ----------------------------------------------------------------- */

static size_t keys_width(const struct model *m)
{
	return 2 * m->shape.kv_heads * model_head_dim(&m->shape);
}

/* Between a row of qkv and one of keys and values alone. */
static void copy_keys(const struct model *m, void *qkv, void *keys, bool back)
{
	const struct model_shape *s = &m->shape;
	size_t head = model_head_dim(s), runs = m->family->interleaved ? s->heads : 1;
	size_t at = m->family->interleaved ? head : s->heads * head;
	size_t length = keys_width(m) / runs;

	for (size_t i = 0; i < runs; i++) {
		void *there = model_row(m, qkv, i * 3 * head + at, 1);
		void *here = model_row(m, keys, i * length, 1);
		copy(m, back ? there : here, back ? here : there, length);
	}
}

/* Rank r's part of an array of keys and values by rank. */
static struct comm_part part_of(const struct model *m, void *keys, int r)
{
	size_t rows = rows_of_ours(m), width = keys_width(m);

	return (struct comm_part){ model_row(m, keys, (size_t)r * rows, width),
				   rows * width * compute_bytes(m->options.compute) };
}

/* What rank r has of keys and values, between whole sequences and its part of `keys`. */
static void copy_part(const struct model *m, int r, void *whole_qkv, void *keys, bool back)
{
	void *part = part_of(m, keys, r).at;

	for (size_t row = 0; row < rows_of_ours(m); row++)
		copy_keys(m,
			  model_row(m, whole_qkv, whole_row(m, r, row), model_qkv_width(&m->shape)),
			  model_row(m, part, row, keys_width(m)), back);
}

/* send and receive: what goes to, and comes from, rank r is in part r of each; with the same piece
 * for all where `one` is. */
static void exchange(const struct model *m, void *send, bool one, void *receive)
{
	const struct model_context *c = &m->options.context;
	struct comm_part out[COMM_RANKS_MAX], in[COMM_RANKS_MAX];

	for (int r = 0; r < c->degree; r++) {
		out[r] = part_of(m, send, one ? c->rank : r);
		in[r] = part_of(m, receive, r);
	}
	m->sharers.exchange(m->sharers.arg, out, in);
}

/* Our rows and the keys and values of all, into s->whole_qkv. */
static void gather(const struct model *m, const struct layer_kept *k, const struct layer_shared *s)
{
	const struct model_context *c = &m->options.context;

	copy_ours(m, s->whole_qkv, k->qkv, model_qkv_width(&m->shape), false);
	copy_part(m, c->rank, s->whole_qkv, s->keys[0], false);
	exchange(m, s->keys[0], true, s->keys[1]);
	for (int r = 0; r < c->degree; r++)
		if (r != c->rank)
			copy_part(m, r, s->whole_qkv, s->keys[1], true);
}

static struct attention whole_shape(const struct model *m, const struct attention *shape)
{
	struct attention whole = *shape;

	whole.seq = m->options.seq;
	whole.first = context_position(m, 0);
	whole.queries = context_run(m);
	whole.late = context_position(m, context_run(m));
	return whole;
}

void context_attend(const struct model *m, const struct layer_kept *k, const struct layer_shared *s,
		    const struct attention *shape)
{
	const struct attention whole = whole_shape(m, shape);

	gather(m, k, s);
	m->backend->attention_forward(m->device, s->whole_attended, s->whole_lse, s->whole_qkv,
				      &whole);
	copy_ours(m, s->whole_attended, k->attended, model_attended_width(&m->shape), true);
	copy_lse(m, s->whole_lse, k->lse, true);
}

/* Each rank has the gradients of all keys and values by its own queries: the sums, in the order of
 * ranks, of ours. */
static void reduce(const struct model *m, const struct layer_shared *s)
{
	const struct model_context *c = &m->options.context;
	size_t elements = rows_of_ours(m) * keys_width(m);

	for (int r = 0; r < c->degree; r++)
		copy_part(m, r, s->whole_dqkv, s->keys[0], false);
	exchange(m, s->keys[0], false, s->keys[1]);
	for (int r = 1; r < c->degree; r++)
		m->backend->add(m->device, s->keys[1], part_of(m, s->keys[1], r).at, elements);
	for (size_t row = 0; row < rows_of_ours(m); row++)
		copy_keys(m, model_row(m, s->dqkv, row, model_qkv_width(&m->shape)),
			  model_row(m, s->keys[1], row, keys_width(m)), true);
}

void context_backward(const struct model *m, const struct layer_kept *k,
		      const struct layer_shared *s, const float *table,
		      const struct attention *shape)
{
	const struct attention whole = whole_shape(m, shape);
	size_t attended = model_attended_width(&m->shape);

	gather(m, k, s);
	copy_ours(m, s->whole_attended, k->attended, attended, false);
	copy_ours(m, s->whole_dattended, s->dattended, attended, false);
	copy_lse(m, s->whole_lse, k->lse, false);
	m->backend->attention_backward(m->device, s->whole_dqkv, s->whole_dattended,
				       s->whole_attended, s->whole_lse, s->whole_qkv, NULL, &whole);
	copy_ours(m, s->whole_dqkv, s->dqkv, model_qkv_width(&m->shape), true);
	reduce(m, s);
	if (table)
		m->backend->rope(m->device, s->dqkv, table, shape, true);
}
