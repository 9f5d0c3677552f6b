/* SPDX-License-Identifier: MIT */
/* preflight.c - lbworker check on all nodes of the job, before the trainer is started there; what
 * it found. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/check/node_report.h"
#include "common/run/hosts.h"
#include "worker/lbrun/shepherd/shepherd.h"
#include "worker/lbrun/trainer/launcher.h"
#include "worker/lbrun/trainer/trainer.h"

enum { FOLDER_MODE = 0750, LOOK_BACK = 100, MS = 1000, SRUN_TERMS = 2 };

/* --- how often it ended the run's attempts before --------------------------------------------- */

int64_t preflight_failed_before(const char *run_dir, int64_t number)
{
	int64_t failed = 0;

	/* one without a record never got so far: it breaks no row */
	for (int64_t n = number - 1; n >= 1 && n >= number - LOOK_BACK; n--) {
		char *folder = path_join("%s/attempts/%lld", run_dir, (long long)n);
		struct attempt_exit ended;
		bool is_there = attempt_exit_read(folder, &ended, NULL) == 0;
		free(folder);
		if (is_there && !ended.is_node)
			break;
		failed += is_there;
	}
	return failed;
}

/* --- its start -------------------------------------------------------------------------------- */

static void make_env(const struct shepherd *s, struct strv *env)
{
	bool has_folder = file_exists(s->params.checkpoint_dir);

	for (char **setting = environ; *setting; setting++)
		if (strncmp(*setting, "LB_", 3) != 0)
			strv_add(env, xstrdup(*setting));
	strv_add(env, xasprintf("LB_RUN=%s", s->params.run));
	strv_add(env, xasprintf("LB_RUN_DIR=%s", s->params.run_dir));
	strv_add(env, xasprintf("LB_ATTEMPT=%lld", (long long)s->params.number));
	strv_add(env, xstrdup("LB_LAUNCH=check"));
	strv_add(env, xasprintf("LB_CHECKPOINT_DIR=%s",
				has_folder ? s->params.checkpoint_dir : s->params.run_dir));
}

static int start(struct shepherd *s, struct err *err)
{
	struct preflight *p = &s->preflight;
	struct strv env = { 0 };
	char self[PATH_MAX];
	int output[2];

	if (path_own_program(self, err) < 0)
		return -1;
	if (folder_make(p->folder, FOLDER_MODE, err))
		return -1;
	char **argv = launcher_check_argv(&s->params, self, p->folder, &p->is_srun);
	make_env(s, &env);
	struct trainer_start what = { .argv = argv, .env = env.items, .input = -1 };
	p->pid = trainer_start(&what, output, err);
	if (p->pid > 0) {
		s->output.on_bytes = NULL; /* it is not the trainer that speaks */
		output_attach(&s->output, 0, output[0], p->is_srun);
		output_attach(&s->output, 1, output[1], p->is_srun);
	}
	strv_free(argv);
	strv_free(env.items);
	return p->pid > 0 ? 0 : -1;
}

/* What cannot be checked is no reason not to train; but it is said. */
static void tell_unclear(struct shepherd *s, const char *why)
{
	s->facts.check = CHECK_WELL;
	journal_note(&s->journal, s->facts.launch.number, "preflight_unclear",
		     "the nodes could not be checked: %.300s; the trainer is started all the same",
		     why);
	output_say(&s->output, "the nodes could not be checked: %.300s", why);
}

void preflight_begin(struct shepherd *s)
{
	struct preflight *p = &s->preflight;
	struct err why = { 0 };

	p->number++;
	p->kills = 0;
	p->text[0] = '\0';
	free(p->folder);
	p->folder = p->number == 1 ? path_join("%s/preflight", s->folder)
				   : path_join("%s/preflight-%d", s->folder, p->number);
	p->begin_ms = clock_mono_ms();
	output_say(&s->output, "the nodes are checked (preflight)");
	if (start(s, &why))
		tell_unclear(s, why.text);
}

void preflight_skip(struct shepherd *s)
{
	journal_note(&s->journal, s->facts.launch.number, "preflight_skipped",
		     "broken nodes ended %lld attempts in a row (preflight.tries): the trainer is "
		     "started without a check",
		     (long long)s->facts.checks_failed);
	output_say(&s->output, "broken nodes ended %lld attempts in a row: not checked again",
		   (long long)s->facts.checks_failed);
}

