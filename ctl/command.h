/* SPDX-License-Identifier: MIT */
/* command.h - the table of commands. A new command is one row in commands.c and one function. */
#ifndef CTL_COMMAND_H
#define CTL_COMMAND_H

#include <jansson.h>

#include "common/err.h"
#include "common/selector.h"
#include "common/switches.h"
#include "common/team.h"
#include "ctl/client.h"
#include "ctl/options.h"
#include "ctl/text.h"

enum {			/* exit statuses that no err_code stands for */
	EXIT_RUN_FAILED = 1,
	EXIT_INTERRUPTED = 130,
};

/* One call of lbctl. */
struct ctl {
	const struct command *command;
	struct options options;
	struct operands operands;
	struct client client;
	struct style out, err;		/* of stdout and stderr */
	struct team team;		/* what colleagues tell, once has_team */
	bool has_team;
};

struct command {
	const char *name;
	const char *usage;		/* after "lbctl NAME" */
	const char *summary;		/* one line */
	const char *examples;		/* one a line */
	const struct option_row *options;
	size_t least, most;		/* operands; most 0 with least 0: none */
	bool selects;			/* operands are selectors (common/selector.h), else names */
	/* The exit status, or -1 with err. */
	int (*run)(struct ctl *ctl, struct err *err);
};

extern const struct command commands[];
extern const size_t command_count;
extern const struct option_row global_options[];

/* Everything that main does; returns the exit status. */
int ctl_main(int argc, char **argv);

/* The functions behind the rows: submit.c, show.c, status.c, follow.c, logs.c, orders.c, wishes.c,
 * commands.c */
int submit_run(struct ctl *ctl, struct err *err);
int ls_run(struct ctl *ctl, struct err *err);
int events_run(struct ctl *ctl, struct err *err);
int version_run(struct ctl *ctl, struct err *err);
int status_run(struct ctl *ctl, struct err *err);
int follow_run(struct ctl *ctl, struct err *err);
int compare_run(struct ctl *ctl, struct err *err);
int goodput_run(struct ctl *ctl, struct err *err);
int cron_run(struct ctl *ctl, struct err *err);
int doctor_run(struct ctl *ctl, struct err *err);
int daemon_run(struct ctl *ctl, struct err *err);
int nodes_run(struct ctl *ctl, struct err *err);
int wait_run(struct ctl *ctl, struct err *err);
int logs_run(struct ctl *ctl, struct err *err);
int kill_run(struct ctl *ctl, struct err *err);
int stop_run(struct ctl *ctl, struct err *err);
int hold_run(struct ctl *ctl, struct err *err);
int release_run(struct ctl *ctl, struct err *err);
int restart_run(struct ctl *ctl, struct err *err);
int save_run(struct ctl *ctl, struct err *err);
int stacks_run(struct ctl *ctl, struct err *err);
int help_run(struct ctl *ctl, struct err *err);

/* --- what commands share -------------------------------------------------------------------- */
/* Asks about one run; a name that does not exist gets "did you mean". `args` is taken. */
json_t *ask_about(struct ctl *ctl, enum verb verb, const char *run, json_t *args, struct err *err);
/* What sbatch would have sent: the whole environment, limits, umask. A new reference. */
json_t *batch_environment(void);
/* "script", "script_path", "arguments" of a submission. */
void batch_add_script(json_t *args, const char *file, const char *text, size_t len,
		      const struct operands *operands);
/* args.set from --set; -1 with err when one is no section.key=value. */
int add_settings(json_t *args, const struct options *options, struct err *err);
/* A run as `ls` shows it. */
enum { RUN_COLUMNS = 7 };
extern const struct column run_columns[RUN_COLUMNS];
void fill_run(struct cell *row, const json_t *run, const struct style *style);
/* A table on stdout with a line for each item of the array; `fill` has the cells of that line. */
void print_rows(const struct ctl *ctl, const struct column *columns, int column_count,
		const json_t *items,
		 void (*fill)(struct cell *row, const json_t *item, const struct style *style));
/* The value as one line of JSON on stdout; takes it. */
void print_json(json_t *value);
/* A time of the protocol (seconds) in ms since the epoch; 0 when unknown or no sensible time. */
int64_t time_ms(const json_t *object, const char *key);
/* "lbctl: text" on stderr. */
void complain(const struct ctl *ctl, const char *text);
/* A next step, on stderr, only for people: nothing when stderr is no terminal. */
void hint(const struct ctl *ctl, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* --- the team (team.c) ---------------------------------------------------------------------- */
int team_ls(struct ctl *ctl, struct err *err);
/* "OWNER/SELECTOR"; without an owner *user is "". */
int team_word(const char *word, char user[TEAM_USER_BYTES + 1], struct selector *out,
	      struct err *err);
/* Adds the live runs that OWNER/SELECTOR means to `runs`: [{"run":"OWNER/NAME","state"}]. */
int team_expand(struct ctl *ctl, const char *word, json_t *runs, struct err *err);
/* "OWNER/NAME" of the one live run of this name, owned; NULL (without err) where nobody has one,
 * with err where several have. */
char *team_find(struct ctl *ctl, const char *name, struct err *err);
/* Is OWNER/… of the lbd that this lbctl talks to? */
bool team_is_mine(struct ctl *ctl, const char *word);
/* Leaves a switch for OWNER/NAME where its lbd says; `release` takes that switch away. */
int team_order(struct ctl *ctl, const char *word, enum switch_level level, bool release,
	       struct err *err);

/* Shows a run until it is final; `fresh`: it was just submitted, show everything. */
int follow_show(struct ctl *ctl, const char *run, bool fresh, struct err *err);

#endif
