/* SPDX-License-Identifier: MIT */
/* stages.c - shares layers out, and says which numbers of stages there may be. */
#include "worker/lbworker/config/stages.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Layers of a stage; tables and head count as some. May be less than 1: then there are too many
 * stages. */
static int64_t layers_in(const struct config *c, int64_t stages, int64_t stage)
{
	int64_t all = (int64_t)c->shape.layers + c->first_stage_less + c->last_stage_less;
	int64_t layers = all / stages + (stage < all % stages);

	if (stage == 0)
		layers -= c->first_stage_less;
	if (stage + 1 == stages)
		layers -= c->last_stage_less;
	return layers;
}

static bool has_layers_for(const struct config *c, int64_t stages)
{
	if (stages > MODEL_STAGES_MAX)
		return false;
	for (int64_t s = 0; s < stages; s++)
		if (layers_in(c, stages, s) < 1)
			return false;
	return true;
}

struct model_pipeline stages_of(const struct config *c)
{
	struct model_pipeline p = {
		c->pipeline_rank, (int)c->pipeline_degree, c->pipeline_depth, { 0 }
	};
	int64_t end = 0;

	for (int i = 0; i < p.degree && p.degree > 1; i++) {
		end += layers_in(c, p.degree, i);
		p.end[i] = (uint16_t)end;
	}
	return p;
}

int stages_under_way(const struct config *c, const struct config_mesh *m)
{
	int64_t copies = (int64_t)m->replicate * m->shard, most = c->pipeline_degree;
	int64_t waves = (c->accumulate * m->context + copies - 1) / copies;

	most -= c->pipeline_rank;
	return (int)(waves < most ? waves : most);
}

/* "1, 2, 4": what passes the test, of 1 to most. */
static void list(const struct config *c, bool (*is_possible)(const struct config *, int64_t),
		 int64_t most, char *out, size_t bytes)
{
	size_t length = 0;

	out[0] = '\0';
	for (int64_t i = 1; i <= most && length + 8 < bytes; i++)
		if (is_possible(c, i))
			length += (size_t)snprintf(out + length, bytes - length, "%s%" PRId64,
						   length ? ", " : "", i);
}

static bool divides_batch(const struct config *c, int64_t size)
{
	return c->local_batch_size % size == 0;
}

static bool makes_stages(const struct config *c, int64_t each)
{
	int64_t all = (int64_t)c->shape.layers + c->first_stage_less + c->last_stage_less;

	return (all + each - 1) / each == c->pipeline_degree;
}

int stages_check(const struct config *c, const char **key, struct err *err)
{
	char would_do[96];

	if (c->pipeline_degree == 1)
		return 0;
	*key = "parallelism.pipeline_parallel_degree";
	if (c->shape.tied)
		return err_set(
			err, ERR_USAGE,
			"must be 1 where the head is the embedding, which the first stage and "
			"the last would share: model.tie_word_embeddings = false");
	list(c, has_layers_for, MODEL_STAGES_MAX, would_do, sizeof(would_do));
	if (!has_layers_for(c, c->pipeline_degree))
		return err_set(err, ERR_USAGE,
			       "%" PRId64
			       " stages of %zu layers, of which tables count for %" PRId64
			       " and the head for %" PRId64 ", leave one without any: %s would do",
			       c->pipeline_degree, c->shape.layers, c->first_stage_less,
			       c->last_stage_less, would_do);
	*key = "parallelism.pipeline_parallel_layers_per_stage";
	list(c, makes_stages, MODEL_STAGES_MAX * 16, would_do, sizeof(would_do));
	if (c->layers_per_stage > 0 && !makes_stages(c, c->layers_per_stage))
		return err_set(err, ERR_USAGE,
			       "%" PRId64
			       " layers, tables and head among them, do not make %" PRId64
			       " stages: %s would",
			       c->layers_per_stage, c->pipeline_degree, would_do);
	*key = "parallelism.pipeline_parallel_microbatch_size";
	list(c, divides_batch, c->local_batch_size, would_do, sizeof(would_do));
	if (!divides_batch(c, c->pipeline_microbatch))
		return err_set(err, ERR_USAGE,
			       "%" PRId64 " must divide training.local_batch_size %" PRId64 ": %s",
			       c->pipeline_microbatch, c->local_batch_size, would_do);
	*key = "parallelism.pipeline_parallel_schedule";
	if (strcmp(c->pipeline_schedule, "1F1B") != 0)
		return err_set(err, ERR_USAGE, "must be \"1F1B\", with one stage a rank");
	return 0;
}
