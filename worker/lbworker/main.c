/* SPDX-License-Identifier: MIT */
/* lbworker/ - the trainer that comes along. Here is the table of its commands.
 *
 * main.c - lbworker's command line: a table of subcommands. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/config/keys.h"
#include "common/base/log.h"
#include "common/base/procs.h"
#include "common/base/mem.h"
#include "common/run/trainer_env.h"
#include "worker/lbworker/check/check.h"
#include "worker/lbworker/base/lost_pages.h"
#include "worker/lbworker/commands/command.h"
#include "worker/lbworker/families/shape.h"

struct command {
	const char *name, *arguments, *help;
	int (*run)(int argc, char **argv); /* argv[0] is the command */
};

static int command_version(int argc, char **argv);
static int command_help(int argc, char **argv);

/* clang-format off */
static const struct command commands[] = {
	{ "train",
	  "CONFIG.toml [--section.key VALUE]... [--dataset PATH] [--device auto|cpu|cuda] [--ranks N] "
	  "[--init-from MODEL] [--check] [--lenient]",
	  "train, or go on from the newest checkpoint; --check prints the effective config",
	  command_train },
	{ "plan", "CONFIG.toml [--section.key VALUE]... [--device NAME] [--ranks N] [--lenient]",
	  "parameters, memory, arithmetic, and what a device could reach; trains nothing, needs no "
	  "data",
	  command_train },
	{ "audit", "CONFIG.toml [--of FOLDER] [--interval STEP] [OPTION OF train]...",
	  "compute a saved checkpoint once more from the one before it: the same bits, or whose fault",
	  command_audit },
	{ "check",
	  "[--ranks N] [--device auto|cpu|cuda] [--folder FOLDER] [--slow SHARE] [--clock SECONDS] "
	  "[--timeout SECONDS] [--memory-mib N] [--disk-mib N] [--least-product GFLOPS] [--least-memory GBS] "
	  "[--search 0|1] [--xid-hours HOURS] [--kernel-log FILE] [--svg FILE] [--reports FOLDER]",
	  "is this node fit to train on? memory, a product, disk, GPUs, NICs; of several ranks links, clocks, sums",
	  check_command },
	{ "tokenize",
	  "--tokenizer FILE TEXT... -o FOLDER [--field NAME] [--separator TEXT] "
	  "[--validation SHARE] [--begin NAME] [--end NAME|none] [--special] [--pattern NAME] [--threads N] [--part-mb N]",
	  "texts, JSON lines (.gz, .zst too) and folders of them to tokens; on from where it was "
	  "interrupted",
	  command_tokenize },
	{ "train-tokenizer",
	  "TEXT... -o FILE.json [--size 4096] [--pattern NAME] [--special NAME] [--field NAME] "
	  "[--separator TEXT]",
	  "learn a byte-level BPE of so many tokens from texts", command_train_tokenizer },
	{ "prepare", "--out FILE.tokens TEXT...",
	  "text files, and all below folders, to one file of byte tokens", command_prepare },
	{ "prepare", "--out FILE.tokens --join [--document-start ID] TOKENS...",
	  "token files (ours, llm.c's, raw uint16 *.bin) to one of ours", command_prepare },
	{ "ckpt", "ls FOLDER | verify FOLDER | diff CHECKPOINT CHECKPOINT",
	  "list checkpoints, read every byte of them, or tell where two differ", command_ckpt },
	{ "convert",
	  "FROM TO [--to huggingface|meta|litgpt|torch|dcp|torchtitan] [--dtype float32|bfloat16|float16] "
	  "[--max-shard-size 5GB] [--flavor NAME] [--weights trained|ema] [--adapter FOLDER] [--parts N] [--moments on|off]",
	  "weights of a checkpoint, or a model of Hugging Face, Meta, LitGPT, torchtitan or torch.save, to a "
	  "folder that the others can read",
	  command_convert },
	{ "eval",
	  "MODEL DATA | --text FILE | --choices FILE.jsonl [--scores FILE] [--begin NAME] [--seq-len N] [--samples N] [--logits FILE] [--tokenizer FILE] "
	  "[--weights trained|ema] [--device auto|cpu|cuda] "
	  "[--dtype float32|bfloat16]",
	  "loss and perplexity; MODEL: a run, a checkpoint, or a model of Hugging Face",
	  command_eval },
	{ "generate",
	  "MODEL --prompt TEXT | --prompt-tokens N,... [--tokenizer FILE] [--tokens N] [--seq-len N] "
	  "[--begin NAME] [--temperature X] [--top-k N] [--top-p SHARE] [--seed N] [--cache on|off] "
	  "[--weights trained|ema] [--device auto|cpu|cuda] [--dtype float32|bfloat16]",
	  "go on from a text, or from tokens; MODEL as for eval, its tokenizer beside it",
	  command_generate },
	{ "inspect", "MODEL --recipe NAME",
	  "what a recipe makes of each matrix of a saved model: error, saturation, outliers",
	  command_inspect },
	{ "precision", "FOLDER [-o PAGE.html]",
	  "a page of a training's operands of few bits: what saturates, underflows, drifts",
	  command_precision },
	{ "recipes", "[NAME | FILE.toml]...",
	  "recipes of few bits, slot by slot: what quantize.recipe can be", command_recipes },
	{ "trace", "summary FOLDER [--svg FILE]",
	  "where the time of traced steps went, by rank: compute, communication, both, copies, idle",
	  command_trace },
	{ "version", "", "print the version", command_version },
	{ "help", "", "print this", command_help },
};
/* clang-format on */
enum { COMMANDS = sizeof(commands) / sizeof(commands[0]) };

