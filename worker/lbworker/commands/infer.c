/* SPDX-License-Identifier: MIT */
/* infer.c - the options of eval and generate, one table for both, and the model that they ask. */
#include "worker/lbworker/commands/infer.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/checkpoint/checkpoint_names.h"
#include "worker/lbworker/checkpoint/hf.h"
#include "worker/lbworker/checkpoint/model_path.h"
#include "worker/lbworker/text/tokenizer.h"

enum { SEQ_DEFAULT_MAX = 1024 };

/* --- arguments ------------------------------------------------------------------------------ */

static int take_number(const char *name, const char *text, double min, bool is_whole, double *out,
		       struct err *err)
{
	const double max = 1e15;
	char *end;

	*out = strtod(text, &end);
	if (end == text || *end != '\0' || !(*out >= min && *out <= max) ||
	    (is_whole && *out != (double)(int64_t)*out))
		return err_set(err, ERR_USAGE, "%s: \"%.40s\" is no %snumber from %g to %g", name,
			       text, is_whole ? "whole " : "", min, max);
	return 0;
}

/* One of `words`, by its place in them. */
static int take_word(const char *name, const char *text, const char *const words[], int *out,
		     struct err *err)
{
	for (*out = 0; words[*out]; ++*out)
		if (strcmp(words[*out], text) == 0)
			return 0;
	err_set(err, ERR_USAGE, "%s: there is no \"%.40s\", allowed are %s, %s%s%s", name, text,
		words[0], words[1], words[2] ? ", " : "", words[2] ? words[2] : "");
	return -1;
}

static int take_device(struct infer_arguments *a, const char *name, const char *value,
		       struct err *err)
{
	static const char *const devices[] = {
		[DEVICE_AUTO] = "auto", [DEVICE_CPU] = "cpu", [DEVICE_CUDA] = "cuda", NULL
	};
	static const char *const types[] = {
		[COMPUTE_FP32] = "float32", [COMPUTE_BF16] = "bfloat16", NULL
	};
	bool is_device = strcmp(name, "--device") == 0;
	int word;

	if (take_word(name, value, is_device ? devices : types, &word, err))
		return -1;
	if (is_device)
		a->device = (enum device_choice)word;
	else
		a->compute = (enum compute)word;
	return 0;
}

static int take_which(bool *averaged, const char *name, const char *value, struct err *err)
{
	static const char *const words[] = { "trained", "ema", NULL };
	int word;

	if (take_word(name, value, words, &word, err))
		return -1;
	*averaged = word == 1;
	return 0;
}

/* Of eval, of generate, or of both. */
enum { EVAL = 1, GENERATE = 2 };

/* Where its value goes: one of these. */
struct infer_option {
	const char *name;
	unsigned of;
	const char **text;
	int64_t *integer;
	double *real;
	double min; /* of a number */
	bool is_share;
};

static int take_value(const struct infer_option *o, const char *value, struct err *err)
{
	double number;

	if (o->text) {
		*o->text = value;
		return 0;
	}
	if (take_number(o->name, value, o->min, o->integer != NULL, &number, err))
		return -1;
	if (o->is_share && (number <= 0 || number > 1))
		return err_set(err, ERR_USAGE,
			       "%s: \"%.40s\" must be a share above 0, and at most 1", o->name,
			       value);
	if (o->integer)
		*o->integer = (int64_t)number;
	else
		*o->real = number;
	return 0;
}

static int take_cache(struct infer_arguments *a, const char *name, const char *value,
		      struct err *err)
{
	static const char *const words[] = { "on", "off", NULL };
	int word;

	if (take_word(name, value, words, &word, err))
		return -1;
	a->no_cache = word == 1;
	return 0;
}

