/* SPDX-License-Identifier: MIT */
/* train.c - lbworker train and plan: a config with what the command line changes in it. */
#include "worker/lbworker/commands/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/convert/convert.h"
#include "worker/lbworker/commands/train_config.h"
#include "worker/lbworker/config/config.h"
#include "worker/lbworker/telemetry/plan_choose.h"
#include "worker/lbworker/ranks/local_ranks.h"
#include "worker/lbworker/ranks/ranks.h"
#include "worker/lbworker/train/train.h"

struct arguments {
	const char *config;
	char **assignments; /* "section.key=value", owned */
	size_t count;
	const char *device; /* plan only */
	bool plans, check, lenient;
};

static void assign(struct arguments *a, const char *key, const char *value)
{
	a->assignments[a->count++] = xasprintf("%s=%s", key, value);
}

static int no_option(const struct arguments *a, const char *word, struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "%s: there is no such option; --section.key VALUE, "
		       "--dataset PATH, --device NAME, --init-from MODEL, --ranks N,%s --lenient",
		       word, a->plans ? "" : " --check,");
}

/* Options that are another word for a key. */
static const struct short_option {
	const char *name, *key, *needs;
} short_options[] = {
	{ "--dataset", "training.dataset_path", "a path" },
	{ "--device", "device.name", "a name" },
	{ "--init-from", "checkpoint.initial_load_path", "a model" },
	{ "--ranks", "parallelism.local_ranks", "a number" },
};

static const struct short_option *short_of(const char *word)
{
	for (size_t i = 0; i < sizeof(short_options) / sizeof(short_options[0]); i++)
		if (strcmp(short_options[i].name, word) == 0)
			return &short_options[i];
	return NULL;
}

/* Takes `word`, and `value` behind it (may be NULL). Returns how many it took, or -1. A key without
 * a value is a flag that is set. */
static int take_option(struct arguments *a, const char *word, const char *value, struct err *err)
{
	bool has_value = value && strncmp(value, "--", 2) != 0;

	if (strcmp(word, "--check") == 0 && !a->plans) {
		a->check = true;
	} else if (strcmp(word, "--lenient") == 0) {
		a->lenient = true;
	} else if (short_of(word)) {
		const struct short_option *o = short_of(word);
		if (!has_value)
			return err_set(err, ERR_USAGE, "%s needs %s", word, o->needs);
		if (a->plans && strcmp(word, "--device") == 0)
			a->device = value;
		else
			assign(a, o->key, value);
		if (strcmp(word, "--dataset") == 0)
			assign(a, "training.dataset_mix", "[]");
		return 2;
	} else if (strncmp(word, "--", 2) != 0 || !strchr(word, '.')) {
		return no_option(a, word, err);
	} else if (strchr(word, '=')) {
		a->assignments[a->count++] = xstrdup(word + 2);
	} else {
		assign(a, word + 2, has_value ? value : "true");
		return has_value ? 2 : 1;
	}
	return 1;
}

static int parse(struct arguments *a, int argc, char **argv, struct err *err)
{
	for (int i = 1; i < argc;) {
		if (argv[i][0] != '-') {
			if (a->config)
				return err_set(err, ERR_USAGE, "one config file, not also %s",
					       argv[i]);
			a->config = argv[i++];
			continue;
		}
		int taken = take_option(a, argv[i], i + 1 < argc ? argv[i + 1] : NULL, err);
		if (taken < 0)
			return -1;
		i += taken;
	}
	return a->config ? 0 : err_set(err, ERR_USAGE, "%s needs a config file", argv[0]);
}

/* The last weights once more, for other programs. One that an earlier end of this training left is
 * replaced. From a stage only checkpoints are brought to where they are shared. */
static int export_weights(const struct config *c, struct err *err)
{
	static const char *const dtypes[] = { "float32", "bfloat16", "float16" };
	const char *dtype = dtypes[c->export_dtype], *shared = getenv("LB_SHARED_DIR");
	char *to = path_join("%s/export-%s", shared && *shared ? shared : c->checkpoint_path,
			     dtype);
	char *last = model_path(c->checkpoint_path, err);
	int rc = last ? 0 : -1;

	if (rc == 0 && file_exists(to))
		rc = folder_remove(to, err);
	if (rc == 0)
		rc = convert_model(last, *c->initial_load_path ? c->initial_load_path : NULL, to,
				   dtype, err);
	if (rc == 0)
		printf("exported to %s\n", to);
	free(last);
	free(to);
	return rc ? err_wrap(err, "checkpoint.export_dtype") : 0;
}

/* With several ranks a line says whose it is; what another rank has said is not said again, and
 * progress is rank 0's to tell. */
