/* SPDX-License-Identifier: MIT */
/* steps.c - the step that the name of a checkpoint tells, alone or beside others. */
#include "common/checkpoint/steps.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/mem.h"
#include "common/base/text.h"

static int64_t number(const char *text, size_t len)
{
	return len > 0 && len <= STEP_DIGITS_MAX ? strtoll(text, NULL, 10) : -1;
}

/* Of "9500" that, of "10k" and "1.5k" the thousands that they are; -1: too large. */
static int64_t number_in_words(const char *text)
{
	size_t len = text_digits(text), end = len;
	double thousands;

	if (text[len] == '.' && text_digits(text + len + 1) > 0)
		end += 1 + text_digits(text + len + 1);
	if (tolower((unsigned char)text[end]) != 'k' || isalnum((unsigned char)text[end + 1]))
		return number(text, len);
	return end < STEP_DIGITS_MAX - 3 && text_number(text, end, &thousands)
		       ? (int64_t)(1000 * thousands + 0.5)
		       : -1;
}

static bool is_in_thousands(const char *text)
{
	return number_in_words(text) != number(text, text_digits(text));
}

static const char separators[] = "=_-. (+";

/* "eval_step_0", the second of torchtnt's "epoch_0_train_step_10_eval_step_0". */
static bool is_of_an_evaluation(const char *name, const char *at)
{
	static const char *const words[] = { "eval", "val", "valid", "validation", "test" };

	while (at > name && strchr(separators, at[-1]))
		at--;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i]);

		if ((size_t)(at - name) >= len && strncasecmp(at - len, words[i], len) == 0 &&
		    (at - len == name || !isalpha((unsigned char)at[-1 - (ptrdiff_t)len])))
			return true;
	}
	return false;
}

/* The number right behind a word, with at most separators in between; the last such word counts, of
 * a training before one of an evaluation. */
static const char *behind(const char *name, const char *word)
{
	const char *found = NULL, *evaluated = NULL;

	for (const char *at = name; (at = strcasestr(at, word)) != NULL; at++) {
		const char *from = at + strlen(word);

		from += strspn(from, separators);
		if (text_digits(from) > 0)
			*(is_of_an_evaluation(name, at) ? &evaluated : &found) = from;
	}
	return found ? found : evaluated;
}

static bool is_fraction(const char *name, const char *at, size_t len)
{
	return (at - name > 1 && at[-1] == '.' && isdigit((unsigned char)at[-2])) ||
	       (at[len] == '.' && isdigit((unsigned char)at[len + 1]));
}

/* --- times in names --------------------------------------------------------------------------- */

/* Of "Nov" 11; 0 = it is no month. */
static int64_t month_of(const char *text)
{
	static const char months[] = "JanFebMarAprMayJunJulAugSepOctNovDec";

	for (size_t i = 0; months[i]; i += 3) {
		if (strncmp(text, months + i, 3) == 0)
			return (int64_t)i / 3 + 1;
	}
	return 0;
}

/* RecBole's "Nov-12-2026" */
enum { MONTH_DATE_BYTES = 11 };

static bool is_month_date(const char *text)
{
	if (month_of(text) == 0 || text[3] != '-' || text_digits(text + 4) != 2 || text[6] != '-' ||
	    text_digits(text + 7) != 4)
		return false;
	int64_t day = number(text + 4, 2), year = number(text + 7, 4);
	return day >= 1 && day <= 31 && year >= 2010 && year <= 2099;
}

/* Of "2026-11-23", and "Nov-23-2026", 20261123. */
static int64_t digits_of(const char *text, size_t len)
{
	int64_t all = 0;
	size_t i = 0, digits = 0;

	if (len >= MONTH_DATE_BYTES && is_month_date(text)) {
		all = strtoll(text + 7, NULL, 10) * 10000 + month_of(text) * 100 +
		      strtoll(text + 4, NULL, 10);
		i = MONTH_DATE_BYTES;
		digits = 8;
	}
	for (; i < len && digits < STEP_DIGITS_MAX; i++) {
		if (!isdigit((unsigned char)text[i]))
			continue;
		all = 10 * all + (text[i] - '0');
		digits++;
	}
	return all;
}

static bool is_between(const char *text, size_t len, int64_t least, int64_t most)
{
	return digits_of(text, len) >= least && digits_of(text, len) <= most;
}

