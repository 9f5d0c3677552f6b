/* SPDX-License-Identifier: MIT */
/* orders.c - lbctl kill, stop, hold, release, save and restart: orders to lbd, one line of answer
 * per run.
 *
 * What a glob, a group, a user or ALL means is asked of lbd, shown, and confirmed; then each run is
 * ordered by its name, so that nothing ends that was not on the list. Where lbd cannot be reached a
 * switch file says the same. OWNER/RUN is a colleague's (team.c). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/config/toml.h"
#include "common/team/selector.h"
#include "common/team/switches.h"
#include "ctl/act/confirm.h"
#include "ctl/act/submission.h"
#include "ctl/act/team_order.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/team/ask.h"
#include "ctl/team/team.h"

enum { SHOWN_NAMES = 10 };

static void print_state(const struct ctl *ctl, const char *run, const json_t *answer)
{
	char *state = clean_copy(js_str(answer, "state", NULL), &ctl->out);

	printf("%s %s%s%s\n", run, color_code(&ctl->out, state_color(state)), state,
	       color_code(&ctl->out, COLOR_NONE));
	free(state);
}

/* --- the runs that are meant ----------------------------------------------------------------- */

static json_t *arguments(const struct ctl *ctl)
{
	json_t *args = json_object();

	if (ctl->options.reason)
		json_object_set_new(args, "reason", json_string(ctl->options.reason));
	if (ctl->options.now)
		json_object_set_new(args, "now", json_true());
	if (ctl->options.dry_run)
		json_object_set_new(args, "dry_run", json_true());
	return args;
}

/* Adds what the selector means to `runs`: [{"run","state"}]. */
static int expand(struct ctl *ctl, enum verb verb, const char *selector, json_t *runs,
		  struct err *err)
{
	json_t *args, *data;

	if (strchr(selector, '/') && !team_is_mine(ctl, selector))
		return team_expand(ctl, selector, runs, err);
	if (strchr(selector, '/'))
		selector = strchr(selector, '/') + 1;
	args = arguments(ctl);
	json_object_set_new(args, "runs", json_pack("[s]", selector));
	json_object_set_new(args, "dry_run", json_true());
	data = client_ask(&ctl->client, verb, args, err);
	if (!data)
		return -1;
	json_array_extend(runs, data);
	json_decref(data);
	return 0;
}

static void show_question(const struct ctl *ctl, const json_t *runs)
{
	size_t count = json_array_size(runs);

	fflush(stdout);
	fprintf(stderr, "%s %zu run%s:", ctl->command->name, count, count == 1 ? "" : "s");
	for (size_t i = 0; i < count && i < SHOWN_NAMES; i++) {
		char *name = clean_copy(js_str(json_array_get(runs, i), "run", NULL), &ctl->err);

		fprintf(stderr, " %s", name);
		free(name);
	}
	fprintf(stderr, "%s? [y/N] ", count > SHOWN_NAMES ? " ..." : "");
}

/* Names that a person did not type are shown before anything happens to them. */
static int confirm(const struct ctl *ctl, const json_t *runs, struct err *err)
{
	size_t count = json_array_size(runs);

	if (ctl->options.yes || ctl->options.dry_run || count == 0)
		return 0;
	if (!can_ask())
		return err_set(err, ERR_USAGE,
			       "that means %zu run%s: look with --dry-run, then say --yes; nothing "
			       "was done",
			       count, count == 1 ? "" : "s");
	show_question(ctl, runs);
	return says_yes(err);
}

/* --- without lbd ----------------------------------------------------------------------------- */

static const struct {
	enum verb verb;
	enum switch_level level;
} switch_verbs[] = {
	{ VERB_KILL, SWITCH_KILL }, { VERB_STOP, SWITCH_STOP },    { VERB_HOLD, SWITCH_HOLD },
	{ VERB_SAVE, SWITCH_SAVE }, { VERB_RELEASE, SWITCH_HOLD },
};

static enum switch_level level_of(enum verb verb)
{
	size_t i = 0;

	while (switch_verbs[i].verb != verb)
		i++;
	return switch_verbs[i].level;
}

/* lbd may be dead, frozen, or on another host. */
static bool is_away(const struct err *why)
{
	return why->code == ERR_DAEMON || why->code == ERR_TIMEOUT;
}

