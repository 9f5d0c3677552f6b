/* SPDX-License-Identifier: MIT */
/* config.c - what a file of keys becomes. */
#include "worker/lbworker/config/config.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/config/keys.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/config/toml.h"
#include "worker/lbworker/config/checks.h"
#include "worker/lbworker/config/compat.h"
#include "worker/lbworker/config/differences.h"
#include "worker/lbworker/config/json_document.h"
#include "worker/lbworker/config/shape.h"

/* Sections of the run spec that lbd and lbrun read from the same file. */
static const char *const foreign_sections[] = { "run",       "slurm",   "torchrun", "nsys",
						"preflight", "restart", "watch",    "cache",
						"notify",    NULL };

static void work_out_path(struct config *c)
{
	const char *given = getenv("LB_CHECKPOINT_DIR");

	if (c->dump_folder[0] == '\0') { /* as Python joins it: not the root of all files */
		free(c->dump_folder);
		c->dump_folder = xstrdup(".");
	}
	if (given && given[0] != '\0')
		c->checkpoint_path = xstrdup(given);
	else if (c->checkpoint_folder[0] == '/')
		c->checkpoint_path = xstrdup(c->checkpoint_folder);
	else
		c->checkpoint_path = path_join("%s/%s", c->dump_folder, c->checkpoint_folder);
}

enum { DIGEST_BYTES = sizeof(((struct config *)0)->digest) };

static void digest_of(const struct config *c, char out[DIGEST_BYTES])
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return;
	config_print(c, to);
	if (fclose(to) == 0) {
		XXH128_hash_t hash = XXH3_128bits(text, bytes);
		snprintf(out, DIGEST_BYTES, "%016llx%016llx", (unsigned long long)hash.high64,
			 (unsigned long long)hash.low64);
	}
	free(text);
}

static void work_out_digests(struct config *c)
{
	struct config same = *c;
	same.timeout_ms = 0;
	same.stage = same.stage_rate = same.save_every = NULL; /* a node's own affair */
	digest_of(&same, c->digest_of_all);
	/* how many ranks there are changes nothing that a step computes */
	same.local_ranks = same.replicate_degree = 1;
	same.shard_degree = same.zero_stage = -1;
	same.reshard = RESHARD_DEFAULT;
	same.fp8_gather = false;
	if (c->pipeline_degree > 1)
		config_cut_batches(&same);
	same.pipeline_degree = same.pipeline_microbatch = 1;
	same.layers_per_stage = -1;
	same.first_stage_less = same.last_stage_less = 1;
	digest_of(&same, c->digest);
}

/* Each key by itself, so that one that cannot be read does not hide the next; it counts as not
 * given. */
static void read_keys(struct config *out, const struct toml *toml, struct refusals *r)
{
	struct err err = { 0 };

	for (size_t i = 0; i < training_key_count; i++) {
		int rc = keys_read(&training_keys[i], 1, toml, out, &err);
		if (refusals_add(r, rc, &err) == 0)
			continue;
		if (strcmp(training_keys[i].section, "model") == 0)
			r->misread_model = true;
		const struct toml nothing = { .root = NULL };
		(void)keys_read(&training_keys[i], 1, &nothing, out, &err);
	}
}

static int load_document(struct toml *toml, const struct config_order *o, struct err *err)
{
	if (json_document_is(o->path) ? json_document_load(toml, o->path, err)
				      : toml_load(toml, o->path, err))
		return -1;
	toml->option = "--";
	for (size_t i = 0; i < o->count; i++)
		if (toml_set(toml, o->assignments[i], err))
			return -1;
	return 0;
}

/* auto: what only the CPU has. */
static void work_out_device(struct config *c, const struct toml *toml, FILE *notes)
{
	const char *key = few_bits_key(c);

	if (c->device != DEVICE_AUTO || !key)
		return;
	c->device = DEVICE_CPU;
	config_note(toml, key, notes, "runs on the CPU only: device.name is \"cpu\"");
}

/* auto: what a CPU need not have, and plans are for what it could be fulfilled on. */
static void work_out_compute(struct config *c)
{
	c->compute = c->compute_choice;
	if (c->compute_choice == COMPUTE_CHOICE_AUTO)
		c->compute = c->device == DEVICE_CPU ? COMPUTE_FP32 : COMPUTE_BF16;
	else if (c->compute_choice == COMPUTE_CHOICE_BF16 && c->device == DEVICE_CPU)
		c->compute = COMPUTE_BF16_WIDE;
}

/* interval = "auto" in the words of the table. */
static void take_auto_interval(struct toml *toml)
{
	const char *name;
	json_t *table = toml_table(toml, "checkpoint.interval", &name);
	const char *text = table ? json_string_value(json_object_get(table, name)) : NULL;

	if (!text || strcmp(text, "auto") != 0)
		return;
	json_object_set_new(table, name, json_integer(0));
	json_object_set_new(table, "interval_auto", json_true());
}

static void take_document(struct config *out, struct toml *toml, const struct config_order *o,
			  struct refusals *r)
{
	const struct compat compat = { training_keys, training_key_count, foreign_sections,
				       o->lenient, o->notes };
	struct err err = { 0 };
	bool is_theirs = compat_apply(&compat, toml, r);

	take_auto_interval(toml);
	refusals_add(r,
		     keys_unknown(training_keys, training_key_count, toml, foreign_sections, &err),
		     &err);
	read_keys(out, toml, r);
	work_out_path(out);
	if (out->optimizer_name == OPTIMIZER_ADAMW8BIT && toml_line(toml, "optimizer.moments") == 0)
		out->moments = MOMENTS_8BIT;
	work_out_device(out, toml, o->notes);
	work_out_compute(out);
	if (out->export_dtype != EXPORT_FP32 && !out->checkpoint_enable)
		config_note(toml, "checkpoint.export_dtype", o->notes,
			    "nothing is exported with checkpoint.enable = false");
	config_check(out, o, toml, r);
	if (r->count == 0 && is_theirs)
		differences_tell(out, toml, o->notes);
	if (r->count == 0)
		differences_of_loaded(out, toml, o->notes);
}

int config_load(struct config *out, const struct config_order *order, struct err *err)
{
	struct refusals refusals = { .first = err, .each = order->refused };
	struct toml toml = { 0 };
	struct err why = { 0 };

	*out = (struct config){ .lenient = order->lenient };
	if (refusals_add(&refusals, load_document(&toml, order, &why), &why) == 0)
		take_document(out, &toml, order, &refusals);
	toml_clear(&toml);
	if (refusals.count > 0) {
		config_clear(out);
		return -1;
	}
	work_out_digests(out);
	return 0;
}

void config_clear(struct config *c)
{
	keys_clear(training_keys, training_key_count, c);
	free(c->checkpoint_path);
	*c = (struct config){ 0 };
}

const char *config_flavor(const struct config *c)
{
	return c->flavor[0] ? c->flavor : "of its own shape";
}

void config_print(const struct config *c, FILE *to)
{
	keys_print(training_keys, training_key_count, c, to);
}
