/* SPDX-License-Identifier: MIT */
/* rank_term.h - who is asked to end: SIGTERM for trainers behind a launcher of ranks.
 *
 * None passes it on as it is: mpirun kills its ranks a second later, torchrun after thirty, srun at
 * once, and a last checkpoint may take longer. So the ranks are told, and their launchers are not
 * before those are gone: by then they end by themselves, or would start the ranks again. Nor is a
 * mere fork of a rank, like the processes that load data for PyTorch: if one dies, its rank
 * fails. So does a rank whose output goes into a pipe that nobody reads any more: tee(1), or what
 * else would only die of SIGTERM with others depending on it, is told last, like a launcher. */
#ifndef LBRUN_RANK_RANK_TERM_H
#define LBRUN_RANK_RANK_TERM_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/* who got SIGTERM; all zero = nobody */
struct rank_term {
	pid_t *pids; /* owned */
	size_t count;
	bool has_srun;
};

/* SIGTERM to every descendant that is neither a launcher nor a fork, nor told last; to all where
 * there is nobody else. The lbrun in front of a rank is told instead of those below it (RANK_TERM).
 * True: an srun is among them; its ranks are not, and only Slurm can reach them. */
bool rank_term_begin(struct rank_term *term);
/* Once those who were asked are gone, whoever is left gets SIGTERM; then `asked` is all zero. */
void rank_term_look(struct rank_term *term);

/* Is this one? `comm` is its name, `args` its command line as /proc has it, of `size` bytes. */
enum launcher {
	LAUNCHER_NONE,
	LAUNCHER_LOCAL, /* of ranks that descend from it */
	LAUNCHER_SRUN,
	LAUNCHER_RANK, /* lbrun in front of one rank, or of the ranks of a node */
};
enum launcher launcher_is(const char *comm, const char *args, size_t size);

#endif