static int take_option(struct infer_arguments *a, unsigned command, const char *name,
		       const char *value, struct err *err)
{
	const struct infer_option options[] = {
		{ "--logits", .of = EVAL, .text = &a->logits },
		{ "--samples", .of = EVAL, .integer = &a->samples, .min = 1 },
		{ "--seq-len", .of = EVAL | GENERATE, .integer = &a->seq_len, .min = 1 },
		{ "--prompt", .of = GENERATE, .text = &a->prompt },
		{ "--prompt-tokens", .of = GENERATE, .text = &a->prompt_tokens },
		{ "--begin", .of = EVAL | GENERATE, .text = &a->begin },
		{ "--text", .of = EVAL, .text = &a->text },
		{ "--choices", .of = EVAL, .text = &a->choices },
		{ "--scores", .of = EVAL, .text = &a->scores },
		{ "--top-k", .of = GENERATE, .integer = &a->top_k, .min = 1 },
		{ "--top-p", .of = GENERATE, .real = &a->top_p, .is_share = true },
		{ "--tokenizer", .of = EVAL | GENERATE, .text = &a->tokenizer },
		{ "--tokens", .of = GENERATE, .integer = &a->tokens, .min = 1 },
		{ "--seed", .of = GENERATE, .integer = &a->seed },
		{ "--temperature", .of = GENERATE, .real = &a->temperature },
	};

	if (strcmp(name, "--cache") == 0 && command == GENERATE)
		return take_cache(a, name, value, err);
	if (strcmp(name, "--weights") == 0)
		return take_which(&a->averaged, name, value, err);
	if (strcmp(name, "--device") == 0 || strcmp(name, "--dtype") == 0)
		return take_device(a, name, value, err);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		if (strcmp(options[i].name, name) == 0 && (options[i].of & command))
			return take_value(&options[i], value, err);
	}
	return err_set(err, ERR_USAGE, "%s: %s has no such option", name,
		       command == EVAL ? "eval" : "generate");
}

int infer_parse(struct infer_arguments *a, int argc, char **argv, struct err *err)
{
	unsigned command = strcmp(argv[0], "eval") == 0 ? EVAL : GENERATE;

	for (int i = 1; i < argc; i++) {
		if (argv[i][0] == '-') {
			if (i + 1 == argc)
				return err_set(err, ERR_USAGE, "%s needs a value", argv[i]);
			if (take_option(a, command, argv[i], argv[i + 1], err))
				return -1;
			i++;
		} else if (!a->model) {
			a->model = argv[i];
		} else if (!a->data && command == EVAL) {
			a->data = argv[i];
		} else {
			return err_set(err, ERR_USAGE, "%s: one argument too many", argv[i]);
		}
	}
	return a->model ? 0
			: err_set(err, ERR_USAGE, "%s needs a MODEL: a run's name, or a folder",
				  argv[0]);
}

/* --- the model ------------------------------------------------------------------------------ */

void infer_close(struct infer *f)
{
	model_destroy(f->model);
	if (f->on.device)
		f->on.backend->close(f->on.device);
	free(f->folder);
	free(f->tokenizer);
}

int infer_read(struct infer *f, const struct infer_arguments *a, struct err *err)
{
	size_t positions;

	f->folder = model_path(a->model, err);
	if (!f->folder || hf_config_read(&f->shape, &positions, f->folder, err))
		return -1;
	f->tokenizer = a->tokenizer ? xstrdup(a->tokenizer) : tokenizer_file_in(f->folder);
	f->options.batch = 1;
	f->options.seq = positions < SEQ_DEFAULT_MAX ? positions : SEQ_DEFAULT_MAX;
	if (a->seq_len > 0)
		f->options.seq = (size_t)a->seq_len;
	return 0;
}

int infer_open(struct infer *f, const struct infer_arguments *a, struct err *err)
{
	const struct device_order order = { .choice = a->device,
					    .index = -1,
					    .choice_name = "--device cuda",
					    .compute = a->compute,
					    .compute_name = "--dtype" };

	if (device_open(&f->on, &order, err))
		return -1;
	f->options.compute = f->on.compute;
	if (model_create(&f->model, &f->shape, f->on.backend, f->on.device, &f->options, err))
		return -1;
	return hf_load(f->model, f->folder, a->averaged ? CHECKPOINT_MEAN : NULL, err);
}
