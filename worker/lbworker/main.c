/* SPDX-License-Identifier: MIT */
/* main.c - lbworker's command line: a table of subcommands, and their exit codes. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/failpoint.h"
#include "common/keys.h"
#include "common/log.h"
#include "common/mem.h"
#include "worker/lbworker/command.h"
#include "worker/lbworker/config.h"
#include "worker/lbworker/data.h"
#include "worker/lbworker/plan.h"
#include "worker/lbworker/train.h"

struct command {
	const char *name, *arguments, *help;
	int (*run)(int argc, char **argv);	/* argv[0] is the command */
};

static int command_train(int argc, char **argv);
static int command_plan(int argc, char **argv);
static int command_prepare(int argc, char **argv);
static int command_version(int argc, char **argv);
static int command_help(int argc, char **argv);

static const struct command commands[] = {
	{ "train", "CONFIG.toml [--section.key VALUE]... [--device auto|cpu|cuda] [--check] [--lenient]",
	  "train, or go on from the newest checkpoint; --check prints the effective config",
	  command_train },
	{ "plan", "CONFIG.toml [--section.key VALUE]... [--device NAME] [--lenient]",
	  "parameters, memory, arithmetic, and what a device could reach; trains nothing",
	  command_plan },
	{ "prepare", "--out FILE.tokens TEXT...",
	  "text files to a shard of byte tokens, one document per file", command_prepare },
	{ "prepare", "--out FILE.tokens --join [--document-start ID] TOKENS...",
	  "token files (ours, llm.c's, raw uint16 *.bin) to one shard", command_prepare },
	{ "ckpt", "ls FOLDER | verify FOLDER | diff CHECKPOINT CHECKPOINT",
	  "list checkpoints, read every byte of them, or tell where two differ", command_ckpt },
	{ "convert", "FROM TO [--dtype float32|bfloat16|float16] [--max-shard-size 5GB]",
	  "weights of a checkpoint, or a model of Hugging Face, to a folder that both can read",
	  command_convert },
	{ "eval", "MODEL DATA [--seq-len N] [--samples N] [--logits FILE] [--device auto|cpu|cuda] "
	  "[--dtype float32|bfloat16]",
	  "loss and perplexity of a checkpoint or a model of Hugging Face", command_eval },
	{ "generate", "MODEL --prompt TEXT | --prompt-tokens N,... [--tokenizer FILE] [--tokens N] "
	  "[--temperature X] [--seed N] [--device auto|cpu|cuda] [--dtype float32|bfloat16]",
	  "go on from a text of bytes, or from tokens", command_generate },
	{ "trace", "summary FOLDER [--svg FILE]",
	  "where the time of traced steps went: compute, copies, both, neither; top operations",
	  command_trace },
	{ "version", "", "print the version", command_version },
	{ "help", "", "print this", command_help },
};
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

/* --- train ---------------------------------------------------------------------------------- */

struct train_arguments {
	const char *config;
	char **assignments;		/* "section.key=value", owned */
	size_t count;
	const char *device;		/* plan only */
	bool check, lenient;
};

