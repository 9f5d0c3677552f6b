/* SPDX-License-Identifier: MIT */
/* directives.h - the options of a batch job, from where they are written.
 *
 * A script's "#SBATCH" lines are cut into words as sbatch cuts them: several on a line, quotes,
 * backslashes, comments behind them; reading stops at the first command. Words become options as
 * getopt_long(3) would read them: "-N2", "-N 2", "--nodes=2", "--nodes 2", unique beginnings.
 * What is wrong is said with its place, "train.slurm:4: --nodes: …", and nothing is half done. */
#ifndef SLURM_BATCH_DIRECTIVES_H
#define SLURM_BATCH_DIRECTIVES_H

#include <stdbool.h>
#include <stddef.h>

#include "common/base/err.h"
#include "common/base/strv.h"
#include "slurm/batch/sbatch_options.h"

/* each overrules those before it */
enum directive_origin {
	DIRECTIVE_SCRIPT,
	DIRECTIVE_ENVIRONMENT,
	DIRECTIVE_EXTRA /* [slurm] of the spec, the command line */
};

struct directive {
	const struct sbatch_option *option;
	char *value; /* NULL: none */
	char *place; /* "train.slurm:4", "SBATCH_ACCOUNT", "slurm.extra" */
	enum directive_origin origin;
};

struct directives {
	struct directive *items; /* in the order of their effect */
	size_t count;
	/* Options that plugins of the site give to sbatch: "image=" has a value, "fast" has none; a
	 * NULL-terminated list, borrowed, NULL = there are none. What is given of them is passed on
	 * as it is: "--image=docker:x". */
	char *const *plugin_options;
	const char *no_plugins; /* why a job cannot have them; NULL = it can */
	struct strv passed;
};

/* Each appends to `d`. The script is text[0..len); `file` is its name in messages. */
int directives_read_script(struct directives *d, const char *text, size_t len, const char *file,
			   struct err *err);
/* `env` is a NULL-terminated list of NAME=value. */
int directives_read_env(struct directives *d, char *const *env, struct err *err);
/* NULL-terminated words as on sbatch's command line; `place` stands before messages. */
int directives_read_words(struct directives *d, char *const *words, const char *place,
			  struct err *err);
/* Options as a line of a script has them; `place` stands before messages. */
int directives_read_line(struct directives *d, const char *line, const char *place,
			 struct err *err);
void directives_clear(struct directives *d);

/* -1 with err where "image=" cannot be one of plugin_options: it is no name, or sbatch's own. */
int directives_check_plugin_option(const char *option, struct err *err);

/* The first line of options that stands behind the first command, where nobody reads it; 0 = there
 * is none, or it may belong to another script, written out by this one. */
int directives_first_unread(const char *text, size_t len);

/* What sbatch asks of a script before it takes it: "#!", no NUL, no "\r\n", some text. */
int directives_check_script(const char *text, size_t len, const char *file, struct err *err);

#endif
