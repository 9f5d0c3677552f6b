/* SPDX-License-Identifier: MIT */
/* traced_operations.h - the operations of kernels/backend.h that a trace times, one row each;
 * trace.c reads it with two meanings of TRACED: name, parameters and arguments behind the device,
 * three sizes of the work. */
TRACED(embed_forward,
       (void *out, const float *table, const int32_t *tokens, size_t rows, size_t dim),
       (out, table, tokens, rows, dim), rows, dim, 0)
TRACED(embed_backward,
       (float *dtable, const void *dout, const int32_t *tokens, size_t rows, size_t dim),
       (dtable, dout, tokens, rows, dim), rows, dim, 0)
TRACED(rmsnorm_forward,
       (void *out, float *rstd, void *sum, const void *x, const void *delta, const float *weight,
	size_t rows, size_t dim, float eps),
       (out, rstd, sum, x, delta, weight, rows, dim, eps), rows, dim, 0)
TRACED(rmsnorm_backward,
       (void *dx, float *dweight, const void *dout, const void *x, const float *rstd,
	const float *weight, size_t rows, size_t dim, bool accumulate),
       (dx, dweight, dout, x, rstd, weight, rows, dim, accumulate), rows, dim, 0)
TRACED(rope, (void *qkv, const float *table, const struct attention *a, bool inverse),
       (qkv, table, a, inverse), a->batch, a->seq, a->heads)
TRACED(attention_forward, (void *out, float *lse, const void *qkv, const struct attention *a),
       (out, lse, qkv, a), a->batch, a->seq, a->heads)
TRACED(attention_backward,
       (void *dqkv, const void *dout, const void *out, const float *lse, const void *qkv,
	const float *table, const struct attention *a),
       (dqkv, dout, out, lse, qkv, table, a), a->batch, a->seq, a->heads)
TRACED(swiglu_forward, (void *out, const void *gate_up, size_t rows, size_t width),
       (out, gate_up, rows, width), rows, width, 0)
TRACED(swiglu_backward,
       (void *dgate_up, const void *dout, const void *gate_up, size_t rows, size_t width),
       (dgate_up, dout, gate_up, rows, width), rows, width, 0)
TRACED(layernorm_forward,
       (void *out, float *mean, float *rstd, void *sum, const void *x, const void *delta,
	const float *weight, const float *bias, size_t rows, size_t dim, float eps),
       (out, mean, rstd, sum, x, delta, weight, bias, rows, dim, eps), rows, dim, 0)
TRACED(layernorm_backward,
       (void *dx, float *dweight, float *dbias, const void *dout, const void *x, const float *mean,
	const float *rstd, const float *weight, size_t rows, size_t dim, bool accumulate),
       (dx, dweight, dbias, dout, x, mean, rstd, weight, rows, dim, accumulate), rows, dim, 0)
TRACED(bias_forward, (void *y, const float *bias, size_t rows, size_t dim), (y, bias, rows, dim),
       rows, dim, 0)
TRACED(bias_backward, (float *dbias, const void *dy, size_t rows, size_t dim, bool accumulate),
       (dbias, dy, rows, dim, accumulate), rows, dim, 0)
TRACED(positions_forward, (void *x, const float *table, size_t rows, size_t seq, size_t dim),
       (x, table, rows, seq, dim), rows, dim, 0)
TRACED(positions_backward,
       (float *dtable, const void *dx, size_t rows, size_t seq, size_t dim, bool accumulate),
       (dtable, dx, rows, seq, dim, accumulate), rows, dim, 0)
TRACED(gelu_forward, (void *out, const void *x, size_t count, enum gelu_form form),
       (out, x, count, form), count, 0, 0)
TRACED(gelu_backward,
       (void *dx, const void *dout, const void *x, size_t count, enum gelu_form form),
       (dx, dout, x, count, form), count, 0, 0)
TRACED(cross_entropy,
       (float *loss, void *logits, const int32_t *targets, size_t rows, size_t vocab, float scale),
       (loss, logits, targets, rows, vocab, scale), rows, vocab, 0)
TRACED(adamw,
       (float *weight, void *m, void *v, const void *grad, size_t count, const struct adamw *a,
	const struct step_control *control),
       (weight, m, v, grad, count, a, control), count, 0, 0)
