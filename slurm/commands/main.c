/* SPDX-License-Identifier: MIT */
/* main.c - lbd-slurm-commands, the part of lbd that talks to Slurm through its commands. It needs
 * neither libslurm nor its headers, and works with any release whose commands it can read. */
#include "slurm/pipe/operations.h"
#include "slurm/pipe/serve.h"

static const struct op ops[] = {
	{ "submit", op_submit },   { "release", op_release }, { "signal", op_signal },
	{ "cancel", op_cancel },   { "poll", op_poll },       { "info", op_info },
	{ "check", op_check },     { "why", op_why },         { "room", op_room },
	{ "outages", op_outages }, { "known", op_known },     { NULL, NULL },
};

int main(int argc, char **argv)
{
	return serve("lbd-slurm-commands", "lbd-slurm-commands " LB_VERSION " (Slurm's commands)",
		     ops, argc, argv);
}
