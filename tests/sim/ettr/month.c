/* SPDX-License-Identifier: MIT */
/* month.c - draws a month's troubles from its seed. */
#include "tests/sim/ettr/month.h"

#include <math.h>
#include <stdlib.h>

#include "common/base/mem.h"

/* The 419 unexpected interruptions of Llama 3 405B by root cause (arXiv 2407.21783, table 5), put
 * into our four kinds: GPU, HBM3, SRAM, GPU processor, thermal, silent data corruption (148 + 72 +
 * 19 + 17 + 6 + 6); network, NIC, NCCL watchdog (35 + 7 + 7); maintenance, SSD, power, chassis,
 * boards, CPU, memory (32 + 3 + 3 + 2 + 2 + 2 + 2); software, dependency (54 + 2). */
static const struct {
	enum trouble kind;
	int weight;
} mix[] = {
	{ TROUBLE_GPU, 268 },
	{ TROUBLE_HANG, 49 },
	{ TROUBLE_NODE, 46 },
	{ TROUBLE_OWN, 56 },
};
enum { MIX_SUM = 419 };

static const char *const names[TROUBLE_COUNT] = {
	[TROUBLE_NONE] = "first start",
	[TROUBLE_GPU] = "GPU error",
	[TROUBLE_HANG] = "hang",
	[TROUBLE_NODE] = "node lost",
	[TROUBLE_OWN] = "crash",
	[TROUBLE_LAUNCH] = "launch failed",
	[TROUBLE_TORN] = "torn checkpoint",
};

const char *trouble_name(enum trouble kind)
{
	return names[kind];
}

int64_t young_interval_ms(int64_t save_ms, double mtbf_ms)
{
	return (int64_t)sqrt(2 * (double)save_ms * mtbf_ms);
}

/* --- the month ----------------------------------------------------------------------------------
 */

static enum trouble some_kind(struct rng *rng)
{
	int64_t dice = rng_range(rng, 0, MIX_SUM - 1);
	size_t i = 0;

	while (dice >= mix[i].weight)
		dice -= mix[i++].weight;
	return mix[i].kind;
}

/* Nodes 0 to LEMONS - 1 have half of all. */
static int some_node(struct rng *rng)
{
	if (rng_chance(rng, 0.5))
		return (int)rng_range(rng, 0, LEMONS - 1);
	return (int)rng_range(rng, LEMONS, NODE_COUNT - 1);
}

static void shuffle(int order[NODE_COUNT], struct rng *rng)
{
	for (int i = 0; i < NODE_COUNT; i++)
		order[i] = i;
	for (int i = NODE_COUNT - 1; i > 0; i--) {
		int j = (int)rng_range(rng, 0, i), kept = order[i];

		order[i] = order[j];
		order[j] = kept;
	}
}

void month_draw(struct month *m, const struct circumstances *c, uint64_t seed)
{
	struct rng rng = { seed * 0xd1342543de82ef95u + 7 };
	double mean_ms = c->per_node_day > 0 ? DAY / (c->per_node_day * NODE_COUNT) : 0;
	size_t cap = 0;

	*m = (struct month){ .c = *c, .seed = seed };
	shuffle(m->order, &rng);
	for (int64_t now_ms = 0; mean_ms > 0;) {
		now_ms += rng_exp(&rng, mean_ms);
		if (now_ms >= MONTH_MS)
			break;
		if (m->count == cap) {
			cap = cap ? 2 * cap : 64;
			m->troubles = xrealloc(m->troubles, cap * sizeof(m->troubles[0]));
		}
		m->troubles[m->count++] = (struct trouble_at){
			.at_ms = now_ms,
			.node = some_node(&rng),
			.kind = some_kind(&rng),
		};
	}
}

void month_fini(struct month *m)
{
	free(m->troubles);
	*m = (struct month){ 0 };
}

/* Dice of their own, so that who starts more jobs does not change what the others meet. */
static struct rng dice_of(const struct month *m, int64_t n, uint64_t what)
{
	struct rng rng = { m->seed * 0x9e3779b97f4a7c15u + (uint64_t)n * 0xbf58476d1ce4e5b9u +
			   what };

	rng_next(&rng);
	return rng;
}

int64_t month_queue_ms(const struct month *m, int64_t n)
{
	struct rng rng = dice_of(m, n, 1);

	return m->c.queue_ms > 0 ? rng_exp(&rng, (double)m->c.queue_ms) : 0;
}

bool month_launch_fails(const struct month *m, int64_t n)
{
	struct rng rng = dice_of(m, n, 2);

	return rng_chance(&rng, m->c.launch_failure);
}

static bool is_up(const struct month *m, int node, int64_t now_ms)
{
	for (size_t i = 0; i < m->count && m->troubles[i].at_ms <= now_ms; i++) {
		const struct trouble_at *t = &m->troubles[i];

		if (t->kind == TROUBLE_NODE && t->node == node &&
		    now_ms < t->at_ms + m->c.repair_ms)
			return false;
	}
	return true;
}

bool month_place(const struct month *m, int64_t now_ms, int nodes, const bool avoided[NODE_COUNT],
		 bool held[NODE_COUNT])
{
	int count = 0;

	for (int i = 0; i < NODE_COUNT; i++)
		held[i] = false;
	for (int i = 0; i < NODE_COUNT && count < nodes; i++) {
		int node = m->order[i];

		if ((avoided && avoided[node]) || !is_up(m, node, now_ms))
			continue;
		held[node] = true;
		count++;
	}
	return count == nodes;
}

bool trouble_hits(const struct trouble_at *t, const bool held[NODE_COUNT])
{
	return t->kind == TROUBLE_OWN ? true : held[t->node];
}

/* --- the account ---------------------------------------------------------------------------------
 */

static int64_t within(int64_t ms)
{
	return ms < MONTH_MS ? ms : MONTH_MS;
}

void account_span(struct account *a, enum where where, enum trouble why, int64_t from_ms,
		  int64_t to_ms)
{
	int64_t ms = within(to_ms) - within(from_ms);

	a->ms[where] += ms;
	if (where != WHERE_KEPT && where != WHERE_SAVING)
		a->lost_ms[why] += ms;
}

bool account_train(struct account *a, const struct circumstances *c, enum trouble why,
		   int64_t from_ms, int64_t to_ms)
{
	int64_t round_ms = c->interval_ms + c->save_ms, ms = within(to_ms) - within(from_ms);
	int64_t rounds = ms / round_ms, rest_ms = ms % round_ms;
	int64_t work_ms = rest_ms < c->interval_ms ? rest_ms : c->interval_ms;
	int64_t drained_ms = ms > c->drain_ms ? ms - c->drain_ms : 0;
	bool goes_on = to_ms >= MONTH_MS, takes_nodes = why == TROUBLE_GPU || why == TROUBLE_NODE;
	int64_t kept = takes_nodes && !goes_on ? drained_ms / round_ms : rounds;

	work_ms += (rounds - kept) * c->interval_ms;
	a->ms[WHERE_KEPT] += kept * c->interval_ms;
	a->ms[WHERE_SAVING] += ms - kept * c->interval_ms - work_ms;
	a->ms[goes_on ? WHERE_KEPT : WHERE_REDONE] += work_ms;
	if (!goes_on)
		a->lost_ms[why] += work_ms;
	return !goes_on && rest_ms > c->interval_ms;
}

double account_ettr(const struct account *a)
{
	int64_t sum = 0;

	for (int i = 0; i < WHERE_COUNT; i++)
		sum += a->ms[i];
	return (double)a->ms[WHERE_KEPT] / (double)sum;
}
