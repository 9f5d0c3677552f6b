/* SPDX-License-Identifier: MIT */
/* cron_check.c - reads an entry's script for what would keep it from running. */
#include "daemon/calendar/cron_check.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/base/text.h"

enum { MAX_SCRIPT_BYTES = 1024 * 1024, VARIABLE_ROUNDS = 4 };

/* --- a script that submits itself ------------------------------------------------------------- */

/* The next line with those that a backslash joins to it; "" for a comment. Owned; NULL at the
 * end. */
static char *next_command(const char **text)
{
	char *line = xstrdup("");

	if (**text == '\0') {
		free(line);
		return NULL;
	}
	for (bool goes_on = true; goes_on && **text;) {
		size_t len = strcspn(*text, "\n");
		char *longer;

		goes_on = len > 0 && (*text)[len - 1] == '\\';
		longer = xasprintf("%s%.*s", line, (int)(len - goes_on), *text);
		free(line);
		line = longer;
		*text += len + ((*text)[len] == '\n');
	}
	if (line[strspn(line, " \t")] == '#')
		line[0] = '\0';
	return line;
}

/* How long a simple command is: to an operator outside of quotes and of $( ). Text in single
 * quotes, which stays as it is, is blanked. */
static size_t command_len(char *line)
{
	int depth = 0;
	bool in_double = false;
	size_t i;

	for (i = 0; line[i]; i++) {
		if (line[i] == '\\' && line[i + 1])
			i++;
		else if (line[i] == '"')
			in_double = !in_double;
		else if (line[i] == '\'' && !in_double && depth == 0)
			while (line[i + 1] && line[++i] != '\'')
				line[i] = ' ';
		else if (line[i] == '(')
			depth++;
		else if (line[i] == ')' && depth > 0)
			depth--;
		else if (line[i] == ')' || (!in_double && depth == 0 && strchr("|;&", line[i])))
			break;
	}
	return i;
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_';
}

/* "$NAME" or "${NAME" as a whole name */
static bool uses(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = strchr(text, '$'); at; at = strchr(at + 1, '$')) {
		const char *start = at + 1 + (at[1] == '{');

		if (strncmp(start, name, len) == 0 && !is_name_char(start[len]))
			return true;
	}
	return false;
}

/* The name of the script as a whole word, also at the end of a path. */
static bool says_name(const char *text, const char *base)
{
	size_t len = strlen(base);

	for (const char *at = strstr(text, base); at; at = strstr(at + 1, base)) {
		bool begins = at == text || strchr(" \t/\"'=", at[-1]);
		bool ends = at[len] == '\0' || strchr(" \t\"')", at[len]);

		if (begins && ends)
			return true;
	}
	return false;
}

static bool means_itself(const char *text, const char *base, const struct strv *variables)
{
	if (uses(text, "0") || strstr(text, "BASH_SOURCE") || strstr(text, "scontrol show job") ||
	    says_name(text, base))
		return true;
	for (size_t i = 0; i < variables->count; i++)
		if (uses(text, variables->items[i]))
			return true;
	return false;
}

/* NAME=... that holds the script's name: SELF=$(readlink -f "$0"). Has it found a new one? */
static bool learn_variable(const char *line, const char *base, struct strv *variables)
{
	const char *at = line + strspn(line, " \t");
	size_t len;
	char *name;

	for (const char *const *word =
		     (const char *const[]){ "export ", "readonly ", "local ", NULL };
	     *word; word++)
		if (strncmp(at, *word, strlen(*word)) == 0)
			at += strlen(*word);
	for (len = 0; is_name_char(at[len]); len++)
		;
	if (len == 0 || at[len] != '=' || !means_itself(at + len + 1, base, variables))
		return false;
	name = xstrndup(at, len);
	for (size_t i = 0; i < variables->count; i++)
		if (strcmp(variables->items[i], name) == 0) {
			free(name);
			return false;
		}
	strv_add(variables, name);
	return true;
}

