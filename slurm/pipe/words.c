/* SPDX-License-Identifier: MIT */
/* words.c - Slurm's messages, in English as its commands print them in every language, judged by
 * the same rules as libslurm's error numbers are (slurm/helper/calls.c). */
#include "slurm/pipe/words.h"

#include <string.h>

#include "common/base/json.h"

static const struct word {
	const char *text;
	enum scheduler_result result;
} words[] = {
	/* nothing was done, but may be when asked again */
	{ "connect failure", SCHEDULER_DOWN },
	{ "Unable to create job record, try again", SCHEDULER_DOWN },
	{ "I/O error writing script/environment to file", SCHEDULER_DOWN },
	{ "standby mode", SCHEDULER_DOWN },
	{ "MaxJobCount limit reached", SCHEDULER_DOWN },
	{ "Rate limit exceeded", SCHEDULER_DOWN },
	{ "Resource temporarily unavailable", SCHEDULER_DOWN },
	{ "Job can not be altered now, try again later", SCHEDULER_DOWN },
	/* the question or the answer was lost */
	{ "Unable to contact slurm controller", SCHEDULER_UNCLEAR },
	{ "Unexpected message received", SCHEDULER_UNCLEAR },
	{ "Communication connection failure", SCHEDULER_UNCLEAR },
	{ "Message send failure", SCHEDULER_UNCLEAR },
	{ "Message receive failure", SCHEDULER_UNCLEAR },
	{ "Communication shutdown failure", SCHEDULER_UNCLEAR },
	{ "Socket timed out", SCHEDULER_UNCLEAR },
	{ "Connection timed out", SCHEDULER_UNCLEAR },
	{ "Connection rejected", SCHEDULER_UNCLEAR },
	{ "quiesce timeout", SCHEDULER_UNCLEAR },
	{ "Zero Bytes were transmitted", SCHEDULER_UNCLEAR },
	{ "authentication error", SCHEDULER_UNCLEAR },
	{ "uthentication credential", SCHEDULER_UNCLEAR }, /* invalid, or expired */
	{ "zero length message", SCHEDULER_UNCLEAR },
	{ "Received message length < 0", SCHEDULER_UNCLEAR },
	{ "Failed to send entire message", SCHEDULER_UNCLEAR },
	{ "Unexpected missing socket", SCHEDULER_UNCLEAR },
	{ "Insane message length", SCHEDULER_UNCLEAR },
	{ "longer than data received", SCHEDULER_UNCLEAR },
	{ "Incompatible versions of client and server code", SCHEDULER_UNCLEAR },
};

/* What is none of these is Slurm's own "no", or a filter's of the site; but nothing at all says
 * nothing. */
static enum scheduler_result judge(const char *text)
{
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strstr(text, words[i].text))
			return words[i].result;
	}
	return text[0] ? SCHEDULER_REFUSED : SCHEDULER_UNCLEAR;
}

int words_failed(struct answer *a, const char *text, const char *what)
{
	return answer_set(a, judge(text), "%s: %s", what, text[0] ? text : "failed without a word");
}

/* Of the job that a command was to change, or to tell of. */
static bool is_gone(const char *text)
{
	return strstr(text, "Invalid job id specified") ||
	       strstr(text, "already completing or completed") ||
	       strstr(text, "Job has already finished");
}

int said_failed(struct answer *a, const struct said *said, bool is_change, const char *what)
{
	if (said->status == COMMAND_NOT_STARTED)
		return answer_set(a, SCHEDULER_DOWN, "%s cannot be started", what);
	if (said->status == COMMAND_KILLED)
		return answer_set(a, is_change ? SCHEDULER_UNCLEAR : SCHEDULER_DOWN,
				  "%s was killed", what);
	words_failed(a, said_last(said), what);
	a->result = is_gone(said->errors) ? SCHEDULER_GONE : judge(said->errors);
	if (is_change || a->result == SCHEDULER_GONE)
		return -1;
	if (strstr(said->errors, "Unable to contact slurm controller") ||
	    strstr(said->errors, "Socket timed out"))
		js_set_bool(a->body, "unreachable", true);
	a->result = SCHEDULER_DOWN;
	return -1;
}

bool said_is_denied(const struct said *said)
{
	return said->status && strstr(said->errors, "Access/permission denied");
}

bool words_are_passing(const char *text)
{
	static const char *const passing[] = {
		"Requested node configuration is not available",
		"Requested partition configuration not available now",
		"Requested reservation is in use",
		"Requested reservation not usable now",
		"Job can not start due to maintenance reservation",
		"Requested nodes are busy",
		"Required node not available",
		"Requested account has breached requested QOS usage",
		"Waiting for burst buffer",
		"Partition in DOWN state",
		"Job is in held state",
		"Job dependency problem",
		"Immediate execution impossible",
		"Job locked by another sibling",
	};

	for (size_t i = 0; i < sizeof(passing) / sizeof(passing[0]); i++) {
		if (strstr(text, passing[i]))
			return true;
	}
	return false;
}
