/* SPDX-License-Identifier: MIT */
/* base/ - what commands share: asking lbd, options, text for a terminal.
 *
 * command.h - the table of commands. A new command is one row in commands.c and one function. */
#ifndef CTL_BASE_COMMAND_H
#define CTL_BASE_COMMAND_H

#include <jansson.h>

#include "common/base/err.h"
#include "common/run/selector.h"
#include "common/run/switches.h"
#include "common/run/team.h"
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
	const struct command *command;
	struct options options;
	struct operands operands;
	struct client client;
	struct style out, err; /* of stdout and stderr */
	struct team team;      /* what colleagues tell, once has_team */
	bool has_team;
	int64_t team_read_ms; /* monotonic; 0 = never */
	bool told_stale;
};

enum operand_kind {
	OPERANDS_NAMES,  /* of runs here, or of what else the command is about */
	OPERANDS_SELECT, /* selectors (common/run/selector.h), also OWNER/SELECTOR */
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

extern const struct command commands[];
extern const size_t command_count;
extern const struct option_row global_options[];
/* The command that a word of other tools ("cancel", "squeue") stands for; NULL: none. */
const char *other_word(const char *word);

/* Everything that main does; returns the exit status. */
int ctl_main(int argc, char **argv);

/* The functions behind the rows, one file for each family, in ctl/look, ctl/act and ctl/doctor. */
int submit_run(struct ctl *ctl, struct err *err);
int ls_run(struct ctl *ctl, struct err *err);
int events_run(struct ctl *ctl, struct err *err);
int version_run(struct ctl *ctl, struct err *err);
int status_run(struct ctl *ctl, struct err *err);
int home_run(struct ctl *ctl, struct err *err);
int why_run(struct ctl *ctl, struct err *err);
int follow_run(struct ctl *ctl, struct err *err);
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

/* --- what commands share -------------------------------------------------------------------- */
/* Asks about one run; a name that does not exist gets "did you mean". OWNER/RUN of a colleague is
 * answered from files (colleague.c). `args` is taken. */
json_t *ask_about(struct ctl *ctl, enum verb verb, const char *run, json_t *args, struct err *err);
/* The same, waiting for an lbd that went away (client_ask_patient). */
json_t *ask_patiently(struct ctl *ctl, enum verb verb, const char *run, json_t *args,
		      struct err *err);
/* What sbatch would have sent: the whole environment, limits, umask. A new reference. */
json_t *batch_environment(void);
/* "script", "script_path", "arguments" of a submission. */
void batch_add_script(json_t *args, const char *file, const char *text, size_t len,
		      const struct operands *operands);
/* The same of the script that sbatch makes of --wrap=COMMAND. */
void batch_add_wrap(json_t *args, const char *command);
/* The arguments of a submission as PROTOCOL.md lists them, a new reference, or NULL with err. */
json_t *submission(const struct ctl *ctl, struct err *err);
/* submit with --sweep (submit_sweep.c). */
int submit_sweep(struct ctl *ctl, struct err *err);
/* args.set from --set; -1 with err when one is no section.key=value. */
int add_settings(json_t *args, const struct options *options, struct err *err);
/* A run as `ls` shows it. */
enum { RUN_COLUMNS = 7 };
extern const struct column run_columns[RUN_COLUMNS];
void fill_run(struct cell *row, const json_t *run, const struct style *style);
/* Is this run, of this lbd's user (NULL: of here), one that the command line of `ls` names? */
bool ls_names(const struct ctl *ctl, const json_t *run, const char *user);
/* Does that ask for some runs only? */
bool ls_is_of_some(const struct ctl *ctl);
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
/* Is there a person at the terminal to be asked? */
bool can_ask(void);
/* Reads the answer to what was just asked: 0 for "y", else -1 with err. */
int says_yes(struct err *err);
/* complete.c: words for shells, one a line. */
int complete_run(struct ctl *ctl, const char *what, struct err *err);
/* --- the team (team.c) ---------------------------------------------------------------------- */
int team_ls(struct ctl *ctl, struct err *err);
/* OWNER/RUN, one a line, of all that the team is told. */
void team_print_names(struct ctl *ctl);
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

/* Adds what `make` has of each run of the team that the command line names to `list`; `dir` is its
 * folder. Runs are those that the team is told of, and those that lie beside them; what is not open
 * to us is said. */
int team_each(struct ctl *ctl,
	      json_t *(*make)(const json_t *run, const char *dir, const char *user), json_t *list,
	      struct err *err);
/* The export and the run that OWNER/NAME means, both borrowed until the next call; read anew when
 * they were read more than a second ago. NULL with err. */
json_t *team_run(struct ctl *ctl, const char *word, const struct team_export **export,
		 struct err *err);
/* What lbd would answer to `verb` (status, progress, events, logs) about OWNER/NAME, from the
 * team's export and the run's files; in the same form (docs/PROTOCOL.md), as far as it is known. */
json_t *colleague_ask(struct ctl *ctl, enum verb verb, const char *word, const json_t *args,
		      struct err *err);

/* Shows a run until it is final; `fresh`: it was just submitted, show everything. */
int follow_show(struct ctl *ctl, const char *run, bool fresh, struct err *err);

#endif
