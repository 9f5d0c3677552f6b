/* SPDX-License-Identifier: MIT */
/* selection.c - looks runs up by selector, and collects an answer for each. */
#include "daemon/runs/selection.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/failpoint.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/text.h"
#include "common/team/selector.h"

struct names {
	struct selector selector;
	char (*items)[NAME_MAX_BYTES + 1];
	size_t count, cap;
};

static void names_add(struct names *names, const char *name)
{
	if (names->count == names->cap) {
		names->cap = names->cap ? 2 * names->cap : 16;
		names->items = xrealloc(names->items, names->cap * sizeof(*names->items));
	}
	snprintf(names->items[names->count++], sizeof(*names->items), "%s", name);
}

static int add_if_chosen(const struct ledger_run *row, void *arg)
{
	struct names *names = arg;

	if (selector_matches(&names->selector, row->name, row->run_group, row->owner))
		names_add(names, row->name);
	return 0;
}

static int find_names(struct request *r, const char *text, struct names *names, bool *is_named,
		      struct err *err)
{
	if (selector_parse(text, &names->selector, err) < 0)
		return -1;
	*is_named = selector_is_one(&names->selector);
	if (*is_named) {
		names_add(names, text);
		return 0;
	}
	return ledger_run_each(r->lbd->ledger, true, add_if_chosen, names, err);
}

/* One clean line of bounded length, whatever was sent. Owned by the caller. */
static char *clean_reason(const char *text)
{
	size_t len = strnlen(text, REASON_MAX_BYTES);
	char *out;

	while (len > 0 && text[len] != '\0' && ((unsigned char)text[len] & 0xc0) == 0x80)
		len--; /* not through the middle of a character */
	out = xstrndup(text, len);
	for (char *c = out; *c; c++)
		if (*c == '\n' || *c == '\t' || *c == '\r')
			*c = ' ';
	text_clean(out);
	return out;
}

struct doing {
	struct request *r;
	const struct selection_verb *verb;
	char *reason;
	json_t *answers;
	json_t *to_act; /* those of them that something is to be done for */
};

static bool is_of_ledger(const struct err *why)
{
	return why->code == ERR_IO || why->code == ERR_INTERNAL;
}

static int do_one(struct doing *d, const char *name, bool is_named, struct err *err)
{
	struct ledger_run row;
	struct err why = { 0 };
	struct chosen chosen = {
		.row = &row,
		.name = name,
		.is_named = is_named,
		.reason = d->reason,
		.dry_run = js_bool(d->r->args, "dry_run", false),
	};
	json_t *answer;
	bool acts = false;

	if (ledger_run_find(d->r->lbd->ledger, name, &row, err) < 0)
		return -1;
	answer = d->verb->write(d->r, &chosen, &acts, &why);
	if (answer && acts)
		json_array_append(d->to_act, answer);
	if (answer)
		json_array_append_new(d->answers, answer);
	else if (why.code != ERR_NONE && (is_named || is_of_ledger(&why)))
		return err_set(err, why.code, "%s", why.text);
	return 0;
}

static int do_selector(struct doing *d, const char *text, struct err *err)
{
	struct names names = { 0 };
	bool is_named = false;
	int rc = find_names(d->r, text, &names, &is_named, err);

	for (size_t i = 0; rc == 0 && i < names.count; i++)
		rc = do_one(d, names.items[i], is_named, err);
	free(names.items);
	return rc;
}

static int do_all(struct doing *d, const char *single, struct err *err)
{
	const json_t *list = json_object_get(d->r->args, "runs"), *item;
	struct err bad = { 0 };
	size_t i;
	int rc;

	if (single)
		return name_check(single, err) < 0 ? -1 : do_selector(d, single, err);
	rc = json_array_size(list) > 0 ? 0 : err_set(err, ERR_USAGE, "which runs?");
	json_array_foreach(list, i, item) {
		const char *text = json_string_value(item);

		if (rc == 0 && do_selector(d, text ? text : "", &bad) < 0)
			rc = err_set(err, bad.code, "%s", bad.text);
	}
	return rc;
}

/* All that was written, or nothing. */
static int commit(struct ledger *ledger, struct err *err)
{
	if (failpoint(FP_ORDER_WRITTEN, err) < 0) {
		ledger_rollback(ledger);
		return -1;
	}
	if (ledger_commit(ledger, err) < 0)
		return -1;
	failpoint(FP_ORDER_COMMITTED, NULL);
	return 0;
}

static int act_on_all(const struct doing *d, struct err *err)
{
	const json_t *answer;
	size_t i;
	int rc = 0;

	json_array_foreach(d->to_act, i, answer) {
		rc |= d->verb->act(d->r, answer, d->reason, err);
	}
	return rc;
}

/* Those before a bad name were told already: their order stands. */
static int do_and_commit(struct doing *d, const char *single, struct err *err)
{
	struct err lost = { 0 };
	int rc = do_all(d, single, err);

	if (rc < 0 && is_of_ledger(err)) {
		ledger_rollback(d->r->lbd->ledger);
		return -1;
	}
	if (commit(d->r->lbd->ledger, &lost) == 0)
		return act_on_all(d, err) < 0 ? -1 : rc;
	*err = lost;
	return -1;
}

json_t *selection_each(struct request *r, const struct selection_verb *verb, struct err *err)
{
	const char *single = js_str(r->args, "run", NULL);
	struct doing d = {
		.r = r,
		.verb = verb,
		.reason = clean_reason(js_str(r->args, "reason", "")),
		.answers = json_array(),
		.to_act = json_array(),
	};
	json_t *answer = NULL;

	if (do_and_commit(&d, single, err) == 0)
		answer = json_incref(single ? json_array_get(d.answers, 0) : d.answers);
	free(d.reason);
	json_decref(d.answers);
	json_decref(d.to_act);
	return answer;
}
