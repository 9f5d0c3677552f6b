/* SPDX-License-Identifier: MIT */
/* foreign_settings.c - what a checkpoint of torchtitan says beside tensors: the optimizer's
 * param_groups by parameter (torch.distributed.checkpoint.state_dict flattens them so), schedule,
 * steps. */
#include <stdio.h>
#include <string.h>

#include "worker/lbworker/torch/dcp.h"
#include "worker/lbworker/torch/foreign_parts.h"
#include "worker/lbworker/torch/pickle_write.h"

enum { NAME_BYTES = 192, VALUE_MAX = 4096 };

/* One value: numbers, or opcodes as they are. */
struct setting {
	const char *name, *opcodes; /* NULL: the reals */
	double real[2];
	int reals;
};

static int put(struct dcp_writer *w, const char *name, const struct setting *s, struct err *err)
{
	struct buf b;

	buf_init(&b, VALUE_MAX);
	if (s->opcodes)
		pickle_put(&b, s->opcodes);
	if (s->reals > 1)
		pickle_put(&b, "(");
	for (int i = 0; i < s->reals; i++)
		pickle_put_real(&b, s->real[i]);
	if (s->reals > 1)
		pickle_put(&b, "t");
	int rc = dcp_put_value(w, name, &b, err);
	buf_fini(&b);
	return rc;
}

static int put_count(struct dcp_writer *w, const char *name, int64_t value, struct err *err)
{
	struct buf b;

	buf_init(&b, VALUE_MAX);
	pickle_put_size(&b, (uint64_t)value);
	int rc = dcp_put_value(w, name, &b, err);
	buf_fini(&b);
	return rc;
}

/* Of one parameter. NEWTRUE and NEWFALSE stand for flags. */
static int put_group(struct dcp_writer *w, const char *of, const struct foreign_settings *s,
		     struct err *err)
{
	const struct setting settings[] = {
		{ "lr", NULL, { s->lr }, 1 },
		{ "initial_lr", NULL, { s->lr }, 1 },
		{ "betas", NULL, { s->beta1, s->beta2 }, 2 },
		{ "eps", NULL, { s->eps }, 1 },
		{ "weight_decay", NULL, { s->weight_decay }, 1 },
		{ "amsgrad", "\x89", { 0 }, 0 },
		{ "maximize", "\x89", { 0 }, 0 },
		{ "foreach", "N", { 0 }, 0 },
		{ "capturable", "\x89", { 0 }, 0 },
		{ "differentiable", "\x89", { 0 }, 0 },
		{ "fused", "\x88", { 0 }, 0 },
		{ "decoupled_weight_decay", "\x88", { 0 }, 0 },
	};
	char name[NAME_BYTES];

	for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
		snprintf(name, sizeof(name), "optimizer.param_groups.%s.%s", of, settings[i].name);
		if (put(w, name, &settings[i], err))
			return -1;
	}
	return 0;
}

int settings_put(struct dcp_writer *w, const struct st_tensor *list, size_t count,
		 const struct foreign_settings *s, struct err *err)
{
	for (size_t i = 0; i < count; i++)
		if (strncmp(list[i].name, "optimizer.", 10) != 0 &&
		    put_group(w, list[i].name, s, err))
			return -1;
	return put_count(w, "lr_scheduler.last_epoch", s->step, err) ||
			       put_count(w, "train_state.step", s->step, err) ||
			       put_count(w, "train_state.ntokens_seen", s->tokens, err)
		       ? -1
		       : 0;
}