static int take_switch_away(const char *path, const char *selector, const struct err *why,
			    struct err *err)
{
	if (unlink(path) == 0) {
		printf("%s: lbd cannot be reached; its switch %s is gone\n", selector, path);
		return 0;
	}
	if (errno == ENOENT)
		return err_set(err, why->code, "%s", why->text);
	return err_set(err, ERR_REFUSED, "%s: you may not take it away", path);
}

/* Each job and the next lbd look at the folder by themselves. */
static int leave_switch(const struct ctl *ctl, enum verb verb, const char *selector,
			const struct err *why, struct err *err)
{
	char *folder = path_join("%s/switches", ctl->client.home);
	char *path = path_join("%s/%s.%s", folder, selector, switch_level_name(level_of(verb)));
	const char *text = ctl->options.reason ? ctl->options.reason : "";
	struct err trouble = { 0 };
	int fd = -1, rc = 0;

	if (ctl->options.dry_run || access(folder, F_OK) < 0)
		rc = err_set(err, why->code, "%s", why->text);
	else if (verb == VERB_RELEASE)
		rc = take_switch_away(path, selector, why, err);
	else if (((fd = switches_folder_open(folder, NULL, &trouble)) < 0 ||
		  switch_write(fd, folder, selector, level_of(verb), text, &trouble) < 0) &&
		 trouble.code != ERR_LOCKED)
		rc = err_set(err, trouble.code, "%s; and lbd cannot be reached: %s", trouble.text,
			     why->text);
	else
		printf("%s: lbd cannot be reached; the switch %s is there: jobs obey it by "
		       "themselves, lbd when it is back%s\n",
		       selector, path, ctl->options.now ? " (not --now)" : "");
	if (fd >= 0)
		close(fd);
	free(path);
	free(folder);
	return rc;
}

/* False where lbd.toml names another folder (older runs are here all the same), or cannot be
 * read. */
static bool are_runs_here(const struct ctl *ctl)
{
	char *path = path_join("%s/lbd.toml", ctl->client.home);
	struct toml config = { 0 };
	bool are = !file_exists(path) ||
		   (toml_load(&config, path, NULL) == 0 && !toml_value(&config, "runs.folder"));

	toml_clear(&config);
	free(path);
	return are;
}

/* A switch for a name that was misspelt would end nothing, and look as if it had. Where runs lie
 * elsewhere (runs.folder), or may not be looked at, nobody can tell. A run that another file system
 * has (home move) is a link. */
static bool is_no_run(const struct ctl *ctl, const char *run)
{
	char *folder = path_join("%s/runs", ctl->client.home),
	     *dir = path_join("%s/%s", folder, run);
	struct stat st;
	bool is_none = are_runs_here(ctl) && access(folder, X_OK) == 0 && lstat(dir, &st) < 0 &&
		       errno == ENOENT;

	free(dir);
	free(folder);
	return is_none;
}

/* The switch that says the same, as a word for a shell; owned. */
static char *switch_word(const struct ctl *ctl, enum verb verb, const char *run)
{
	char *path = path_join("%s/switches/%s.%s", ctl->client.home, run,
			       switch_level_name(level_of(verb)));
	char word[SHELL_WORD_BYTES], *copy = xstrdup(shell_word(path, word));

	free(path);
	return copy;
}

static int refuse_name(const struct ctl *ctl, enum verb verb, const char *run,
		       const struct err *why, struct err *err)
{
	char *word = switch_word(ctl, verb, run);

	err_set(err, ERR_NOT_FOUND,
		"%s: nothing was done: there is no such run in %s/runs (lbd cannot be "
		"reached: %s); a switch all the same: touch %s",
		run, ctl->client.home, why->text, word);
	free(word);
	return -1;
}

/* Nobody can say which runs are meant. */
static int leave_wide_switch(const struct ctl *ctl, enum verb verb, const char *selector,
			     const struct err *why, struct err *err)
{
	if (!ctl->options.yes && !ctl->options.dry_run) {
		if (!can_ask())
			return err_set(err, ERR_USAGE,
				       "lbd cannot be reached to say which runs \"%s\" means; say "
				       "--yes to leave a switch for all of them; nothing was done",
				       selector);
		fprintf(stderr,
			"lbd cannot be reached: leave a switch for every run that \"%s\" "
			"means? [y/N] ",
			selector);
		if (says_yes(err) < 0)
			return -1;
	}
	return leave_switch(ctl, verb, selector, why, err);
}

/* --- one run after the other ----------------------------------------------------------------- */

static int order_colleague(struct ctl *ctl, enum verb verb, const char *word, struct err *err)
{
	return team_order(ctl, word, level_of(verb), verb == VERB_RELEASE, err);
}

