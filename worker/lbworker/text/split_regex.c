/* SPDX-License-Identifier: MIT */
/* split_regex.c - PCRE2, compiled where it can be; matches are found from where the last one
 * ended. */
#include "worker/lbworker/text/split_regex.h"

#include <pthread.h>
#include <stdlib.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "common/base/mem.h"

enum { MATCH_LIMIT = 1000000 };

struct split_regex {
	pcre2_code *code;
	pcre2_match_context *limits;
};

struct split_regex *split_regex_create(const char *pattern, struct err *err)
{
	const uint32_t options = PCRE2_UTF | PCRE2_UCP;
	int number;
	PCRE2_SIZE at;
	pcre2_code *code = pcre2_compile((PCRE2_SPTR)pattern, PCRE2_ZERO_TERMINATED, options,
					 &number, &at, NULL);

	if (!code) {
		PCRE2_UCHAR text[128];
		pcre2_get_error_message(number, text, sizeof(text));
		err_set(err, ERR_USAGE, "the pattern \"%.60s\" at %zu: %s", pattern, (size_t)at,
			(const char *)text);
		return NULL;
	}
	uint32_t back;
	if (pcre2_pattern_info(code, PCRE2_INFO_MAXLOOKBEHIND, &back) == 0 && back > 0) {
		err_set(err, ERR_USAGE,
			"the pattern \"%.60s\" looks behind, which is not supported", pattern);
		pcre2_code_free(code);
		return NULL;
	}
	struct split_regex *r = xcalloc(1, sizeof(*r));
	r->code = code;
	r->limits = pcre2_match_context_create(NULL);
	if (r->limits)
		pcre2_set_match_limit(r->limits, MATCH_LIMIT);
	pcre2_jit_compile(code, PCRE2_JIT_COMPLETE);
	return r;
}

void split_regex_destroy(struct split_regex *r)
{
	if (!r)
		return;
	pcre2_match_context_free(r->limits);
	pcre2_code_free(r->code);
	free(r);
}

/* --- what a match is written to: one for each thread, made at its first word, gone with it ----- */

static pthread_key_t match_key;

static void free_match(void *match)
{
	pcre2_match_data_free(match);
}

static void make_key(void)
{
	if (pthread_key_create(&match_key, free_match) != 0)
		abort(); /* a process has 1024 of them */
}

static pcre2_match_data *match_of_thread(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pcre2_match_data *match;

	pthread_once(&once, make_key);
	match = pthread_getspecific(match_key);
	if (!match) {
		match = pcre2_match_data_create(1, NULL);
		pthread_setspecific(match_key, match);
	}
	return match;
}

const unsigned char *split_regex_word(const struct split_regex *r, const unsigned char *at,
				      const unsigned char *end)
{
	pcre2_match_data *found = match_of_thread();

	if (!found)
		return NULL;
	int rc = pcre2_match(r->code, at, (PCRE2_SIZE)(end - at), 0,
			     PCRE2_NO_UTF_CHECK | PCRE2_NOTEMPTY, found, r->limits);
	const PCRE2_SIZE *o = pcre2_get_ovector_pointer(found);
	if (rc < 0)
		return rc == PCRE2_ERROR_NOMATCH ? end : NULL;
	return at + (o[0] > 0 ? o[0] : o[1]);
}
