/* SPDX-License-Identifier: MIT */
/* options.c - reads a command line by a table of options.
 *
 * getopt_long knows neither "did you mean" nor durations, and it permutes argv; a command that is
 * submitted after "--" must reach lbd exactly as typed. */
#include "ctl/base/options.h"

#include <stdlib.h>
#include <string.h>

#include "common/config/keys.h"
#include "common/config/run_spec.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "slurm/batch/sbatch_options.h"

enum { MAX_CANDIDATES = 256, LEFT_COLUMN = 22 };

const struct option_row global_options[] = {
	{ "home", 0, OPTION_TEXT, offsetof(struct options, home), "DIR",
	  "the folder of lbd, instead of $LB_HOME" },
	{ "no-color", 0, OPTION_FLAG, offsetof(struct options, no_color), NULL, "no colours" },
	{ "help", 'h', OPTION_FLAG, offsetof(struct options, help), NULL, "show this help" },
	{ 0 },
};

struct reader {
	const struct option_row *const *tables;
	int argc, at;
	char *const *argv;
	struct options *out;
	const struct operands *operands; /* read so far */
	struct err *err;
};

void options_init(struct options *options, struct operands *operands)
{
	*options = (struct options){ .timeout_ms = -1, .older_ms = -1 };
	*operands = (struct operands){ 0 };
}

void options_fini(struct options *options, struct operands *operands)
{
	free(options->set);
	free(options->after.items);
	free(options->after_ok.items);
	free(options->sweep.items);
	free(options->to.items);
	free(options->others);
	free(operands->words);
	free(operands->rest);
	options_init(options, operands);
}

static void append(const char ***list, size_t *count, const char *word)
{
	*list = xrealloc(*list, (*count + 2) * sizeof(**list));
	(*list)[(*count)++] = word;
	(*list)[*count] = NULL;
}

void operands_add(struct operands *operands, const char *word)
{
	append(&operands->words, &operands->count, word);
}

static const struct option_row *by_name(const struct reader *r, const char *name, size_t len)
{
	for (size_t t = 0; r->tables[t]; t++) {
		for (const struct option_row *row = r->tables[t]; row->name; row++) {
			if (strlen(row->name) == len && memcmp(row->name, name, len) == 0)
				return row;
		}
	}
	return NULL;
}

static const struct option_row *by_letter(const struct reader *r, char letter)
{
	for (size_t t = 0; r->tables[t]; t++) {
		for (const struct option_row *row = r->tables[t]; row->name; row++) {
			if (row->letter == letter)
				return row;
		}
	}
	return NULL;
}

static const struct option_row *by_kind(const struct reader *r, enum option_kind kind)
{
	for (size_t t = 0; r->tables[t]; t++) {
		for (const struct option_row *row = r->tables[t]; row->name; row++) {
			if (row->kind == kind)
				return row;
		}
	}
	return NULL;
}

/* Is the value of this option of sbatch, as typed, the next word? */
static bool takes_word(const char *option)
{
	const struct sbatch_option *o;

	if (option[1] == '-') {
		o = sbatch_option_find(option + 2, strcspn(option + 2, "="), NULL);
		return o && o->arity == SBATCH_VALUE && !strchr(option, '=');
	}
	for (const char *letter = option + 1; *letter; letter++) {
		o = sbatch_option_letter(*letter);
		if (!o || o->arity != SBATCH_FLAG)
			return o && o->arity == SBATCH_VALUE && letter[1] == '\0';
	}
	return false;
}

/* One that is none of ours, as typed, with the word behind it where that is its value. */
static int take_other(struct reader *r)
{
	const char *word = r->argv[r->at];

	append(&r->out->others, &r->out->other_count, word);
	if (takes_word(word) && r->at + 1 < r->argc)
		append(&r->out->others, &r->out->other_count, r->argv[++r->at]);
	return 0;
}

/* Or may be: what is short for several is for lbd to refuse, in sbatch's words. */
static bool is_of_sbatch(const char *name)
{
	struct err why = { 0 };

	return sbatch_option_find(name, strlen(name), &why) || text_begins_with(why.text, "may be");
}

/* The key of a run's or its job's that is called so but for its section; NULL: none. */
static const struct key *key_called(const char *name)
{
	for (size_t i = 0; i < run_spec_key_count; i++) {
		const struct key *key = &run_spec_keys[i];
		const char *of_key = key->name, *at = name;

		while (*at && (*at == *of_key || (*at == '-' && *of_key == '_')))
			at++, of_key++;
		if (*at == *of_key &&
		    (strcmp(key->section, "run") == 0 || strcmp(key->section, "slurm") == 0))
			return key;
	}
	return NULL;
}

/* What sbatch would take for an argument of the script before it. */
static const char *behind_script(const struct reader *r)
{
	size_t count = r->operands->count;
	bool is_behind = by_kind(r, OPTION_OTHERS) && count > 0 &&
			 !text_ends_with(r->operands->words[count - 1], ".toml");

	return is_behind ? "; arguments of a script stand behind --" : "";
}

