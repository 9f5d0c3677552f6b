/* SPDX-License-Identifier: MIT */
/* commands/ - what a person types: one file per subcommand.
 *
 * command.h - lbworker's subcommands, and how each of them ends. argv[0] is the command's name. */
#ifndef LBWORKER_COMMAND_H
#define LBWORKER_COMMAND_H

#include <stdio.h>

#include "common/base/err.h"

enum exit_status {
	EXIT_DONE = 0, /* done, or stopped after a checkpoint */
	EXIT_FAILED = 1,
	EXIT_USAGE = 2,    /* command line, config, data or checkpoint */
	EXIT_DIVERGED = 3, /* loss or gradient NaN or infinite */
	EXIT_DIFFERS = 4,  /* an audit found other bits */
};

/* Both print one line on stderr and return the exit status that fits. */
int command_failed(const struct err *err);
int command_usage(const char *text);

/* What others wrote, as text of a page or a picture. */
void command_put_text(const char *text, FILE *to);

/* For what runs on all cores: OMP_NUM_THREADS, or as many as we may run on. */
unsigned command_threads(void);

int command_audit(int argc, char **argv);
int command_ckpt(int argc, char **argv);
int command_convert(int argc, char **argv);
int command_eval(int argc, char **argv);
int command_generate(int argc, char **argv);
int command_inspect(int argc, char **argv);
int command_precision(int argc, char **argv);
int command_prepare(int argc, char **argv);
int command_recipes(int argc, char **argv);
int command_tokenize(int argc, char **argv);
int command_trace(int argc, char **argv);
int command_train_tokenizer(int argc, char **argv);
int command_train(int argc, char **argv); /* and plan */

#endif