/* A name that lbd here does not know may be a colleague's run; that is asked, as it was not said.
 * False: it is not, and nothing was done. */
static bool order_found(struct ctl *ctl, enum verb verb, const char *run, struct err *err)
{
	char *word = team_find(ctl, run, err);

	if (word && !ctl->options.yes && !ctl->options.dry_run) {
		if (can_ask()) {
			fprintf(stderr, "%s is a run of %.*s: %s %s? [y/N] ", run,
				(int)strcspn(word, "/"), word, ctl->command->name, word);
			says_yes(err);
		} else {
			err_set(err, ERR_USAGE,
				"%s is no run of this lbd; if you mean %s, say so; "
				"nothing was done",
				run, word);
		}
	}
	if (word && err->code == ERR_NONE)
		order_colleague(ctl, verb, word, err);
	free(word);
	return word || err->code != ERR_NONE;
}

static bool has_switches(const struct ctl *ctl)
{
	char *folder = path_join("%s/switches", ctl->client.home);
	bool has = access(folder, F_OK) == 0;

	free(folder);
	return has;
}

/* A quota may refuse a switch for the reason that the ledger has. */
static bool takes_switches(const struct ctl *ctl)
{
	char *folder = path_join("%s/switches", ctl->client.home);
	bool takes = folder_try_file(folder, "") == 0;

	free(folder);
	return takes;
}

/* The run's job, by Slurm's number; 0: it has none. */
static int64_t slurm_job(struct ctl *ctl, const char *run)
{
	json_t *data = ask_about(ctl, VERB_STATUS, run, NULL, &(struct err){ 0 });
	const json_t *attempts = json_object_get(data, "attempts");
	const json_t *last = json_array_get(attempts, json_array_size(attempts) - 1);
	bool has_one = strcmp(js_str(data, "scheduler", ""), "slurm") == 0 &&
		       time_ms(last, "end_time") == 0;
	int64_t job = has_one ? js_int(last, "job_id", 0) : 0;

	json_decref(data);
	return job;
}

/* Without its ledger lbd does nothing; a switch needs none, and Slurm neither. */
static int refuse(struct ctl *ctl, enum verb verb, const char *run, const struct err *why,
		  struct err *err)
{
	int64_t job;

	if (why->code != ERR_IO || verb == VERB_RELEASE)
		return err_set(err, why->code, "%s", why->text);
	if (takes_switches(ctl)) {
		char *word = switch_word(ctl, verb, run);

		err_set(err, why->code,
			"%s: nothing was done: %s; a switch does without the ledger: touch %s", run,
			why->text, word);
		free(word);
		return -1;
	}
	job = verb == VERB_KILL ? slurm_job(ctl, run) : 0;
	if (job == 0)
		return err_set(err, why->code, "%s: nothing was done: %s", run, why->text);
	return err_set(err, why->code,
		       "%s: nothing was done: %s; meanwhile this ends its job: scancel %lld", run,
		       why->text, (long long)job);
}

static int order_one(struct ctl *ctl, enum verb verb, const char *run, struct err *err)
{
	struct err why = { 0 };
	json_t *data;

	if (strchr(run, '/') && !team_is_mine(ctl, run))
		return order_colleague(ctl, verb, run, err);
	if (strchr(run, '/'))
		run = strchr(run, '/') + 1;
	data = ask_about(ctl, verb, run, arguments(ctl), &why);
	if (!data && (why.code == ERR_NOT_FOUND || (is_away(&why) && !has_switches(ctl))) &&
	    order_found(ctl, verb, run, err))
		return err->code == ERR_NONE ? 0 : -1;
	if (!data && is_away(&why) && verb != VERB_RELEASE && is_no_run(ctl, run))
		return refuse_name(ctl, verb, run, &why, err);
	if (!data && is_away(&why))
		return leave_switch(ctl, verb, run, &why, err);
	if (!data)
		return refuse(ctl, verb, run, &why, err);
	print_state(ctl, run, data);
	json_decref(data);
	return 0;
}

/* one name that does not exist must not keep the others alive */
struct worst {
	int status;
	bool is_over; /* nobody answers: no use to go on */
};

static void note(const struct ctl *ctl, struct worst *worst, const struct err *why)
{
	complain(ctl, why->text);
	if (err_exit_status(why->code) > worst->status)
		worst->status = err_exit_status(why->code);
	worst->is_over = why->code == ERR_DAEMON || why->code == ERR_TIMEOUT;
}

