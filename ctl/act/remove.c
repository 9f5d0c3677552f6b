/* SPDX-License-Identifier: MIT */
/* remove.c - lbctl rm and prune: runs that are over go for good. What goes is shown with its size
 * and asked about; then each is ordered by its name, and lbd refuses what is alive. */
#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/run/run_state.h"
#include "common/team/selector.h"
#include "ctl/act/confirm.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/run_space.h"
#include "ctl/team/team.h"

enum { SHOWN_NAMES = 10 };

struct removal {
	json_t *runs;  /* those that go: run objects, borrowed from `all`; owned list */
	json_t *all;   /* what lbd knows; owned */
	int64_t bytes; /* that they take */
	int status;    /* the worst that was said so far */
};

/* --- which ------------------------------------------------------------------------------------ */

static void worse(struct removal *r, enum err_code code)
{
	if (err_exit_status(code) > r->status)
		r->status = err_exit_status(code);
}

static bool is_old(const struct ctl *ctl, const json_t *run)
{
	return ctl->options.older_ms < 0 ||
	       time_ms(run, "ended") <= clock_wall_ms() - ctl->options.older_ms;
}

static bool is_listed(const struct removal *r, const json_t *run)
{
	const json_t *each;
	size_t i;

	json_array_foreach(r->runs, i, each) {
		if (each == run)
			return true;
	}
	return false;
}

/* As lbd would, but before anybody is asked. */
static void refuse(const struct ctl *ctl, struct removal *r, const json_t *run)
{
	const char *name = js_str(run, "name", "");
	enum run_state state = run_state_from_name(js_str(run, "state", NULL));
	char *text = xasprintf("%s is %s: only a run that is over can be removed; end it with: "
			       "lbctl kill %s",
			       name, run_state_phrase(state), name);

	complain(ctl, text);
	worse(r, ERR_LOCKED);
	free(text);
}

/* A name means that run, live or not; what else means many, those that are over. */
static size_t add_matching(const struct ctl *ctl, struct removal *r,
			   const struct selector *selector)
{
	bool is_named = selector && selector_is_one(selector);
	size_t i, count = 0;
	json_t *run;

	json_array_foreach(r->all, i, run) {
		if (selector &&
		    !selector_matches(selector, js_str(run, "name", ""), js_str(run, "group", NULL),
				      js_str(run, "owner", "")))
			continue;
		if ((!is_named && !run_is_over(run)) || !is_old(ctl, run))
			continue;
		count++;
		if (!run_is_over(run))
			refuse(ctl, r, run);
		else if (!is_listed(r, run))
			json_array_append(r->runs, run);
	}
	return count;
}

static int add_word(struct ctl *ctl, struct removal *r, const char *word, struct err *err)
{
	char user[TEAM_USER_BYTES + 1];
	struct selector selector;
	struct err why = { 0 };

	if (team_word(word, user, &selector, err) < 0)
		return -1;
	if (user[0] && !team_is_mine(ctl, word))
		return err_set(err, ERR_REFUSED, "%s: only %s can remove runs of %s", word, user,
			       user);
	if (add_matching(ctl, r, &selector) > 0)
		return 0;
	if (selector_is_one(&selector)) {
		err_set(&why, ERR_NOT_FOUND, "%s: no such run", selector.word);
		client_suggest(&ctl->client, selector.word, &why);
	} else {
		err_set(&why, ERR_NOT_FOUND, "%s: there is no run that is over to remove", word);
	}
	complain(ctl, why.text);
	worse(r, ERR_NOT_FOUND);
	return 0;
}

static int choose(struct ctl *ctl, struct removal *r, struct err *err)
{
	int rc = 0;

	r->runs = json_array();
	r->all = client_ask(&ctl->client, VERB_LS, json_pack("{s:b}", "all", 1), err);
	if (!r->all)
		return -1;
	if (ctl->operands.count == 0)
		add_matching(ctl, r, NULL);
	for (size_t i = 0; i < ctl->operands.count && rc == 0; i++)
		rc = add_word(ctl, r, ctl->operands.words[i], err);
	return rc;
}

/* --- the question ----------------------------------------------------------------------------- */

/* Checkpoints that lie elsewhere stay, and are not what is freed. */
static int64_t bytes_of(const json_t *run, char **elsewhere)
{
	struct run_space space;
	int64_t bytes;

	run_space_measure(js_str(run, "dir", ""), &space);
	bytes = run_space_total(&space);
	*elsewhere = NULL;
	if (space.is_elsewhere) {
		bytes -= space.bytes[SPACE_CHECKPOINTS];
		*elsewhere = space.bytes[SPACE_CHECKPOINTS] > 0 ? xstrdup(space.checkpoints) : NULL;
	}
	run_space_clear(&space);
	return bytes;
}

