/* SPDX-License-Identifier: MIT */
/* cron_check.c - reads an entry's script for what would keep it from running. */
#include "daemon/calendar/cron_check.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "common/base/text.h"
#include "slurm/batch/self_submission.h"

enum { MAX_SCRIPT_BYTES = 1024 * 1024 };

/* --- can it be started? ----------------------------------------------------------------------- */

char *cron_entry_path(const char *folder, const struct cron_entry *entry)
{
	char *path = path_join("%s/%s", folder, entry->argv[0]);

	if (entry->argv[0][0] != '/' && file_exists(path))
		return path;
	free(path);
	return xstrdup(entry->argv[0]);
}

static bool is_script_name(const char *path)
{
	static const char *const ends[] = { ".slurm", ".sbatch", ".sh", ".job" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (text_ends_with(path, ends[i]))
			return true;
	return false;
}

bool cron_is_batch(const char *path, const char *text)
{
	return is_script_name(path) && strncmp(text, "#!", 2) == 0 &&
	       strstr(text, "\n#SBATCH ") != NULL;
}

/* The interpreter that its first line names. */
static char *first_line_problem(const char *path, const char *text)
{
	size_t len = strcspn(text, "\n"), begin = 2 + strspn(text + 2, " \t");
	char *program, *problem = NULL, word[SHELL_WORD_BYTES];

	if (len > 0 && text[len - 1] == '\r')
		return xasprintf(
			"%s: its first line ends in a carriage return, so it names no program: "
			"sed -i 's/\\r$//' %s",
			path, shell_word(path, word));
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
	char word[SHELL_WORD_BYTES];
	bool is_script = text && strncmp(text, "#!", 2) == 0;

	if (is_script && submits_itself(path, text, NULL))
		problem = xasprintf(
			"%s: this script submits itself again; lbd starts it each time: take "
			"that line out, and scancel its jobs",
			path);
	else if (!(st->st_mode & 0111) && !(text && cron_is_batch(path, text)))
		problem = xasprintf("%s: not executable: chmod +x %s", path,
				    shell_word(path, word));
	else if (is_script)
		problem = first_line_problem(path, text);
	free(text);
	return problem;
}

/* A word without a folder is looked for in PATH where the job runs, which may have programs that
 * are not here. A script lies here, or nowhere. */
static char *word_problem(const char *word, const char *folder, const char *path)
{
	bool is_script = is_script_name(word) || text_ends_with(word, ".py");

	if (!text_ends_with(word, ".toml") && (!is_script || path_has_program(path, word)))
		return NULL;
	return xasprintf("%s: there is no such file in %s%s", word, folder,
			 is_script ? ", nor in a folder of PATH" : "");
}

char *cron_entry_problem(const char *folder, const struct cron_entry *entry, const char *job_path)
{
	char *path = cron_entry_path(folder, entry), *problem = NULL;
	struct stat st;

	if (cron_expr_is_never(&entry->expr))
		problem = xasprintf("%s: \"%s\" is never due: no such month has such a day",
				    entry->source, entry->when);
	else if (strchr(path, '/') == NULL)
		problem = word_problem(path, folder, job_path);
	else if (stat(path, &st) < 0)
		problem = path[0] == '/' && !path_below(path, folder)
				  ? NULL
				  : xasprintf("%s: there is no such file in %s", path, folder);
	else if (S_ISDIR(st.st_mode))
		problem = xasprintf("%s: this is a folder", path);
	else if (!text_ends_with(path, ".toml"))
		problem = script_problem(path, &st);
	free(path);
	return problem;
}
