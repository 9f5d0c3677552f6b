/* SPDX-License-Identifier: MIT */
/* hf_weights.c - tensors of a folder, whichever file of it holds them. */
#include "worker/lbworker/checkpoint/hf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/families/family.h"
#include "worker/lbworker/model/slice.h"

enum { MAX_INDEX_BYTES = 64 << 20, MAX_FILES = 1024, COPY_ELEMENTS = 1 << 16 };

static const char ONE_FILE[] = "model.safetensors";
static const char BARE[] = "transformer.";
static const char INDEX[] = "model.safetensors.index.json";

struct hf_weights {
	char *folder;
	struct st_file *file[MAX_FILES];
	char *name[MAX_FILES];
	size_t files;
	json_t *map;   /* tensor → file name; NULL: all in the one file */
	json_t *index; /* owns map */
};

static struct st_file *file_named(const struct hf_weights *w, const char *name)
{
	for (size_t i = 0; i < w->files; i++)
		if (strcmp(w->name[i], name) == 0)
			return w->file[i];
	return NULL;
}

static int add_file(struct hf_weights *w, const char *name, struct err *err)
{
	if (file_named(w, name))
		return 0;
	if (name[0] == '\0' || name[0] == '.' || strchr(name, '/'))
		return err_set(err, ERR_USAGE,
			       "%s/%s: \"%.80s\" cannot be the name of a file beside it", w->folder,
			       INDEX, name);
	if (w->files == MAX_FILES)
		return err_set(err, ERR_USAGE, "%s/%s: more than %d files", w->folder, INDEX,
			       MAX_FILES);
	char *path = path_join("%s/%s", w->folder, name);
	struct st_file *file = NULL;
	if (w->index && !file_exists(path))
		err_set(err, ERR_USAGE, "%s: is missing, though %s lists it", path, INDEX);
	else
		file = st_open(path, err);
	free(path);
	if (!file)
		return -1;
	w->name[w->files] = xstrdup(name);
	w->file[w->files++] = file;
	return 0;
}

static int open_indexed(struct hf_weights *w, const char *path, struct err *err)
{
	const char *tensor;
	json_t *value;

	w->index = js_load(path, MAX_INDEX_BYTES, err);
	if (!w->index)
		return -1;
	w->map = json_object_get(w->index, "weight_map");
	if (!json_is_object(w->map) || json_object_size(w->map) == 0)
		return err_set(err, ERR_USAGE, "%s: weight_map is missing", path);
	json_object_foreach(w->map, tensor, value) {
		if (!json_is_string(value))
			return err_set(err, ERR_USAGE, "%s: %.80s: no file name", path, tensor);
		if (add_file(w, json_string_value(value), err))
			return -1;
	}
	return 0;
}

static const struct st_tensor *look_up(const struct hf_weights *w, const char *tensor,
				       const struct st_file **file)
{
	const char *name = w->map ? js_str(w->map, tensor, NULL) : w->name[0];

	*file = name ? file_named(w, name) : NULL;
	return *file ? st_named(*file, tensor) : NULL;
}

/* Models that also see have the part for text under a name of its own, in front or behind
 * "model.". */
static const struct st_tensor *look_up_text(const struct hf_weights *w, const char *tensor,
					    const struct st_file **file)
{
	static const char model[] = "model.";
	char name[160];

	snprintf(name, sizeof(name), "language_model.%s", tensor);
	const struct st_tensor *found = look_up(w, name, file);
	if (found || strncmp(tensor, model, sizeof(model) - 1) != 0)
		return found;
	snprintf(name, sizeof(name), "model.language_model.%s", tensor + sizeof(model) - 1);
	return look_up(w, name, file);
}

/* The tensor that we call so, whatever its type and shape. */
static const struct st_tensor *find_named(const struct hf_weights *w, const char *name,
					  const struct st_file **file)
{
	const struct st_tensor *found = look_up(w, name, file);

	/* Files of the bare model, without a head, lack the first part of the names. */
	if (!found && strncmp(name, BARE, sizeof(BARE) - 1) == 0)
		found = look_up(w, name + sizeof(BARE) - 1, file);
	return found ? found : look_up_text(w, name, file);
}