static void print_row(const struct ctl *ctl, const json_t *run, int64_t bytes)
{
	int64_t ended_ms = time_ms(run, "ended");
	char *name = clean_copy(js_str(run, "name", NULL), &ctl->out);
	char size[NUMBER_TEXT_MAX], age[CLOCK_TEXT_MAX];

	printf("%s  %s, ended %s ago, %s\n", name, js_str(run, "state", "?"),
	       duration_text(ended_ms ? clock_wall_ms() - ended_ms : -1, age),
	       size_text(bytes, size));
	free(name);
}

static void measure(const struct ctl *ctl, struct removal *r)
{
	json_t *run;
	size_t i;

	json_array_foreach(r->runs, i, run) {
		char *elsewhere;
		int64_t bytes = bytes_of(run, &elsewhere);

		r->bytes += bytes;
		if (ctl->options.dry_run)
			print_row(ctl, run, bytes);
		if (elsewhere) {
			char *text = xasprintf(
				"%s: its checkpoints in %s are not below its folder: they stay",
				js_str(run, "name", ""), elsewhere);

			complain(ctl, text);
			free(text);
		}
		free(elsewhere);
	}
}

static void show_question(const struct ctl *ctl, const struct removal *r)
{
	size_t count = json_array_size(r->runs);
	char size[NUMBER_TEXT_MAX];

	fflush(stdout);
	fprintf(stderr, "remove %zu run%s for good, %s:", count, count == 1 ? "" : "s",
		size_text(r->bytes, size));
	for (size_t i = 0; i < count && i < SHOWN_NAMES; i++) {
		char *name = clean_copy(js_str(json_array_get(r->runs, i), "name", NULL),
					&ctl->err);

		fprintf(stderr, " %s", name);
		free(name);
	}
	fprintf(stderr, "%s? [y/N] ", count > SHOWN_NAMES ? " ..." : "");
}

static int confirm(const struct ctl *ctl, const struct removal *r, struct err *err)
{
	size_t count = json_array_size(r->runs);
	char size[NUMBER_TEXT_MAX];

	if (ctl->options.yes || count == 0)
		return 0;
	if (!can_ask())
		return err_set(err, ERR_USAGE,
			       "that removes %zu run%s for good, %s: look with --dry-run, then "
			       "say --yes; nothing was done",
			       count, count == 1 ? "" : "s", size_text(r->bytes, size));
	show_question(ctl, r);
	return says_yes(err);
}

/* --- doing it --------------------------------------------------------------------------------- */

static void remove_each(struct ctl *ctl, struct removal *r)
{
	json_t *run;
	size_t i;

	json_array_foreach(r->runs, i, run) {
		const char *name = js_str(run, "name", "");
		struct err why = { 0 };
		json_t *data = client_ask(&ctl->client, VERB_RM, json_pack("{s:s}", "run", name),
					  &why);

		if (data) {
			printf("%s removed\n", name);
		} else {
			complain(ctl, why.text);
			worse(r, why.code);
		}
		json_decref(data);
		if (why.code == ERR_DAEMON || why.code == ERR_TIMEOUT)
			return;
	}
}

static void say_sum(const struct ctl *ctl, const struct removal *r)
{
	size_t count = json_array_size(r->runs);
	char size[NUMBER_TEXT_MAX];

	if (count == 0 && ctl->operands.count == 0)
		complain(ctl, "there is no run that ended so long ago");
	else if (count > 0)
		printf("%zu run%s, %s; nothing was done\n", count, count == 1 ? "" : "s",
		       size_text(r->bytes, size));
}

static int remove_chosen(struct ctl *ctl, struct err *err)
{
	struct removal r = { 0 };
	int rc = choose(ctl, &r, err);

	if (rc == 0)
		measure(ctl, &r);
	if (rc == 0 && (ctl->options.dry_run || json_array_size(r.runs) == 0))
		say_sum(ctl, &r);
	else if (rc == 0 && (rc = confirm(ctl, &r, err)) == 0)
		remove_each(ctl, &r);
	json_decref(r.runs);
	json_decref(r.all);
	return rc < 0 ? -1 : r.status;
}

int rm_run(struct ctl *ctl, struct err *err)
{
	return remove_chosen(ctl, err);
}

int prune_run(struct ctl *ctl, struct err *err)
{
	if (ctl->options.older_ms < 0)
		return err_set(err, ERR_USAGE,
			       "prune: say how old: lbctl prune --older-than 30d --dry-run");
	return remove_chosen(ctl, err);
}
