/* SPDX-License-Identifier: MIT */
/* directives.c - cuts lines into words, and words into options of the table. */
#include "slurm/batch/directives.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/mem.h"
#include "common/base/strv.h"

struct word {
	char *text;
	char *place;
};

struct words {
	struct word *items;
	size_t count;
};

static void words_add(struct words *w, char *text, char *place)
{
	w->items = xrealloc(w->items, (w->count + 1) * sizeof(*w->items));
	w->items[w->count++] = (struct word){ text, place };
}

static void words_fini(struct words *w)
{
	for (size_t i = 0; i < w->count; i++) {
		free(w->items[i].text);
		free(w->items[i].place);
	}
	free(w->items);
}

void directives_clear(struct directives *d)
{
	for (size_t i = 0; i < d->count; i++) {
		free(d->items[i].value);
		free(d->items[i].place);
	}
	free(d->items);
	strv_free(d->passed.items);
	*d = (struct directives){ 0 };
}

static void add(struct directives *d, const struct sbatch_option *option, const char *value,
		const char *place, enum directive_origin origin)
{
	d->items = xrealloc(d->items, (d->count + 1) * sizeof(*d->items));
	d->items[d->count++] = (struct directive){
		.option = option,
		.value = value ? xstrdup(value) : NULL,
		.place = xstrdup(place),
		.origin = origin,
	};
}

/* --- words to options ------------------------------------------------------------------------- */

struct reading {
	struct directives *out;
	const struct words *words;
	size_t next; /* the word after the one being read */
	enum directive_origin origin;
};

/* The value of an option that must have one: attached, or the next word. NULL with err. */
static const char *value_of(struct reading *r, const struct word *at, const char *attached,
			    const char *shown, struct err *err)
{
	if (attached)
		return attached;
	if (r->next < r->words->count)
		return r->words->items[r->next++].text;
	err_set(err, ERR_USAGE, "%s: %s: needs a value", at->place, shown);
	return NULL;
}

int directives_check_plugin_option(const char *option, struct err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				      "0123456789-_.";
	size_t len = strcspn(option, "=");

	if (len == 0 || option[0] == '-' || strspn(option, letters) != len ||
	    (option[len] && option[len + 1]))
		return err_set(err, ERR_USAGE,
			       "\"%s\": a name without dashes before it is allowed, with = behind "
			       "it where the option has a value: \"image=\", \"fast\"",
			       option);
	if (sbatch_option_named(option, len))
		return err_set(err, ERR_USAGE, "\"%s\": sbatch has --%.*s itself; leave it out",
			       option, (int)len, option);
	return 0;
}

/* "image=", where the plugins have it; else NULL. */
static const char *find_plugin_option(const struct directives *d, const char *name, size_t len)
{
	for (char *const *at = d->plugin_options; at && *at; at++)
		if (strcspn(*at, "=") == len && strncmp(*at, name, len) == 0)
			return *at;
	return NULL;
}

static int pass_on(struct reading *r, const struct word *at, const char *option, struct err *err)
{
	const char *value = strchr(at->text, '=');
	int len = (int)strcspn(option, "=");

	if (r->out->no_plugins)
		return err_set(err, ERR_USAGE, "%s: --%.*s: %s", at->place, len, option,
			       r->out->no_plugins);
	if (!option[len] && value)
		return err_set(err, ERR_USAGE, "%s: --%s: takes no value", at->place, option);
	value = option[len] ? value_of(r, at, value ? value + 1 : NULL, at->text, err) : "";
	if (!value)
		return -1;
	strv_add(&r->out->passed,
		 xasprintf("--%.*s%s%s", len, option, option[len] ? "=" : "", value));
	return 0;
}

static int read_long(struct reading *r, const struct word *at, struct err *err)
{
	const char *name = at->text + 2, *value;
	size_t len = strcspn(name, "=");
	const char *of_plugin = find_plugin_option(r->out, name, len);
	struct err why = { 0 };
	const struct sbatch_option *option;

	if (of_plugin)
		return pass_on(r, at, of_plugin, err);
	option = sbatch_option_find(name, len, &why);
	if (!option)
		return err_set(err, ERR_USAGE, "%s: --%.*s: %s", at->place, (int)len, name,
			       why.text);
	value = name[len] ? name + len + 1 : NULL;
	if (option->arity == SBATCH_FLAG && value)
		return err_set(err, ERR_USAGE, "%s: --%s: takes no value", at->place, option->name);
	if (option->arity == SBATCH_VALUE) {
		char shown[64];

		snprintf(shown, sizeof(shown), "--%.50s", option->name);
		value = value_of(r, at, value, shown, err);
		if (!value)
			return -1;
	}
	add(r->out, option, value, at->place, r->origin);
	return 0;
}

