/* SPDX-License-Identifier: MIT */
/* shell_words.c - blanks, quotes and backslashes as a POSIX shell reads them; nothing is
 * expanded. */
#include "common/base/shell_words.h"

#include <string.h>

#include "common/base/mem.h"
#include "common/base/strv.h"

/* One word at *p, quotes taken off; *p is moved past it. -1 with err. */
static int read_word(const char **p, struct buf *word, struct err *err)
{
	char quote = '\0';

	for (; **p != '\0' && (quote || !strchr(" \t", **p)); (*p)++) {
		char c = **p;

		if (quote == '\0' && strchr("'\"", c)) {
			quote = c;
			continue;
		}
		if (c == quote) {
			quote = '\0';
			continue;
		}
		if (c == '\\' && quote != '\'' && (quote == '\0' || strchr("\"\\", (*p)[1]))) {
			c = *++*p;
			if (c == '\0')
				return err_set(err, ERR_USAGE, "a backslash at the end");
		} else if (strchr(quote == '\0' ? "|&;<>()$`" : quote == '"' ? "$`" : "", c)) {
			return err_set(err, ERR_USAGE,
				       "'%c': there is no shell here; write sh -c '...', or "
				       "put it into a script",
				       c);
		}
		buf_add(word, &c, 1);
	}
	return quote ? err_set(err, ERR_USAGE, "a quote %c is never closed", quote) : 0;
}

/* "~/x" is a shell's word for a folder, and would be looked for under that very name. */
static int check_tilde(const char *word, struct err *err)
{
	if (word[0] == '~' && (word[1] == '/' || word[1] == '\0' || word[1] == ' '))
		return err_set(err, ERR_USAGE,
			       "'~': there is no shell here; write the folder's whole name, "
			       "like /home/ada%.*s",
			       (int)strcspn(word + 1, " \t"), word + 1);
	return 0;
}

char **shell_words(const char *text, struct err *err)
{
	size_t count = 0;
	char **words = xcalloc(1, sizeof(*words));

	for (const char *p = text + strspn(text, " \t"); *p != '\0'; p += strspn(p, " \t")) {
		struct buf word;

		buf_init(&word, strlen(text) + 1);
		if (check_tilde(p, err) < 0 || read_word(&p, &word, err) < 0) {
			buf_fini(&word);
			strv_free(words);
			return NULL;
		}
		words = xrealloc(words, (count + 2) * sizeof(*words));
		words[count++] = buf_take(&word);
		words[count] = NULL;
	}
	return words;
}

const char *shell_word(const char *text, char out[SHELL_WORD_BYTES])
{
	enum { BARE_MAX_BYTES = 80 };
	static const char bare[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
				   "0123456789@%+=:,./_-";
	size_t len = strlen(text), at = 0;

	if (len > 0 && len <= BARE_MAX_BYTES && strspn(text, bare) == len)
		return text;
	out[at++] = '\'';
	for (; *text && at + 6 <= SHELL_WORD_BYTES; text++) {
		if (*text == '\'') {
			memcpy(out + at, "'\\'", 3);
			at += 3;
		}
		out[at++] = *text;
	}
	if (*text == '\0')
		out[at++] = '\'';
	out[at] = '\0';
	return out;
}