/* Words of a command behind `word`, if it is one: "sbatch --begin=now+1day $0". */
static bool command_means_itself(char *line, const char *word, const char *base,
				 const struct strv *variables)
{
	size_t len = strlen(word);

	for (char *at = strstr(line, word); at; at = strstr(at + 1, word)) {
		bool begins = at == line || strchr(" \t(/`;&|\"", at[-1]);
		char *rest = xstrdup(at + len);
		bool is;

		rest[command_len(rest)] = '\0';
		is = begins && strchr(" \t<", at[len]) && means_itself(rest, base, variables);
		free(rest);
		if (is)
			return true;
	}
	return false;
}

static bool requeues_itself(const char *line)
{
	const char *at = strstr(line, "scontrol requeue");

	return at && (uses(at, "SLURM_JOB_ID") || uses(at, "SLURM_JOBID"));
}

bool cron_submits_itself(const char *path, const char *text)
{
	const char *base = path_base(path);
	struct strv variables = { 0 };
	bool is = false, learnt = true;
	char *line;

	for (int i = 0; i < VARIABLE_ROUNDS && learnt; i++) {
		const char *at = text;

		learnt = false;
		while ((line = next_command(&at))) {
			learnt |= learn_variable(line, base, &variables);
			free(line);
		}
	}
	while (!is && (line = next_command(&text))) {
		is = command_means_itself(line, "sbatch", base, &variables) ||
		     requeues_itself(line);
		free(line);
	}
	strv_free(variables.items);
	return is;
}

/* --- can it be started? ----------------------------------------------------------------------- */

char *cron_entry_path(const char *folder, const struct cron_entry *entry)
{
	char *path = path_join("%s/%s", folder, entry->argv[0]);

	if (entry->argv[0][0] != '/' && file_exists(path))
		return path;
	free(path);
	return xstrdup(entry->argv[0]);
}

bool cron_is_batch(const char *path, const char *text)
{
	static const char *const ends[] = { ".slurm", ".sbatch", ".sh", ".job" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (text_ends_with(path, ends[i]))
			return strncmp(text, "#!", 2) == 0 && strstr(text, "\n#SBATCH ") != NULL;
	return false;
}

/* The interpreter that its first line names. */
static char *first_line_problem(const char *path, const char *text)
{
	size_t len = strcspn(text, "\n"), begin = 2 + strspn(text + 2, " \t");
	char *program, *problem = NULL;

	if (len > 0 && text[len - 1] == '\r')
		return xasprintf(
			"%s: its first line ends in a carriage return, so it names no program: "
			"sed -i 's/\\r$//' %s",
			path, path);
	program = xstrndup(text + begin, strcspn(text + begin, " \t\n"));
	if (program[0] == '/' && access(program, X_OK) < 0)
		problem = xasprintf(
			"%s: its first line names %s, which is not there or not executable", path,
			program);
	free(program);
	return problem;
}

static char *script_problem(const char *path, const struct stat *st)
{
	struct err err = { 0 };
	char *text = file_read(path, MAX_SCRIPT_BYTES, NULL, &err), *problem = NULL;
	bool is_script = text && strncmp(text, "#!", 2) == 0;

	if (is_script && cron_submits_itself(path, text))
		problem = xasprintf(
			"%s: this script submits itself again; lbd starts it each time: take "
			"that line out, and scancel its jobs",
			path);
	else if (!(st->st_mode & 0111) && !(text && cron_is_batch(path, text)))
		problem = xasprintf("%s: not executable: chmod +x %s", path, path);
	else if (is_script)
		problem = first_line_problem(path, text);
	free(text);
	return problem;
}

/* A word without a folder is looked for in PATH where the job runs. */
char *cron_entry_problem(const char *folder, const struct cron_entry *entry)
{
	char *path = cron_entry_path(folder, entry), *problem = NULL;
	struct stat st;

	if (cron_expr_is_never(&entry->expr))
		problem = xasprintf("%s: \"%s\" is never due: no such month has such a day",
				    entry->source, entry->when);
	else if (strchr(path, '/') == NULL)
		problem = NULL;
	else if (stat(path, &st) < 0)
		problem = path[0] == '/' && strncmp(path, folder, strlen(folder)) != 0
				  ? NULL
				  : xasprintf("%s: there is no such file in %s", path, folder);
	else if (S_ISDIR(st.st_mode))
		problem = xasprintf("%s: this is a folder", path);
	else if (!text_ends_with(path, ".toml"))
		problem = script_problem(path, &st);
	free(path);
	return problem;
}