/* "101500", "10-15-00": how much of the text it is. */
static size_t length_of_day_time(const char *text)
{
	bool is_apart = text_digits(text) == 2;
	size_t width = is_apart ? 3 : 2, len = 2 * width + 2;

	if (!is_apart && text_digits(text) != 6)
		return 0;
	for (size_t at = 2; is_apart && at < len; at += width) {
		if (text[at] == '\0' || !strchr("-_:.", text[at]) ||
		    text_digits(text + at + 1) != 2)
			return 0;
	}
	return is_between(text, 2, 0, 23) && is_between(text + width, 2, 0, 59) &&
			       is_between(text + 2 * width, 2, 0, 60)
		       ? len
		       : 0;
}

/* Behind the time of day: SpeechBrain counts those of one second ("+02"), Ray has microseconds, and
 * Dreamer ("F123456"). */
static size_t length_of_rest(const char *text)
{
	size_t n = text[0] ? text_digits(text + 1) : 0;

	return (text[0] == '+' && n == 2) || (text[0] == '.' && (n == 3 || n == 6)) ||
			       (text[0] == 'F' && n == 6)
		       ? n + 1
		       : 0;
}

/* `len` bytes of date, and the time of day that may stand behind that. */
static size_t with_day_time(const char *text, size_t len)
{
	size_t apart = strspn(text + len, "_-+T ");
	size_t len_of_day = length_of_day_time(text + len + apart);

	if (len_of_day == 0)
		return len;
	len += apart + len_of_day;
	return len + length_of_rest(text + len);
}

/* "20261123", "2026-11-23", "Nov-23-2026", with the time of day behind it or not; "1795427999" and
 * its milliseconds: how much of the text it is, 0 = it is no time. */
static size_t length_of_time(const char *text)
{
	enum { FIRST_S = 1400000000, LAST_S = 2100000000 };
	size_t n = text_digits(text), len = n == 4 ? 10 : 8, width = n == 4 ? 3 : 2;
	size_t day = n == 4 ? 8 : 6;

	if ((n == 10 || n == 13) && is_between(text, 10, FIRST_S, LAST_S))
		return n;
	if (is_month_date(text))
		return with_day_time(text, MONTH_DATE_BYTES);
	if (n == 4 && (text[4] == '\0' || !strchr("-_.", text[4]) || text_digits(text + 5) != 2 ||
		       text[7] != text[4] || text_digits(text + 8) != 2))
		return 0;
	if ((n != 4 && n != 8 && n != 12 && n != 14) || !is_between(text, 4, 2010, 2099) ||
	    !is_between(text + day - width, 2, 1, 12) || !is_between(text + day, 2, 1, 31))
		return 0;
	return n > 8 ? n : with_day_time(text, len);
}

/* Of numbers behind each other: "checkpoint_1_500" is of epoch 1, "checkpoint_500_1" of rank 1, and
 * the step is more than either. When it was saved is no step; NULL = there is nothing else. */
static const char *largest_from(const char *name, const char *first)
{
	const char *at = first, *most = NULL;

	do {
		size_t len = length_of_time(at);

		if (len == 0) {
			len = text_digits(at);
			if ((!is_fraction(name, at, len) || is_in_thousands(at)) &&
			    (!most || number(at, len) > number(most, text_digits(most))))
				most = at;
		}
		at += len;
	} while ((*at == '_' || *at == '-') && text_digits(++at) > 0);
	return most;
}

/* The first COUNTING count steps, and nothing else. */
enum { COUNTING = 8 };
static const char *const step_words[] = {
	"step", "steps",      "iter",  "iters", "iteration", "it",   "update", "batch",
	"ckpt", "checkpoint", "chkpt", "cp",    "snapshot",  "save", "epoch",  "ep",
};

/* Words that stand in front of a number, but say nothing of the step: "model_20" is one all the
 * same. */
static const char *const other_words[] = {
	"model", "state",   "weights", "params", "optim", "optimizer",
	"train", "trainer", "net",     "meta",   "rank",
};

static bool is_behind(const char *name, const char *at, const char *word)
{
	ptrdiff_t len = (ptrdiff_t)strlen(word);

	while (at > name && strchr(separators, at[-1]))
		at--;
	return at - name >= len && strncasecmp(at - len, word, (size_t)len) == 0;
}

