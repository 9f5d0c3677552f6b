/* SPDX-License-Identifier: MIT */
/* plan_ranks.c - what each of several ranks takes and sends, and which way of sharing fits. */
#include <inttypes.h>
#include <math.h>

#include "worker/lbworker/config/stages.h"
#include "worker/lbworker/model/slice.h"
#include "worker/lbworker/telemetry/plan.h"

/* Per GPU: what a rank can send in a second, what an exchange takes before its first byte, and with
 * each further rank. docs/RANKS.md names the sources. */
static const struct link {
	const char *name;
	double bytes_per_s, start_s, rank_s;
} links[] = {
	{ "NVLink", 370e9, 8.4e-6, 3.4e-6 },
	{ "400 Gb/s each", 45e9, 8.4e-6, 9.6e-6 },
};
enum { LINKS = sizeof(links) / sizeof(links[0]) };

/* Bytes that a rank of the config's stage sends in a step, and in how many exchanges. */
struct traffic {
	double gradients, sums, weights; /* sums: to those that hold the same shard */
	double slices; /* activations, to those that hold the other slices of the model */
	double keys;   /* and values, to those that share the sequences */
	double stream; /* activations and their gradients, to the stages beside ours */
	double exchanges;
};

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

/* Of the stage. */
static double layers_of(const struct config *c)
{
	const struct model_pipeline p = stages_of(c);

	if (p.degree <= 1)
		return (double)c->shape.layers;
	return (double)(p.end[p.rank] - (p.rank > 0 ? p.end[p.rank - 1] : 0));
}

/* In a pass, forward to the next stage and back to the one before. */
static double stream_in_pass(const struct config *c, const struct config_mesh *m, double *exchanges)
{
	double rows = (double)(c->local_batch_size * c->seq_len) / m->context;
	int neighbours = (c->pipeline_rank > 0) + (c->pipeline_rank + 1 < m->pipeline);

	if (c->sequence_parallel)
		rows /= m->tensor;
	*exchanges = neighbours;
	return neighbours * rows * (double)c->shape.dim *
	       (double)compute_bytes((enum compute)c->compute);
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
	double trips = (o.again & AGAIN_ATTENDED ? 4 : 3) * layers_of(c);

	*exchanges = m->context > 1 ? trips : 0;
	return trips * rows * keys * (m->context - 1) *
	       (double)compute_bytes((enum compute)c->compute);
}

/* In a pass; *exchanges: how many. Beside the layers: tables, head, and of each loss three
 * numbers. */
static double slices_in_pass(const struct config *c, const struct config_mesh *m, double *exchanges)
{
	double rows = (double)(c->local_batch_size * c->seq_len) / m->context;
	double others = m->tensor - 1;
	double trips = layer_trips(c) * layers_of(c) + 2 * (c->pipeline_rank == 0) +
		       2 * (c->pipeline_rank + 1 == m->pipeline);
	double stream = rows * (double)c->shape.dim *
			(double)compute_bytes((enum compute)c->compute);

	*exchanges = m->tensor > 1 ? trips + 2 : 0;
	double losses = c->pipeline_rank + 1 == m->pipeline ? rows : 0;

	return trips * stream * others / m->tensor +
	       losses * (double)sizeof(struct loss_part) * others;
}

/* Weights as they go to those who compute with them. */
static double gathered_bytes(const struct plan *p, const struct config *c,
			     const struct config_mesh *m)
{
	const struct model_shape *s = &c->shape;
	double table = (double)s->vocab * (double)s->dim / m->tensor;
	double tables = (c->pipeline_rank == 0) + (c->pipeline_rank + 1 == m->pipeline && !s->tied);
	double each = p->are_split ? sizeof(uint16_t) : sizeof(float);
	double matrices = (double)p->cost.matrices, vectors = (double)p->cost.parameters - matrices;

	return (matrices - tables * table) * (c->fp8_gather ? 1 : each) + tables * table * each +
	       vectors * (double)sizeof(float);
}

static struct traffic traffic_of(const struct plan *p, const struct config *c,
				 const struct config_mesh *m)
{
	double all = (double)p->cost.parameters * sizeof(float), shard = m->shard;
	double ranks = shard * m->replicate, units = layers_of(c) + 3;
	int64_t waves = (c->accumulate * m->context + (int64_t)ranks - 1) / (int64_t)ranks;
	int64_t reduced = c->reduction == REDUCTION_FAST ? 1 : waves;
	double gathers = m->stage >= 3 ? 2 * (double)waves : m->stage >= 1 ? 1 : 0;
	double trips, more, slices = slices_in_pass(c, m, &trips);
	double keys = context_in_pass(c, m, &more), halves;
	double stream = stream_in_pass(c, m, &halves);

	return (struct traffic){
		.gradients = (double)reduced * all * (ranks - 1) / ranks,
		.sums = all / ranks * (m->replicate - 1),
		.weights = gathers * gathered_bytes(p, c, m) * (shard - 1) / shard,
		.slices = (double)waves * slices,
		.keys = (double)waves * keys,
		.stream = (double)waves * stream,
		.exchanges = units * ((double)reduced + gathers + (m->replicate > 1)) + 2 +
			     (double)waves * (trips + more + halves),
	};
}