static int check_head(const struct hf_weights *w, const struct model_shape *s, struct err *err)
{
	const struct family *f = family_of(s->family);
	const struct st_file *file;
	const struct st_tensor *head = s->tied ? find_named(w, family_head(f), &file) : NULL;
	const struct st_tensor *table = head ? find_named(w, family_table(f), &file) : NULL;

	if (!table ||
	    (head->bytes == table->bytes && memcmp(head->data, table->data, head->bytes) == 0))
		return 0;
	return hf_config_refuse_head(w->folder, s->family, err);
}

struct hf_weights *hf_weights_open(const char *folder, const char *file,
				   const struct model_shape *shape, struct err *err)
{
	struct hf_weights *w = xcalloc(1, sizeof(*w));
	const char *name = file ? file : ONE_FILE;
	char *one = path_join("%s/%s", folder, name), *index = path_join("%s/%s", folder, INDEX);
	int rc;

	w->folder = xstrdup(folder);
	if (file_exists(one))
		rc = add_file(w, name, err);
	else if (file)
		rc = err_set(err, ERR_NOT_FOUND, "%s: holds no %s", folder, file);
	else if (file_exists(index))
		rc = open_indexed(w, index, err);
	else
		rc = err_set(err, ERR_NOT_FOUND, "%s: holds neither %s nor %s", folder, ONE_FILE,
			     INDEX);
	free(one);
	free(index);
	if (rc == 0 && check_head(w, shape, err) == 0)
		return w;
	hf_weights_close(w);
	return NULL;
}

void hf_weights_close(struct hf_weights *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->files; i++) {
		st_close(w->file[i]);
		free(w->name[i]);
	}
	json_decref(w->index);
	free(w->folder);
	free(w);
}

const struct st_tensor *hf_weights_find(const struct hf_weights *w, const struct model_tensor *t,
					struct err *err)
{
	const uint64_t shape[ST_MAX_DIMENSIONS] = { t->rows, t->columns };
	const struct st_file *file = NULL;
	const struct st_tensor *found = find_named(w, t->name, &file);

	if (!found) {
		err_set(err, ERR_USAGE, "%s: there is no tensor %s", w->folder, t->name);
		return NULL;
	}
	if (!st_is_float(found) || memcmp(found->shape, shape, sizeof(shape)) != 0)
		return st_find(file, found->name, ST_F32, shape, err); /* says what is there */
	return found;
}

/* host: [COPY_ELEMENTS] to do it in. */
static void load_tensor(struct model *m, size_t i, const struct st_tensor *from, float *host)
{
	struct slice_walk walk = slice_begin(m, i);
	struct slice_run run;
	size_t count;

	while (slice_next(&walk, &run))
		for (size_t at = 0; at < run.count; at += count) {
			count = run.count - at < COPY_ELEMENTS ? run.count - at : COPY_ELEMENTS;
			st_widen(host, from, run.whole + at, count);
			m->backend->upload(m->device,
					   m->weights + m->tensor[i].offset + run.local + at, host,
					   count * sizeof(*host));
		}
}

static int load_tensors(struct model *m, const struct hf_weights *w, struct err *err)
{
	float *host = xmalloc(COPY_ELEMENTS * sizeof(*host));
	int rc = 0;

	for (size_t i = 0; i < m->tensors && rc == 0; i++) {
		const struct st_tensor *from = hf_weights_find(w, &model_whole(m)->tensor[i], err);
		if (from && !model_tensor_is_here(m, i))
			continue;
		if (from)
			load_tensor(m, i, from, host);
		else
			rc = -1;
	}
	free(host);
	return rc;
}

static size_t turned(const struct model_shape *s)
{
	size_t head_dim = s->head_dim ? s->head_dim : s->dim / s->heads;

	return s->rotary ? s->rotary : head_dim;
}

static bool is_close(double a, double b)
{
	return a - b < 1e-6 * (a + b) && b - a < 1e-6 * (a + b);
}

