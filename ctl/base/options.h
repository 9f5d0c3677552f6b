/* SPDX-License-Identifier: MIT */
/* options.h - a command line as a table: one row per option, read and printed from there. */
#ifndef CTL_BASE_OPTIONS_H
#define CTL_BASE_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "common/base/err.h"

/* of an option that may be repeated; words borrowed, list owned */
struct word_list {
	const char **items; /* NULL-terminated once any was given */
	size_t count;
};

/* Every option of every command; a command accepts those that its rows name. */
struct options {
	/* everywhere */
	const char *home;
	bool no_color, help;
	/* by command */
	bool json, all, deep, snapshot, team, cron, follow, now, dry_run, yes, in_slurm;
	const char *name, *reason, *from, *group, *wrap;
	const char **set; /* NULL-terminated once any was given; owned */
	size_t set_count;
	const char **others; /* options that are none of ours, as typed; likewise */
	size_t other_count;
	struct word_list after, after_ok, sweep, to;
	const char *project, *python;
	int64_t attempt;  /* 0 = all */
	int64_t interval; /* the step at its end; 0 = the newest */
	bool other_nodes;
	const char *nodes, *partition; /* of a check */
	int64_t count;                 /* of nodes; 0 = not given */
	bool demo, week, csv;
	int64_t every_ms;            /* 0 = once */
	int64_t listen;              /* port; 0 = none */
	const char *by;              /* what sums are over */
	const char *output;          /* file */
	const char *record, *replay; /* files */
	const char *grep;
	bool errors, verbose;
	int64_t lines;      /* the last so many; 0 = all */
	int64_t timeout_ms; /* -1 = none */
	int64_t older_ms;   /* -1 = not given */
	int64_t since_ms;   /* so far back; 0 = all */
};

enum option_kind {
	OPTION_FLAG,     /* bool */
	OPTION_TEXT,     /* const char *, borrowed from argv */
	OPTION_NUMBER,   /* int64_t, at least 1 */
	OPTION_DURATION, /* int64_t milliseconds: "90", "5m", "1h30m" */
	OPTION_AGE,      /* the same, with its unit: seconds taken for days would remove too much */
	OPTION_SET,      /* appends to options.set */
	OPTION_LIST,     /* appends to a struct word_list */
	OPTION_OTHERS,   /* options of sbatch, which no row names, into options.others as typed */
};

struct option_row {
	const char *name; /* "follow", typed as --follow */
	char letter;      /* 'f', typed as -f; 0 = none */
	enum option_kind kind;
	size_t offset;     /* in struct options */
	const char *value; /* "DURATION" in the help; NULL for flags */
	const char *help;
};

/* What every command takes, before it or behind it. */
extern const struct option_row global_options[];

/* What is no option. All are borrowed from argv; the lists are owned. */
struct operands {
	const char **words; /* before "--"; NULL-terminated */
	size_t count;
	const char **rest; /* after "--"; NULL-terminated */
	size_t rest_count;
	bool dashes; /* "--" was there */
};

/* Options may stand anywhere before "--"; the last one of a kind counts. `tables` is a list of
 * tables, each ended by a row without a name, itself ended by NULL. With `stop_at_word` reading
 * ends before the first word, whose index is the result; else the result is argc. -1 with err
 * (ERR_USAGE) when something is wrong. */
int options_read(const struct option_row *const *tables, int argc, char *const *argv,
		 bool stop_at_word, struct options *out, struct operands *operands,
		 struct err *err);
/* One more word, borrowed. */
void operands_add(struct operands *operands, const char *word);
void options_init(struct options *options, struct operands *operands);
void options_fini(struct options *options, struct operands *operands);

/* "  -f, --follow        wait for more" for every row. */
void options_print(const struct option_row *table, FILE *to);

#endif