/* "ep1-ba100-rank0": whose it is. */
static bool is_of_a_rank(const char *name, const char *at)
{
	return is_behind(name, at, "rank");
}

/* "checkpoint_prev0": how many saves ago. */
static bool is_an_age(const char *name, const char *at)
{
	return is_behind(name, at, "prev") || is_behind(name, at, "previous");
}

/* "bf16", "float32", "int8": what numbers are of that type, as in an export. */
static bool is_of_a_type(const char *name, const char *at)
{
	static const char *const words[] = { "bf", "fp", "bfloat", "float", "int" };
	static const int64_t bits[] = { 4, 8, 16, 32, 64 };
	const char *word = at;
	bool is_width = false, is_type = false;

	while (word > name && isalpha((unsigned char)word[-1]))
		word--;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		is_type |= (size_t)(at - word) == strlen(words[i]) &&
			   strncasecmp(word, words[i], strlen(words[i])) == 0;
	for (size_t i = 0; i < sizeof(bits) / sizeof(bits[0]); i++)
		is_width |= number(at, text_digits(at)) == bits[i];
	return is_type && is_width;
}

/* "020dde1f9ea5464981aa022d89d09cff", a digest or an identifier: its length; 0 = it is none. */
static size_t length_of_id(const char *name, const char *at)
{
	enum { ID_BYTES = 16 };
	static const char hex[] = "0123456789abcdef";
	size_t len = strspn(at, hex);
	bool is_begun = at > name && isalnum((unsigned char)at[-1]);

	return len >= ID_BYTES && !is_begun && !isalnum((unsigned char)at[len]) &&
			       text_digits(at) < len && strcspn(at, "0123456789") < len
		       ? len
		       : 0;
}

/* The last number of a name; a fraction ("loss0.25") is none, and a rank, or the bits of a type,
 * only where there is no other. NULL: there are times alone; of the first *time has all digits, as
 * what was saved later has more (-1 = nor a time). */
static const char *last_number(const char *name, int64_t *time)
{
	const char *step = NULL, *other = NULL;

	*time = -1;
	for (const char *at = name; *at;) {
		size_t id = length_of_id(name, at), len = id > 0 ? 0 : length_of_time(at);

		if (id > 0)
			len = id;
		else if (len > 0 && *time < 0)
			*time = digits_of(at, len);
		else if (len == 0 && (len = text_digits(at)) > 0 && !is_fraction(name, at, len) &&
			 !is_an_age(name, at))
			*(is_of_a_rank(name, at) || is_of_a_type(name, at) ? &other : &step) = at;
		at += len > 0 ? len : 1;
	}
	return step ? step : other;
}

/* Short words only as a whole: "it" is in "recital_3". */
static const char *behind_step_word(const char *stem, size_t i)
{
	return strlen(step_words[i]) > 2 ? behind(stem, step_words[i]) : NULL;
}

/* Where the step stands; *is_said: behind a word that counts steps and nothing else. */
static const char *find_step(const char *stem, bool *is_said, int64_t *time)
{
	*time = -1;
	for (size_t i = 0; i < sizeof(step_words) / sizeof(step_words[0]); i++) {
		const char *at = behind_step_word(stem, i);

		*is_said = i < COUNTING;
		if (at && !*is_said)
			at = largest_from(stem, at);
		if (at && number(at, text_digits(at)) >= 0)
			return at;
	}
	*is_said = false;
	return last_number(stem, time);
}

bool name_tells_step(const char *name)
{
	for (size_t i = 0; i < sizeof(step_words) / sizeof(step_words[0]); i++) {
		if (behind_step_word(name, i))
			return true;
	}
	return false;
}

/* ".npz", TensorFlow's ".data-00000-of-00001"; not ".20", ".ckpt-20", ".rank_1" */
static bool is_ending(const char *dot)
{
	return !isdigit((unsigned char)dot[1]) &&
	       (text_begins_with(dot, ".data-") ||
		(!name_tells_step(dot) && dot[strcspn(dot, "-_")] == '\0'));
}

/* "ckpt_20.npz" → "ckpt_20". What Keras keeps of the one before has two endings. */
static char *stem_of(const char *name)
{
	size_t len = strlen(name) - (text_ends_with(name, ".bkp") ? strlen(".bkp") : 0);
	char *stem = xstrndup(name, len), *dot = strrchr(stem, '.');

	if (dot && dot > stem && is_ending(dot))
		*dot = '\0';
	return stem;
}