static int train_all(const struct config *config, struct ranks *ranks, enum train_end *end,
		     struct err *err)
{
	if (ranks->rank != 0 && !freopen("/dev/null", "w", stdout))
		return command_failed((err_errno(err, "/dev/null"), err));
	int rc = train_run(config, ranks, end, err);
	if (rc != 0 && ranks->is_told)
		return err->code == ERR_USAGE ? EXIT_USAGE : EXIT_FAILED;
	if (rc != 0 && ranks->size > 1)
		err_wrap(err, "rank %d", ranks->rank);
	if (rc != 0)
		return command_failed(err);
	if (*end == TRAIN_DIVERGED && ranks->rank == 0)
		(void)command_failed(err);
	return *end == TRAIN_DIVERGED ? EXIT_DIVERGED : EXIT_DONE;
}

static int train(const struct config *config, bool check)
{
	struct err err = { 0 };
	enum train_end end = TRAIN_DONE;
	struct ranks ranks;
	struct ranks_options options = { .begin_s = (double)config->init_timeout_ms * 1e-3,
					 .deadline_s = (double)config->timeout_ms * 1e-3 };
	int ended;

	if (check) {
		config_print(config, stdout);
		return EXIT_DONE;
	}
	if (config->local_ranks > 1 && ranks_launched() > 1) {
		err_set(&err, ERR_USAGE,
			"parallelism.local_ranks: must be 1 where a launcher has started %d of us, "
			"each of which would start %d ranks",
			ranks_launched(), (int)config->local_ranks);
		return command_failed(&err);
	}
	if (config->local_ranks > 1) {
		options.rank = local_ranks_start((int)config->local_ranks, &options.room, &ended,
						 &err);
		if (options.rank < 0 && err.code != ERR_NONE)
			(void)command_failed(&err);
		if (options.rank < 0)
			return ended;
	}
	if (ranks_open(&ranks, &options, &err))
		return command_failed(&err);
	int status = train_all(config, &ranks, &end, &err);
	bool is_first = ranks.rank == 0;
	ranks_close(&ranks);
	if (status != EXIT_DONE || !is_first)
		return status;
	if (end == TRAIN_DONE && config->export_dtype != EXPORT_FP32 && config->checkpoint_enable &&
	    export_weights(config, &err))
		return command_failed(&err);
	printf("%s\n", end == TRAIN_DONE ? "done" : "stopped");
	return EXIT_DONE;
}

static int plan(struct config *config, const char *device)
{
	const struct plan_device *known;
	struct err err = { 0 };
	const char *names;
	struct plan p;

	known = plan_device_find(device, &names);
	if (device && !known) {
		err_set(&err, ERR_USAGE, "--device %s: there is none, allowed: %s", device, names);
		return command_failed(&err);
	}
	if (known && config->local_ranks <= 1)
		plan_choose(config, (uint64_t)known->bytes, true);
	if (plan_make(&p, config, &err))
		return command_failed(&err);
	plan_print(&p, config, known, stdout);
	if (config->local_ranks > 1 &&
	    plan_print_ranks(config, (int)config->local_ranks, known, stdout, &err))
		return command_failed(&err);
	return EXIT_DONE;
}

/* Says every mistake of the file, each in a line of its own. */
static int load(struct config *config, const struct arguments *a, struct err *err)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *refused = open_memstream(&text, &bytes);
	const struct config_order order = { .path = a->config,
					    .assignments = a->assignments,
					    .count = a->count,
					    .lenient = a->lenient,
					    .without_data = a->plans,
					    .notes = stderr,
					    .refused = refused };
	int rc = config_load(config, &order, err);

	if (refused)
		fclose(refused);
	for (char *line = text; line && *line; line += strcspn(line, "\n") + 1)
		fprintf(stderr, "lbworker: %.*s\n", (int)strcspn(line, "\n"), line);
	free(text);
	return rc;
}

/* An exit status; a is to be released. */
static int read_words(struct arguments *a, struct config *config, int argc, char **argv)
{
	struct err err = { 0 };

	*a = (struct arguments){ .assignments = xcalloc(2 * (size_t)argc, sizeof(char *)),
				 .plans = strcmp(argv[0], "plan") == 0 };
	if (parse(a, argc, argv, &err))
		return command_failed(&err);
	if (load(config, a, &err))
		return err.code == ERR_USAGE || err.code == ERR_NOT_FOUND ? EXIT_USAGE
									  : EXIT_FAILED;
	return EXIT_DONE;
}

static void release(struct arguments *a)
{
	for (size_t i = 0; i < a->count; i++)
		free(a->assignments[i]);
	free(a->assignments);
}

int train_config(struct config *config, int argc, char **argv)
{
	struct arguments a;
	int status = read_words(&a, config, argc, argv);

	release(&a);
	return status;
}

int command_train(int argc, char **argv)
{
	struct config config = { 0 };
	struct arguments a;
	int status = read_words(&a, &config, argc, argv);

	if (status == EXIT_DONE)
		status = a.plans ? plan(&config, a.device) : train(&config, a.check);
	config_clear(&config);
	release(&a);
	return status;
}
