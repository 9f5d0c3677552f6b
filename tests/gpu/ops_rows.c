/* SPDX-License-Identifier: MIT */
/* ops_rows.c - operations on rows: norms, biases, tables, activations, loss. */
#include "tests/gpu/suite.h"

#include <stdio.h>
#include <string.h>

void ops_rmsnorm(struct suite *s)
{
	size_t rows = size(s, pick(s, 40, 4096)), dim = 15 + size(s, pick(s, 300, 5000));
	bool residual = draw(s) % 2, accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *delta = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *weight = random_tensor(s, &all, dim, false, 1);
	struct tensor *out = poisoned(s, &all, rows * dim, true);
	struct tensor *sum = poisoned(s, &all, rows * dim, true);
	struct tensor *rstd = poisoned(s, &all, rows, false);
	struct tensor *dx = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *dweight = gradient(s, &all, dim, accumulate);

	shape(s, "%zux%zu%s%s", rows, dim, residual ? " residual" : "", accumulate ? " add" : "");
	BOTH(rmsnorm_forward, ON(out), ON(rstd), residual ? ON(sum) : NULL, ON(x),
	     residual ? ON(delta) : NULL, ON(weight), rows, dim, 1e-5f);
	if (residual)
		compare(s, "rmsnorm_forward", "sum", sum, 1);
	compare(s, "rmsnorm_forward", "rstd", rstd, 1);
	compare(s, "rmsnorm_forward", "out", out, 1);
	BOTH(rmsnorm_backward, ON(dx), ON(dweight), ON(delta), ON(x), ON(rstd), ON(weight), rows,
	     dim, accumulate);
	compare(s, "rmsnorm_backward", "dx", dx, 4);
	compare(s, "rmsnorm_backward", "dweight", dweight, (double)rows);
	release(s, &all);
}

void ops_layernorm(struct suite *s)
{
	size_t rows = size(s, pick(s, 40, 4096)), dim = 16 + size(s, pick(s, 300, 5000));
	bool residual = draw(s) % 2, accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *delta = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *weight = random_tensor(s, &all, 2 * dim, false, 1);
	struct tensor *out = poisoned(s, &all, rows * dim, true);
	struct tensor *sum = poisoned(s, &all, rows * dim, true);
	struct tensor *mean = poisoned(s, &all, rows, false);
	struct tensor *rstd = poisoned(s, &all, rows, false);
	struct tensor *dx = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *dweight = gradient(s, &all, dim, accumulate);
	struct tensor *dbias = gradient(s, &all, dim, accumulate);

	shape(s, "%zux%zu%s%s", rows, dim, residual ? " residual" : "", accumulate ? " add" : "");
	BOTH(layernorm_forward, ON(out), ON(mean), ON(rstd), residual ? ON(sum) : NULL, ON(x),
	     residual ? ON(delta) : NULL, ON(weight), (float *)ON(weight) + dim, rows, dim, 1e-2f);
	compare(s, "layernorm_forward", "mean", mean, 1);
	compare(s, "layernorm_forward", "rstd", rstd, 1);
	compare(s, "layernorm_forward", "out", out, 4);
	BOTH(layernorm_backward, ON(dx), ON(dweight), ON(dbias), ON(delta), ON(x), ON(mean),
	     ON(rstd), ON(weight), rows, dim, accumulate);
	compare(s, "layernorm_backward", "dx", dx, 16);
	compare(s, "layernorm_backward", "dweight", dweight, 4 * (double)rows);
	compare(s, "layernorm_backward", "dbias", dbias, (double)rows);
	release(s, &all);
}

void ops_bias(struct suite *s)
{
	size_t rows = size(s, pick(s, 600, 9000)), dim = size(s, pick(s, 100, 3000));
	bool accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *y = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *b = random_tensor(s, &all, dim, false, 1);
	struct tensor *db = gradient(s, &all, dim, accumulate);

	shape(s, "%zux%zu%s", rows, dim, accumulate ? " add" : "");
	BOTH(bias_backward, ON(db), ON(y), rows, dim, accumulate);
	compare(s, "bias_backward", "dbias", db, (double)rows);
	BOTH(bias_forward, ON(y), ON(b), rows, dim);
	compare(s, "bias_forward", "y", y, 1);
	release(s, &all);
}

void ops_positions(struct suite *s)
{
	size_t seq = size(s, pick(s, 20, 1000)), batch = between(s, 1, 4), rows = batch * seq;
	size_t dim = size(s, pick(s, 90, 2000));
	bool accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, rows * dim, true, 1);
	struct tensor *table = random_weights(s, &all, seq * dim, seq * dim);
	struct tensor *dtable = gradient(s, &all, seq * dim, accumulate);

	shape(s, "%zux%zux%zu%s", batch, seq, dim, accumulate ? " add" : "");
	BOTH(positions_backward, ON(dtable), ON(x), rows, seq, dim, accumulate);
	compare(s, "positions_backward", "dtable", dtable, (double)batch);
	BOTH(positions_forward, ON(x), ON(table), rows, seq, dim);
	compare(s, "positions_forward", "x", x, 1);
	release(s, &all);
}