static int command_version(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	printf("lbworker %s\n", LB_VERSION);
	return EXIT_DONE;
}

static bool is_help(const char *word)
{
	return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* Of the commands of that name, or all of them. Returns how many there are. */
static size_t print_commands(const char *name)
{
	size_t found = 0;

	for (size_t i = 0; i < COMMANDS; i++) {
		if (name && strcmp(commands[i].name, name) != 0)
			continue;
		printf("  lbworker %s%s%s\n      %s\n", commands[i].name,
		       commands[i].arguments[0] ? " " : "", commands[i].arguments,
		       commands[i].help);
		found++;
	}
	return found;
}

static int no_command(const char *name)
{
	const char *names[COMMANDS];

	for (size_t i = 0; i < COMMANDS; i++)
		names[i] = commands[i].name;
	const char *guess = nearest(name, names, COMMANDS);
	char *text = xasprintf("there is no command \"%s\"%s%s%s", name,
			       guess ? ", did you mean " : "", guess ? guess : "",
			       guess ? "?" : "");
	int status = command_usage(text);
	free(text);
	return status;
}

static int command_help(int argc, char **argv)
{
	if (argc > 1 && !is_help(argv[1]))
		return print_commands(argv[1]) > 0 ? EXIT_DONE : no_command(argv[1]);
	printf("lbworker trains language models: those whose flavours stand below.\n\n");
	print_commands(NULL);
	printf("\nFlavours of each model.name:\n");
	for (int f = 0; f < MODEL_FAMILY_COUNT; f++) {
		const char *flavors;
		(void)model_flavor_find((enum model_family)f, NULL, &flavors);
		printf("  %-9s %s\n", model_family_name((enum model_family)f), flavors);
	}
	printf("\nExit status: 0 done or stopped after a checkpoint, 1 failed, 2 bad input,\n"
	       "3 the loss or the gradient is no finite number; 4 an audit found other bits; 5 a check found\n"
	       "a broken node. man lbworker has every key.\n");
	return EXIT_DONE;
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";
	struct err err = { 0 };

	file_fill_stdio();
	trainer_env_forget_inherited();
	proc_take_signals();
	if (strcmp(name, "--version") == 0)
		name = "version";
	else if (is_help(name))
		name = "help";
	log_init("lbworker", LOG_LEVEL_INFO);
	lost_pages_tell(EXIT_FAILED);
	if (failpoint_init("lbworker", &err) < 0)
		return command_usage(err.text);
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < COMMANDS; i++) {
		if (strcmp(commands[i].name, name) != 0)
			continue;
		if (argc > 2 && is_help(argv[2]))
			return print_commands(name) > 0 ? EXIT_DONE : EXIT_USAGE;
		return commands[i].run(argc - 1, argv + 1);
	}
	return no_command(name);
}
