/* SPDX-License-Identifier: MIT */
/* plan_ranks.c - what each of several ranks takes and sends, and which way of sharing fits. */
#include <inttypes.h>

#include "worker/lbworker/model/slice.h"
#include "worker/lbworker/telemetry/plan.h"

/* Per GPU: what a rank can send in a second, what an exchange takes before its first byte, and with each
 * further rank. docs/RANKS.md names the sources. */
static const struct link {
	const char *name;
	double bytes_per_s, start_s, rank_s;
} links[] = {
	{ "NVLink", 370e9, 8.4e-6, 3.4e-6 },
	{ "400 Gb/s each", 45e9, 8.4e-6, 9.6e-6 },
};
enum { LINKS = sizeof(links) / sizeof(links[0]) };

/* How often a pass gathers or adds up the stream of a layer, each of which is once the bytes of all
 * its rows, less the part that stays (worker/lbworker/model/layer.c). */
static double layer_trips(const struct config *c)
{
	const struct model_options o = config_model_options(c);
	bool is_parallel = c->shape.family == MODEL_NEOX;
	double sums = is_parallel ? 3 : 4, gathers = 6;

	if (o.again & AGAIN_QKV)
		gathers++;
	if ((o.again & AGAIN_MIDDLE) && !is_parallel)
		sums++;
	if (o.again & AGAIN_UP)
		gathers++;
	return c->sequence_parallel ? sums + gathers : 2 * sums;
}

/* In a pass of a rank: keys and values, forward and backward, and the sums of their gradients. */
static double context_in_pass(const struct config *c, const struct config_mesh *m,
			      double *exchanges)
{
	const struct model_shape *s = &c->shape;
	const struct model_options o = config_model_options(c);
	size_t head = s->head_dim ? s->head_dim : s->dim / s->heads;
	double rows = (double)(c->local_batch_size * c->seq_len) / m->context;
	double keys = 2 * (double)(s->kv_heads * head) / m->tensor;
	double trips = (o.again & AGAIN_ATTENDED ? 4 : 3) * (double)s->layers;

	*exchanges = m->context > 1 ? trips : 0;
	return trips * rows * keys * (m->context - 1) *
	       (double)compute_bytes((enum compute)c->compute);
}

/* In a pass; *exchanges: how many. Beside the layers: tables, head, and of each loss three numbers. */
static double slices_in_pass(const struct config *c, const struct config_mesh *m, double *exchanges)
{
	double rows = (double)(c->local_batch_size * c->seq_len) / m->context;
	double others = m->tensor - 1;
	double trips = layer_trips(c) * (double)c->shape.layers + 4;
	double stream = rows * (double)c->shape.dim *
			(double)compute_bytes((enum compute)c->compute);

	*exchanges = m->tensor > 1 ? trips + 2 : 0;
	return trips * stream * others / m->tensor +
	       rows * (double)sizeof(struct loss_part) * others;
}

struct plan_traffic plan_traffic(const struct plan *p, const struct config *c,
				 const struct config_mesh *m)
{
	double all = (double)p->cost.parameters * sizeof(float), shard = m->shard;
	double ranks = shard * m->replicate, units = (double)c->shape.layers + 3;
	int64_t waves = (c->accumulate * m->context + (int64_t)ranks - 1) / (int64_t)ranks;
	int64_t reduced = c->reduction == REDUCTION_FAST ? 1 : waves;
	double gathers = m->stage >= 3 ? 2 * (double)waves : m->stage >= 1 ? 1 : 0;
	double trips, more, slices = slices_in_pass(c, m, &trips);
	double keys = context_in_pass(c, m, &more);

	return (struct plan_traffic){
		.gradients = (double)reduced * all * (ranks - 1) / ranks,
		.sums = all / ranks * (m->replicate - 1),
		.weights = gathers * all * (shard - 1) / shard,
		.slices = (double)waves * slices,
		.keys = (double)waves * keys,
		.exchanges = units * ((double)reduced + gathers + (m->replicate > 1)) + 2 +
			     (double)waves * (trips + more),
	};
}

static double gib(double bytes)
{
	return bytes / (double)((uint64_t)1 << 30);
}

static double sent(const struct plan_traffic *t)
{
	return t->gradients + t->sums + t->weights + t->slices + t->keys;
}

/* What a rank of that mesh takes. */
static int plan_of(const struct config *c, const struct config_mesh *m, struct plan *p)
{
	struct config same = *c;

	same.tensor_degree = m->tensor;
	same.context_degree = m->context;
	if (plan_make(p, &same, NULL))
		return -1;
	plan_share(p, m);
	return 0;
}