void ops_embedding(struct suite *s)
{
	size_t rows = size(s, pick(s, 2500, 70000)), dim = size(s, pick(s, 40, 600));
	size_t vocab = between(s, 1, pick(s, 300, 70000));
	struct tensors all = { .count = 0 };
	struct tensor *ids = random_ids(s, &all, rows, vocab);
	struct tensor *table = random_weights(s, &all, vocab * dim, vocab * dim);
	struct tensor *out = poisoned(s, &all, rows * dim, true);
	struct tensor *dtable = random_tensor(s, &all, vocab * dim, false, 1);

	shape(s, "%zux%zu of %zu", rows, dim, vocab);
	BOTH(embed_forward, ON(out), ON(table), ON(ids), rows, dim);
	compare(s, "embed_forward", "out", out, 1);
	to_gpu(s, out); /* the CPU's, so that both sides add up the same */
	for (size_t i = 0; i < out->count && is_narrow(s, out); i++)
		out->cpu[i] = widen(narrow(out->cpu[i]));
	BOTH(embed_backward, ON(dtable), ON(out), ON(ids), rows, dim);
	compare(s, "embed_backward", "dtable", dtable, 1);
	if (memcmp(dtable->got, dtable->cpu, dtable->count * sizeof(float)) != 0) {
		printf("not ok embed_backward is not the CPU's to the bit\n");
		s->failed++;
	}
	release(s, &all);
}

void ops_swiglu(struct suite *s)
{
	size_t rows = size(s, pick(s, 40, 3000)), width = size(s, pick(s, 300, 5000));
	struct tensors all = { .count = 0 };
	struct tensor *gate_up = random_tensor(s, &all, rows * 2 * width, true, 2);
	struct tensor *out = poisoned(s, &all, rows * width, true);
	struct tensor *dout = random_tensor(s, &all, rows * width, true, 1);

	shape(s, "%zux%zu", rows, width);
	BOTH(swiglu_forward, ON(out), ON(gate_up), rows, width);
	compare(s, "swiglu_forward", "out", out, 1);
	BOTH(swiglu_backward, ON(gate_up), ON(dout), ON(gate_up), rows, width);
	compare(s, "swiglu_backward", "in place", gate_up, 1);
	release(s, &all);
}

void ops_geglu(struct suite *s)
{
	size_t rows = size(s, pick(s, 40, 3000)), width = size(s, pick(s, 300, 5000));
	struct tensors all = { .count = 0 };
	struct tensor *gate_up = random_tensor(s, &all, rows * 2 * width, true, 2);
	struct tensor *out = poisoned(s, &all, rows * width, true);
	struct tensor *dout = random_tensor(s, &all, rows * width, true, 1);

	shape(s, "%zux%zu", rows, width);
	BOTH(geglu_forward, ON(out), ON(gate_up), rows, width);
	compare(s, "geglu_forward", "out", out, 1);
	BOTH(geglu_backward, ON(gate_up), ON(dout), ON(gate_up), rows, width);
	compare(s, "geglu_backward", "in place", gate_up, 1);
	release(s, &all);
}

void ops_softcap(struct suite *s)
{
	size_t count = size(s, pick(s, 5000, 5000000));
	float factor = draw(s) % 2 ? 1.0f : 7.5f;
	bool adds = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, count, true, 3);
	struct tensor *delta = random_tensor(s, &all, count, true, 1);
	struct tensor *out = poisoned(s, &all, count, true);

	shape(s, "%zu by %g%s", count, (double)factor, adds ? " sum" : "");
	BOTH(scaled_sum, ON(out), ON(x), factor, adds ? ON(delta) : NULL, count);
	compare(s, "scaled_sum", "out", out, 1);
	BOTH(softcap, ON(x), count, factor);
	compare(s, "softcap", "x", x, 1);
	release(s, &all);
}

