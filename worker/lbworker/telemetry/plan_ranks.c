/* SPDX-License-Identifier: MIT */
/* plan_ranks.c - what each of several ranks takes and sends, and which way of sharing fits. */
#include <inttypes.h>

#include "worker/lbworker/telemetry/plan.h"

/* Per GPU: what a rank can send in a second, and what an exchange takes before its first byte. From
 * NCCL's published figures: all-reduce on 8 H100 has a bus bandwidth of 360 to 480 GB/s over NVLink, and
 * 8 x 400 Gb/s of InfiniBand leave some 45 GB/s to each GPU. */
static const struct link {
	const char *name;
	double bytes_per_s, start_s;
} links[] = {
	{ "NVLink", 360e9, 20e-6 },
	{ "400 Gb/s each", 45e9, 40e-6 },
};
enum { LINKS = sizeof(links) / sizeof(links[0]) };

struct plan_traffic plan_traffic(const struct plan *p, const struct config *c,
				 const struct config_mesh *m)
{
	double all = (double)p->cost.parameters * sizeof(float), shard = m->shard;
	double ranks = shard * m->replicate, units = (double)c->shape.layers + 3;
	int64_t waves = (c->accumulate + (int64_t)ranks - 1) / (int64_t)ranks;
	int64_t reduced = c->reduction == REDUCTION_FAST ? 1 : waves;
	double gathers = m->stage >= 3 ? 2 * (double)waves : m->stage >= 1 ? 1 : 0;

	return (struct plan_traffic){
		.gradients = (double)reduced * all * (ranks - 1) / ranks,
		.sums = all / ranks * (m->replicate - 1),
		.weights = gathers * all * (shard - 1) / shard,
		.exchanges = units * ((double)reduced + gathers + (m->replicate > 1)) + 2,
	};
}

static double gib(double bytes)
{
	return bytes / (double)((uint64_t)1 << 30);
}

static void print_one(const struct plan *plan, const struct config *c, const struct config_mesh *m,
		      double room, FILE *to)
{
	const struct plan_traffic t = plan_traffic(plan, c, m);
	struct plan p = *plan;
	double sent = t.gradients + t.sums + t.weights;

	plan_share(&p, m);
	fprintf(to,
		"  %4d x %-4d ZeRO-%d  %8.2f GiB %s  weights %.2f, gradients %.2f, moments %.2f, sums "
		"%.2f; sends %.2f GiB a step",
		m->replicate, m->shard, m->stage, gib((double)plan_bytes(&p)),
		(double)plan_bytes(&p) <= room ? "fits    " : "too much", gib((double)p.weights),
		gib((double)p.gradients), gib((double)p.moments), gib((double)p.sums), gib(sent));
	for (size_t i = 0; i < LINKS; i++)
		fprintf(to, ", %.2f s by %s",
			sent / links[i].bytes_per_s + t.exchanges * links[i].start_s,
			links[i].name);
	fputc('\n', to);
}

static double bytes_of(const struct plan *plan, const struct config_mesh *m)
{
	struct plan p = *plan;

	plan_share(&p, m);
	return (double)plan_bytes(&p);
}

/* The least that is sent among those that fit. */
static void advise(const struct plan *plan, const struct config *c, const struct config_mesh *way,
		   size_t ways, double room, FILE *to)
{
	const struct config_mesh *best = NULL;
	double least = 0;

	for (size_t i = 0; i < ways; i++) {
		const struct plan_traffic t = plan_traffic(plan, c, &way[i]);
		double sent = t.gradients + t.sums + t.weights;
		if (bytes_of(plan, &way[i]) > room || (best && sent >= least))
			continue;
		best = &way[i];
		least = sent;
	}
	if (best)
		fprintf(to,
			"%-12s parallelism.data_parallel_replicate_degree = %d, "
			"data_parallel_shard_degree = %d, zero_stage = %d: the least traffic that fits "
			"%.1f GiB\n",
			"advice", best->replicate, best->shard, best->shard > 1 ? best->stage : -1,
			gib(room));
	else
		fprintf(to,
			"%-12s none fits %.1f GiB: more ranks, a smaller local_batch_size, or "
			"activation_checkpoint.mode = \"full\"\n",
			"advice", gib(room));
}

int plan_print_ranks(const struct plan *plan, const struct config *c, int ranks,
		     const struct plan_device *device, FILE *to, struct err *err)
{
	enum { WAYS_MAX = 64 };
	const struct plan_device *fallback = plan_device_find("H100", NULL);
	double room = device ? device->bytes : fallback->bytes;
	struct config_mesh way[WAYS_MAX], asked;
	struct config shared = *c;
	size_t ways = 0;

	if (config_share(&shared, ranks, &asked, err))
		return -1;
	fprintf(to, "%-12s %d, each takes and sends (copies x ranks that share one):\n", "ranks",
		ranks);
	print_one(plan, &shared, &asked, room, to);
	fprintf(to, "%-12s\n", "others");
	for (int shard = 1; shard <= ranks && ways + 3 < WAYS_MAX; shard++)
		for (int stage = shard > 1; ranks % shard == 0 && stage <= (shard > 1 ? 3 : 0);
		     stage++)
			way[ways++] = (struct config_mesh){ ranks / shard, shard, stage,
							    asked.width };
	for (size_t i = 0; i < ways; i++)
		print_one(plan, &shared, &way[i], room, to);
	advise(plan, &shared, way, ways, room, to);
	return 0;
}
