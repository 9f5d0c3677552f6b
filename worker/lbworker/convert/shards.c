/* SPDX-License-Identifier: MIT */
/* shards.c - weights as safetensors.
 *
 * With a limit on the size of a file there are several, model-00001-of-0000N.safetensors, and
 * model.safetensors.index.json, as transformers writes them: tensors in order, each file as full as
 * they allow, a larger tensor in a file of its own. */
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/convert/conversion.h"

static uint64_t target_bytes(const struct conversion *c, size_t i)
{
	const struct model_tensor *t = &c->model->tensor[i];

	return tensor_rows(t) * tensor_width(t) * c->type->bytes;
}

static int put_weights(const struct conversion *c, const struct sink *out,
		       const struct model_tensor *t, struct err *err)
{
	return weights_select(c->weights, t, err) ? -1 : put_tensor(c, out, t, err);
}

static void cut(struct conversion *c)
{
	uint64_t bytes = 0;

	c->shard = xcalloc(c->model->tensors, sizeof(*c->shard));
	for (size_t i = 0; i < c->model->tensors; i++) {
		uint64_t more = target_bytes(c, i);
		if (i == 0 || bytes + more > c->max_bytes) {
			c->shard[c->shards++] = (struct shard){ .first = i };
			bytes = 0;
		}
		c->shard[c->shards - 1].count++;
		bytes += more;
	}
}

static char *shard_name(const struct conversion *c, size_t k)
{
	if (c->shards == 1)
		return xstrdup("model.safetensors");
	return xasprintf("model-%05zu-of-%05zu.safetensors", k + 1, c->shards);
}

static int write_shard(const struct conversion *c, const char *path, const struct shard *shard,
		       struct err *err)
{
	static const char *const metadata[] = { "format", "pt", NULL };
	const struct model_tensor *tensor = c->model->tensor + shard->first;
	struct st_tensor *list = xcalloc(shard->count, sizeof(*list));
	struct sink out = { 0 };
	int rc = 0;

	for (size_t i = 0; i < shard->count && rc == 0; i++) {
		const struct model_tensor *t = &tensor[i];
		list[i] = (struct st_tensor){ .name = t->name,
					      .type = c->type->type,
					      .dimensions = t->columns ? 2 : 1,
					      .shape = { t->rows, t->columns } };
		rc = weights_select(c->weights, t, err);
	}
	if (rc == 0) {
		out.st = st_begin(path, list, shard->count, metadata, err);
		rc = out.st ? 0 : -1;
	}
	for (size_t i = 0; i < shard->count && rc == 0; i++)
		rc = put_weights(c, &out, &tensor[i], err);
	if (st_end(out.st, err))
		rc = -1;
	free(list);
	return rc;
}

/* Of several files: which tensor is where. */
static int write_index(const struct conversion *c, const char *folder, struct err *err)
{
	json_t *map = json_object(), *index;
	uint64_t total = 0;

	for (size_t k = 0; k < c->shards; k++) {
		char *name = shard_name(c, k);
		for (size_t i = 0; i < c->shard[k].count; i++) {
			js_set_str(map, c->model->tensor[c->shard[k].first + i].name, name);
			total += target_bytes(c, c->shard[k].first + i);
		}
		free(name);
	}
	index = json_pack("{s:{s:I}, s:o}", "metadata", "total_size", (json_int_t)total,
			  "weight_map", map);
	char *text = json_dumps(index, JSON_INDENT(2) | JSON_SORT_KEYS);
	char *path = path_join("%s/model.safetensors.index.json", folder);
	int rc = file_write_atomic(path, text, strlen(text), FILE_MODE, err);
	free(path);
	free(text);
	json_decref(index);
	return rc;
}

int shards_write(struct conversion *c, const char *folder, struct err *err)
{
	int rc = 0;

	cut(c);
	for (size_t k = 0; k < c->shards && rc == 0; k++) {
		char *name = shard_name(c, k), *path = path_join("%s/%s", folder, name);
		rc = write_shard(c, path, &c->shard[k], err);
		free(path);
		free(name);
	}
	if (rc == 0 && c->shards > 1)
		rc = write_index(c, folder, err);
	free(c->shard);
	return rc;
}
