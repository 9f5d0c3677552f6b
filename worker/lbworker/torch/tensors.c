/* SPDX-License-Identifier: MIT */
/* tensors.c - one way to tensors of either kind. */
#include "worker/lbworker/torch/tensors.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "worker/lbworker/torch/dcp.h"
#include "worker/lbworker/torch/torch_file.h"

enum { MAX_PARTS = 256, MAX_INDEX_BYTES = 64 << 20, MAX_NAME = 256 };

struct tensors {
	char *path;
	struct torch_file *file[MAX_PARTS]; /* [parts], or */
	size_t parts;
	bool is_spread;        /* each tensor is whole, in one of the files */
	char prefix[MAX_NAME]; /* in front of their names */
	size_t left_out;       /* characters of ours that they lack */
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

static bool is_open(const struct tensors *t, const char *path)
{
	for (size_t i = 0; i < t->parts; i++)
		if (strcmp(torch_file_path(t->file[i]), path) == 0)
			return true;
	return false;
}

/* path: of an index; a file that it lists lies beside it. */
static int open_listed(struct tensors *t, const char *folder, const char *path, const char *name,
		       struct err *err)
{
	if (!name || name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
		return err_set(err, ERR_USAGE,
			       "%s: \"%.80s\" cannot be the name of a file beside it", path,
			       name ? name : "");
	char *file = path_join("%s/%s", folder, name);
	int rc = 0;

	if (!file_exists(file))
		rc = err_set(err, ERR_USAGE, "%s: is missing, though %s lists it", file,
			     strrchr(path, '/') + 1);
	else if (!is_open(t, file) && t->parts == MAX_PARTS)
		rc = err_set(err, ERR_USAGE, "%s: more than %d files", path, MAX_PARTS);
	else if (!is_open(t, file)) {
		t->file[t->parts] = torch_file_open(file, err);
		rc = t->file[t->parts] ? 0 : -1;
		t->parts += rc == 0;
	}
	free(file);
	return rc;
}

static int open_index(struct tensors *t, const char *folder, const char *path, struct err *err)
{
	json_t *index = js_load(path, MAX_INDEX_BYTES, err), *file;
	json_t *map = json_object_get(index, "weight_map");
	const char *tensor;
	int rc = index ? 0 : -1;

	t->is_spread = true;
	json_object_foreach(map, tensor, file)
		if (rc == 0)
			rc = open_listed(t, folder, path, json_string_value(file), err);
	if (rc == 0 && t->parts == 0)
		rc = err_set(err, ERR_USAGE, "%s: weight_map is missing", path);
	json_decref(index);
	return rc;
}

struct tensors *tensors_open(const char *folder, const char *file, struct err *err)
{
	struct tensors *t = xcalloc(1, sizeof(*t));
	char *index = path_join("%s/%s" TENSORS_INDEX, folder, file);
	int rc = 0;