static int parse_train(struct train_arguments *a, int argc, char **argv, struct err *err)
{
	bool plans = strcmp(argv[0], "plan") == 0;

	for (int i = 1; i < argc; i++) {
		const char *word = argv[i];
		if (plans && strcmp(word, "--device") == 0 && i + 1 < argc) {
			a->device = argv[++i];
		} else if (strcmp(word, "--device") == 0 && i + 1 < argc) {
			a->assignments[a->count++] = xasprintf("device.name=%s", argv[++i]);
		} else if (!plans && strcmp(word, "--check") == 0) {
			a->check = true;
		} else if (strcmp(word, "--lenient") == 0) {
			a->lenient = true;
		} else if (strncmp(word, "--", 2) != 0) {
			if (a->config)
				return err_set(err, ERR_USAGE, "one config file, not also %s", word);
			a->config = word;
		} else if (strchr(word, '=')) {
			a->assignments[a->count++] = xstrdup(word + 2);
		} else if (!strchr(word, '.')) {
			return err_set(err, ERR_USAGE, "%s: options are %s, --lenient and "
				       "--section.key VALUE", word, plans ? "--device NAME" : "--device NAME, --check");
		} else if (++i < argc) {
			a->assignments[a->count++] = xasprintf("%s=%s", word + 2, argv[i]);
		} else {
			return err_set(err, ERR_USAGE, "%s needs a value", word);
		}
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

/* train and plan: a config, and what to do with it. */
static int command_train(int argc, char **argv)
{
	struct train_arguments a = { .assignments = xcalloc((size_t)argc, sizeof(char *)) };
	struct config config = { 0 };
	struct err err = { 0 };
	int status;

	if (parse_train(&a, argc, argv, &err) ||
	    config_load_as(&config, a.config, a.assignments, a.count, a.lenient, stderr, &err))
		status = command_failed(&err);
	else if (strcmp(argv[0], "plan") == 0)
		status = plan(&config, a.device);
	else
		status = train(&config, a.check);
	config_clear(&config);
	for (size_t i = 0; i < a.count; i++)
		free(a.assignments[i]);
	free(a.assignments);
	return status;
}

static int command_plan(int argc, char **argv)
{
	return command_train(argc, argv);
}

/* --- the others ----------------------------------------------------------------------------- */

static int join(int argc, char **argv)
{
	int64_t document_start = -1;
	struct err err = { 0 };
	uint64_t tokens, documents;
	int first = 4;

	if (argc > 6 && strcmp(argv[4], "--document-start") == 0) {
		document_start = strtoll(argv[5], NULL, 10);
		first = 6;
	}
	if (argc <= first)
		return command_usage("prepare --out FILE.tokens --join needs token files");
	if (data_join(argv[2], argv + first, (size_t)(argc - first), document_start, &tokens,
		      &documents, &err))
		return command_failed(&err);
	printf("%s: %" PRIu64 " tokens in %" PRIu64 " documents\n", argv[2], tokens, documents);
	return EXIT_DONE;
}

static int command_prepare(int argc, char **argv)
{
	struct err err = { 0 };
	uint64_t tokens;

	if (argc < 4 || strcmp(argv[1], "--out") != 0)
		return command_usage("prepare needs --out FILE.tokens and at least one text file");
	if (strcmp(argv[3], "--join") == 0)
		return join(argc, argv);
	if (data_prepare(argv[2], argv + 3, (size_t)(argc - 3), &tokens, &err))
		return command_failed(&err);
	printf("%s: %" PRIu64 " tokens in %d documents\n", argv[2], tokens, argc - 3);
	return EXIT_DONE;
}

static int command_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("lbworker %s\n", LB_VERSION);
	return EXIT_DONE;
}

static int command_help(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("lbworker trains Llama, GPT-NeoX (Pythia) and GPT-2 models.\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		printf("  lbworker %s%s%s\n      %s\n", commands[i].name,
		       commands[i].arguments[0] ? " " : "", commands[i].arguments, commands[i].help);
	printf("\nFlavours of each model.name:\n");
	for (int f = 0; f < MODEL_FAMILY_COUNT; f++) {
		const char *flavors;
		(void)model_flavor_find((enum model_family)f, NULL, &flavors);
		printf("  %-6s %s\n", model_family_name((enum model_family)f), flavors);
	}
	printf("\nExit status: 0 done or stopped after a checkpoint, 1 failed, 2 bad input,\n"
	       "3 the loss or the gradient is no finite number.\n");
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	const char *names[COMMANDS];
	const char *name = argc > 1 ? argv[1] : "help";
	struct err err = { 0 };

	if (strcmp(name, "--version") == 0)
		name = "version";
	else if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
		name = "help";
	log_init("lbworker", LOG_LEVEL_INFO);
	if (failpoint_init("lbworker", &err) < 0)
		return command_usage(err.text);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < COMMANDS; i++) {
		names[i] = commands[i].name;
		if (strcmp(commands[i].name, name) == 0)
			return commands[i].run(argc - 1, argv + 1);
	}
	const char *guess = nearest(name, names, COMMANDS);
	char *text = xasprintf("there is no command \"%s\"%s%s%s", name,
			       guess ? ", did you mean " : "", guess ? guess : "", guess ? "?" : "");
	int status = command_usage(text);
	free(text);
	return status;
}