void preflight_kill(struct shepherd *s)
{
	struct preflight *p = &s->preflight;

	if (p->pid <= 0)
		return;
	/* srun ends its ranks on all nodes, told twice by force; killed it would leave them
	 * there */
	kill(p->pid, p->is_srun && p->kills < SRUN_TERMS ? SIGTERM : SIGKILL);
	p->kills++;
}

/* --- what came of it -------------------------------------------------------------------------- */

static bool has_report(const struct check_result *all, size_t count, const char *node)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(all[i].host, node) == 0)
			return true;
	return false;
}

static void tell_node(struct shepherd *s, const char *node, const char *what, struct strv *broken)
{
	struct preflight *p = &s->preflight;
	size_t used = strlen(p->text);

	journal_note(&s->journal, s->facts.launch.number, "preflight_node", "%s: %s (%s)", node,
		     what, p->folder);
	output_say(&s->output, "%s is broken: %s", node, what);
	strv_add(broken, xstrdup(node));
	snprintf(p->text + used, sizeof(p->text) - used, "%s%s: %s",
		 used ? "; " : "a node is broken: ", node, what);
}

/* A node that said nothing, where others did. */
static void tell_missing(struct shepherd *s, const struct check_result *all, size_t count,
			 struct strv *broken)
{
	const char *list = getenv("SLURM_JOB_NODELIST");
	json_t *nodes = hosts_expand(list ? list : s->node), *node;
	size_t i;

	json_array_foreach(nodes, i, node) {
		if (count == 0 || has_report(all, count, json_string_value(node)))
			continue;
		tell_node(s, json_string_value(node), "no answer to the check", broken);
	}
	json_decref(nodes);
}

static void tell_broken(struct shepherd *s, struct strv *broken)
{
	struct check_limits limits;
	size_t count;
	struct check_result *all = check_reports_read(s->preflight.folder, &count, &limits);

	check_judge(all, count, &limits);
	for (size_t i = 0; i < count; i++)
		if (all[i].fault[0])
			tell_node(s, all[i].host, all[i].fault, broken);
	if (broken->count == 0)
		tell_missing(s, all, count, broken);
	free(all);
}

/* By spares, who are checked then; false: some are not. */
static bool replace(struct shepherd *s, const struct strv *broken)
{
	for (size_t i = 0; i < broken->count; i++)
		if (!spare_take_place(s, broken->items[i]))
			return false;
	return broken->count > 0;
}

static void tell_well(struct shepherd *s)
{
	journal_note(&s->journal, s->facts.launch.number, "preflight",
		     "the nodes are well, checked in %.1f s (%s)",
		     (double)(clock_mono_ms() - s->preflight.begin_ms) / MS, s->preflight.folder);
}

void preflight_ended(struct shepherd *s, int wait_status)
{
	struct preflight *p = &s->preflight;
	bool is_well = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == 0 && p->kills == 0;
	bool is_broken = WIFEXITED(wait_status) && WEXITSTATUS(wait_status) == CHECK_EXIT_NODE;
	struct strv broken = { 0 };
	char why[120];

	p->pid = 0;
	output_finish(&s->output, clock_mono_ms());
	s->output.on_bytes = s->errors.on_bytes;
	if (s->facts.check != CHECK_BUSY || s->facts.is_over)
		return; /* the attempt ends for another reason */
	if (is_well) {
		s->facts.check = CHECK_WELL;
		tell_well(s);
		return;
	}
	tell_broken(s, &broken);
	if (replace(s, &broken)) {
		strv_free(broken.items);
		return;
	}
	is_broken |= broken.count > 0;
	strv_free(broken.items);
	if (is_broken) {
		if (!p->text[0])
			snprintf(p->text, sizeof(p->text), "the check of the nodes failed");
		s->facts.check = CHECK_BROKEN;
		return;
	}
	if (p->kills > 0)
		snprintf(why, sizeof(why), "no end within %lld s",
			 (long long)s->params.preflight_ms / MS);
	else
		snprintf(why, sizeof(why), "lbworker check ended with %s %d",
			 WIFEXITED(wait_status) ? "status" : "signal",
			 WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : WTERMSIG(wait_status));
	tell_unclear(s, why);
}
