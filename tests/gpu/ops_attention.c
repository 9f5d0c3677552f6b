/* SPDX-License-Identifier: MIT */
/* ops_attention.c - rotation and attention, heads shared or not, apart or mixed. */
#include "tests/gpu/suite.h"

#include <math.h>

static struct attention heads(struct suite *s, size_t seq)
{
	struct attention a = { .batch = between(s, 1, 2),
			       .seq = seq,
			       .kv_heads = between(s, 1, 3) };
	size_t group = between(s, 1, 4);

	a.interleaved = draw(s) % 3 == 0;
	a.heads = a.interleaved ? a.kv_heads : a.kv_heads * group;
	a.head_dim = draw(s) % 3 ? 8 * between(s, 1, pick(s, 4, 16)) : 2 * between(s, 1, 20);
	a.rotary = draw(s) % 2 ? 2 * between(s, 1, a.head_dim / 2) : 0;
	a.scale = draw(s) % 2 ? 0.0f : 0.2f;
	a.window = draw(s) % 3 ? 0 : between(s, 1, seq);
	a.softcap = draw(s) % 3 ? 0.0f : 1.5f;
	return a;
}

static size_t qkv_width(const struct attention *a)
{
	return (a->heads + 2 * a->kv_heads) * a->head_dim;
}

static void describe_heads(struct suite *s, const struct attention *a)
{
	shape(s, "%zux%zux%zu/%zux%zu%s, window %zu, cap %g", a->batch, a->seq, a->heads,
	      a->kv_heads, a->head_dim, a->interleaved ? " mixed" : "", a->window,
	      (double)a->softcap);
}

void ops_rope(struct suite *s)
{
	const struct attention a = heads(s, size(s, pick(s, 30, 2000)));
	size_t turned = a.rotary ? a.rotary : a.head_dim, rows = a.batch * a.seq;
	bool inverse = draw(s) % 2;
	struct tensors all = { .count = 0 };
	struct tensor *qkv = random_tensor(s, &all, rows * qkv_width(&a), true, 1);
	struct tensor *table = random_tensor(s, &all, a.seq * turned, false, 1);

	describe_heads(s, &a);
	BOTH(rope, ON(qkv), ON(table), &a, inverse);
	compare(s, "rope", "qkv", qkv, 2);
	release(s, &all);
}

/* For each position and pair of a head, a cosine and a sine. */
static struct tensor *angles(struct suite *s, struct tensors *all, const struct attention *a)
{
	struct tensor *t = random_tensor(s, all, a->seq * a->head_dim, false, 3);

	for (size_t i = 0; i + 1 < t->count; i += 2) {
		float angle = t->cpu[i];
		t->cpu[i] = cosf(angle);
		t->cpu[i + 1] = sinf(angle);
	}
	to_gpu(s, t);
	return t;
}

static void attend(struct suite *s, struct attention a)
{
	size_t rows = a.batch * a.seq, width = a.heads * a.head_dim;
	struct tensors all = { .count = 0 };
	struct tensor *qkv = random_tensor(s, &all, rows * qkv_width(&a), true, 1);
	struct tensor *out = poisoned(s, &all, rows * width, true);
	struct tensor *lse = poisoned(s, &all, rows * a.heads, false);
	struct tensor *dout = random_tensor(s, &all, rows * width, true, 1);
	struct tensor *dqkv = poisoned(s, &all, rows * qkv_width(&a), true);
	struct tensor *table = angles(s, &all, &a);
	bool is_turned = draw(s) % 4 != 0;

	describe_heads(s, &a);
	BOTH(attention_forward, ON(out), ON(lse), ON(qkv), &a);
	compare(s, "attention_forward", "lse", lse, 1);
	compare(s, "attention_forward", "out", out, 16);
	BOTH(attention_backward, ON(dqkv), ON(dout), ON(out), ON(lse), ON(qkv),
	     is_turned ? ON(table) : NULL, &a);
	compare(s, "attention_backward", "dqkv", dqkv, 16 * (double)a.heads / (double)a.kv_heads);
	release(s, &all);
}

void ops_attention(struct suite *s)
{
	attend(s, heads(s, size(s, pick(s, 40, 700))));
}

/* More keys than shared memory has room for at a time, and more tokens than it could hold: on the
 * host they take seconds. */
void ops_attention_long(struct suite *s)
{
	const struct attention many = {
		.batch = 1, .seq = 4200, .heads = 1, .kv_heads = 1, .head_dim = 4, .softcap = 1.5f
	};
	const struct attention far = {
		.batch = 1, .seq = 30000, .heads = 1, .kv_heads = 1, .head_dim = 4, .window = 3
	};

	if (!s->large && !s->only)
		return;
	attend(s, many);
	attend(s, far);
}
