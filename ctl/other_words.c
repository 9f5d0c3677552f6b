/* SPDX-License-Identifier: MIT */
/* other_words.c - words that people bring from Slurm, Docker, systemd and the shell, and the
 * commands that they mean. */
#include <string.h>

#include "ctl/commands.h"

/* clang-format off */
static const struct {
	const char *word, *ours;
} other_words[] = {
	{"cancel", "kill"}, {"scancel", "kill"}, {"abort", "kill"}, {"terminate", "kill"},
	{"delete", "rm"}, {"remove", "rm"}, {"del", "rm"}, {"end", "stop"}, {"quit", "stop"},
	{"list", "ls"}, {"ps", "ls"}, {"squeue", "ls"}, {"queue", "ls"}, {"runs", "ls"},
	{"jobs", "ls"}, {"sacct", "ls"}, {"sinfo", "nodes"}, {"htop", "top"}, {"watch", "follow"},
	{"attach", "follow"}, {"monitor", "follow"}, {"tail", "logs"}, {"cat", "logs"},
	{"output", "logs"}, {"info", "status"}, {"show", "status"}, {"describe", "status"},
	{"inspect", "status"}, {"scontrol", "status"}, {"get", "status"}, {"history", "events"},
	{"journal", "events"}, {"resume", "restart"}, {"rerun", "restart"}, {"retry", "restart"},
	{"relaunch", "restart"}, {"requeue", "restart"}, {"pause", "hold"}, {"suspend", "hold"},
	{"freeze", "hold"}, {"unhold", "release"}, {"continue", "release"}, {"unpause", "release"},
	{"run", "submit"}, {"sbatch", "submit"}, {"launch", "submit"}, {"create", "submit"},
	{"new", "submit"}, {"sweep", "submit"}, {"start", "submit"}, {"srun", "submit"},
	{"checkpoint", "save"}, {"usage", "du"}, {"df", "du"}, {"space", "du"}, {"gc", "prune"},
	{"clean", "prune"}, {"cleanup", "prune"}, {"crontab", "cron"},
	{"py-spy", "stacks"}, {"man", "help"},
};
/* clang-format on */

const char *other_word(const char *word)
{
	for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]); i++) {
		if (strcmp(other_words[i].word, word) == 0)
			return other_words[i].ours;
	}
	return NULL;
}
