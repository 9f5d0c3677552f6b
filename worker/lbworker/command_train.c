/* SPDX-License-Identifier: MIT */
/* command_train.c - lbworker train and plan: a config with what the command line changes in it. */
#include "worker/lbworker/command.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "worker/lbworker/config.h"
#include "worker/lbworker/plan.h"
#include "worker/lbworker/train.h"

struct arguments {
	const char *config;
	char **assignments;		/* "section.key=value", owned */
	size_t count;
	const char *device;		/* plan only */
	bool plans, check, lenient;
};

static void assign(struct arguments *a, const char *key, const char *value)
{
	a->assignments[a->count++] = xasprintf("%s=%s", key, value);
}

static int no_option(const struct arguments *a, const char *word, struct err *err)
{
	return err_set(err, ERR_USAGE, "%s: there is no such option; --section.key VALUE, "
		       "--device NAME,%s --lenient", word, a->plans ? "" : " --check,");
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
	} else if (strcmp(word, "--device") == 0) {
		if (!has_value)
			return err_set(err, ERR_USAGE, "--device needs a name");
		if (a->plans)
			a->device = value;
		else
			assign(a, "device.name", value);
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
	for (int i = 1; i < argc; ) {
		if (argv[i][0] != '-') {
			if (a->config)
				return err_set(err, ERR_USAGE, "one config file, not also %s", argv[i]);
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

static int train(const struct config *config, bool check)
{
	struct err err = { 0 };
	enum train_end end = TRAIN_DONE;

	if (check) {
		config_print(config, stdout);
		return EXIT_DONE;
	}
	if (train_run(config, &end, &err))
		return command_failed(&err);
	if (end == TRAIN_DIVERGED) {
		(void)command_failed(&err);
		return EXIT_DIVERGED;
	}
	printf("%s\n", end == TRAIN_DONE ? "done" : "stopped");
	return EXIT_DONE;
}

static int plan(const struct config *config, const char *device)
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
	if (plan_make(&p, config, &err))
		return command_failed(&err);
	plan_print(&p, config, known, stdout);
	return EXIT_DONE;
}

int command_train(int argc, char **argv)
{
	struct arguments a = { .assignments = xcalloc((size_t)argc, sizeof(char *)),
			       .plans = strcmp(argv[0], "plan") == 0 };
	struct config config = { 0 };
	struct err err = { 0 };
	int status;

	if (parse(&a, argc, argv, &err) ||
	    config_load_as(&config, a.config, a.assignments, a.count, a.lenient, stderr, &err))
		status = command_failed(&err);
	else
		status = a.plans ? plan(&config, a.device) : train(&config, a.check);
	config_clear(&config);
	for (size_t i = 0; i < a.count; i++)
		free(a.assignments[i]);
	free(a.assignments);
	return status;
}