void ops_qk_norm(struct suite *s)
{
	const struct qk_norm n = { .rows = size(s, pick(s, 40, 2000)),
				   .heads = 2 * between(s, 1, 3),
				   .kv_heads = between(s, 1, 2),
				   .head_dim = between(s, 1, pick(s, 40, 256)),
				   .whole = draw(s) % 2,
				   .eps = 1e-5f };
	size_t each = n.whole ? 1 : n.heads + n.kv_heads,
	       width = (n.heads + 2 * n.kv_heads) * n.head_dim;
	size_t queries = n.head_dim * (n.whole ? n.heads : 1);
	size_t keys = n.head_dim * (n.whole ? n.kv_heads : 1);
	bool accumulate = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *raw = random_tensor(s, &all, n.rows * width, true, 1);
	struct tensor *qkv = poisoned(s, &all, n.rows * width, true);
	struct tensor *rstd = poisoned(s, &all, n.rows * (n.whole ? 2 : each), false);
	struct tensor *of_queries = random_tensor(s, &all, queries, false, 1);
	struct tensor *of_keys = random_tensor(s, &all, keys, false, 1);
	struct tensor *dqkv = random_tensor(s, &all, n.rows * width, true, 1);
	struct tensor *dqueries = gradient(s, &all, queries, accumulate);
	struct tensor *dkeys = gradient(s, &all, keys, accumulate);

	shape(s, "%zux%zu+%zux%zu%s%s", n.rows, n.heads, n.kv_heads, n.head_dim,
	      n.whole ? " whole" : "", accumulate ? " add" : "");
	BOTH(qk_norm_forward, ON(qkv), ON(rstd), ON(raw), ON(of_queries), ON(of_keys), &n);
	compare(s, "qk_norm_forward", "rstd", rstd, 1);
	compare(s, "qk_norm_forward", "qkv", qkv, 1);
	BOTH(qk_norm_backward, ON(dqkv), ON(dqueries), ON(dkeys), ON(raw), ON(rstd), ON(of_queries),
	     ON(of_keys), &n, accumulate);
	compare(s, "qk_norm_backward", "dqkv", dqkv, 4);
	compare(s, "qk_norm_backward", "queries", dqueries, (double)(n.rows * each));
	compare(s, "qk_norm_backward", "keys", dkeys, (double)(n.rows * each));
	release(s, &all);
}

void ops_gelu(struct suite *s)
{
	size_t count = size(s, pick(s, 5000, 5000000));
	enum gelu_form form = draw(s) % 2 ? GELU_TANH : GELU_ERF;
	struct tensors all = { .count = 0 };
	struct tensor *x = random_tensor(s, &all, count, true, 3);
	struct tensor *out = poisoned(s, &all, count, true);
	struct tensor *dout = random_tensor(s, &all, count, true, 1);

	shape(s, "%zu %s", count, form == GELU_TANH ? "tanh" : "erf");
	BOTH(gelu_forward, ON(out), ON(x), count, form);
	compare(s, "gelu_forward", "out", out, 1);
	BOTH(gelu_backward, ON(x), ON(dout), ON(x), count, form);
	compare(s, "gelu_backward", "in place", x, 1);
	release(s, &all);
}

void ops_cross_entropy(struct suite *s)
{
	size_t rows = size(s, pick(s, 30, 600)), vocab = 1 + size(s, pick(s, 5000, 130000));
	float scale = draw(s) % 3 ? 1.0f : 0.0f;
	struct tensors all = { .count = 0 };
	struct tensor *logits = random_tensor(s, &all, rows * vocab, true, 4);
	struct tensor *targets = random_ids(s, &all, rows, vocab);
	struct tensor *loss = poisoned(s, &all, rows, false);

	shape(s, "%zux%zu%s", rows, vocab, scale == 0.0f ? " loss only" : "");
	BOTH(cross_entropy, ON(loss), ON(logits), ON(targets), rows, vocab, scale);
	compare(s, "cross_entropy", "loss", loss, 8);
	compare(s, "cross_entropy", "dlogits", logits, 1);
	release(s, &all);
}

void ops_cross_entropy_with(struct suite *s)
{
	size_t rows = size(s, pick(s, 30, 600)), vocab = 1 + size(s, pick(s, 5000, 130000));
	const struct loss_terms terms = { .smoothing = draw(s) % 2 ? 0.1f : 0.0f,
					  .z_loss = draw(s) % 2 ? 1e-3f : 0.0f,
					  .softcap = draw(s) % 2 ? 30.0f : 0.0f };
	float scale = draw(s) % 3 ? 1.0f : 0.0f;
	struct tensors all = { .count = 0 };
	struct tensor *logits = random_tensor(s, &all, rows * vocab, true, 4);
	struct tensor *targets = random_ids(s, &all, rows, vocab);
	struct tensor *loss = poisoned(s, &all, rows, false);

	shape(s, "%zux%zu, %g %g %g", rows, vocab, (double)terms.smoothing, (double)terms.z_loss,
	      (double)terms.softcap);
	BOTH(cross_entropy_with, ON(loss), ON(logits), ON(targets), rows, vocab, scale, &terms);
	compare(s, "cross_entropy_with", "loss", loss, 8);
	compare(s, "cross_entropy_with", "dlogits", logits, 1);
	release(s, &all);
}