int64_t step_in_name(const char *name)
{
	char *stem = stem_of(name);
	int64_t time;
	bool is_said;
	const char *at = find_step(stem, &is_said, &time);
	int64_t step = at ? number_in_words(at) : time;

	free(stem);
	return step;
}

bool name_tells_slot(const char *name)
{
	static const char *const words[] = { "v", "version", "slot", "rank", "mp" };
	char *stem = stem_of(name);
	int64_t time;
	bool is_said, is = false;
	const char *at = find_step(stem, &is_said, &time);

	for (size_t i = 0; at && !is_said && i < sizeof(words) / sizeof(words[0]); i++) {
		ptrdiff_t len = (ptrdiff_t)strlen(words[i]);

		is |= is_behind(stem, at, words[i]) &&
		      (at - stem == len || !isalpha((unsigned char)at[-1 - len]));
	}
	free(stem);
	return is;
}

bool name_tells_time(const char *name)
{
	char *stem = stem_of(name);
	int64_t time;
	bool is_said, is = !find_step(stem, &is_said, &time) && time >= 0;

	free(stem);
	return is;
}

bool name_tells_type(const char *name)
{
	int64_t time;
	bool is_said;
	const char *at = find_step(name, &is_said, &time);

	return at && is_of_a_type(name, at);
}

bool name_begins_with_time(const char *name)
{
	return length_of_time(name) > 0;
}

bool name_step_is_time(const char *name, int64_t step)
{
	return name_tells_time(name) && step_in_name(name) == step;
}

bool name_has_number(const char *name)
{
	return step_in_name(name) >= 0;
}

size_t step_candidates(const char *name, size_t places[STEP_CANDIDATES_MAX])
{
	char *stem = stem_of(name);
	int64_t time;
	bool is_said;
	const char *step = find_step(stem, &is_said, &time), *at = step;
	size_t count = 1;

	while (step && at > stem && (strchr("_-", at[-1]) || isdigit((unsigned char)at[-1])))
		at--;
	while (step && count < STEP_CANDIDATES_MAX && *(at += strspn(at, "_-")) != '\0' &&
	       text_digits(at) > 0) {
		size_t len = length_of_time(at);

		if (at == step)
			places[0] = (size_t)(at - stem);
		else if (len == 0 && !is_fraction(stem, at, text_digits(at)) &&
			 !is_of_a_rank(stem, at))
			places[count++] = (size_t)(at - stem);
		at += len > 0 ? len : text_digits(at);
	}
	free(stem);
	return is_said || count == 1 ? 0 : count;
}

bool name_tells_fraction(const char *name)
{
	const char *at = name + strcspn(name, "0123456789");

	return name_has_word(name) && is_fraction(name, at, text_digits(at)) &&
	       !is_in_thousands(at);
}

/* "ppo_1000_steps.zip" */
static bool is_before_word(const char *name)
{
	static const char *const words[] = { "step", "iter", "epoch" };
	bool is = false;

	for (name += strcspn(name, "0123456789"); *name && !is;
	     name += strcspn(name, "0123456789")) {
		name += text_digits(name);
		for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
			is |= strncasecmp(name + strspn(name, separators), words[i],
					  strlen(words[i])) == 0;
	}
	return is;
}

bool name_has_word(const char *name)
{
	size_t len = strcspn(name, "0123456789"), end = len;

	if (name[len] == '\0')
		return false;
	if (len == 0)
		return name[text_digits(name)] == '\0'; /* digits alone */
	while (end > 0 && strchr(separators, name[end - 1]))
		end--;
	for (size_t i = 0; i < sizeof(step_words) / sizeof(step_words[0]); i++) {
		size_t n = strlen(step_words[i]);

		if (end >= n && strncasecmp(name + end - n, step_words[i], n) == 0 &&
		    (end == n || n > 2 || !isalpha((unsigned char)name[end - n - 1])))
			return true;
	}
	for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]); i++) {
		size_t n = strlen(other_words[i]);

		if (end >= n && strncasecmp(name + end - n, other_words[i], n) == 0)
			return true;
	}
	return behind(name, "step") || behind(name, "iter") || behind(name, "epoch") ||
	       is_before_word(name);
}
