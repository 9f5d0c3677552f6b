/* SPDX-License-Identifier: MIT */
/* self_submission.c - finds the line of a batch script that brings its job back. It is a reader of
 * words, no shell: what a script makes up while it runs, it does not see. */
#include "slurm/batch/self_submission.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/base/text.h"

enum { VARIABLE_ROUNDS = 4 };

/* The next line with those that a backslash joins to it; "" for a comment. Owned; NULL at the end.
 * *line_number counts what was read. */
static char *next_command(const char **text, int *line_number)
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
		++*line_number;
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

/* "$NAME" or "${NAME" as a whole name; what stands behind it, NULL: it is not there. */
static const char *use_of(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = strchr(text, '$'); at; at = strchr(at + 1, '$')) {
		const char *start = at + 1 + (at[1] == '{');

		if (strncmp(start, name, len) == 0 && !is_name_char(start[len]))
			return start + len;
	}
	return NULL;
}

static bool uses(const char *text, const char *name)
{
	return use_of(text, name) != NULL;
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

/* "$(dirname $0)/eval.slurm": where it lies, and not "$(dirname $0)/$(basename $0)". */
static bool is_its_folder(const char *text)
{
	const char *folder = strstr(text, "dirname");

	return (folder && !strstr(folder, "basename")) || strstr(text, "%/*");
}

/* "$DIR/eval.slurm" is something else. */
static bool means_itself(const char *text, const char *base, const struct strv *variables)
{
	if (says_name(text, base))
		return true;
	if (is_its_folder(text))
		return false;
	if (uses(text, "0") || strstr(text, "BASH_SOURCE") || strstr(text, "scontrol show job"))
		return true;
	for (size_t i = 0; i < variables->count; i++) {
		const char *behind = use_of(text, variables->items[i]);

		if (behind && behind[*behind == '}'] != '/')
			return true;
	}
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
		if (text_begins_with(at, *word))
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

/* "echo "Usage: sbatch $0", but not "echo $(sbatch $0)" */
static bool is_only_said(const char *line, const char *call)
{
	static const char *const words[] = { "echo ", "printf ", "sage: " };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		const char *at = strstr(line, words[i]);

		while (at && at < call && strcspn(at, ";|&`(") < (size_t)(call - at))
			at = strstr(at + 1, words[i]);
		if (at && at < call)
			return true;
	}
	return false;
}

/* The words of a call of sbatch that means the script, "--begin=now+1day $0"; owned, NULL: there is
 * none. *call: where it begins. */
static char *submission_of_itself(char *line, const char *base, const struct strv *variables,
				  const char **call)
{
	static const char program[] = "sbatch";
	size_t len = strlen(program);

	for (char *at = strstr(line, program); at; at = strstr(at + 1, program)) {
		bool begins = at == line || strchr(" \t(/`;&|\"'", at[-1]);
		bool is_call = begins && strchr(" \t<", at[len]) && !is_only_said(line, at);
		char *rest = xstrdup(at + len);

		rest[command_len(rest)] = '\0';
		*call = at;
		if (is_call && means_itself(rest, base, variables))
			return rest;
		free(rest);
	}
	return NULL;
}

/* "requeue" or "requeuehold" behind what are options of scontrol at most; NULL: another word. */
static const char *behind_options(const char *word)
{
	static const char between[] = " \t\"',)}[";
	bool may_be_value = false; /* of the option before it */

	for (word += strspn(word, between); word[0] == '-' || may_be_value;
	     word += strspn(word, between)) {
		if (text_begins_with(word, "requeue"))
			break;
		may_be_value = word[0] == '-';
		word += strcspn(word, between);
	}
	return text_begins_with(word, "requeue") ? word : NULL;
}

/* A call of scontrol for a requeue, also as words of a program, ["scontrol", "requeue"], and not
 * "scontrol show job | grep requeue". NULL: none. */
static const char *requeue_call(const char *line)
{
	static const char program[] = "scontrol";
	const char *call = NULL;

	for (const char *at = strstr(line, program); at && !call; at = strstr(at + 1, program))
		call = behind_options(at + strlen(program));
	return call;
}

static bool requeues_itself(const char *line)
{
	const char *at = requeue_call(line);

	return at && (uses(at, "SLURM_JOB_ID") || uses(at, "SLURM_JOBID"));
}

/* Variables of its own, or tasks: not "ALL", nor the task that it is. */
static bool is_of_another(const char *words)
{
	const char *export = strstr(words, " --export"), *tasks = strstr(words, " --array");
	const char *value = export ? export + strlen(" --export=") : NULL;

	for (const char *at = strstr(words, " -a"); at && !tasks; at = strstr(at + 1, " -a"))
		tasks = at[3] && strchr(" \"$0123456789", at[3]) ? at : NULL;
	if (tasks && !strstr(tasks, "SLURM_ARRAY_TASK_ID"))
		return true;
	return export && value[-1] && strchr("= ", value[-1]) &&
	       !(strncasecmp(value, "ALL", 3) == 0 && !is_name_char(value[3]) && value[3] != ',');
}

/* The word at `text`, with blanks in $( ) and in quotes; how long it is. */
static size_t word_len(const char *text)
{
	bool in_double = false;
	int depth = 0;
	size_t i;

	for (i = 0; text[i] && (in_double || depth > 0 || !strchr(" \t;&|", text[i])); i++) {
		in_double ^= text[i] == '"';
		depth += (text[i] == '(') - (text[i] == ')');
		if (depth < 0)
			break;
	}
	return i;
}

/* What stands behind the word that means the script; "" where it is input, or ends the line. */
static const char *behind_itself(const char *words, const char *base, const struct strv *variables)
{
	for (size_t len; *words; words += len) {
		char *word;
		bool is;

		words += strspn(words, " \t");
		len = word_len(words);
		if (len == 0)
			break;
		word = xstrndup(words, len);
		is = word[0] != '-' && means_itself(word, base, variables);
		free(word);
		if (is)
			return words[0] == '<' ? "" : words + len;
	}
	return "";
}

/* Words of its own behind the script, "$0 $((N+1))", "$0 --resume": none that come from the
 * script's own arguments, nor what nobody can know, "$0 $ARGS". */
static bool has_other_arguments(const char *behind)
{
	const char *word = behind + strspn(behind, " \t");
	size_t len = word_len(word);

	if (len == 0 || word == behind || strchr("<>)'\"#", word[0]))
		return false;
	return strncmp(word, "$((", 3) == 0 || (!memchr(word, '$', len) && !memchr(word, '>', len));
}

/* `call` of sbatch in this line, and the words behind it. Also on another machine. */
static enum self_submission way_of(const char *line, const char *call, const char *words,
				   const char *behind)
{
	const char *ssh = strstr(line, "ssh ");

	if (strstr(words, " --begin") || strstr(words, " -b"))
		return SUBMITS_LATER;
	if ((call > line && call[-1] == '/') || (ssh && ssh < call))
		return SUBMITS_ANOTHER;
	return is_of_another(words) || has_other_arguments(behind) ? SUBMITS_ANOTHER
								   : SUBMITS_AGAIN;
}

/* "if [ -z "$SLURM_JOB_ID" ]": where it was called by hand, outside of any job. Not "[[ -z "$DONE" &&
 * -n "$SLURM_JOB_ID" ]]". */
static bool asks_for_no_job(const char *text)
{
	static const char test[] = "-z ";

	for (const char *at = strstr(text, test); at; at = strstr(at + 1, test)) {
		const char *what = at + sizeof(test) - 1;
		char *word = xstrndup(what, word_len(what));
		bool is = uses(word, "SLURM_JOB_ID") || uses(word, "SLURM_JOBID");

		free(word);
		if (is)
			return !memchr(text, '!', (size_t)(at - text)) && !strstr(at, "||");
	}
	return false;
}

/* How deep in such an "if" the line stands; 0: in none. */
static int depth_behind(const char *line, int depth)
{
	const char *word = line + strspn(line, " \t");
	size_t len = strcspn(word, " \t;");
	bool is_if = len == 2 && strncmp(word, "if", 2) == 0;
	bool is_else = len == 4 && (strncmp(word, "else", 4) == 0 || strncmp(word, "elif", 4) == 0);

	if (is_if && (depth > 0 || asks_for_no_job(word)) && !strstr(word, "; fi"))
		return depth + 1;
	if (len == 2 && strncmp(word, "fi", 2) == 0 && depth > 0)
		return depth - 1;
	return is_else && depth == 1 ? 0 : depth;
}

/* Does this line of a job hand the script to sbatch again? *how: in which way. */
static bool line_submits(char *line, const char *base, const struct strv *variables,
			 enum self_submission *how)
{
	const char *call;
	char *words = submission_of_itself(line, base, variables, &call), *before;
	bool is = words != NULL;

	if (is) {
		before = xstrndup(line, (size_t)(call - line));
		is = !asks_for_no_job(before);
		free(before);
		*how = way_of(line, call, words, behind_itself(words, base, variables));
	}
	free(words);
	return is;
}

int submits_itself(const char *path, const char *text, enum self_submission *how)
{
	const char *base = path_base(path);
	struct strv variables = { 0 };
	bool is = false, learnt = true;
	int number = 0, next = 1, depth = 0;
	char *line;

	for (int i = 0; i < VARIABLE_ROUNDS && learnt; i++) {
		const char *at = text;

		learnt = false;
		while ((line = next_command(&at, &number))) {
			learnt |= learn_variable(line, base, &variables);
			free(line);
		}
	}
	for (number = next; !is && (line = next_command(&text, &next)); free(line)) {
		enum self_submission way = SUBMITS_AGAIN;

		depth = depth_behind(line, depth);
		is = depth == 0 &&
		     (line_submits(line, base, &variables, &way) || requeues_itself(line));
		if (!is)
			number = next;
		else if (how)
			*how = way;
	}
	strv_free(variables.items);
	return is ? number : 0;
}

int requeue_line(const char *text)
{
	int number = 1, next = 1;
	bool is = false;
	char *line;

	for (; !is && (line = next_command(&text, &next)); free(line)) {
		is = requeue_call(line) != NULL;
		number = is ? number : next;
	}
	return is ? number : 0;
}
