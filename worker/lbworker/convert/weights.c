/* SPDX-License-Identifier: MIT */
/* weights.c - one way to weights of any kind. */
#include "worker/lbworker/convert/weights.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/checkpoint/hf.h"
#include "worker/lbworker/torch/foreign.h"

struct weights {
	char *folder;
	struct st_file *moments; /* of hf, when they were asked for */
	struct hf_weights *hf;   /* or */
	struct foreign *foreign;
	const struct st_tensor *tensor; /* of hf, that was selected */
	size_t width;
};

struct weights *weights_open(const char *folder, const char *file, struct model_shape *shape,
			     size_t *positions, struct err *err)
{
	const struct foreign_layout *layout = file ? NULL : foreign_in(folder);
	struct weights *w = xcalloc(1, sizeof(*w));

	w->folder = xstrdup(folder);
	if (layout)
		w->foreign = foreign_open(layout, folder, shape, positions, err);
	else if (hf_config_read(shape, positions, folder, err) == 0)
		w->hf = hf_weights_open(folder, file, shape, err);
	if (w->hf || w->foreign)
		return w;
	weights_close(w);
	return NULL;
}

void weights_close(struct weights *w)
{
	if (!w)
		return;
	st_close(w->moments);
	free(w->folder);
	hf_weights_close(w->hf);
	foreign_close(w->foreign);
	free(w);
}

int weights_select(struct weights *w, const struct model_tensor *tensor, struct err *err)
{
	if (w->foreign)
		return foreign_select(w->foreign, tensor, err);
	w->tensor = hf_weights_find(w->hf, tensor, err);
	w->width = tensor_width(tensor);
	return w->tensor ? 0 : -1;
}

int weights_select_moment(struct weights *w, const struct model_tensor *t, int which,
			  struct err *err)
{
	const uint64_t shape[ST_MAX_DIMENSIONS] = { t->rows, t->columns };
	char name[160];

	if (w->foreign)
		return foreign_select_moment(w->foreign, t, which ? "exp_avg_sq" : "exp_avg", err);
	if (!w->moments) {
		char *path = path_join("%s/%s", w->folder, CHECKPOINT_OPTIMIZER);
		w->moments = st_open(path, err);
		free(path);
	}
	snprintf(name, sizeof(name), "%s%s", checkpoint_moment_prefix((size_t)which), t->name);
	w->tensor = w->moments ? st_find(w->moments, name, ST_F32, shape, err) : NULL;
	w->width = tensor_width(t);
	return w->tensor ? 0 : -1;
}

void weights_row(const struct weights *w, size_t row, float *to)
{
	if (w->foreign)
		foreign_row(w->foreign, row, to);
	else
		st_widen(to, w->tensor, row * w->width, w->width);
}
