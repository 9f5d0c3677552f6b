/* SPDX-License-Identifier: MIT */
/* crontab.c - reads a crontab line by line: a setting, an entry, or a mistake with its place. */
#include "daemon/calendar/crontab.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "common/base/text.h"
#include "common/config/keys.h"
#include "common/base/accounts.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/strv.h"
#include "slurm/batch/batch.h"
#include "slurm/batch/directives.h"

/* What slurm/batch/batch.c puts in front of what is wrong with options that are not a script's. */
#define OPTIONS_PLACE "slurm.extra: "

/* --- settings --------------------------------------------------------------------------------- */

enum setting_type { SETTING_CHOICE, SETTING_DURATION };

static const struct {
	const char *key;
	enum setting_type type;
	size_t offset;
	const char *const choices[4];
} settings_table[] = {
	{ "CATCH_UP",
	  SETTING_CHOICE,
	  offsetof(struct cron_settings, catch_up),
	  { "none", "one", "all", NULL } },
	{ "OVERLAP",
	  SETTING_CHOICE,
	  offsetof(struct cron_settings, overlap),
	  { "skip", "queue", "replace", NULL } },
	{ "TIMEOUT", SETTING_DURATION, offsetof(struct cron_settings, timeout_ms), { NULL } },
	{ "JITTER", SETTING_DURATION, offsetof(struct cron_settings, jitter_ms), { NULL } },
};

static int set_choice(int *out, const char *const *choices, const char *value, struct err *err)
{
	for (int i = 0; choices[i]; i++) {
		if (strcasecmp(value, choices[i]) == 0) {
			*out = i;
			return 0;
		}
	}
	return err_set(err, ERR_USAGE, "\"%.40s\": allowed are %s, %s and %s", value, choices[0],
		       choices[1], choices[2]);
}

int cron_setting(struct cron_settings *settings, const char *key, const char *value,
		 struct err *err)
{
	for (size_t i = 0; i < sizeof(settings_table) / sizeof(settings_table[0]); i++) {
		void *field = (char *)settings + settings_table[i].offset;
		int rc;

		if (strcasecmp(key, settings_table[i].key) != 0)
			continue;
		rc = settings_table[i].type == SETTING_CHOICE
			     ? set_choice(field, settings_table[i].choices, value, err)
			     : duration_parse(value, field, err);
		return rc < 0 ? err_wrap(err, "%s", settings_table[i].key) : 0;
	}
	return err_set(err, ERR_NOT_FOUND,
		       "%.40s: allowed are CRON_TZ, NAME, CATCH_UP, OVERLAP, "
		       "TIMEOUT, JITTER and SBATCH",
		       key);
}

/* --- the list --------------------------------------------------------------------------------- */

void cron_entry_clear(struct cron_entry *entry)
{
	free(entry->source);
	free(entry->when);
	free(entry->zone);
	free(entry->problem);
	strv_free(entry->env);
	strv_free(entry->argv);
	strv_free(entry->options);
}

/* --- options of sbatch ------------------------------------------------------------------------ */

static size_t count_words(char *const *words)
{
	size_t n = 0;

	while (words && words[n])
		n++;
	return n;
}

/* Do these, together, make sense to sbatch? */
static int check_options(char *const *options, struct err *err)
{
	const struct batch_request request = {
		.extra = options,
		.workdir = "/",
		.now = time(NULL),
	};
	struct err why = { 0 };
	json_t *fields = batch_resolve(&request, NULL, &why);
	const char *text = why.text;

	json_decref(fields);
	if (text_begins_with(text, OPTIONS_PLACE))
		text += strlen(OPTIONS_PLACE);
	return fields ? 0 : err_set(err, ERR_USAGE, "%s", text);
}

/* Takes the words themselves, not the list. */
static int add_options(struct cron_entry *entry, char **words, size_t count, struct err *err)
{
	size_t had = count_words(entry->options);

	entry->options = xrealloc(entry->options, (had + count + 1) * sizeof(char *));
	memcpy(entry->options + had, words, count * sizeof(char *));
	entry->options[had + count] = NULL;
	return check_options(entry->options, err);
}

int cron_options(struct cron_entry *entry, const char *text, struct err *err)
{
	char **words = shell_words(text, err);
	int rc = words ? add_options(entry, words, count_words(words), err) : -1;

	free(words);
	return rc < 0 ? err_wrap(err, "SBATCH") : 0;
}

