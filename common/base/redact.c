/* SPDX-License-Identifier: MIT */
/* redact.c - a line that says why a trainer died ends in events, mails and other people's
 * terminals: what looks like a secret is left out, at the price of a word too many. */
#include "common/base/redact.h"

#include <ctype.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "common/base/regexp.h"

enum { SECRET_MIN_BYTES = 6, ROUNDS = 16 };

static const char stars[] = "***";

/* What a name ends in that says so by itself. Other keys are often those of a table: of them an
 * option's counts, where its value has a digit. */
#define SECRET_WORD \
	"(?:" TOKEN "|password|passwd|passphrase|secret|credentials?" \
	"|(?:api|access|private|wandb)[_-]?key)['\"]?"
/* "<|endoftext|>" and "[MASK]" are tokens and no secrets. */
#define TOKEN "token(?!['\"]?\\s*[=:,]?\\s*['\"]?[<\\[])"
#define OPTION "(?i)(?<![\\w.-])--?[\\w.-]*"
#define OPTION_VALUE "[=,\\s]\\s*['\"]?(?<s>[^\\s'\",*-][^\\s'\"]{5,})"

static const char *const patterns[] = {
	"(?<s>\\b(?:hf_|sk-|gh[pousr]_|github_pat_|glpat-|xox[abprs]-|AKIA|ya29\\.|eyJ)[\\w.+/=-]{12,})",
	"(?i)\\bbearer\\s+(?<s>[\\w.~+/=-]{6,})",
	/* an option and its value, as words of a line or texts of a list */
	OPTION SECRET_WORD OPTION_VALUE,
	OPTION "[_.-]key['\"]?(?=[=,\\s]\\s*['\"]?[^\\s'\"]*\\d)" OPTION_VALUE,
	"(?i)" SECRET_WORD "\\s*[=:]\\s*['\"]?(?<s>[^\\s'\"&,*]{6,})",
	"://(?<s>[^/\\s@*]+)@",
};

/* What is shorter than the stars becomes as many of them as it has letters. */
static void cut(char *at, size_t len)
{
	size_t put = 0;

	for (; put < len && stars[put]; put++)
		at[put] = stars[put];
	memmove(at + put, at + len, strlen(at + len) + 1);
}

static bool is_secret_name(const char *name, size_t len)
{
	static const char *const words[] = { "TOKEN",  "SECRET",     "PASSW", "_KEY",
					     "APIKEY", "CREDENTIAL", "_AUTH", "WEBHOOK" };
	char upper[80];
	size_t i;

	for (i = 0; i < len && i < sizeof(upper) - 1; i++)
		upper[i] = (char)toupper((unsigned char)name[i]);
	upper[i] = '\0';
	for (i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strstr(upper, words[i]))
			return true;
	}
	return false;
}

static void redact_env(char *text, char *const *env)
{
	for (; env && *env; env++) {
		const char *value = strchr(*env, '=');
		size_t len = value ? strlen(value + 1) : 0;
		char *at;

		if (len < SECRET_MIN_BYTES || !is_secret_name(*env, (size_t)(value - *env)))
			continue;
		while ((at = strstr(text, value + 1)))
			cut(at, len);
	}
}

struct found {
	const char *at;
	size_t len;
};

static void take_group(void *arg, const char *name, const char *value, size_t len)
{
	(void)name;
	*(struct found *)arg = (struct found){ value, len };
}

void redact(char *text, char *const *env)
{
	redact_env(text, env);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(patterns[0]); i++) {
		struct regexp *r = regexp_create(patterns[i], false, NULL);

		for (int n = 0; r && n < ROUNDS && regexp_match(r, text, strlen(text)); n++) {
			struct found found = { NULL, 0 };

			regexp_each_group(r, text, take_group, &found);
			if (!found.at)
				break;
			cut(text + (found.at - text), found.len);
		}
		regexp_destroy(r);
	}
}
