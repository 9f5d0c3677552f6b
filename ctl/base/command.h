/* SPDX-License-Identifier: MIT */
/* base/ - what commands share: asking lbd, options, text for a terminal.
 *
 * command.h - one call of lbctl, and a row of the table of commands. A new command is one row in
 * commands.c and one function. */
#ifndef CTL_BASE_COMMAND_H
#define CTL_BASE_COMMAND_H

#include "common/base/err.h"
#include "common/team/team.h"
#include "ctl/base/client.h"
#include "ctl/base/options.h"
#include "ctl/base/text.h"

/* exit statuses that no err_code stands for */
enum {
	EXIT_RUN_FAILED = 1,
	EXIT_INTERRUPTED = 130,
};

/* One call of lbctl. */
struct ctl {
	const struct command *commands; /* the table, for help */
	size_t command_count;
	const struct command *command; /* the one that was called */
	struct options options;
	struct operands operands;
	struct client client;
	struct style out, err; /* of stdout and stderr */
	struct team team;      /* what colleagues tell, once has_team */
	bool has_team;
	int64_t team_read_ms;                 /* monotonic; 0 = never */
	char told_stale[TEAM_USER_BYTES + 1]; /* the user of whom that was said last */
};

enum operand_kind {
	OPERANDS_NAMES,  /* of what the command is about: a group, nodes, entries */
	OPERANDS_RUN,    /* a run here; OWNER/RUN, too, where that is here */
	OPERANDS_MANY,   /* selectors, of runs here alone, likewise */
	OPERANDS_SELECT, /* selectors (common/team/selector.h), also OWNER/SELECTOR */
	OPERANDS_LOOK,   /* a run, also a colleague's: OWNER/RUN */
};

struct command {
	const char *name;
	const char *usage;    /* after "lbctl NAME" */
	const char *summary;  /* one line */
	const char *examples; /* one a line */
	const struct option_row *options;
	size_t least, most; /* operands; most 0 with least 0: none */
	enum operand_kind operands;
	/* The exit status, or -1 with err. */
	int (*run)(struct ctl *ctl, struct err *err);
};

/* The functions behind the rows, one file for each family, in ctl/look, ctl/act and ctl/doctor. */
int submit_run(struct ctl *ctl, struct err *err);
int ls_run(struct ctl *ctl, struct err *err);
int events_run(struct ctl *ctl, struct err *err);
int version_run(struct ctl *ctl, struct err *err);
int status_run(struct ctl *ctl, struct err *err);
int home_run(struct ctl *ctl, struct err *err);
int metrics_run(struct ctl *ctl, struct err *err);
int sync_run(struct ctl *ctl, struct err *err);
int plot_run(struct ctl *ctl, struct err *err);
int advise_run(struct ctl *ctl, struct err *err);
int report_run(struct ctl *ctl, struct err *err);
int top_run(struct ctl *ctl, struct err *err);
int why_run(struct ctl *ctl, struct err *err);
int follow_run(struct ctl *ctl, struct err *err);
int audit_run(struct ctl *ctl, struct err *err);
int check_run(struct ctl *ctl, struct err *err);
int compare_run(struct ctl *ctl, struct err *err);
int diff_run(struct ctl *ctl, struct err *err);
int goodput_run(struct ctl *ctl, struct err *err);
int cron_run(struct ctl *ctl, struct err *err);
int doctor_run(struct ctl *ctl, struct err *err);
int recover_run(struct ctl *ctl, struct err *err);
int daemon_run(struct ctl *ctl, struct err *err);
int nodes_run(struct ctl *ctl, struct err *err);
int wait_run(struct ctl *ctl, struct err *err);
int logs_run(struct ctl *ctl, struct err *err);
int kill_run(struct ctl *ctl, struct err *err);
int stop_run(struct ctl *ctl, struct err *err);
int hold_run(struct ctl *ctl, struct err *err);
int release_run(struct ctl *ctl, struct err *err);
int restart_run(struct ctl *ctl, struct err *err);
int checkpoints_run(struct ctl *ctl, struct err *err);
int du_run(struct ctl *ctl, struct err *err);
int rm_run(struct ctl *ctl, struct err *err);
int prune_run(struct ctl *ctl, struct err *err);
int save_run(struct ctl *ctl, struct err *err);
int stacks_run(struct ctl *ctl, struct err *err);
int notify_run(struct ctl *ctl, struct err *err);
int help_run(struct ctl *ctl, struct err *err);
/* complete.c: words for shells, one a line. */
int complete_run(struct ctl *ctl, const char *what, struct err *err);

#endif
