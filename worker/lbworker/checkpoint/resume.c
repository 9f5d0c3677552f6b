/* SPDX-License-Identifier: MIT */
/* resume.c - finds what a training goes on from, and what a writer left that was killed. */
#include "worker/lbworker/checkpoint/resume.h"

#include <inttypes.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/manifest/manifest.h"
#include "kernels/machine/threads.h"
#include "worker/lbworker/base/narrow.h"
#include "worker/lbworker/checkpoint/hf.h"
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/checkpoint/same_weights.h"
#include "worker/lbworker/base/scratch.h"
#include "worker/lbworker/model/slice.h"
#include "worker/lbworker/torch/foreign.h"

static int find_checkpoint(const struct config *c, char **path, struct err *err)
{
	const char *given = getenv("LB_RESUME_FROM");
	struct checkpoint_found found;

	if (given && given[0] != '\0') {
		struct err why = { 0 };
		/* the next launch takes an older one: nothing that a person must mend first */
		if (manifest_verify(given, MANIFEST_DIGESTS, NULL, &why))
			return err_set(err, ERR_IO, "LB_RESUME_FROM: %s", why.text);
		*path = xstrdup(given);
		return 1;
	}
	if (!c->checkpoint_enable)
		return 0;
	int rc = checkpoint_newest_valid(c->checkpoint_path, &found, model_path_passed_over, NULL,
					 err);
	if (rc < 0)
		return err_wrap(err, "cannot resume");
	if (rc > 0)
		*path = xstrdup(found.path);
	return rc;
}

/* What is here of tensor number i, which is selected, row by row. */
static void read_tensor(struct foreign *f, const struct model *m, size_t i, float *host)
{
	const struct model_tensor *t = &model_whole(m)->tensor[i];
	size_t width = t->columns ? t->columns : t->rows, at, count;
	float *row = xmalloc(width * sizeof(*row)), *to = host + m->tensor[i].offset;
	struct slice_walk walk = slice_begin(m, i);
	struct slice_run run;

	while (slice_next(&walk, &run))
		for (at = run.whole; at < run.whole + run.count; at += count) {
			count = width - at % width;
			if (count > run.whole + run.count - at)
				count = run.whole + run.count - at;
			foreign_row(f, at / width, row);
			memcpy(to + run.local + (at - run.whole), row + at % width,
			       count * sizeof(*row));
		}
	free(row);
}

/* All weights, or all of a moment, as far as they are here, to host memory. */
static int read_all(struct foreign *f, const struct model *m, const char *moment, float *host,
		    struct err *err)
{
	for (size_t i = 0; i < m->tensors; i++) {
		const struct model_tensor *t = &model_whole(m)->tensor[i];
		if (moment ? foreign_select_moment(f, t, moment, err) : foreign_select(f, t, err))
			return -1;
		read_tensor(f, m, i, host);
	}
	return 0;
}

/* Moments and step of a checkpoint of torchtitan. Its samples are counted as ours would be. */
static int take_over(struct foreign *f, const struct checkpoint_parts *p, const struct config *c,
		     float *host, struct err *err)
{
	static const char *const names[] = { "exp_avg", "exp_avg_sq" };
	void *const moment[] = { p->kept->m, p->kept->v };
	const struct model *m = p->model;
	bool narrow = m->options.moments == MOMENTS_BF16;
	struct train_state *s = p->state;

	if (strcmp(s->optimizer.name, "AdamW") != 0)
		return err_set(err, ERR_USAGE,
			       "moments of torchtitan are AdamW's, and the config says %s: "
			       "optimizer.name = \"AdamW\", or initial_load_model_only = true",
			       s->optimizer.name);
	for (int k = 0; k < 2; k++) {
		if (read_all(f, m, names[k], host, err))
			return -1;
		if (narrow) /* in place: what comes is behind what is written */
			narrow_to_bf16((uint16_t *)(void *)host, host, m->parameters);
		m->backend->upload(m->device, moment[k], host,
				   m->parameters * (narrow ? sizeof(uint16_t) : sizeof(float)));
	}
	if (foreign_steps(f, &s->step, err))
		return -1;
	s->samples = (int64_t)config_samples(c, s->step);
	s->tokens = s->samples * c->seq_len;
	printf("took over %s at step %" PRId64 "\n", c->initial_load_path, s->step);
	return 0;
}

static int load_foreign(const struct foreign_layout *layout, const struct checkpoint_parts *p,
			const struct config *c, struct err *err)
{
	const struct model *m = p->model;
	const struct model_shape *want = &model_whole(m)->shape;
	struct model_shape shape = *want;
	size_t positions;

	if (same_weights(p->ranks, c->initial_load_path, err))
		return -1;
	if (want->umup.enable)
		return err_set(err, ERR_USAGE,
			       "%s: with u_mup.enable a weight means something else: a model that "
			       "was trained so, or without it",
			       c->initial_load_path);
	struct foreign *f = foreign_open(layout, c->initial_load_path, &shape, &positions, err);
	float *host = f ? xmalloc(m->parameters * sizeof(*host)) : NULL;
	int rc = f ? 0 : -1;

	if (rc == 0 && !foreign_has_moments(layout)) /* torchtitan's do not say their shape */
		rc = hf_check_same(&shape, want, c->initial_load_path, err);
	else if (rc == 0 && want->tied && !shape.tied)
		rc = err_set(err, ERR_USAGE,
			     "%s: its head is not the embedding: model.tie_word_embeddings = false",
			     c->initial_load_path);
	if (rc == 0)
		rc = read_all(f, m, NULL, host, err);
	if (rc == 0)
		m->backend->upload(m->device, m->weights, host, m->parameters * sizeof(*host));
	if (rc == 0 && !c->initial_load_model_only)
		rc = take_over(f, p, c, host, err);
	free(host);
	foreign_close(f);
	return rc;
}

