/* SPDX-License-Identifier: MIT */
/* share.c - what a config means among so many ranks. */
#include "worker/lbworker/config/config.h"

#include <inttypes.h>
#include <stdio.h>

#include "common/base/log.h"

/* Of the ranks those of one degree; the others' share out what is left. */
static int share_one(const struct config *c, const char *key, int64_t *degree, int ranks, int all,
		     struct err *err)
{
	char would_do[96] = "";
	size_t used = 0;

	if (ranks % *degree != 0 && c->lenient) {
		log_warn("parallelism: %s %" PRId64 " does not fit %d: 1", key, *degree, ranks);
		*degree = 1;
	}
	if (ranks % *degree == 0)
		return 0;
	for (int d = 1; d <= ranks && used < sizeof(would_do) - 8; d++)
		if (ranks % d == 0)
			used += (size_t)snprintf(would_do + used, sizeof(would_do) - used, "%s%d",
						 used ? ", " : "", d);
	return err_set(err, ERR_USAGE,
		       "parallelism.%s: %" PRId64 " wants a multiple of %" PRId64
		       " ranks, and there %s %d%s: %s would do",
		       key, *degree, *degree, ranks == 1 ? "is" : "are", ranks,
		       ranks < all ? " for it beside the other degrees" : "", would_do);
}

/* A degree of -1 is what the other one leaves; checks.c saw that one of them is none. */
static int degrees(const struct config *c, int ranks, struct config_mesh *m, struct err *err)
{
	int64_t replicate = c->replicate_degree, shard = c->shard_degree;

	if (replicate < 0)
		replicate = ranks % shard == 0 ? ranks / shard : 1;
	if (shard < 0)
		shard = ranks % replicate == 0 ? ranks / replicate : 1;
	if (replicate * shard != ranks && c->lenient) {
		log_warn("parallelism: degrees %" PRId64 " x %" PRId64
			 " do not fit %d: all ranks share one copy",
			 replicate, shard, ranks);
		replicate = 1;
		shard = ranks;
	}
	if (replicate * shard != ranks)
		return err_set(err, ERR_USAGE,
			       "parallelism: data_parallel_replicate_degree %" PRId64
			       " x data_parallel_shard_degree %" PRId64 " is %" PRId64
			       ", and there %s %d%s; -1 for one of them is what the other leaves",
			       replicate, shard, replicate * shard, ranks == 1 ? "is" : "are",
			       ranks,
			       m->tensor * m->context * m->pipeline > 1
				       ? " for them beside the other degrees"
				       : "");
	m->replicate = (int)replicate;
	m->shard = (int)shard;
	return 0;
}

static int stage_of(const struct config *c, int shard)
{
	if (shard == 1)
		return 0;
	if (c->zero_stage >= 0)
		return (int)c->zero_stage;
	return c->reshard == RESHARD_NEVER ? 2 : 3;
}

/* None with one rank: its passes add to the gradient in place. */
static int64_t width_of(const struct config *c, int ranks, const struct config_mesh *m)
{
	int64_t least = c->reduction_width > 0 ? c->reduction_width : ranks, width = 1;

	if (ranks * m->tensor * m->pipeline == 1 && least <= 1)
		return 0;
	while (width < least)
		width *= 2;
	return width;
}

void config_cut_batches(struct config *c)
{
	int64_t parts = c->local_batch_size / c->pipeline_microbatch;

	if (c->pipeline_degree == 1)
		return;
	c->local_batch_size = c->pipeline_microbatch;
	c->accumulate *= parts;
	if (c->validation_steps > 0)
		c->validation_steps *= parts;
}

int config_share(struct config *c, int ranks, struct config_mesh *m, struct err *err)
{
	const int all = ranks;

	*m = (struct config_mesh){ 0 };
	if (share_one(c, "tensor_parallel_degree", &c->tensor_degree, ranks, all, err))
		return -1;
	m->tensor = (int)c->tensor_degree;
	ranks /= m->tensor;
	if (share_one(c, "pipeline_parallel_degree", &c->pipeline_degree, ranks, all, err))
		return -1;
	m->pipeline = (int)c->pipeline_degree;
	ranks /= m->pipeline;
	if (share_one(c, "context_parallel_degree", &c->context_degree, ranks, all, err))
		return -1;
	m->context = (int)c->context_degree;
	ranks /= m->context;
	if (degrees(c, ranks, m, err))
		return -1;
	m->shard *= m->context; /* they hold a part each of what they need whole in turn */
	m->width = width_of(c, ranks * m->context, m);
	m->stage = stage_of(c, m->shard);
	if (m->shard > 1 && m->stage == 0)
		return err_set(err, ERR_USAGE,
			       "parallelism.zero_stage: 0 shares nothing: "
			       "data_parallel_replicate_degree = %d says that",
			       ranks);
	if (c->global_batch_size < 0)
		c->accumulate = c->reduction_width > 1 ? c->reduction_width : ranks;
	config_cut_batches(c);
	if (c->reduction == REDUCTION_FAST && c->batch_ramp.count > 0 && ranks > 1)
		return err_set(err, ERR_USAGE,
			       "parallelism.reduction: must be \"exact\" with training.batch_ramp");
	if (c->reduction == REDUCTION_FAST && c->accumulate % ranks != 0)
		return err_set(err, ERR_USAGE,
			       "parallelism.reduction: \"fast\" wants a global_batch_size of a "
			       "multiple of %d ranks x local_batch_size %" PRId64,
			       ranks, c->local_batch_size);
	return 0;
}