static double sent(const struct traffic *t)
{
	return t->gradients + t->sums + t->weights + t->slices + t->keys + t->stream;
}

/* What a rank of that mesh and stage takes, and what it sends. */
struct rank_share {
	struct plan plan;
	struct traffic traffic;
	size_t first_layer, end_layer;
};

static int share_of(const struct config *c, const struct config_mesh *m, int stage,
		    struct rank_share *s)
{
	struct config same = *c;

	same.tensor_degree = m->tensor;
	same.context_degree = m->context;
	same.pipeline_rank = stage;
	same.pipeline_depth = stages_under_way(&same, m);
	if (plan_make(&s->plan, &same, NULL))
		return -1;
	const struct model_pipeline p = stages_of(&same);
	s->first_layer = stage > 0 ? p.end[stage - 1] : 0;
	s->end_layer = p.degree > 1 ? p.end[stage] : c->shape.layers;
	s->traffic = traffic_of(&s->plan, &same, m);
	plan_share(&s->plan, m);
	return 0;
}

/* Of all stages the most of each. -1 when the mesh is refused. */
static int largest(const struct config *c, const struct config_mesh *m, double *bytes,
		   double *sends)
{
	struct rank_share s;

	*bytes = *sends = 0;
	for (int stage = 0; stage < m->pipeline; stage++) {
		if (share_of(c, m, stage, &s))
			return -1;
		*bytes = fmax(*bytes, (double)plan_bytes(&s.plan));
		*sends = fmax(*sends, sent(&s.traffic));
	}
	return 0;
}

/* Bytes at the link's speed, and what each exchange takes whatever it carries. */
static double seconds_over(const struct link *l, const struct traffic *t,
			   const struct config_mesh *m)
{
	double others = (double)m->replicate * m->shard * m->tensor * m->pipeline - 1;

	return sent(t) / l->bytes_per_s + t->exchanges * (l->start_s + others * l->rank_s);
}

static void print_stage(const struct config *c, const struct config_mesh *m, int stage, double room,
			FILE *to)
{
	struct rank_share s;

	if (share_of(c, m, stage, &s))
		return;
	const struct plan *p = &s.plan;
	bool is_small = gib(sent(&s.traffic)) < 1;
	fprintf(to, "  %4d x %-4d x %-2d ZeRO-%d", m->replicate, m->shard, m->tensor, m->stage);
	if (m->pipeline > 1)
		fprintf(to, "  layers %3zu to %-3zu", s.first_layer, s.end_layer - 1);
	fprintf(to,
		"  %8.2f GiB %s  weights %.2f, gradients %.2f, moments %.2f, sums %.2f, "
		"activations %.2f; sends %.*f %s a step",
		gib((double)plan_bytes(p)), (double)plan_bytes(p) <= room ? "fits    " : "too much",
		gib((double)p->weights), gib((double)p->gradients), gib((double)p->moments),
		gib((double)p->sums), gib((double)p->activations), is_small ? 3 : 2,
		is_small ? 1024 * gib(sent(&s.traffic)) : gib(sent(&s.traffic)),
		is_small ? "MiB" : "GiB");
	for (size_t i = 0; i < LINKS; i++)
		fprintf(to, ", %.2f s by %s", seconds_over(&links[i], &s.traffic, m),
			links[i].name);
	fputc('\n', to);
}

static void print_one(const struct config *c, const struct config_mesh *m, double room, FILE *to)
{
	for (int stage = 0; stage < m->pipeline; stage++)
		print_stage(c, m, stage, room, to);
}

/* While the first pass comes to the last stage, and the last one back, others have nothing to
 * do. */
static void print_bubble(const struct config *c, const struct config_mesh *m, FILE *to)
{
	int64_t copies = (int64_t)m->replicate * m->shard, idle = m->pipeline - 1;
	int64_t passes = (c->accumulate * m->context + copies - 1) / copies;

	if (m->pipeline > 1)
		fprintf(to,
			"%-12s %d, %" PRId64
			" passes each in a step: a stage waits for %.1f %% of it\n",
			"stages", m->pipeline, passes,
			100.0 * (double)idle / (double)(passes + idle));
}

/* The least that is sent among those that fit. */
static void advise(const struct config *c, const struct config_mesh *way, size_t ways, double room,
		   FILE *to)
{
	const struct config_mesh *best = NULL;
	double least = 0, bytes, sends;

	for (size_t i = 0; i < ways; i++) {
		if (largest(c, &way[i], &bytes, &sends) || bytes > room || (best && sends >= least))
			continue;
		best = &way[i];
		least = sends;
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
	if (best->pipeline > 1)
		fprintf(to, ", pipeline_parallel_degree = %d", best->pipeline);
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
					.pipeline = asked->pipeline,
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
	print_bubble(&shared, &asked, to);
	fprintf(to, "%-12s\n", "others");
	ranks /= asked.pipeline;
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