/* Words in front of the script that begin with "-" are for sbatch. */
static int take_options(struct cron_entry *entry, struct err *err)
{
	size_t all = count_words(entry->argv), count = 0;
	int rc;

	while (entry->argv[count] && entry->argv[count][0] == '-')
		count++;
	if (count == 0)
		return 0;
	rc = add_options(entry, entry->argv, count, err);
	memmove(entry->argv, entry->argv + count, (all - count + 1) * sizeof(char *));
	return rc;
}

const struct cron_entry *cron_entries_find(const struct cron_entries *entries, const char *name)
{
	for (size_t i = 0; i < entries->count; i++)
		if (strcmp(entries->items[i].name, name) == 0)
			return &entries->items[i];
	return NULL;
}

int cron_entries_add(struct cron_entries *entries, struct cron_entry *entry, struct err *err)
{
	const struct cron_entry *twin = cron_entries_find(entries, entry->name);

	if (twin) {
		err_set(err, ERR_LOCKED,
			"%s: there is an entry of this name already (%s); give one of "
			"them another NAME=",
			entry->name, twin->source);
		cron_entry_clear(entry);
		return -1;
	}
	entries->items = xrealloc(entries->items, (entries->count + 1) * sizeof(*entries->items));
	entries->items[entries->count++] = *entry;
	return 0;
}

void cron_entries_clear(struct cron_entries *entries)
{
	for (size_t i = 0; i < entries->count; i++)
		cron_entry_clear(&entries->items[i]);
	free(entries->items);
	strv_free(entries->env);
	*entries = (struct cron_entries){ 0 };
}

void cron_name_of(const char *path, char out[NAME_MAX_BYTES + 1])
{
	const char *base = path_base(path);
	const char *dot = strrchr(base, '.');

	size_t len = dot && dot > base ? (size_t)(dot - base) : strlen(base);

	snprintf(out, NAME_MAX_BYTES + 1, "%.*s", (int)len, base);
}

/* --- the file --------------------------------------------------------------------------------- */

struct reader {
	const char *file;
	int line;
	struct cron_settings settings;
	char *zone, *name, *options; /* what CRON_TZ=, NAME= and SBATCH= said last */
	struct strv env;             /* what all other NAMEs said */
	struct strv scron;           /* what #SCRON lines said, for the next entry … */
	bool scron_is_wrong;         /* … which does not run without them */
	struct cron_entries *out;
};

static void replace(char **field, const char *value)
{
	free(*field);
	*field = xstrdup(value);
}

/* Without the quotes that people put around values. */
static char *unquoted(const char *value)
{
	size_t len = strlen(value);

	if (len >= 2 && (value[0] == '"' || value[0] == '\'') && value[len - 1] == value[0])
		return xstrndup(value + 1, len - 2);
	return xstrdup(value);
}

static int check_zone(const char *name, struct err *err)
{
	struct zone zone;

	if (zone_load(&zone, name, 0, 0, err) < 0)
		return err_wrap(err, "CRON_TZ");
	zone_clear(&zone);
	return 0;
}

static bool is_setting(const char *key)
{
	for (size_t i = 0; i < sizeof(settings_table) / sizeof(settings_table[0]); i++)
		if (strcasecmp(key, settings_table[i].key) == 0)
			return true;
	return false;
}

/* A setting that was misspelt would be obeyed by nobody. */
static int assign_env(struct reader *r, const char *key, const char *value, struct err *err)
{
	static const char *const known[] = { "CRON_TZ", "CATCH_UP", "OVERLAP",
					     "TIMEOUT", "JITTER",   "SBATCH" };
	const char *near = nearest(key, known, sizeof(known) / sizeof(known[0]));

	if (near)
		return err_set(err, ERR_USAGE,
			       "%.40s: did you mean %s? For a variable of this name use "
			       "the file \"environment\" beside the crontab",
			       key, near);
	strv_set(&r->env, xasprintf("%s=%s", key, value));
	return 0;
}