/* "-N2", "-N", "-HO": flags may stand together, the last may have a value. */
static int read_short(struct reading *r, const struct word *at, struct err *err)
{
	for (const char *c = at->text + 1; *c; c++) {
		const struct sbatch_option *option = sbatch_option_letter(*c);
		const char *value = option && c[1] && option->arity != SBATCH_FLAG ? c + 1 : NULL;
		char shown[] = { '-', *c, '\0' };

		if (!option)
			return err_set(err, ERR_USAGE, "%s: %s: there is no such option of sbatch",
				       at->place, shown);
		if (option->arity == SBATCH_VALUE) {
			value = value_of(r, at, value, shown, err);
			if (!value)
				return -1;
		}
		add(r->out, option, value, at->place, r->origin);
		if (value)
			break;
	}
	return 0;
}

static int read_words(struct directives *d, const struct words *words, enum directive_origin origin,
		      struct err *err)
{
	struct reading r = { .out = d, .words = words, .origin = origin };
	size_t before = d->count;
	int rc = 0;

	while (rc == 0 && r.next < words->count) {
		const struct word *at = &words->items[r.next++];

		if (strcmp(at->text, ":") == 0)
			rc = err_set(err, ERR_USAGE,
				     "%s: heterogeneous jobs (\":\") are not supported: "
				     "a run is one job",
				     at->place);
		else if (strncmp(at->text, "--", 2) == 0 && at->text[2])
			rc = read_long(&r, at, err);
		else if (at->text[0] == '-' && at->text[1] && at->text[1] != '-')
			rc = read_short(&r, at, err);
		else
			rc = err_set(err, ERR_USAGE, "%s: \"%.80s\": is no option of sbatch",
				     at->place, at->text);
	}
	for (size_t i = before; rc < 0 && i < d->count; i++) {
		free(d->items[i].value);
		free(d->items[i].place);
	}
	if (rc < 0)
		d->count = before;
	return rc;
}

int directives_read_words(struct directives *d, char *const *list, const char *place,
			  struct err *err)
{
	struct words words = { 0 };
	int rc;

	for (; *list; list++)
		words_add(&words, xstrdup(*list), xstrdup(place));
	rc = read_words(d, &words, DIRECTIVE_EXTRA, err);
	words_fini(&words);
	return rc;
}

/* --- lines to words --------------------------------------------------------------------------- */

/* The next word of a line, as sbatch cuts them; owned. NULL at the end of what counts (an unescaped
 * '#' starts a comment, even within a word), and with err set for an open quote. */
static char *next_word(const char **line, struct err *err)
{
	const char *at = *line;
	char *word = NULL, quote = '\0';
	size_t len = 0;
	bool escaped = false;

	while (isspace((unsigned char)*at))
		at++;
	for (; *at && (quote || !isspace((unsigned char)*at)); at++) {
		if (escaped) {
			escaped = false;
		} else if (*at == '\\') {
			escaped = true;
			continue;
		} else if (quote && *at == quote) {
			quote = '\0';
			continue;
		} else if (!quote && (*at == '"' || *at == '\'')) {
			quote = *at;
			continue;
		} else if (!quote && *at == '#') {
			break;
		}
		if (!word)
			word = xcalloc(1, strlen(at) + 1);
		word[len++] = *at;
	}
	*line = at;
	if (!quote)
		return word;
	free(word);
	err_set(err, ERR_USAGE, "a quote (%c) is not closed", quote);
	return NULL;
}

static bool is_component(const char *at)
{
	static const char *const names[] = { "hetjob", "packjob" };

	while (isspace((unsigned char)*at))
		at++;
	for (size_t i = 0; i < 2; i++) {
		size_t len = strlen(names[i]);

		if (strncasecmp(at, names[i], len) == 0 &&
		    (at[len] == '\0' || isspace((unsigned char)at[len])))
			return true;
	}
	return false;
}

static int cut_line(struct words *words, const char *line, const char *file, int number,
		    struct err *err)
{
	struct err why = { 0 };
	char *word;

	for (;;) {
		if (is_component(line))
			return err_set(err, ERR_USAGE,
				       "%s:%d: hetjob: heterogeneous jobs are not "
				       "supported: a run is one job",
				       file, number);
		word = next_word(&line, &why);
		if (!word)
			break;
		words_add(words, word, xasprintf("%s:%d", file, number));
	}
	return why.code ? err_set(err, ERR_USAGE, "%s:%d: %s", file, number, why.text) : 0;
}