	t->path = path_join("%s/%s", folder, file);
	if (strcmp(file, ".metadata") == 0)
		t->dcp = dcp_open(folder, err);
	else if (!file_exists(t->path) && file_exists(index))
		rc = open_index(t, folder, index, err);
	else
		rc = open_files(t, folder, file, err);
	free(index);
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

/* With "model." in front of it, in room[]. */
static const char *below(const char *name, char room[128])
{
	snprintf(room, 128, "model.%s", name);
	return room;
}

static const struct st_tensor *in_file(const struct tensors *t, size_t part, const char *name)
{
	char theirs[2 * MAX_NAME];
	const struct st_tensor *found = torch_file_named(t->file[part], name);

	if (found || strlen(name) <= t->left_out)
		return found;
	snprintf(theirs, sizeof(theirs), "%s%s", t->prefix, name + t->left_out);
	return torch_file_named(t->file[part], theirs);
}

/* Of slice `slice` of that tensor; most have one. */
static const struct st_tensor *find(const struct tensors *t, size_t slice, const char *name)
{
	const struct st_tensor *found = NULL;

	if (!t->is_spread)
		return in_file(t, slice, name);
	for (size_t i = 0; i < t->parts && !found; i++)
		found = in_file(t, i, name);
	return found;
}

static size_t slices(const struct tensors *t)
{
	return t->is_spread ? 1 : t->parts;
}

/* What stands in front of `name` in theirs; -1: something else than whole words does, or all of it
 * differs. */
static int words_before(const char *theirs, const char *name)
{
	size_t length = strlen(theirs), of_name = strlen(name), before = length - of_name;

	if (!text_ends_with(theirs, name) || before >= MAX_NAME ||
	    (before > 0 && theirs[before - 1] != '.'))
		return -1;
	return (int)before;
}

/* How many tensors are called `name`, behind any words; the last one's are the prefix. */
static size_t take_prefix(struct tensors *t, const char *name)
{
	size_t found = 0;

	for (size_t i = 0; i < (t->is_spread ? t->parts : 1); i++)
		for (size_t k = 0; k < torch_file_count(t->file[i]); k++) {
			const char *theirs = torch_file_at(t->file[i], k)->name;
			int before = words_before(theirs, name);
			if (before < 0)
				continue;
			snprintf(t->prefix, sizeof(t->prefix), "%.*s", before, theirs);
			found++;
		}
	return found;
}

int tensors_find_prefix(struct tensors *t, const char *name, struct err *err)
{
	const char *first_dot = strchr(name, '.');
	size_t found;

	snprintf(t->prefix, sizeof(t->prefix), "model.");
	if (t->dcp || find(t, 0, name))
		return 0;
	found = take_prefix(t, name);
	if (found == 0 && first_dot && strchr(first_dot + 1, '.')) {
		t->left_out = (size_t)(first_dot + 1 - name);
		found = take_prefix(t, first_dot + 1);
	}
	if (found == 1)
		return 0;
	if (found == 0)
		return err_set(err, ERR_USAGE, "%s: there is no tensor %s", t->path, name);
	return err_set(err, ERR_USAGE,
		       "%s: %zu tensors end in %s, it must hold one model: save the one that is "
		       "meant alone",
		       t->path, found, name + t->left_out);
}

size_t tensors_rows(const struct tensors *t, const char *name, size_t columns)
{
	size_t rows = 0;
	char room[128];

	if (t->dcp) {
		rows = dcp_rows(t->dcp, name);
		return rows ? rows : dcp_rows(t->dcp, below(name, room));
	}
	for (size_t i = 0; i < slices(t); i++) {
		const struct st_tensor *found = find(t, i, name);
		if (found && (i == 0 || (columns > 0 && found->shape[1] == columns)))
			rows += (size_t)found->shape[0];
	}
	return rows;
}

bool tensors_same(const struct tensors *t, const char *a, const char *b)
{
	for (size_t i = 0; i < slices(t); i++) {
		const struct st_tensor *x = find(t, i, a), *y = find(t, i, b);
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

	for (size_t i = 0; i < slices(t); i++) {
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

	for (size_t i = 0; i < slices(t); i++)
		if (t->tensor[i]->dimensions != (columns ? 2 : 1))
			return false;
	t->selected = 1;
	t->is_by_columns = false;
	if (first->shape[0] == rows && first->shape[1] == columns)
		return true;
	t->selected = slices(t);
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
	for (size_t i = 0; i < slices(t); i++) {
		t->tensor[i] = find(t, i, name);
		if (!t->tensor[i])
			return err_set(err, ERR_USAGE, "%s: there is no tensor %s%s", t->path, name,
				       i > 0 ? " in one of the files beside it" : "");
	}
	t->width = columns ? columns : rows;
	if (fit(t, rows, columns))
		return 0;
	return err_set(err, ERR_USAGE, "%s: %s has %zux%zu elements%s, the model needs %zux%zu",
		       t->path, name, (size_t)t->tensor[0]->shape[0],
		       (size_t)t->tensor[0]->shape[1], slices(t) > 1 ? " in its first part" : "",
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