static int assign(struct reader *r, const char *key, const char *value, struct err *err)
{
	if (strcmp(key, "CRON_TZ") == 0) {
		if (check_zone(value, err) < 0)
			return -1;
		replace(&r->zone, value);
		return 0;
	}
	if (strcmp(key, "NAME") == 0) {
		if (name_check(value, err) < 0)
			return err_wrap(err, "NAME");
		replace(&r->name, value);
		return 0;
	}
	if (strcmp(key, "SBATCH") == 0) {
		struct cron_entry probe = { 0 };
		int rc = cron_options(&probe, value, err);

		cron_entry_clear(&probe);
		if (rc == 0)
			replace(&r->options, value);
		return rc;
	}
	if (strcmp(key, "MAILTO") == 0 && value[0] == '\0')
		return 0; /* no mail: so it is */
	if (strcmp(key, "MAILTO") == 0)
		return err_set(err, ERR_USAGE,
			       "MAILTO: lbd sends no mail; [notify] in lbd.toml says whom "
			       "to tell of failures");
	if (!is_setting(key))
		return assign_env(r, key, value, err);
	return cron_setting(&r->settings, key, value, err);
}

char *cron_assignment(const char *line)
{
	const char *at = line + (strncmp(line, "export ", 7) == 0 ? 7 : 0);
	size_t len = strspn(at, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789");
	const char *equals = at + len + strspn(at + len, " \t");
	char *value, *whole;

	if (len == 0 || isdigit((unsigned char)at[0]) || *equals != '=')
		return NULL;
	value = unquoted(equals + 1 + strspn(equals + 1, " \t"));
	whole = xasprintf("%.*s=%s", (int)len, at, value);
	free(value);
	return whole;
}

/* "KEY = VALUE"; 0 when the line is none. */
static int read_assignment(struct reader *r, const char *line, struct err *err)
{
	char *whole = cron_assignment(line), *equals = whole ? strchr(whole, '=') : NULL;
	int rc;

	if (whole == NULL)
		return 0;
	*equals = '\0';
	rc = assign(r, whole, equals + 1, err);
	free(whole);
	return rc < 0 ? -1 : 1;
}

/* How many bytes of the line say when: one word that begins with @, or five. */
static size_t when_len(const char *line)
{
	const char *p = line;

	for (int left = line[0] == '@' ? 1 : 5; left > 0; left--) {
		p += strcspn(p, " \t");
		if (left > 1)
			p += strspn(p, " \t");
	}
	return (size_t)(p - line);
}

/* As people see it: aligned by blanks or tabs or not. */
static char *when_text(const char *line, size_t len)
{
	char *when = xmalloc(len + 1);
	size_t to = 0;

	for (size_t i = 0; i < len; i++) {
		bool is_blank = line[i] == ' ' || line[i] == '\t';

		if (!is_blank || (to > 0 && when[to - 1] != ' '))
			when[to++] = is_blank ? ' ' : line[i];
	}
	when[to] = '\0';
	return when;
}

static const char scron[] = "#SCRON";

static void forget_scron(struct reader *r)
{
	strv_free(r->scron.items);
	r->scron = (struct strv){ 0 };
	r->scron_is_wrong = false;
}

/* Options of sbatch as scrontab(1) has them: a value may be a word of its own. */
static int read_scron(struct reader *r, const char *text, struct err *err)
{
	struct directives d = { 0 };
	int rc = directives_read_line(&d, text, scron, err);

	for (size_t i = 0; rc == 0 && i < d.count; i++) {
		const char *value = d.items[i].value;

		strv_add(&r->scron, xasprintf("--%s%s%s", d.items[i].option->name, value ? "=" : "",
					      value ? value : ""));
	}
	directives_clear(&d);
	r->scron_is_wrong |= rc < 0;
	return rc;
}

static int take_scron(struct reader *r, struct cron_entry *entry, struct err *err)
{
	char **words = r->scron.count ? strv_copy(r->scron.items) : NULL;
	int rc = 0;

	if (r->scron_is_wrong)
		rc = err_set(err, ERR_USAGE, "left out, as a #SCRON line above it is wrong");
	else if (words)
		rc = add_options(entry, words, r->scron.count, err);
	free(words);
	return rc;
}

/* cron(8) ends the line at a bare %, so that people have written \%; here it is as all others. */
static char **command_words(const char *text, struct err *err)
{
	char *line = xstrdup(text), *to = line, **words;

	for (const char *at = line; (*to = *at) != '\0'; at++)
		to += !(at[0] == '\\' && at[1] == '%');
	words = shell_words(line, err);
	free(line);
	return words;
}

static int name_entry(struct reader *r, struct cron_entry *entry, struct err *err)
{
	if (r->name)
		snprintf(entry->name, sizeof(entry->name), "%s", r->name);
	else
		cron_name_of(entry->argv[0], entry->name);
	return name_check(entry->name, err) < 0 ? err_wrap(err, "write NAME=... above it") : 0;
}

/* /etc/crontab has root there, or whoever it was written for, in front of the command. */
static int check_user(char *const *argv, struct err *err)
{
	struct account own = { 0 };
	bool is_user = argv[1] && !strchr(argv[0], '/') &&
		       (strcmp(argv[0], "root") == 0 ||
			(account_of(geteuid(), &own) && strcmp(argv[0], own.name) == 0));

	account_clear(&own);
	if (!is_user || path_has_program(getenv("PATH"), argv[0]))
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: a user's name, as in /etc/crontab; here there is none between the time "
		       "and the command",
		       argv[0]);
}