static void order_named(struct ctl *ctl, enum verb verb, struct worst *worst)
{
	for (size_t i = 0; i < ctl->operands.count && !worst->is_over; i++) {
		char user[TEAM_USER_BYTES + 1];
		struct selector selector;
		struct err why = { 0 };

		if (team_word(ctl->operands.words[i], user, &selector, NULL) == 0 &&
		    selector_is_one(&selector) &&
		    order_one(ctl, verb, ctl->operands.words[i], &why) < 0)
			note(ctl, worst, &why);
	}
}

/* Silence would leave people guessing whether it was done. To end ALL of nothing is no mistake. */
static void say_none(const struct ctl *ctl, const char *word, const struct selector *selector,
		     struct worst *worst)
{
	char *text = xasprintf("%s: there is no run to %s", word, ctl->command->name);

	complain(ctl, text);
	free(text);
	if (selector->kind != SELECT_ALL && worst->status < err_exit_status(ERR_NOT_FOUND))
		worst->status = err_exit_status(ERR_NOT_FOUND);
}

/* Globs, groups, users and ALL; order_named does the rest. */
static int order_selected(struct ctl *ctl, enum verb verb, struct worst *worst, struct err *err)
{
	json_t *runs = json_array(), *run;
	size_t i;
	int rc = 0;

	for (size_t n = 0; rc == 0 && n < ctl->operands.count; n++) {
		char user[TEAM_USER_BYTES + 1];
		size_t known = json_array_size(runs);
		struct selector selector;
		struct err why = { 0 };

		if (team_word(ctl->operands.words[n], user, &selector, err) < 0)
			rc = -1;
		else if (!selector_is_one(&selector))
			rc = expand(ctl, verb, ctl->operands.words[n], runs, &why);
		if (rc == 0 && why.code == ERR_NONE && !selector_is_one(&selector) &&
		    json_array_size(runs) == known)
			say_none(ctl, ctl->operands.words[n], &selector, worst);
		if (is_away(&why) && !user[0])
			rc = leave_wide_switch(ctl, verb, ctl->operands.words[n], &why, err);
		else if (why.code != ERR_NONE)
			err_set(err, why.code, "%s", why.text);
	}
	if (rc == 0)
		rc = confirm(ctl, runs, err);
	json_array_foreach(runs, i, run) {
		const char *name = js_str(run, "run", "");
		struct err why = { 0 };

		if (rc < 0 || worst->is_over)
			break;
		if (ctl->options.dry_run)
			print_state(ctl, name, run);
		else if (order_one(ctl, verb, name, &why) < 0)
			note(ctl, worst, &why);
	}
	json_decref(runs);
	return rc;
}

static int order(struct ctl *ctl, enum verb verb, struct err *err)
{
	json_t *text = ctl->options.reason ? json_string(ctl->options.reason) : json_null();
	struct worst worst = { 0 };

	if (!text)
		return err_set(err, ERR_USAGE, "--reason: this is not UTF-8");
	json_decref(text);
	/* what needs a question first: "no" means nothing at all was done */
	if (order_selected(ctl, verb, &worst, err) < 0)
		return -1;
	order_named(ctl, verb, &worst);
	return worst.status;
}

int kill_run(struct ctl *ctl, struct err *err)
{
	return order(ctl, VERB_KILL, err);
}

int stop_run(struct ctl *ctl, struct err *err)
{
	return order(ctl, VERB_STOP, err);
}

int hold_run(struct ctl *ctl, struct err *err)
{
	return order(ctl, VERB_HOLD, err);
}

int release_run(struct ctl *ctl, struct err *err)
{
	return order(ctl, VERB_RELEASE, err);
}

int save_run(struct ctl *ctl, struct err *err)
{
	int status = order(ctl, VERB_SAVE, err);

	if (status == 0 && !ctl->options.dry_run)
		hint(ctl, "see whether they did: lbctl events");
	return status;
}

int restart_run(struct ctl *ctl, struct err *err)
{
	const char *run = ctl->operands.words[0];
	json_t *args = json_object(), *data;

	if (add_settings(args, &ctl->options, err) < 0) {
		json_decref(args);
		return -1;
	}
	if (ctl->options.from)
		json_object_set_new(args, "from", json_string(ctl->options.from));
	data = ask_about(ctl, VERB_RESTART, run, args, err);
	if (!data)
		return -1;
	print_state(ctl, run, data);
	json_decref(data);
	hint(ctl, "follow it: lbctl follow %s", run);
	return 0;
}
