/* SPDX-License-Identifier: MIT */
/* limit_figures.c - finds a limit of accounting in what scontrol prints of it:
 *
 *   ClusterName=c Account=lab UserName=ada(1000) … ParentAccount=root(1) … MaxJobs=2(2) …
 *   QOS=one(2) … GrpTRES=cpu=8(6),mem=N(1024) … User Limits= 1000={MaxJobsPU=1(1) …}
 *
 * "8(6)" is 8 allowed and 6 used, N no limit. */
#include "slurm/pipe/limit_figures.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "slurm/pipe/command.h"
#include "slurm/reasons.h"

enum { ACCOUNTS_MAX = 8, NAME_BYTES = 128 };

struct figures {
	double allowed, used;
	bool is_used_told;
	char tres[NAME_BYTES]; /* "gres/gpu"; "" = none */
};

/* Behind "NAME=" where that is a word of its own; NULL: not there before `end`. */
static const char *find(const char *text, const char *end, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = text; (at = strstr(at, name)) != NULL && at < end; at += len) {
		if ((at == text || strchr(" {\n", at[-1])) && at[len] == '=')
			return at + len + 1;
	}
	return NULL;
}

/* "8(6)" or "8" */
static bool read_pair(const char *at, struct figures *f)
{
	char *rest;

	if (!isdigit((unsigned char)*at))
		return false;
	f->allowed = strtod(at, &rest);
	f->is_used_told = *rest == '(';
	f->used = f->is_used_told ? strtod(rest + 1, NULL) : 0;
	return true;
}

static bool is_full(const struct figures *f)
{
	return !f->is_used_told || f->used >= f->allowed;
}

/* "cpu=8(6),mem=N(0)": the one of this name, or of several ("gres/…") the one that is used up. */
static bool read_tres(const char *at, const char *tres, struct figures *f)
{
	size_t len = strlen(tres);
	bool is_any = len > 0 && tres[len - 1] == '/', has = false;

	while (*at && !isspace((unsigned char)*at) && *at != '}') {
		size_t item = strcspn(at, ", }\n"), name = strcspn(at, "=,} \n");
		struct figures one = { .tres = "" };

		if (at[name] == '=' && strncmp(at, tres, len) == 0 && (is_any || name == len) &&
		    read_pair(at + name + 1, &one) && (!has || is_full(&one))) {
			snprintf(one.tres, sizeof(one.tres), "%.*s", (int)name, at);
			*f = one;
			has = true;
		}
		at += item + (at[item] == ',');
	}
	return has;
}

static bool read_limit(const struct slurm_limit *limit, const char *text, const char *end,
		       struct figures *f)
{
	const char *at = find(text, end, limit->key);

	*f = (struct figures){ .tres = "" };
	return at && (limit->tres ? read_tres(at, limit->tres, f) : read_pair(at, f));
}

/* "WORD={…}" behind a label: of one user or account. False: they have none of their own. */
static bool find_share(const char *line, const char *end, const char *label, const char *word,
		       const char **begin, const char **share_end)
{
	const char *at = strstr(line, label);
	size_t len = strlen(word);

	for (; at && at < end && (at = strstr(at, word)) != NULL && at < end; at += len) {
		const char *after = at + len;

		after += *after == '('; /* newer ones say "1000(ada)" or "ada(1000)" */
		after = after[-1] == '(' ? after + strcspn(after, ")=") + 1 : after;
		after += *after == ')';
		if (!strchr(" =(", at[-1]) || strncmp(after, "={", 2) != 0)
			continue;
		*begin = after + 2;
		*share_end = *begin + strcspn(*begin, "}\n");
		return true;
	}
	return false;
}

/* Is the value at `at` this name, by itself or with a number behind it ("one(2)")? */
static bool is_named(const char *at, const char *name)
{
	size_t len = name ? strlen(name) : 0;

	return at && len > 0 && strncmp(at, name, len) == 0 && strchr(" (\n", at[len]);
}

static bool look_at_qos(const struct limit_of *of, const struct slurm_limit *limit,
			const char *line, const char *end, struct figures *f, char **whose)
{
	size_t len = strlen(limit->key);
	const char *share = len > 2 ? limit->key + len - 2 : "";
	char uid[16];

	if (strncmp(line, "QOS=", 4) != 0 || !is_named(line + 4, of->qos))
		return false;
	snprintf(uid, sizeof(uid), "%u", of->uid);
	if (strcmp(share, "PU") == 0 && !find_share(line, end, "User Limits=", uid, &line, &end))
		return false;
	if (strcmp(share, "PA") == 0 &&
	    !find_share(line, end, "Account Limits=", of->account ? of->account : "?", &line, &end))
		return false;
	*whose = strcmp(share, "PU") == 0   ? xasprintf("QOS %s, for each user", of->qos)
		 : strcmp(share, "PA") == 0 ? xasprintf("QOS %s, for each account", of->qos)
					    : xasprintf("QOS %s", of->qos);
	return read_limit(limit, line, end, f);
}

/* The limit of the user in the account, and that of the account itself. */
static bool look_at_account(const struct limit_of *of, const struct slurm_limit *limit,
			    const char *line, const char *end, struct figures *f, char **whose)
{
	const char *user = find(line, end, "UserName");
	char uid[16];

	snprintf(uid, sizeof(uid), "(%u)", of->uid);
	if (!user || !is_named(find(line, end, "Account"), of->account))
		return false;
	if (*user != ' ') {
		size_t len = strcspn(user, " \n");

		if (len < strlen(uid) || !text_begins_with(user + len - strlen(uid), uid))
			return false;
		*whose = xasprintf("you in account %s", of->account);
	} else {
		*whose = xasprintf("account %s", of->account);
	}
	return read_limit(limit, line, end, f);
}

