/* SPDX-License-Identifier: MIT */
/* interval.h - how often to save: the interval that loses least, of what a save costs and how often
 * trouble comes. Pure. */
#ifndef COMMON_CHECKPOINT_INTERVAL_H
#define COMMON_CHECKPOINT_INTERVAL_H

/* Of nodes and days: Llama 3 had 419 unexpected interruptions in 54 days on 2,048 nodes (arXiv
 * 2407.21783). */
#define TROUBLES_PER_NODE_DAY (419.0 / (54 * 2048))

/* What was seen lately: both fade alike. */
struct troubles {
	double count, node_days;
};

/* What happened so long ago counts for that much: half after 30 days. */
double trouble_fades(double age_ms);
/* Seconds between troubles of a job on so many nodes. The published rate counts as one trouble
 * more. */
double trouble_mtbf_s(const struct troubles *seen, double nodes);

/* Seconds between the end of a save that takes save_s and the next, with a trouble each mtbf_s on
 * average: Daly (2006), who refines Young (1974). */
double save_interval_s(double save_s, double mtbf_s);

#endif
