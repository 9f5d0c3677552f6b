/* SPDX-License-Identifier: MIT */
/* tensors.c - one way to tensors of either kind. */
#include "worker/lbworker/torch/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/torch/dcp.h"
#include "worker/lbworker/torch/torch_file.h"

enum { MAX_PARTS = 64 };

struct tensors {
	char *path;
	struct torch_file *file[MAX_PARTS]; /* [parts], or */
	size_t parts;
	struct dcp *dcp;
	const struct st_tensor *tensor[MAX_PARTS]; /* of the files, that was selected */
	size_t selected;                           /* files that hold some of it: 1, or all */
	bool is_by_columns;                        /* its parts lie side by side */
	size_t width;                              /* of the whole */
};

/* "consolidated.00.pth" may have others beside it, as many as there are numbers without a gap. */
static int open_files(struct tensors *t, const char *folder, const char *file, struct err *err)
{
	const char *number = strstr(file, ".00.");

	do {
		char *path = t->parts == 0
				     ? path_join("%s/%s", folder, file)
				     : path_join("%s/%.*s.%02zu.%s", folder, (int)(number - file),
						 file, t->parts, number + strlen(".00."));
		bool is_there = t->parts == 0 || file_exists(path);
		struct torch_file *open = is_there ? torch_file_open(path, err) : NULL;
		free(path);
		if (!is_there)
			return 0;
		if (!open)
			return -1;
		t->file[t->parts++] = open;
	} while (number && t->parts < MAX_PARTS);
	return 0;
}

struct tensors *tensors_open(const char *folder, const char *file, struct err *err)
{
	struct tensors *t = xcalloc(1, sizeof(*t));
	int rc = 0;

	t->path = path_join("%s/%s", folder, file);
	if (strcmp(file, ".metadata") == 0)
		t->dcp = dcp_open(folder, err);
	else
		rc = open_files(t, folder, file, err);
	if (rc == 0 && (t->dcp || t->parts > 0))
		return t;
	tensors_close(t);
	return NULL;
}

void tensors_close(struct tensors *t)
{
	if (!t)
		return;
	for (size_t i = 0; i < t->parts; i++)
		torch_file_close(t->file[i]);
	dcp_close(t->dcp);
	free(t->path);
	free(t);
}

size_t tensors_parts(const struct tensors *t)
{
	return t->parts;
}

/* With "model." in front of it, in room[]. */
static const char *below(const char *name, char room[128])
{
	snprintf(room, 128, "model.%s", name);
	return room;
}

static const struct st_tensor *in_file(const struct tensors *t, size_t part, const char *name)
{
	char room[128];
	const struct st_tensor *found = torch_file_named(t->file[part], name);

	return found ? found : torch_file_named(t->file[part], below(name, room));
}

size_t tensors_rows(const struct tensors *t, const char *name, size_t columns)
{
	size_t rows = 0;
	char room[128];

	if (t->dcp) {
		rows = dcp_rows(t->dcp, name);
		return rows ? rows : dcp_rows(t->dcp, below(name, room));
	}
	for (size_t i = 0; i < t->parts; i++) {
		const struct st_tensor *found = in_file(t, i, name);
		if (found && (i == 0 || (columns > 0 && found->shape[1] == columns)))
			rows += (size_t)found->shape[0];
	}
	return rows;
}

bool tensors_same(const struct tensors *t, const char *a, const char *b)
{
	for (size_t i = 0; i < t->parts; i++) {
		const struct st_tensor *x = in_file(t, i, a), *y = in_file(t, i, b);
		if (!x || !y || x->type != y->type || x->bytes != y->bytes ||
		    memcmp(x->data, y->data, x->bytes) != 0)
			return false;
	}
	return t->parts > 0;
}

/* All parts of a matrix have as much of its other side; then they cover this one in order. */
static bool covers(const struct tensors *t, int side, size_t whole, size_t other)
{
	size_t sum = 0;

	for (size_t i = 0; i < t->parts; i++) {
		if (t->tensor[i]->shape[1 - side] != other)
			return false;
		sum += (size_t)t->tensor[i]->shape[side];
	}
	return sum == whole;
}

/* How the parts make the whole; false: they do not. A whole in each of them is the first one's. */
static bool fit(struct tensors *t, size_t rows, size_t columns)
{
	const struct st_tensor *first = t->tensor[0];

	for (size_t i = 0; i < t->parts; i++)
		if (t->tensor[i]->dimensions != (columns ? 2 : 1))
			return false;
	t->selected = 1;
	t->is_by_columns = false;
	if (first->shape[0] == rows && first->shape[1] == columns)
		return true;
	t->selected = t->parts;
	if (columns == 0 || covers(t, 0, rows, columns))
		return columns > 0;
	t->is_by_columns = true;
	return covers(t, 1, columns, rows);
}

int tensors_select(struct tensors *t, const char *name, size_t rows, size_t columns,
		   struct err *err)
{
	char room[128];

	if (t->dcp)
		return dcp_select(t->dcp, dcp_rows(t->dcp, name) ? name : below(name, room), rows,
				  columns, err);
	for (size_t i = 0; i < t->parts; i++) {
		t->tensor[i] = in_file(t, i, name);
		if (!t->tensor[i])
			return err_set(err, ERR_USAGE, "%s: there is no tensor %s%s", t->path, name,
				       i > 0 ? " in one of the files beside it" : "");
	}
	t->width = columns ? columns : rows;
	if (fit(t, rows, columns))
		return 0;
	return err_set(err, ERR_USAGE, "%s: %s has %zux%zu elements%s, the model needs %zux%zu",
		       t->path, name, (size_t)t->tensor[0]->shape[0],
		       (size_t)t->tensor[0]->shape[1], t->parts > 1 ? " in its first part" : "",
		       rows, columns);
}

int tensors_number(const struct tensors *t, const char *name, float *out, struct err *err)
{
	if (t->dcp)
		return dcp_number(t->dcp, name, out, err);
	return err_set(err, ERR_USAGE, "%s: holds weights alone, no %s", t->path, name);
}

void tensors_row(const struct tensors *t, size_t row, float *to)
{
	size_t i = 0;

	if (t->dcp) {
		dcp_row(t->dcp, row, to);
		return;
	}
	if (t->is_by_columns) {
		for (; i < t->selected; to += t->tensor[i++]->shape[1])
			st_widen(to, t->tensor[i], row * (size_t)t->tensor[i]->shape[1],
				 (size_t)t->tensor[i]->shape[1]);
		return;
	}
	for (; i + 1 < t->selected && row >= t->tensor[i]->shape[0]; i++)
		row -= (size_t)t->tensor[i]->shape[0];
	st_widen(to, t->tensor[i], row * t->width, t->width);
}
