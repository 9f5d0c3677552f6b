/* SPDX-License-Identifier: MIT */
/* core.h - no core file of lbrun ever holds its environment: that has the run's secrets in it.
 *
 * Trainers get back what was set before: whether their cores are written is their owner's
 * choice. */
#ifndef LBRUN_TRAINER_CORE_H
#define LBRUN_TRAINER_CORE_H

void core_forbid(void);
/* In a child, before exec. */
void core_allow_again(void);

#endif