/* Bytes at the link's speed, and what each exchange takes whatever it carries. */
static double seconds_over(const struct link *l, const struct plan_traffic *t,
			   const struct config_mesh *m)
{
	double others = (double)m->replicate * m->shard * m->tensor - 1;

	return sent(t) / l->bytes_per_s + t->exchanges * (l->start_s + others * l->rank_s);
}

static void print_one(const struct config *c, const struct config_mesh *m, double room, FILE *to)
{
	struct plan p, before;
	struct config_mesh alone = *m;

	alone.width = 0;
	if (plan_of(c, m, &p) || plan_of(c, &alone, &before))
		return;
	const struct plan_traffic t = plan_traffic(&before, c, m);
	fprintf(to,
		"  %4d x %-4d x %-2d ZeRO-%d  %8.2f GiB %s  weights %.2f, gradients %.2f, moments "
		"%.2f, sums %.2f, activations %.2f; sends %.2f GiB a step",
		m->replicate, m->shard, m->tensor, m->stage, gib((double)plan_bytes(&p)),
		(double)plan_bytes(&p) <= room ? "fits    " : "too much", gib((double)p.weights),
		gib((double)p.gradients), gib((double)p.moments), gib((double)p.sums),
		gib((double)p.activations), gib(sent(&t)));
	for (size_t i = 0; i < LINKS; i++)
		fprintf(to, ", %.2f s by %s", seconds_over(&links[i], &t, m), links[i].name);
	fputc('\n', to);
}

/* The least that is sent among those that fit. */
static void advise(const struct config *c, const struct config_mesh *way, size_t ways, double room,
		   FILE *to)
{
	const struct config_mesh *best = NULL;
	double least = 0;

	for (size_t i = 0; i < ways; i++) {
		struct config_mesh alone = way[i];
		struct plan p, before;
		alone.width = 0;
		if (plan_of(c, &way[i], &p) || plan_of(c, &alone, &before))
			continue;
		const struct plan_traffic t = plan_traffic(&before, c, &way[i]);
		if ((double)plan_bytes(&p) > room || (best && sent(&t) >= least))
			continue;
		best = &way[i];
		least = sent(&t);
	}
	if (!best) {
		fprintf(to,
			"%-12s none fits %.1f GiB: more ranks, a smaller local_batch_size, or "
			"activation_checkpoint.mode = \"full\"\n",
			"advice", gib(room));
		return;
	}
	fprintf(to,
		"%-12s parallelism.data_parallel_replicate_degree = %d, "
		"data_parallel_shard_degree = %d, zero_stage = %d",
		"advice", best->replicate, best->shard / best->context,
		best->shard > 1 ? best->stage : -1);
	if (best->tensor > 1)
		fprintf(to, ", tensor_parallel_degree = %d", best->tensor);
	fprintf(to, ": the least traffic that fits %.1f GiB\n", gib(room));
}

/* Every way of sharing a model, of `tensor` slices, among the rest of the ranks; their number. */
static size_t list_ways(struct config_mesh *way, size_t most, int ranks, int tensor,
			const struct config_mesh *asked)
{
	size_t ways = 0;

	for (int shard = asked->context; shard <= ranks / tensor; shard += asked->context)
		for (int stage = shard > 1; stage <= (shard > 1 ? 3 : 0); stage++)
			if (ranks / tensor % shard == 0 && ways < most)
				way[ways++] = (struct config_mesh){
					.replicate = ranks / tensor / shard,
					.shard = shard,
					.stage = stage,
					.tensor = tensor,
					.context = asked->context,
					.width = asked->width,
				};
	return ways;
}

int plan_print_ranks(const struct config *c, int ranks, const struct plan_device *device, FILE *to,
		     struct err *err)
{
	enum { WAYS_MAX = 256, SLICES_MAX = 8 }; /* slices: within a node */
	const struct plan_device *fallback = plan_device_find("H100", NULL);
	double room = device ? device->bytes : fallback->bytes;
	struct config_mesh way[WAYS_MAX], asked;
	struct config shared = *c;
	size_t ways = 0;

	if (config_share(&shared, ranks, &asked, err))
		return -1;
	fprintf(to, "%-12s %d, each takes and sends (copies x ranks that share one x slices):\n",
		"ranks", ranks);
	print_one(&shared, &asked, room, to);
	fprintf(to, "%-12s\n", "others");
	for (int tensor = 1; tensor <= ranks && tensor <= SLICES_MAX; tensor++) {
		const struct model_split split = { .degree = tensor };
		if (ranks % tensor == 0 && slice_check(&c->shape, &split, NULL) == 0)
			ways += list_ways(way + ways, WAYS_MAX - ways, ranks, tensor, &asked);
	}
	for (size_t i = 0; i < ways; i++)
		print_one(&shared, &way[i], room, to);
	advise(&shared, way, ways, room, to);
	return 0;
}
