/* SPDX-License-Identifier: MIT */
/* own_call.c - reads the words of scontrol, sbatch and scancel as far as they tell whose job is
 * meant. */
#include "worker/lbrun/trainer/own_call.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/files.h"
#include "common/base/mem.h"

enum { SCRIPT_MAX_BYTES = 4 * 1024 * 1024 };

/* --- scontrol --------------------------------------------------------------------------------- */

/* "12", and of an array "10_3", where 12 is the task's own number. */
static bool is_own_id(const char *word, const struct own_job *job)
{
	char name[64];

	if (strncasecmp(word, "jobid=", 6) == 0)
		word += 6;
	if (job->id && strcmp(word, job->id) == 0)
		return true;
	if (!job->array_id || !job->array_task)
		return false;
	snprintf(name, sizeof(name), "%s_%s", job->array_id, job->array_task);
	return strcmp(word, name) == 0;
}

/* "Incomplete", "State=SpecialExit" */
static bool is_of_requeue(const char *word)
{
	return strncasecmp(word, "incomplete", strlen(word)) == 0 ||
	       strncasecmp(word, "state=", 6) == 0;
}

enum own_requeue own_requeue(char *const *argv, const struct own_job *job)
{
	char *const *word = argv + 1;
	enum own_requeue is;
	size_t len;

	while (*word && **word == '-')
		word++;
	len = *word ? strlen(*word) : 0;
	if (len >= 3 && strncasecmp(*word, "requeue", len) == 0)
		is = REQUEUE_OWN;
	else if (len > 0 && strcasecmp(*word, "requeuehold") == 0)
		is = REQUEUE_OWN_HELD;
	else
		return REQUEUE_OTHER;
	for (word++; *word && **word && is_of_requeue(*word);)
		word++;
	if (job->is_unnumbered && (!*word || !**word))
		return is;
	return *word && is_own_id(*word, job) && !word[1] ? is : REQUEUE_OTHER;
}

/* --- sbatch ----------------------------------------------------------------------------------- */

static bool is_same_place(const char *file, const char *other)
{
	char a[PATH_MAX], b[PATH_MAX];

	return other && realpath(file, a) && realpath(other, b) && strcmp(a, b) == 0;
}

static bool is_running_text(const char *text, size_t len, const struct own_job *job)
{
	size_t running_len = 0;
	char *running = job->script ? file_read(job->script, SCRIPT_MAX_BYTES, &running_len, NULL)
				    : NULL;
	bool is = running && len == running_len && memcmp(text, running, len) == 0;

	free(running);
	return is;
}

static bool are_same_words(char *const *a, char *const *b)
{
	for (; *a && *b; a++, b++)
		if (strcmp(*a, *b) != 0)
			return false;
	return !*a && !*b;
}

/* Is this file a script, as sbatch's operand is? What stands before that are options and their
 * values. *is_own: it is the one that runs. */
static bool is_script(const char *file, const struct own_job *job, bool *is_own)
{
	size_t len;
	char *text = file[0] == '-' ? NULL : file_read(file, SCRIPT_MAX_BYTES, &len, NULL);
	bool is = text && strncmp(text, "#!", 2) == 0;

	*is_own = is && (is_same_place(file, job->lay_at) || is_running_text(text, len, job));
	free(text);
	return is;
}

/* The value of this option in `word`, or in the one behind it; NULL: it is another one. */
static const char *value_of(char *const *word, const char *name, char letter)
{
	const char *text = *word;
	size_t len = strlen(name);

	if (text[0] != '-')
		return NULL;
	if (text[1] == letter && letter)
		return text[2] ? text + 2 : word[1];
	if (strncmp(text + 1, "-", 1) != 0 || strncmp(text + 2, name, len) != 0)
		return NULL;
	if (text[2 + len] == '=')
		return text + 3 + len;
	return text[2 + len] == '\0' ? word[1] : NULL;
}

/* Does this option make it another job than the one that runs, or none? */
static bool is_of_another(char *const *word, const struct own_job *job)
{
	static const char *const none[] = { "--test-only", "--help", "--usage", "--version",
					    "-h",          "-V",     NULL };
	const char *tasks = value_of(word, "array", 'a'), *export = value_of(word, "export", '\0');

	for (size_t i = 0; none[i]; i++)
		if (strcmp(*word, none[i]) == 0)
			return true;
	if (value_of(word, "wrap", '\0') || value_of(word, "begin", 'b'))
		return true;
	if (tasks && (!job->array_task || strcmp(tasks, job->array_task) != 0))
		return true;
	return export && strcasecmp(export, "ALL") != 0;
}

enum own_submission own_submission(char *const *argv, const struct own_job *job)
{
	enum own_submission is = SUBMISSION_NEXT;
	char *const *word, *const *arguments;
	bool is_own = false, is_found = false;

	for (word = argv + 1; *word && !is_found; word++) {
		const char *after = value_of(word, "dependency", 'd');

		if (is_of_another(word, job))
			return SUBMISSION_OTHER;
		if (after && strstr(after, "afternotok"))
			is = SUBMISSION_IF_FAILED;
		is_found = is_script(*word, job, &is_own);
	}
	arguments = word;
	if (!is_found && (!job->input || !is_script(job->input, job, &is_own)))
		return SUBMISSION_OTHER;
	if (!is_own)
		return SUBMISSION_OTHER;
	return are_same_words(arguments, job->arguments) ? is : SUBMISSION_BESIDE;
}

/* --- scancel ---------------------------------------------------------------------------------- */

char *own_next_number(const struct own_job *job)
{
	return xasprintf("0%s", job->id);
}

enum own_cancel own_cancel(char *const *argv, const struct own_job *job)
{
	static const char *const harmless[] = { "-Q", "--quiet", "-v", "--verbose" };
	char *next = own_next_number(job);
	const char *id = NULL;
	bool is_plain = true;
	enum own_cancel is = CANCEL_OTHER;

	for (char *const *word = argv + 1; *word; word++) {
		bool is_option = false;

		for (size_t i = 0; i < sizeof(harmless) / sizeof(harmless[0]); i++)
			is_option |= strcmp(*word, harmless[i]) == 0;
		is_plain &= is_option || !id;
		id = is_option ? id : *word;
	}
	if (is_plain && id && strcmp(id, next) == 0)
		is = CANCEL_NEXT;
	else if (is_plain && id && is_own_id(id, job))
		is = CANCEL_OWN;
	free(next);
	return is;
}
