/* SPDX-License-Identifier: MIT */
/* script_words.c - finds the words by which a batch script heeds the failure of what it starts, or
 * starts something beside it. */
#include "worker/lbrun/end/script_words.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

static const char blanks[] = " \t\n;&|()!`\"'{}";

/* The next word of `text`, cut out; NULL at the end. */
static char *next_word(const char **text)
{
	size_t len;

	*text += strspn(*text, blanks);
	len = strcspn(*text, blanks);
	*text += len;
	return len > 0 ? xstrndup(*text - len, len) : NULL;
}

static bool is_one_of(const char *word, const char *const *words)
{
	for (; *words; words++)
		if (strcmp(word, *words) == 0)
			return true;
	return false;
}

static bool has_word(const char *text, const char *const *words)
{
	bool has = false;
	char *word;

	while (!has && (word = next_word(&text))) {
		has = is_one_of(word, words);
		free(word);
	}
	return has;
}

static bool begins_with(const char *line, const char *const *words)
{
	char *word = next_word(&line);
	bool is = word && is_one_of(word, words);

	free(word);
	return is;
}

static const char *const launchers[] = { "srun",    "mpirun",     "mpiexec",   "torchrun", "python",
					 "python3", "accelerate", "deepspeed", NULL };

/* `rest`: what stands behind the line. A mere word about the failure hides it. */
static bool is_caught(const char *line, const char *rest)
{
	static const char *const loops[] = { "while", "until", NULL };
	static const char *const ways_out[] = { "break", NULL };
	static const char *const tests[] = { "if", "elif", NULL };
	bool starts = has_word(line, launchers), is_test = begins_with(line, tests);
	const char *other = strstr(line, is_test ? "then" : "||");
	bool goes_on = has_word(rest, launchers) || (other && has_word(other, launchers));

	if (strstr(line, "&& exit") || has_word(line, ways_out) ||
	    (starts && begins_with(line, loops)))
		return true;
	if (is_test)
		return goes_on && (starts || strstr(line, "$?"));
	return goes_on && starts && other && !strstr(other, "exit");
}

/* Lines that a backslash joins become one; comments become empty. */
static void join_lines(char *text)
{
	for (char *at = text; (at = strstr(at, "\\\n")); at += 2)
		memset(at, ' ', 2);
	for (char *line = text; line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (line[strspn(line, " \t")] == '#')
			memset(line, ' ', strcspn(line, "\n"));
	}
}

/* The next line, ended by NUL; *text goes on behind it. NULL at the end. */
static char *next_line(char **text)
{
	char *line = *text;
	size_t len = strcspn(line, "\n");

	if (!*line)
		return NULL;
	*text = line + len + (line[len] == '\n');
	line[len] = '\0';
	return line;
}

bool failures_are_caught(const char *text)
{
	char *joined = xstrdup(text), *rest = joined, *line;
	bool is = false;

	join_lines(joined);
	while (!is && (line = next_line(&rest)))
		is = is_caught(line, rest);
	free(joined);
	return is;
}

/* "srun ... >log 2>&1 & pid=$!", but not "a && b", "2>&1", "&>log". */
static bool is_in_background(const char *line)
{
	for (const char *at = strchr(line, '&'); at; at = strchr(at + 1, '&')) {
		if (at[1] == '&')
			at++;
		else if (at > line && at[-1] != '>' && at[-1] != '<' && at[1] != '>')
			return true;
	}
	return false;
}

bool has_background(const char *text)
{
	char *joined = xstrdup(text), *rest = joined, *line;
	bool has = false, has_both = false;

	join_lines(joined);
	while (!has_both && (line = next_line(&rest))) {
		bool starts = has_word(line, launchers), is = starts && is_in_background(line);

		has_both = has && starts && !is;
		has |= is;
	}
	free(joined);
	return has_both;
}

/* A bare "wait" ends with 0, whatever it has waited for. */
static bool waits_for_all(const char *line)
{
	static const char *const waits[] = { "wait", NULL };
	const char *at = strstr(line, "wait");

	if (!at || !has_word(line, waits))
		return false;
	at += strlen("wait");
	at += strspn(at, " \t\"");
	return strspn(at, "$%-0123456789") == 0;
}

/* "srun ... | tee log", but not "a || b" */
static bool is_piped(const char *line)
{
	const char *at = strchr(line, '|');

	while (at && at[1] == '|')
		at = strchr(at + 2, '|');
	return at && has_word(line, launchers);
}

bool hands_status_on(const char *text)
{
	char *joined = xstrdup(text), *rest = joined, *line;
	bool is_safe = strstr(text, "pipefail") || strstr(text, "PIPESTATUS");
	bool knows_one = strstr(text, "wait $") || strstr(text, "wait \"$") ||
			 strstr(text, "wait %");
	bool hands = false, is_lost = false;

	join_lines(joined);
	while ((line = next_line(&rest))) {
		const char *at = strstr(line, "exit $");

		hands |= at && at[6] != '?';
		is_lost |= !is_safe && is_piped(line);
		is_lost |= !knows_one && waits_for_all(line);
	}
	free(joined);
	return hands && !is_lost;
}
