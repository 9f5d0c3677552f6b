/* SPDX-License-Identifier: MIT */
/* convert.c - lbworker convert: its command line (convert/convert.h does it). */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/commands/command.h"
#include "worker/lbworker/convert/convert.h"

static const char USAGE[] =
	"convert wants FROM TO [--to huggingface|meta|litgpt|torch|dcp|torchtitan] "
	"[--dtype float32|bfloat16|float16] [--max-shard-size 5GB] "
	"[--flavor NAME] [--weights trained|ema] [--adapter FOLDER] "
	"[--parts N] [--moments on|off]";

/* "5GB", "200MB", "2GiB", "1000": as transformers reads it; 0 for anything else. */
static uint64_t size_of(const char *text)
{
	static const struct {
		const char *name;
		double bytes;
	} units[] = {
		{ "", 1 },         { "KB", 1e3 },        { "MB", 1e6 },          { "GB", 1e9 },
		{ "KiB", 1024.0 }, { "MiB", 1048576.0 }, { "GiB", 1073741824.0 }
	};
	char *end;
	double number = strtod(text, &end);

	for (size_t i = 0; end != text && i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(units[i].name, end) == 0 && number > 0 && number < 1e9)
			return (uint64_t)ceil(number * units[i].bytes);
	return 0;
}

/* --- options: each takes its value, or says false -------------------------------------------- */

static bool take_target(struct convert_order *w, const char *value)
{
	w->layout = foreign_named(value);
	return w->layout || strcmp(value, "huggingface") == 0;
}

static bool take_dtype(struct convert_order *w, const char *value)
{
	w->type = convert_type_named(value);
	return w->type;
}

static bool take_shard_size(struct convert_order *w, const char *value)
{
	w->max_bytes = size_of(value);
	return w->max_bytes > 0;
}

static bool take_flavor(struct convert_order *w, const char *value)
{
	w->flavor = model_flavor_find(MODEL_LLAMA, value, NULL);
	return w->flavor;
}

static bool take_weights(struct convert_order *w, const char *value)
{
	w->file = strcmp(value, "ema") == 0 ? CHECKPOINT_MEAN : NULL;
	return w->file || strcmp(value, "trained") == 0;
}

static bool take_adapter(struct convert_order *w, const char *value)
{
	w->adapter = value;
	return true;
}

static bool take_parts(struct convert_order *w, const char *value)
{
	uint64_t parts = size_of(value);

	w->parts = parts <= FOREIGN_PARTS_MAX ? (size_t)parts : 0;
	return w->parts > 0;
}

static bool take_moments(struct convert_order *w, const char *value)
{
	w->moments = strcmp(value, "on") == 0;
	return w->moments || strcmp(value, "off") == 0;
}

static const struct option {
	const char *name;
	bool (*take)(struct convert_order *w, const char *value);
	const char *allowed;
} options[] = {
	{ "--to", take_target, "--to is one of huggingface, meta, litgpt, torch, dcp, torchtitan" },
	{ "--dtype", take_dtype, "--dtype is one of float32, bfloat16, float16" },
	{ "--max-shard-size", take_shard_size,
	  "--max-shard-size is a size like 5GB, 200MB or 2GiB" },
	{ "--flavor", take_flavor, "--flavor is one of llama's that lbworker help lists" },
	{ "--weights", take_weights, "--weights is one of trained, ema" },
	{ "--adapter", take_adapter, "--adapter is a folder" },
	{ "--parts", take_parts, "--parts is a number of files, 1 to 64" },
	{ "--moments", take_moments, "--moments is on or off" },
};

/* NULL, or what is wrong with the option. */
static const char *take_option(struct convert_order *w, const char *name, const char *value)
{
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		if (strcmp(options[i].name, name) == 0)
			return options[i].take(w, value) ? NULL : options[i].allowed;
	return USAGE;
}

/* One of peft, or of a run's newest checkpoint. Owned by the caller. */
static char *adapter_folder(const char *named, struct err *err)
{
	return folder_holds(named, "adapter_config.json") ? xstrdup(named) : model_path(named, err);
}

int command_convert(int argc, char **argv)
{
	struct convert_order w = { .type = convert_type_named("float32"), .max_bytes = UINT64_MAX };
	const char *wrong = argc < 3 || argc % 2 == 0 ? USAGE : NULL;
	struct err err = { 0 };

	for (int i = 3; i + 1 < argc && !wrong; i += 2)
		wrong = take_option(&w, argv[i], argv[i + 1]);
	if (wrong)
		return command_usage(wrong);
	char *from = foreign_in(argv[1]) ? xstrdup(argv[1]) : model_path(argv[1], &err);
	char *adapter = w.adapter ? adapter_folder(w.adapter, &err) : NULL;
	bool is_found = from && (adapter || !w.adapter);
	w.from = from;
	w.to = argv[2];
	w.adapter = adapter;
	int rc = is_found ? convert(&w, &err) : -1;
	free(adapter);
	free(from);
	return rc ? command_failed(&err) : EXIT_DONE;
}
