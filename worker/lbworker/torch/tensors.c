/* SPDX-License-Identifier: MIT */
/* tensors.c - one way to tensors of either kind. */
#include "worker/lbworker/torch/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/torch/dcp.h"
#include "worker/lbworker/torch/torch_file.h"

struct tensors {
	char *path;
	struct torch_file *file; /* or */
	struct dcp *dcp;
	const struct st_tensor *tensor; /* of the file, that was selected */
	size_t width;
};

struct tensors *tensors_open(const char *folder, const char *file, struct err *err)
{
	struct tensors *t = xcalloc(1, sizeof(*t));

	t->path = path_join("%s/%s", folder, file);
	if (strcmp(file, ".metadata") == 0)
		t->dcp = dcp_open(folder, err);
	else
		t->file = torch_file_open(t->path, err);
	if (t->dcp || t->file)
		return t;
	tensors_close(t);
	return NULL;
}

void tensors_close(struct tensors *t)
{
	if (!t)
		return;
	torch_file_close(t->file);
	dcp_close(t->dcp);
	free(t->path);
	free(t);
}

/* With "model." in front of it, in room[]. */
static const char *below(const char *name, char room[128])
{
	snprintf(room, 128, "model.%s", name);
	return room;
}

static const struct st_tensor *in_file(const struct tensors *t, const char *name)
{
	char room[128];
	const struct st_tensor *found = torch_file_named(t->file, name);

	return found ? found : torch_file_named(t->file, below(name, room));
}

size_t tensors_rows(const struct tensors *t, const char *name)
{
	char room[128];

	if (t->file) {
		const struct st_tensor *found = in_file(t, name);
		return found ? (size_t)found->shape[0] : 0;
	}
	size_t rows = dcp_rows(t->dcp, name);
	return rows ? rows : dcp_rows(t->dcp, below(name, room));
}

bool tensors_same(const struct tensors *t, const char *a, const char *b)
{
	const struct st_tensor *x = t->file ? in_file(t, a) : NULL,
			       *y = t->file ? in_file(t, b) : NULL;

	return x && y && x->type == y->type && x->bytes == y->bytes &&
	       memcmp(x->data, y->data, x->bytes) == 0;
}

int tensors_select(struct tensors *t, const char *name, size_t rows, size_t columns,
		   struct err *err)
{
	char room[128];

	if (t->dcp)
		return dcp_select(t->dcp, dcp_rows(t->dcp, name) ? name : below(name, room), rows,
				  columns, err);
	t->tensor = in_file(t, name);
	t->width = columns ? columns : rows;
	const struct st_tensor *have = t->tensor;
	if (!have)
		return err_set(err, ERR_USAGE, "%s: there is no tensor %s", t->path, name);
	if (have->shape[0] == rows && have->shape[1] == columns &&
	    have->dimensions == (columns ? 2 : 1))
		return 0;
	return err_set(err, ERR_USAGE, "%s: %s has %zux%zu elements, the model needs %zux%zu",
		       t->path, name, (size_t)have->shape[0], (size_t)have->shape[1], rows,
		       columns);
}

int tensors_number(const struct tensors *t, const char *name, float *out, struct err *err)
{
	if (t->dcp)
		return dcp_number(t->dcp, name, out, err);
	return err_set(err, ERR_USAGE, "%s: holds weights alone, no %s", t->path, name);
}

void tensors_row(const struct tensors *t, size_t row, float *to)
{
	if (t->dcp)
		dcp_row(t->dcp, row, to);
	else
		st_widen(to, t->tensor, row * t->width, t->width);
}