/* "PORT=80 serve.sh": a shell's way to say it. */
static int check_command(char *const *argv, struct err *err)
{
	char *assigned = cron_assignment(argv[0]);

	free(assigned);
	if (!assigned)
		return check_user(argv, err);
	return err_set(err, ERR_USAGE,
		       "%s: there is no shell here; write it as a line of its own above, or env in "
		       "front of it",
		       argv[0]);
}

static int read_entry(struct reader *r, const char *line, struct err *err)
{
	size_t len = when_len(line);
	struct cron_entry entry = { .when = when_text(line, len), .settings = r->settings };

	if (cron_expr_parse(entry.when, &entry.expr, err) < 0 ||
	    (entry.argv = command_words(line + len, err)) == NULL ||
	    (r->options && cron_options(&entry, r->options, err) < 0) ||
	    take_scron(r, &entry, err) < 0 || take_options(&entry, err) < 0) {
		cron_entry_clear(&entry);
		return -1;
	}
	if (entry.argv[0] == NULL) {
		cron_entry_clear(&entry);
		return err_set(err, ERR_USAGE,
			       "nothing is to be done; a script or a command is wanted "
			       "after the time");
	}
	if (check_command(entry.argv, err) < 0) {
		cron_entry_clear(&entry);
		return -1;
	}
	entry.source = xasprintf("%s:%d", r->file, r->line);
	entry.zone = xstrdup(r->zone ? r->zone : "");
	entry.env = strv_copy(r->env.items);
	if (name_entry(r, &entry, err) < 0) {
		cron_entry_clear(&entry);
		return -1;
	}
	return cron_entries_add(r->out, &entry, err);
}

/* NAME= and #SCRON are for one entry, be it a mistake: the next one would go on with its
 * history. */
static int read_line(struct reader *r, const char *line, struct err *err)
{
	int rc;

	if (text_begins_with(line, scron) && strchr(" \t", line[strlen(scron)]))
		return read_scron(r, line + strlen(scron), err);
	if (line[0] == '\0' || line[0] == '#')
		return 0;
	rc = read_assignment(r, line, err);
	if (rc != 0)
		return rc;
	rc = read_entry(r, line, err);
	free(r->name);
	r->name = NULL;
	forget_scron(r);
	return rc;
}

/* The next line, without the blanks around it; owned. */
static char *next_line(const char **text)
{
	size_t len = strcspn(*text, "\n"), end = len, begin = strspn(*text, " \t");
	char *line;

	while (end > begin && isspace((unsigned char)(*text)[end - 1]))
		end--;
	line = xstrndup(*text + begin, end > begin ? end - begin : 0);
	*text += len + ((*text)[len] == '\n');
	return line;
}

void crontab_read(const char *text, const char *file, const char *zone,
		  const struct cron_settings *defaults, struct cron_entries *out,
		  void (*on_bad)(void *arg, const struct err *why), void *arg)
{
	struct reader r = {
		.file = file,
		.settings = *defaults,
		.out = out,
		.zone = zone ? xstrdup(zone) : NULL,
	};

	while (*text != '\0') {
		char *line = next_line(&text);
		struct err err = { 0 };

		r.line++;
		if (read_line(&r, line, &err) < 0) {
			err_wrap(&err, "%s:%d", file, r.line);
			on_bad(arg, &err);
		}
		free(line);
	}
	free(r.zone);
	free(r.name);
	free(r.options);
	forget_scron(&r);
	strv_free(r.env.items);
}
