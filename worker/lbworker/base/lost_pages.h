/* SPDX-License-Identifier: MIT */
/* lost_pages.h - what is mapped, and cannot be read any more.
 *
 * Tokens and weights are read where they are mapped: a file that became shorter meanwhile, or whose
 * disk fails, ends the process with SIGBUS, without a word, as if the node were broken. */
#ifndef LBWORKER_LOST_PAGES_H
#define LBWORKER_LOST_PAGES_H

/* From now on that ends the process with `status`, and a line that names the file. */
void lost_pages_tell(int status);

#endif
