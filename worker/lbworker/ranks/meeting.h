/* SPDX-License-Identifier: MIT */
/* meeting.h - the ranks of a launcher begin together, or end with a line that says who is missing.
 *
 * What starts MPI waits without end for a rank that never comes. Each rank leaves a file in the
 * folder of its attempt before it waits, so that the others know who has come. */
#ifndef LBWORKER_RANKS_MEETING_H
#define LBWORKER_RANKS_MEETING_H

struct meeting;

/* Ends this process, with a line on stderr, unless meeting_end comes within `seconds`. rank, size:
 * as the launcher says. Never NULL. */
struct meeting *meeting_begin(int rank, int size, double seconds);
void meeting_end(struct meeting *meeting); /* NULL is fine */

#endif
