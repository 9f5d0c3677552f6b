/* SPDX-License-Identifier: MIT */
/* again.c - what each part of a layer takes to keep, and to compute again. */
#include "worker/lbworker/telemetry/again.h"

static double head_width(const struct model_shape *s)
{
	return (double)(s->head_dim ? s->head_dim : s->dim / s->heads);
}

/* Of the feed-forward that a token meets, on average over the layers. */
static double ffn_width(const struct model_shape *s)
{
	double sum = 0;

	for (size_t l = 0; l < s->layers; l++)
		sum += (double)model_active_ffn(s, l);
	return sum / (double)s->layers;
}

struct part_cost again_cost(const struct model_shape *s, const struct model_options *o, int part)
{
	const double element = (double)compute_bytes(o->compute), dim = (double)s->dim;
	const double qkv = (double)(s->heads + 2 * s->kv_heads) * head_width(s);
	const double attended = (double)s->heads * head_width(s), ffn = ffn_width(s);
	const double up = model_is_gated(s->family) ? 2 * ffn : ffn;

	switch (1U << part) {
	case AGAIN_NORMED:
		return (struct part_cost){ .kept = 2 * dim * element, .moved = 4 * dim * element };
	case AGAIN_QKV:
		return (struct part_cost){ .kept = qkv * element,
					   .moved = 2 * qkv * element,
					   .flop = 2 * dim * qkv };
	case AGAIN_ATTENDED:
		return (struct part_cost){ .kept = attended * element + 4 * (double)s->heads,
					   .attention_flop = 2 * (double)o->seq * attended };
	case AGAIN_MIDDLE:
		if (model_is_parallel(s->family)) /* side by side: there is none */
			return (struct part_cost){ 0 };
		return (struct part_cost){ .kept = dim * element,
					   .moved = 3 * dim * element,
					   .flop = 2 * dim * attended };
	case AGAIN_UP:
		return (struct part_cost){ .kept = up * element, .flop = 2 * dim * up };
	default:
		return (struct part_cost){ .kept = ffn * element, .moved = (up + ffn) * element };
	}
}

static void add_parts(char *out, size_t room, unsigned parts)
{
	size_t used = 0;

	out[0] = '\0';
	for (int i = 0; i < AGAIN_PARTS; i++)
		if (parts >> i & 1)
			used += (size_t)snprintf(out + used, room - used, "%s%s", used ? ", " : "",
						 model_part_name(i));
}

void again_say(const struct config *c, FILE *to)
{
	const struct model_options o = config_model_options(c);
	char every[128], some[128];
	bool more = o.more_layers > 0;

	if (o.again == 0 && !more)
		return;
	add_parts(every, sizeof(every), o.again);
	add_parts(some, sizeof(some), o.more & ~o.again);
	fprintf(to, "%-12s ", "again");
	if (o.again)
		fprintf(to, "%s in every layer", every);
	if (more)
		fprintf(to, "%s%s in %zu layers of %zu", o.again ? "; " : "", some, o.more_layers,
			c->shape.layers);
	fputs(" (activation_checkpoint.mode)\n", to);
}