TRACED(upload, (void *to, const void *from_host, size_t bytes), (to, from_host, bytes), bytes, 0, 0)
TRACED(download, (void *to_host, const void *from, size_t bytes), (to_host, from, bytes), bytes, 0,
       0)
TRACED(normal, (float *to, size_t count, const struct normal *n), (to, count, n), count, 0, 0)
TRACED(zero, (void *memory, size_t bytes), (memory, bytes), bytes, 0, 0)
TRACED(sum_squares, (double *sum, const void *x, size_t count, bool narrow, bool accumulate),
       (sum, x, count, narrow, accumulate), count, 0, 0)
TRACED(add, (float *to, const float *from, size_t count), (to, from, count), count, 0, 0)
TRACED(average, (float *mean, const float *w, size_t count, float share), (mean, w, count, share),
       count, 0, 0)
TRACED(embed_slice_forward,
       (void *out, const float *table, const int32_t *tokens, size_t rows, size_t dim,
	const struct vocab_slice *slice),
       (out, table, tokens, rows, dim, slice), rows, dim, 0)
TRACED(embed_slice_backward,
       (float *dtable, const void *dout, const int32_t *tokens, size_t rows, size_t dim,
	const struct vocab_slice *slice),
       (dtable, dout, tokens, rows, dim, slice), rows, dim, 0)
TRACED(loss_part,
       (struct loss_part * part, const void *logits, const int32_t *targets, size_t rows,
	const struct vocab_slice *slice),
       (part, logits, targets, rows, slice), rows, slice->count, 0)
TRACED(loss_merge,
       (float *loss, void *logits, const int32_t *targets, const struct loss_part *part,
	size_t rows, const struct vocab_slice *slice, float scale),
       (loss, logits, targets, part, rows, slice, scale), rows, slice->count, 0)
TRACED(scaled_sum, (void *out, const void *x, float factor, const void *delta, size_t count),
       (out, x, factor, delta, count), count, 0, 0)
TRACED(qk_norm_forward,
       (void *qkv, float *rstd, const void *raw, const float *query_weight, const float *key_weight,
	const struct qk_norm *n),
       (qkv, rstd, raw, query_weight, key_weight, n), n->rows, n->heads, n->kv_heads)
TRACED(qk_norm_backward,
       (void *dqkv, float *dquery_weight, float *dkey_weight, const void *raw, const float *rstd,
	const float *query_weight, const float *key_weight, const struct qk_norm *n,
	bool accumulate),
       (dqkv, dquery_weight, dkey_weight, raw, rstd, query_weight, key_weight, n, accumulate),
       n->rows, n->heads, n->kv_heads)
TRACED(geglu_forward, (void *out, const void *gate_up, size_t rows, size_t width),
       (out, gate_up, rows, width), rows, width, 0)
TRACED(geglu_backward,
       (void *dgate_up, const void *dout, const void *gate_up, size_t rows, size_t width),
       (dgate_up, dout, gate_up, rows, width), rows, width, 0)
TRACED(softcap, (void *x, size_t count, float cap), (x, count, cap), count, 0, 0)
TRACED(cross_entropy_with,
       (float *loss, void *logits, const int32_t *targets, size_t rows, size_t vocab, float scale,
	const struct loss_terms *terms),
       (loss, logits, targets, rows, vocab, scale, terms), rows, vocab, 0)
TRACED(route_forward, (const float *logits, const float *bias, const struct routing *r),
       (logits, bias, r), r->rows, r->experts, r->top)
TRACED(route_backward,
       (float *dlogits, const float *dweight, const float *push, const struct routing *r),
       (dlogits, dweight, push, r), r->rows, r->experts, r->top)
TRACED(rows_to_experts, (void *out, const void *x, size_t width, const struct routing *r),
       (out, x, width, r), r->rows, r->top, width)
TRACED(rows_from_experts,
       (void *out, const void *y, size_t width, bool weighted, bool accumulate,
	const struct routing *r),
       (out, y, width, weighted, accumulate, r), r->rows, r->top, width)
TRACED(weigh_experts,
       (float *dweight, void *hidden, void *dhidden, size_t width, const struct routing *r),
       (dweight, hidden, dhidden, width, r), r->rows, r->top, width)