/* is_close of numbers that may be 0 */
static bool is_near(double a, double b)
{
	return is_close(a + 1, b + 1);
}

static size_t window_of(const struct model_shape *s, size_t l)
{
	return model_slides(s, l) ? s->window : 0;
}

static double query_scalar_of(const struct model_shape *s)
{
	return s->query_scalar > 0 ? s->query_scalar : (double)model_head_dim(s);
}

static bool same_sight(const struct model_shape *a, const struct model_shape *b)
{
	for (size_t l = 0; l < b->layers; l++)
		if (window_of(a, l) != window_of(b, l))
			return false;
	return is_near(query_scalar_of(a), query_scalar_of(b)) &&
	       is_near(a->score_softcap, b->score_softcap) &&
	       is_near(a->logit_softcap, b->logit_softcap);
}

static bool same_scaling(const struct rope_scaling *a, const struct rope_scaling *b)
{
	return is_near(a->factor, b->factor) &&
	       (a->factor == 0 || (is_near(a->low, b->low) && is_near(a->high, b->high) &&
				   is_near(a->original, b->original)));
}

static double theta_of(const struct model_shape *s, size_t l)
{
	return model_slides(s, l) && s->local_theta > 0 ? s->local_theta : s->rope_theta;
}

static bool same_waves(const struct model_shape *a, const struct model_shape *b)
{
	if (!model_is_rotary(b->family))
		return true;
	for (size_t l = 0; l < b->layers; l++)
		if (!is_close(theta_of(a, l), theta_of(b, l)))
			return false;
	return turned(a) == turned(b) && same_scaling(&a->scaling, &b->scaling);
}

static bool same_experts(const struct model_experts *a, const struct model_experts *b)
{
	return a->top == b->top && a->dense == b->dense && a->normed == b->normed &&
	       is_near(a->scale, b->scale);
}

int hf_check_same(const struct model_shape *have, const struct model_shape *want, const char *path,
		  struct err *err)
{
	if (have->layers != want->layers)
		return err_set(err, ERR_USAGE,
			       "%s: has %zu layers, model.n_layers is %zu: they must be the same",
			       path, have->layers, want->layers);
	if (have->family == want->family && have->tied == want->tied &&
	    have->heads == want->heads && have->kv_heads == want->kv_heads && have->heads > 0 &&
	    is_close((double)have->norm_eps, (double)want->norm_eps) && same_sight(have, want) &&
	    same_waves(have, want) && same_experts(&have->experts, &want->experts))
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: family, heads, tied head, norm eps or rotary keys, window, softcaps "
		       "or experts are not those of the keys of [model]",
		       path);
}

static bool same_umup(const struct umup *a, const struct umup *b)
{
	if (!a->enable || !b->enable)
		return a->enable == b->enable;
	return is_close(a->attention, b->attention) && is_close(a->activation, b->activation) &&
	       is_close(a->residual, b->residual) && is_close(a->ratio, b->ratio) &&
	       is_close(a->loss, b->loss) && is_close(a->context, b->context);
}

int hf_check_config(const struct model_shape *want, const char *folder, struct err *err)
{
	char *path = path_join("%s/config.json", folder);
	struct model_shape have;
	size_t positions;
	int rc = hf_config_read(&have, &positions, folder, err);

	if (rc == 0)
		rc = hf_check_same(&have, want, path, err);
	if (rc == 0 && !same_umup(&have.umup, &want->umup))
		rc = err_set(err, ERR_USAGE,
			     "%s: its u_mup is not that of the training: what a weight means "
			     "would change",
			     path);
	free(path);
	return rc;
}

int hf_load(struct model *m, const char *folder, const char *file, struct err *err)
{
	struct hf_weights *w;

	if (hf_check_config(&model_whole(m)->shape, folder, err))
		return -1;
	w = hf_weights_open(folder, file, &model_whole(m)->shape, err);
	int rc = w ? load_tensors(m, w, err) : -1;
	hf_weights_close(w);
	return rc;
}
