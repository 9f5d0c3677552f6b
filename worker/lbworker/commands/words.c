/* SPDX-License-Identifier: MIT */
/* words.c - walks a command line by a table of options. */
#include "worker/lbworker/commands/words.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static int refuse(const struct word_option *options, const char *command, const char *word,
		  struct err *err)
{
	struct buf names;

	buf_init(&names, 4096);
	for (const struct word_option *o = options; o->name; o++)
		buf_addf(&names, "%s%s", o == options ? "" : ", ", o->name);
	err_set(err, ERR_USAGE, "%s: %s has no such option; it has %s", word, command, names.data);
	buf_fini(&names);
	return -1;
}

static int take_value(const struct word_option *o, const char *value, struct err *err)
{
	char *end;

	if (o->text) {
		*o->text = value;
		return 0;
	}
	double number = strtod(value, &end);
	if (end == value || *end != '\0' || !(number >= o->min && number <= o->max) ||
	    (o->integer && number != (double)(int64_t)number))
		return err_set(err, ERR_USAGE, "%s: \"%.40s\" is no %snumber from %.15g to %.15g",
			       o->name, value, o->integer ? "whole " : "", o->min, o->max);
	if (o->integer)
		*o->integer = (int64_t)number;
	else
		*o->real = number;
	return 0;
}

int words_parse(const struct word_option *options, int argc, char **argv, char **rest,
		size_t *count, struct err *err)
{
	*count = 0;
	for (int i = 1; i < argc; i++) {
		const struct word_option *o = options;
		if (argv[i][0] != '-') {
			rest[(*count)++] = argv[i];
			continue;
		}
		while (o->name && strcmp(o->name, argv[i]) != 0)
			o++;
		if (!o->name)
			return refuse(options, argv[0], argv[i], err);
		if (o->flag) {
			*o->flag = true;
			continue;
		}
		if (i + 1 == argc)
			return err_set(err, ERR_USAGE, "%s needs a value", argv[i]);
		if (take_value(o, argv[++i], err))
			return -1;
	}
	return 0;
}