static int unknown(struct reader *r, const char *name, size_t len)
{
	const char *candidates[MAX_CANDIDATES];
	char *word = xstrndup(name, len);
	const struct key *key;
	const char *near;
	bool has_others = by_kind(r, OPTION_OTHERS) != NULL;
	size_t count = 0;

	if (has_others && is_of_sbatch(word)) {
		free(word);
		return take_other(r);
	}
	for (size_t t = 0; r->tables[t]; t++) {
		for (const struct option_row *row = r->tables[t]; row->name; row++) {
			if (count < MAX_CANDIDATES)
				candidates[count++] = row->name;
		}
	}
	for (size_t i = 0; has_others && i < sbatch_option_count; i++) {
		if (sbatch_options[i].name && count < MAX_CANDIDATES)
			candidates[count++] = sbatch_options[i].name;
	}
	near = nearest(word, candidates, count);
	key = by_name(r, "set", 3) ? key_called(word) : NULL;
	if (key)
		err_set(r->err, ERR_USAGE, "unknown option --%s; did you mean --set %s.%s=VALUE?%s",
			word, key->section, key->name, behind_script(r));
	else
		err_set(r->err, ERR_USAGE, "unknown option --%s%s%s%s%s", word,
			near ? "; did you mean --" : "", near ? near : "", near ? "?" : "",
			behind_script(r));
	free(word);
	return -1;
}

static int number(const struct option_row *row, const char *text, int64_t *out, struct err *err)
{
	char *end = NULL;
	long long n = text[0] >= '0' && text[0] <= '9' ? strtoll(text, &end, 10) : 0;

	if (n < 1 || n > INT32_MAX || *end != '\0')
		return err_set(err, ERR_USAGE, "--%s: \"%s\" is no number from 1 to %d", row->name,
			       text, INT32_MAX);
	*out = n;
	return 0;
}

static int duration(const struct option_row *row, const char *text, int64_t *out, struct err *err)
{
	if (row->kind == OPTION_AGE && text_is_digits(text))
		return err_set(err, ERR_USAGE, "--%s: \"%s\": say of what, as in \"%sd\" for days",
			       row->name, text, text);
	return duration_parse(text, out, err) < 0 ? err_wrap(err, "--%s", row->name) : 0;
}

static int store(const struct reader *r, const struct option_row *row, const char *value)
{
	void *field = (char *)r->out + row->offset;

	switch (row->kind) {
	case OPTION_FLAG:
		*(bool *)field = true;
		return 0;
	case OPTION_TEXT:
		*(const char **)field = value;
		return 0;
	case OPTION_NUMBER:
		return number(row, value, field, r->err);
	case OPTION_DURATION:
	case OPTION_AGE:
		return duration(row, value, field, r->err);
	case OPTION_OTHERS:
		break; /* take_other */
	case OPTION_LIST: {
		struct word_list *list = (struct word_list *)((char *)r->out + row->offset);

		append(&list->items, &list->count, value);
		return 0;
	}
	case OPTION_SET:
		append(&r->out->set, &r->out->set_count, value);
		return 0;
	}
	return err_set(r->err, ERR_INTERNAL, "--%s: no such kind of option", row->name);
}

/* The value may be part of the word ("--name=x", "-nx") or the next word, whatever that is. */
static int take_value(struct reader *r, const struct option_row *row, const char *inside)
{
	if (inside)
		return store(r, row, inside);
	if (r->at + 1 >= r->argc)
		return err_set(r->err, ERR_USAGE, "--%s needs a value: --%s %s", row->name,
			       row->name, row->value);
	return store(r, row, r->argv[++r->at]);
}

static int read_long(struct reader *r, const char *word)
{
	const char *equals = strchr(word, '=');
	size_t len = equals ? (size_t)(equals - word) : strlen(word);
	const struct option_row *row = by_name(r, word, len);

	if (!row)
		return unknown(r, word, len);
	if (row->kind != OPTION_FLAG)
		return take_value(r, row, equals ? equals + 1 : NULL);
	if (equals)
		return err_set(r->err, ERR_USAGE, "--%s takes no value", row->name);
	return store(r, row, NULL);
}

static int read_letters(struct reader *r, const char *letters)
{
	for (const char *c = letters; *c; c++) {
		const struct option_row *row = by_letter(r, *c);

		if (!row && c == letters && by_kind(r, OPTION_OTHERS) && sbatch_option_letter(*c))
			return take_other(r);
		if (!row)
			return err_set(r->err, ERR_USAGE, "unknown option -%.4s%s", c,
				       behind_script(r));
		if (row->kind == OPTION_OTHERS)
			return take_other(r);
		if (row->kind != OPTION_FLAG)
			return take_value(r, row, c[1] ? c + 1 : NULL);
		if (store(r, row, NULL) < 0)
			return -1;
	}
	return 0;
}

int options_read(const struct option_row *const *tables, int argc, char *const *argv,
		 bool stop_at_word, struct options *out, struct operands *operands, struct err *err)
{
	struct reader r = { .tables = tables,
			    .argc = argc,
			    .argv = argv,
			    .out = out,
			    .operands = operands,
			    .err = err };

	for (; r.at < argc; r.at++) {
		const char *word = argv[r.at];
		int rc = 0;

		if (operands->dashes)
			append(&operands->rest, &operands->rest_count, word);
		else if (strcmp(word, "--") == 0)
			operands->dashes = true;
		else if (word[0] == '-' && word[1] == '-')
			rc = read_long(&r, word + 2);
		else if (word[0] == '-' && word[1] != '\0')
			rc = read_letters(&r, word + 1);
		else if (stop_at_word)
			return r.at;
		else
			operands_add(operands, word);
		if (rc < 0)
			return -1;
	}
	return argc;
}

void options_print(const struct option_row *table, FILE *to)
{
	for (const struct option_row *row = table; row->name; row++) {
		char letter[] = "-x, ";
		int n;

		letter[1] = row->letter;
		n = fprintf(to, "  %s--%s%s%s", row->letter ? letter : "", row->name,
			    row->value ? " " : "", row->value ? row->value : "");
		fprintf(to, "%*s%s\n", n < LEFT_COLUMN ? LEFT_COLUMN - n : 2, "", row->help);
	}
}
