/* SPDX-License-Identifier: MIT */
/* srun_words.c - what srun says of its step, by the words of its source. */
#include "worker/lbrun/complaints/srun_words.h"

#include <string.h>

#include "common/base/text.h"
#include "worker/lbrun/complaints/complaint_rows.h"

static bool srun_ends(const char *text)
{
	return strstr(text, "Terminating StepId=") || strstr(text, "Job step aborted");
}

bool srun_words_end_all(const char *text)
{
	return srun_ends(text) || (strstr(text, "*** STEP ") && strstr(text, " CANCELLED AT "));
}

bool srun_words_end_step(const struct heard *heard)
{
	return heard->rank < 0 && text_begins_with(heard->text, "srun: ") && srun_ends(heard->text);
}

const char *srun_words_unreached(const struct heard *heard)
{
	static const char failed[] = " failed on node ";
	static const char *const words[] = { ": Communication", ": Unable to contact",
					     ": Socket timed out", ": Connection", ": No route" };
	bool is_sruns = heard->rank < 0 && text_begins_with(heard->text, COMPLAINT_NOT_LAUNCHED);
	const char *at = is_sruns ? strstr(heard->text, failed) : NULL;
	const char *why = at ? strchr(at, ':') : NULL;

	for (size_t i = 0; why && i < sizeof(words) / sizeof(words[0]); i++)
		if (text_begins_with(why, words[i]))
			return at + sizeof(failed) - 1;
	return NULL;
}
