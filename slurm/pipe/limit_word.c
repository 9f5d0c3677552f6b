/* SPDX-License-Identifier: MIT */
/* limit_word.c - finds the word of a limit in a refusal of the scheduler, and says what it
 * means. */
#include "slurm/pipe/limit_word.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "slurm/reasons.h"

#define LETTERS "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

enum { WORD_BYTES = 64 };

/* Names of other reasons (Priority, Resources) are words of everyday use. */
static bool is_limit(const char *word)
{
	bool is_of_accounts = strncmp(word, "Assoc", 5) == 0 || strncmp(word, "QOS", 3) == 0 ||
			      strncmp(word, "Max", 3) == 0;

	return is_of_accounts && slurm_reason_from_word(word) != 0;
}

void limit_word(const char *said, char limit[LIMIT_WORD_BYTES])
{
	limit[0] = '\0';
	for (const char *at = said + strcspn(said, LETTERS); *at && !limit[0];) {
		size_t len = strspn(at, LETTERS);
		char word[WORD_BYTES], sentence[SLURM_REASON_TEXT_BYTES];

		snprintf(word, sizeof(word), "%.*s", (int)len, at);
		if (is_limit(word)) {
			slurm_reason_text(word, sentence);
			snprintf(limit, LIMIT_WORD_BYTES, "%s: %s", word, sentence);
		}
		at += len;
		at += strcspn(at, LETTERS);
	}
}

int limit_refuse(struct answer *a, const char *limit, const char *account, const char *qos)
{
	bool is_qos = strncmp(limit, "Assoc", 5) != 0; /* so is MaxJobsPerAccount */
	const char *whose = is_qos ? qos : account;

	/* behind the semicolon is what a job that is in line already waits for */
	return answer_set(a, SCHEDULER_REFUSED, "slurm.%s: %s%sover a limit: %.*s",
			  is_qos ? "qos" : "account", whose ? whose : "", whose ? ": " : "",
			  (int)strcspn(limit, ";"), limit);
}

int limit_wait(struct answer *a, const char *limit)
{
	return answer_set(a, SCHEDULER_DOWN, "over a limit of account or QOS: %s",
			  limit[0] ? limit : LIMIT_WORDS);
}

int limit_refuse_array(struct answer *a, const char *array, int64_t max_size,
		       const char *parameters)
{
	static const char key[] = "max_array_tasks=";
	const char *at = parameters ? strstr(parameters, key) : NULL;
	char index[80] = "", tasks[80] = "";

	if (max_size > 0)
		snprintf(index, sizeof(index), "; the highest index here is %lld (MaxArraySize)",
			 (long long)max_size - 1);
	if (at)
		snprintf(tasks, sizeof(tasks),
			 "; an array has %lld tasks at most (max_array_tasks)",
			 strtoll(at + sizeof(key) - 1, NULL, 10));
	return answer_set(a, SCHEDULER_REFUSED, "--array=%.100s: Slurm says: %s%s%s", array,
			  LIMIT_ARRAY_WORDS, index, tasks);
}

int limit_no_room(struct answer *a, int64_t max)
{
	char number[30] = "";

	if (max > 0)
		snprintf(number, sizeof(number), "=%lld", (long long)max);
	return answer_set(a, SCHEDULER_DOWN,
			  "Slurm holds as many jobs as it may: MaxJobCount%s, of which each task "
			  "of an array is one",
			  number);
}