static const char *unit_of(const struct slurm_limit *limit)
{
	if (!limit->is_minutes)
		return limit->tres && strcmp(limit->tres, "mem") == 0 ? " MB of" : "";
	return " minutes of";
}

/* What the job asks for of what the limit counts; 0: not known. */
static double asked_of(const struct limit_of *of, const struct slurm_limit *limit,
		       const struct figures *f)
{
	static const struct {
		const char *tres, *total;
	} members[] = {
		{ "cpu", "cpus" }, { "node", "nodes" }, { "mem", "mem_mb" }, { "gres/gpu", "gpus" }
	};
	const char *tres = f->tres[0] ? f->tres : "none";
	double asked = 0;

	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		if (strcmp(members[i].tres, tres) == 0)
			asked = (double)js_int(of->totals, members[i].total, 0);
	if (limit->is_minutes)
		asked *= of->minutes > 0 ? (double)of->minutes : 0;
	return asked;
}

static bool is_beyond(const struct limit_of *of, const struct slurm_limit *limit,
		      const struct figures *f)
{
	return f->is_used_told && asked_of(of, limit, f) > f->allowed;
}

static json_t *row(const struct limit_of *of, const struct slurm_limit *limit,
		   const struct figures *f, const char *whose)
{
	const char *what = f->tres[0] && limit->tres && strchr(limit->tres, '/') ? f->tres
										 : limit->what;
	json_t *o = json_object();
	char *text;

	js_set_str(o, "limit", of->reason);
	js_set_int(o, "allowed", (int64_t)f->allowed);
	if (f->is_used_told)
		js_set_int(o, "used", (int64_t)f->used);
	if (is_beyond(of, limit, f))
		text = xasprintf("%s: %.0f%s %s in all, the job asks for %.0f: it will not start "
				 "as it is",
				 whose, f->allowed, unit_of(limit), what, asked_of(of, limit, f));
	else
		text = f->is_used_told ? xasprintf("%s: %.0f of %.0f%s %s taken", whose, f->used,
						   f->allowed, unit_of(limit), what)
				       : xasprintf("%s: at most %.0f%s %s for one job", whose,
						   f->allowed, unit_of(limit), what);
	js_set_str(o, "text", text);
	free(text);
	return o;
}

static void note_parent(const char *line, const char *end, char *parent, size_t size)
{
	const char *at = find(line, end, "ParentAccount");

	if (parent && at && *at != ' ')
		snprintf(parent, size, "%.*s", (int)strcspn(at, " (\n"), at);
}

json_t *limit_figures_read(const struct limit_of *of, const char *text, char *parent, size_t size)
{
	struct slurm_limit limit;
	json_t *found = NULL;
	bool has_full = false;

	if (parent)
		parent[0] = '\0';
	if (!slurm_reason_limit(of->reason, &limit))
		return NULL;
	for (const char *line = text, *end; *line && !has_full; line = end + (*end == '\n')) {
		struct figures f;
		char *whose = NULL;
		bool is_it;

		end = line + strcspn(line, "\n");
		is_it = limit.is_qos ? look_at_qos(of, &limit, line, end, &f, &whose)
				     : look_at_account(of, &limit, line, end, &f, &whose);
		if (whose && !limit.is_qos)
			note_parent(line, end, parent, size);
		if (is_it && (!found || is_full(&f) || is_beyond(of, &limit, &f))) {
			json_decref(found);
			found = row(of, &limit, &f, whose);
			has_full = is_full(&f) || is_beyond(of, &limit, &f);
		}
		free(whose);
	}
	return found;
}

static json_t *ask(const struct limit_of *of, const char *filter, const char *flags, char *parent,
		   size_t size)
{
	const char *const words[] = { "scontrol", "-o", "show", "assoc_mgr", filter, flags, NULL };
	json_t *found = NULL;
	struct said said;

	command_ask(words, &said);
	if (said.status == 0)
		found = limit_figures_read(of, said.out, parent, size);
	said_clear(&said);
	return found;
}

/* An account is bound by the limits of those above it, too: the first that has one counts. */
static json_t *ask_accounts(const struct limit_of *of)
{
	char account[NAME_BYTES], parent[NAME_BYTES];
	struct limit_of above = *of;
	json_t *found = NULL;

	snprintf(account, sizeof(account), "%s", of->account ? of->account : "");
	for (int i = 0; i < ACCOUNTS_MAX && account[0] && !found; i++) {
		char *filter = xasprintf("accounts=%s", account);

		above.account = account;
		found = ask(&above, filter, "flags=assoc", parent, sizeof(parent));
		free(filter);
		memcpy(account, parent, sizeof(account));
	}
	return found;
}

json_t *limit_figures(const struct limit_of *of)
{
	struct slurm_limit limit;
	json_t *found = NULL;
	char *filter;

	if (!of->reason || !slurm_reason_limit(of->reason, &limit))
		return NULL;
	if (!limit.is_qos)
		return ask_accounts(of);
	if (of->qos && of->qos[0]) {
		filter = xasprintf("qos=%s", of->qos);
		found = ask(of, filter, "flags=qos", NULL, 0);
		free(filter);
	}
	return found;
}
