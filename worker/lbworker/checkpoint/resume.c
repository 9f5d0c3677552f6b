/* SPDX-License-Identifier: MIT */
/* resume.c - finds what a training goes on from, and what a writer left that was killed. */
#include "worker/lbworker/checkpoint/resume.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/log.h"
#include "common/checkpoint/manifest.h"
#include "common/base/mem.h"
#include "worker/lbworker/checkpoint/hf.h"
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/checkpoint/scratch.h"

static void on_bad_checkpoint(const char *path, const struct err *why, void *arg)
{
	(void)arg;
	log_warn("checkpoint %s is passed over: %s", path, why->text);
}

/* 1 with *path, 0 when there is none, -1. */
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
	int rc = checkpoint_newest_valid(c->checkpoint_path, &found, on_bad_checkpoint, NULL, err);
	if (rc < 0)
		return err_wrap(err, "cannot resume");
	if (rc > 0)
		*path = xstrdup(found.path);
	return rc;
}

static int begin(struct model *model, const struct config *c, struct err *err)
{
	if (c->initial_load_path[0] == '\0') {
		model_init_weights(model, (uint64_t)c->seed, c->init_std);
		return 0;
	}
	char *folder = model_path(c->initial_load_path, err);
	int rc = folder ? hf_load(model, folder, err) : -1;
	free(folder);
	return rc ? err_wrap(err, "checkpoint.initial_load_path") : 0;
}

int resume(const struct checkpoint_parts *parts, const struct config *c, const char *data_digest,
	   char **path, struct err *err)
{
	struct train_state *state = parts->state;

	*path = NULL;
	*state = (struct train_state){ .seed = c->seed, .seq_len = c->seq_len };
	snprintf(state->data_digest, sizeof(state->data_digest), "%s", data_digest);
	snprintf(state->config_digest, sizeof(state->config_digest), "%s", c->digest);
	if (c->checkpoint_enable && scratch_sweep(c->checkpoint_path) > 0)
		log_info("%s: removed what killed writers left", c->checkpoint_path);
	int found = find_checkpoint(c, path, err);
	if (found <= 0)
		return found < 0 ? -1 : begin(parts->model, c, err);
	if (checkpoint_load(parts, *path, err)) {
		free(*path);
		*path = NULL;
		return err_wrap(err, "cannot resume");
	}
	printf("resumed from %s at step %" PRId64 "\n", *path, state->step);
	return 0;
}