int directives_read_line(struct directives *d, const char *line, const char *place, struct err *err)
{
	struct words words = { 0 };
	struct err why = { 0 };
	char *word;
	int rc;

	while ((word = next_word(&line, &why)))
		words_add(&words, word, xstrdup(place));
	rc = why.code ? err_set(err, ERR_USAGE, "%s: %s", place, why.text)
		      : read_words(d, &words, DIRECTIVE_EXTRA, err);
	words_fini(&words);
	return rc;
}

static bool is_command(const char *line)
{
	while (isspace((unsigned char)*line))
		line++;
	return *line && *line != '#';
}

static const char *behind(const char *line, const char *word)
{
	size_t len = strlen(word);

	return strncmp(line, word, len) == 0 ? line + len : NULL;
}

struct cutting {
	struct words words;
	const char *file;
	int other_line; /* the first of another batch system's, 0 = none */
	char other[8];
};

/* 1: the first command, reading is over. */
static int take_line(struct cutting *c, const char *line, int number, struct err *err)
{
	static const char *const others[] = { "#PBS", "#BSUB" };
	const char *options = behind(line, "#SBATCH");

	if (!options)
		options = behind(line, "#SLURM");
	if (options)
		return cut_line(&c->words, options, c->file, number, err);
	for (size_t i = 0; i < 2; i++) {
		if (behind(line, others[i]) && !c->other_line) {
			c->other_line = number;
			snprintf(c->other, sizeof(c->other), "%s", others[i]);
		}
	}
	return is_command(line);
}

static bool ignores_others(const struct directives *d)
{
	for (size_t i = 0; i < d->count; i++) {
		const char *name = d->items[i].option->name;

		if (name && strcmp(name, "ignore-pbs") == 0)
			return true;
	}
	return false;
}

int directives_read_script(struct directives *d, const char *text, size_t len, const char *file,
			   struct err *err)
{
	struct cutting c = { .file = file };
	int number = 0, rc = 0;

	while (rc == 0 && len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) : len;
		char *line = xstrndup(text, n);

		rc = take_line(&c, line, ++number, err);
		free(line);
		n += newline != NULL;
		text += n;
		len -= n;
	}
	if (rc >= 0)
		rc = read_words(d, &c.words, DIRECTIVE_SCRIPT, err);
	if (rc == 0 && c.other_line && !ignores_others(d))
		rc = err_set(err, ERR_USAGE,
			     "%s:%d: %s: lines of other batch systems are not "
			     "translated; write them as #SBATCH, or add --ignore-pbs",
			     file, c.other_line, c.other);
	words_fini(&c.words);
	return rc;
}

int directives_first_unread(const char *text, size_t len)
{
	bool is_over = false;
	int number = 0;

	if (memmem(text, len, "<<", 2))
		return 0;
	while (len > 0) {
		const char *newline = memchr(text, '\n', len);
		size_t n = newline ? (size_t)(newline - text) : len;
		char *line = xstrndup(text, n);
		bool is_unread = is_over && behind(line, "#SBATCH -");

		is_over |= is_command(line);
		free(line);
		number++;
		if (is_unread)
			return number;
		n += newline != NULL;
		text += n;
		len -= n;
	}
	return 0;
}

int directives_check_script(const char *text, size_t len, const char *file, struct err *err)
{
	if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0)
		return err_set(err, ERR_USAGE,
			       "%s:1: a byte order mark stands in front of its #!, which no "
			       "kernel reads; dos2unix takes it away",
			       file);
	if (len < 2 || text[0] != '#' || text[1] != '!')
		return err_set(err, ERR_USAGE,
			       "%s:1: a batch script must begin with #! and its "
			       "interpreter, like \"#!/bin/bash\"",
			       file);
	if (memchr(text, '\0', len))
		return err_set(err, ERR_USAGE, "%s: holds a NUL byte: this is no script", file);
	if (memmem(text, len, "\r\n", 2))
		return err_set(err, ERR_USAGE, "%s: has DOS line ends; dos2unix mends it", file);
	return 0;
}

/* --- environment ------------------------------------------------------------------------------ */

/* A variable of a flag sets it when empty, "yes" or a number but 0. */
static bool is_on(const char *value)
{
	return !value[0] || strcasecmp(value, "yes") == 0 || strtol(value, NULL, 10) != 0;
}

int directives_read_env(struct directives *d, char *const *env, struct err *err)
{
	(void)err;
	for (size_t i = 0; i < sbatch_option_count; i++) {
		const struct sbatch_option *option = &sbatch_options[i];
		const char *value = option->variable ? strv_get(env, option->variable) : NULL;

		if (!value || (option->arity == SBATCH_FLAG && !is_on(value)))
			continue;
		if (option->arity == SBATCH_FLAG ||
		    (option->arity == SBATCH_MAY_VALUE && !value[0]))
			value = NULL;
		add(d, option, value, option->variable, DIRECTIVE_ENVIRONMENT);
	}
	return 0;
}
