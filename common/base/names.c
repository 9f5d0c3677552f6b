/* SPDX-License-Identifier: MIT */
/* names.c - checks names of runs, and draws them.
 *
 * Names end in paths, job comments, terminals and shell commands that people paste, so the allowed
 * set is small and one function knows it. */
#include "common/base/names.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "words.h"

/* "brisk-otter-39" must stay within the limit whatever the word list holds. */
_Static_assert(WORD_ADJECTIVE_MAX + 1 + WORD_NOUN_MAX + 3 <= NAME_MAX_BYTES, "words too long");

enum { SHOWN_BYTES = 40 };

static bool is_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* The name as it may be shown: printable ASCII as it is, all else as \xNN, cut with "...". */
static const char *shown(const char *name, char out[4 * SHOWN_BYTES + 4])
{
	size_t to = 0;

	for (size_t i = 0; name[i]; i++) {
		unsigned char c = (unsigned char)name[i];

		if (i == SHOWN_BYTES) {
			snprintf(out + to, 4, "...");
			return out;
		}
		if (c >= 0x20 && c < 0x7f && c != '\\' && c != '"')
			out[to++] = (char)c;
		else
			to += (size_t)snprintf(out + to, 5, "\\x%02x", c);
	}
	out[to] = '\0';
	return out;
}

static const char *what_is_wrong(const char *name)
{
	size_t len = strnlen(name, NAME_MAX_BYTES + 1);

	if (len == 0)
		return "it is empty";
	if (len > NAME_MAX_BYTES)
		return "it is longer than 64 characters";
	if (!is_alnum(name[0]))
		return "it must start with a letter (a to z, A to Z) or a digit";
	for (size_t i = 1; i < len; i++) {
		if (!is_alnum(name[i]) && !strchr("._-", name[i]))
			return "allowed are letters (a to z, A to Z), digits, '.', '_' and '-'";
	}
	if (strstr(name, ".."))
		return "\"..\" is not allowed in it";
	if (strcmp(name, "ALL") == 0)
		return "ALL is reserved for the switches of all runs";
	return NULL;
}

int name_check(const char *name, struct err *err)
{
	char text[4 * SHOWN_BYTES + 4];
	const char *wrong = what_is_wrong(name);

	if (!wrong)
		return 0;
	return err_set(err, ERR_USAGE, "bad name \"%s\": %s", shown(name, text), wrong);
}

void name_draw(uint64_t random, char out[NAME_MAX_BYTES + 1])
{
	uint64_t adjective = random % WORD_ADJECTIVES;
	uint64_t noun = random / WORD_ADJECTIVES % WORD_NOUNS;
	uint64_t number = random / WORD_ADJECTIVES / WORD_NOUNS % 90 + 10;

	snprintf(out, NAME_MAX_BYTES + 1, "%s-%s-%d", word_adjectives[adjective], word_nouns[noun],
		 (int)number);
}

/* Tokens identify jobs for ever: without the kernel's randomness there is no safe way on. */
static void random_bytes(void *to, size_t len)
{
	unsigned char *at = to;

	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			perror("getrandom");
			abort();
		}
		at += n;
		len -= (size_t)n;
	}
}

void token_draw(char out[TOKEN_HEX + 1])
{
	unsigned char bytes[TOKEN_HEX / 2];

	random_bytes(bytes, sizeof(bytes));
	for (size_t i = 0; i < sizeof(bytes); i++)
		snprintf(out + 2 * i, 3, "%02x", bytes[i]);
}

uint64_t random_u64(void)
{
	uint64_t value;

	random_bytes(&value, sizeof(value));
	return value;
}