/* 1 with *path, 0 when there is none, -1. */
typedef int find_function(const struct config *c, char **path, struct err *err);

struct choice {
	int found; /* what a find_function gave */
	char path[PATH_MAX];
};

/* By rank 0, in a thread of its own: all of a checkpoint may be read. */
struct search {
	find_function *find;
	const struct config *config;
	char *path;
	int found;
	struct err err;
	atomic_bool is_over;
};

static void *search(void *arg)
{
	struct search *s = arg;

	s->found = s->find(s->config, &s->path, &s->err);
	atomic_store(&s->is_over, true);
	return NULL;
}

/* While all wait; on rank 0 as find(). */
static int find_together(struct ranks *ranks, struct search *s, struct err *err)
{
	pthread_t thread;
	bool is_thread = ranks->rank == 0 && ranks->size > 1 && threads_start(&thread, search, s);

	if (ranks->rank == 0 && !is_thread)
		search(s);
	int rc = ranks_wait_for_first(ranks, &s->is_over, err);
	if (is_thread)
		pthread_join(thread, NULL);
	return rc == 0 && s->found < 0 ? err_set(err, s->err.code, "%s", s->err.text) : rc;
}

/* All ranks read what the first one finds, and read the same. */
static int choose(const struct checkpoint_parts *p, const struct config *c, find_function *find,
		  char **path, struct err *err)
{
	struct search s = { .find = find, .config = c };
	struct choice choice = { 0 };

	if (find_together(p->ranks, &s, err)) {
		free(s.path);
		return -1;
	}
	*path = s.path;
	choice.found = s.found;
	snprintf(choice.path, sizeof(choice.path), "%s", *path ? *path : "");
	if (ranks_from_first(p->ranks, &choice, sizeof(choice), err))
		return -1;
	if (p->ranks->rank != 0 && choice.found > 0)
		*path = xstrdup(choice.path);
	if (choice.found <= 0 || same_weights(p->ranks, *path, err) == 0)
		return choice.found;
	free(*path);
	*path = NULL;
	return -1;
}

static int find_model(const struct config *c, char **path, struct err *err)
{
	*path = model_path(c->initial_load_path, err);
	return *path ? 1 : -1;
}

static int load_hf(const struct checkpoint_parts *p, const struct config *c, struct err *err)
{
	char *folder = NULL;
	int rc = choose(p, c, find_model, &folder, err);

	if (rc > 0)
		rc = hf_load(p->model, folder, NULL, err);
	free(folder);
	return rc;
}

static int begin(const struct checkpoint_parts *parts, const struct config *c, struct err *err)
{
	const struct foreign_layout *layout = foreign_in(c->initial_load_path);

	if (c->initial_load_path[0] == '\0') {
		model_init_weights(parts->model, (uint64_t)c->seed, c->init_std);
		return 0;
	}
	if (!layout && !c->initial_load_model_only)
		return err_set(err, ERR_USAGE,
			       "checkpoint.initial_load_model_only = false wants a checkpoint of "
			       "torchtitan in initial_load_path");
	int rc = layout ? load_foreign(layout, parts, c, err) : load_hf(parts, c, err);
	return rc ? err_wrap(err, "checkpoint.initial_load_path") : 0;
}

/* What is adapted is read in each launch: a checkpoint has it with adapters in. */
static int begin_adapters(const struct checkpoint_parts *parts, const struct config *c,
			  bool goes_on, struct err *err)
{
	struct lora *lora = parts->lora;

	if (goes_on && begin(parts, c, err))
		return -1;
	lora_begin(lora);
	if (!goes_on)
		lora_draw(lora, (uint64_t)c->seed);
	printf("adapters of rank %zu for %zu matrices: %zu parameters are trained\n",
	       lora->rules.rank, lora->pairs, lora->count);
	return 0;
}

/* By what is kept for the next step. */
static const char *optimizer_of(const struct config *c)
{
	if (c->optimizer_name == OPTIMIZER_MUON)
		return "Muon";
	return c->moments == MOMENTS_8BIT ? "AdamW8bit" : "AdamW";
}

int resume(const struct checkpoint_parts *parts, const struct config *c, const char *data_digest,
	   char **path, struct err *err)
{
	struct train_state *state = parts->state;

	*path = NULL;
	*state = (struct train_state){
		.seed = c->seed,
		.seq_len = c->seq_len,
		.optimizer = { optimizer_of(c), c->lr, c->beta1, c->beta2, c->eps,
			       c->weight_decay },
	};
	snprintf(state->data_digest, sizeof(state->data_digest), "%s", data_digest);
	snprintf(state->config_digest, sizeof(state->config_digest), "%s", c->digest);
	if (c->checkpoint_enable && parts->ranks->rank == 0 &&
	    scratch_sweep(c->checkpoint_path) > 0)
		log_info("%s: removed what killed writers left", c->checkpoint_path);
	int found = choose(parts, c, find_checkpoint, path, err);
	if (found == 0 && begin(parts, c, err))
		return -1;
	if (parts->lora && found >= 0 && begin_adapters(parts, c, found > 0, err))
		return -1;
	if (found == 0 && parts->sharded)
		sharded_trim(parts->sharded);
	if (found <= 0)
		return found;
	if (checkpoint_load(parts, *path, err)) {
		free(*path);
		*path = NULL;
		return err_wrap(err, "cannot resume");
	}
	printf("resumed from %s at step %" PRId64 "\n", *path, state->step);
	return 0;
}
