/* SPDX-License-Identifier: GPL-2.0-or-later */
/* main.c - lbd-slurm, the part of lbd that talks to Slurm through libslurm. The only program here
 * that links it, hence its licence. */
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "slurm/helper/calls.h"
#include "slurm/pipe/serve.h"

static const struct op ops[] = {
	{ "submit", op_submit },   { "release", op_release }, { "signal", op_signal },
	{ "cancel", op_cancel },   { "poll", op_poll },       { "info", op_info },
	{ "check", op_check },     { "why", op_why },         { "room", op_room },
	{ "outages", op_outages }, { "known", op_known },     { NULL, NULL },
};

/* The jobs of a large site are tens of megabytes, every few seconds: taking them from the kernel
 * and giving them back was a third of what a poll cost. Up to this much stays. */
enum { KEPT_BYTES = 64 * 1024 * 1024 };

int main(int argc, char **argv)
{
	char version[80];

	snprintf(version, sizeof(version), "lbd-slurm %s (Slurm %d.%02d.%d)", LB_VERSION,
		 SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
		 SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER),
		 SLURM_VERSION_MICRO(SLURM_VERSION_NUMBER));
	setenv("SLURM_BITSTR_LEN", "0", 1); /* libslurm: all tasks of an array, not the first */
	mallopt(M_MMAP_THRESHOLD, KEPT_BYTES / 2); /* the most that mallopt takes */
	mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
	return serve("lbd-slurm", version, ops, argc, argv);
}
