/* SPDX-License-Identifier: MIT */
/* foreign_files.c - weights, and what an optimizer has, as the files of other programs. */
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/paths.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/convert/conversion.h"

enum { MAX_STATE_BYTES = 16 << 20 };

/* Of each tensor, and of a head that is the embedding once more: its weights (-1), or a moment (0,
 * 1). */
static int put_all(const struct conversion *c, const struct sink *out, int moment, struct err *err)
{
	const struct model *m = c->model;
	int rc = 0;

	for (size_t i = 0; i < m->tensors + m->shape.tied && rc == 0; i++) {
		const struct model_tensor *t = &m->tensor[i < m->tensors ? i : 0];
		if (moment < 0)
			rc = weights_select(c->weights, t, err);
		else
			rc = weights_select_moment(c->weights, t, moment, err);
		if (rc == 0)
			rc = put_tensor(c, out, t, err);
	}
	return rc;
}

/* What a checkpoint of ours knows of its optimizer; -1 with err where it is none. */
static int read_settings(const char *folder, struct foreign_settings *s, struct err *err)
{
	char *path = path_join("%s/%s", folder, CHECKPOINT_STATE);
	json_t *o = js_load(path, MAX_STATE_BYTES, err);
	int64_t step = js_int(o, "step", -1), skipped = js_int(o, "skipped", 0);

	*s = (struct foreign_settings){ js_real(o, "lr", 0),           js_real(o, "beta1", 0.9),
					js_real(o, "beta2", 0.95),     js_real(o, "eps", 1e-8),
					js_real(o, "weight_decay", 0), step - skipped,
					js_int(o, "tokens", 0) };
	const char *optimizer = js_str(o, "optimizer", "AdamW");
	bool is_adamw = strcmp(optimizer, "AdamW") == 0;
	bool is_sound = o && is_adamw && s->step >= 0 && skipped >= 0 && skipped <= step;
	if (o && !is_adamw)
		err_set(err, ERR_USAGE, "%s: they are %s's, and must be AdamW's: without it", path,
			optimizer);
	else if (o && !is_sound)
		err_set(err, ERR_USAGE, "%s: step or skipped is no number of steps", path);
	json_decref(o);
	free(path);
	return is_sound ? 0 : err_wrap(err, "--moments on");
}

/* Moments, steps, settings of a checkpoint; list: of which a quarter are weights. */
static int put_optimizer(const struct conversion *c, const struct sink *out, const char *from,
			 const struct st_tensor *list, size_t count, struct err *err)
{
	struct foreign_settings settings;

	if (read_settings(from, &settings, err) || put_all(c, out, 0, err) ||
	    put_all(c, out, 1, err))
		return -1;
	float step = (float)settings.step;
	for (size_t i = 0; i < count / 4; i++)
		if (foreign_append(out->foreign, &step, sizeof(step), err))
			return -1;
	return foreign_put_settings(out->foreign, list, count / 4, &settings, err);
}

static int write_foreign(const struct conversion *c, const char *from, const char *folder,
			 struct err *err)
{
	size_t count;
	struct st_tensor *list = foreign_list(c->layout, c->model, &c->want, &count);
	struct sink out = { .foreign = foreign_begin(c->layout, folder, c->want.part, list, count,
						     err) };
	int rc = out.foreign ? put_all(c, &out, -1, err) : -1;

	if (rc == 0 && c->want.moments)
		rc = put_optimizer(c, &out, from, list, count, err);
	if (foreign_end(out.foreign, err))
		rc = -1;
	free(list);
	return rc;
}

int foreign_files_write(struct conversion *c, const char *from, const char *folder, struct err *err)
{
	int rc = 0;

	for (c->want.part = 0; rc == 0 && c->want.part < c->want.parts; c->want.part++)
		rc = write_foreign(c, from, folder, err);
	c->shards = c->want.parts;
	return rc;
}
