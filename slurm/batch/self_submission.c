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
		bool begins = at == line || strchr(" \t(/`;&|\"'", at[-1]);
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

static bool exports_of_its_own(const char *line)
{
	const char *at = strstr(line, " --export"), *value = at ? at + strlen(" --export=") : NULL;

	return at && strchr("= ", value[-1]) &&
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

/* Words of its own behind the script, "$0 $((N+1))", "$0 --resume": none that come from the
 * script's own arguments, nor what nobody can know, "$0 $ARGS". */
static bool has_other_arguments(const char *line)
{
	const char *at = strstr(line, "$0"), *word;
	size_t len;

	/* in quotes of its own, or in none */
	if (!at || (at > line && at[-1] == '"') != (at[2] == '"'))
		return false;
	word = at + 2 + (at[2] == '"');
	word += strspn(word, " \t");
	len = word_len(word);
	if (len == 0 || strchr("<>)'\"#", word[0]) || !strchr(" \t", word[-1]))
		return false;
	return strncmp(word, "$((", 3) == 0 || (!memchr(word, '$', len) && !memchr(word, '>', len));
}

static enum self_submission way_of(const char *line)
{
	if (strstr(line, " --begin") || strstr(line, " -b"))
		return SUBMITS_LATER;
	return strstr(line, "/sbatch ") || exports_of_its_own(line) || has_other_arguments(line)
		       ? SUBMITS_ANOTHER
		       : SUBMITS_AGAIN;
}

int submits_itself(const char *path, const char *text, enum self_submission *how)
{
	const char *base = path_base(path);
	struct strv variables = { 0 };
	bool is = false, learnt = true;
	int number = 0, next = 1;
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
		is = command_means_itself(line, "sbatch", base, &variables) ||
		     requeues_itself(line);
		if (!is)
			number = next;
		else if (how)
			*how = way_of(line);
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
