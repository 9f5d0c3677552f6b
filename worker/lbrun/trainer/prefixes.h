/* SPDX-License-Identifier: MIT */
/* prefixes.h - what stands in front of a line of output: whose line it is, as the shepherd of a
 * rank says it, or the launchers of others, each in its own way. */
#ifndef LBRUN_TRAINER_PREFIXES_H
#define LBRUN_TRAINER_PREFIXES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PREFIX_NODE_BYTES = 65 };

struct prefixes;

struct prefix {
	char node[PREFIX_NODE_BYTES]; /* "" = not known */
	int64_t rank;                 /* -1 = not known */
	bool is_shepherds;            /* "[n1:3] ", by lbrun --rank: the rank's own */
	bool is_guess;                /* it may as well be what was printed: "3: " */
};

/* `has_shepherds`: ranks stand behind lbrun --rank. Without them "[n1:12345] " is Open MPI's, and
 * the number that of a process. `most_ranks`: a guess may not ask for more: "[12345] " of Julia is a
 * process, "    1: " of Rust counts causes. */
struct prefixes *prefixes_create(bool has_shepherds, int64_t most_ranks);
void prefixes_destroy(struct prefixes *p);

/* Where the text of a line begins, which ends in NUL. One that wrote its newline by itself has the
 * prefix again behind its text: that is cut off. */
char *prefixes_skip(struct prefixes *p, char *line, struct prefix *out);

#endif
