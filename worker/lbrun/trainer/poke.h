/* SPDX-License-Identifier: MIT */
/* poke.h - telling lbd that the spool grew, where its socket can be reached.
 *
 * A hint only: lbd reads the spool anyway, a little later. So it never waits, never fails, and is
 * sent at most every 200 ms. */
#ifndef LBRUN_TRAINER_POKE_H
#define LBRUN_TRAINER_POKE_H

#include <stdbool.h>
#include <stdint.h>

enum {
	POKE_EVERY_MS = 200,
	POKE_BACKOFF_MS = 2000, /* lbd is on another host, or down */
};

struct poke {
	char *folder; /* of the socket; NULL = there is none */
	char *name;
	char *line;
	bool is_wanted;
	int64_t not_before_ms;
};

void poke_init(struct poke *p, const char *socket, const char *run);
void poke_fini(struct poke *p);
void poke_wanted(struct poke *p);
void poke_turn(struct poke *p, int64_t now_ms);
int64_t poke_next_ms(const struct poke *p);

#endif
