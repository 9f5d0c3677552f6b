/* SPDX-License-Identifier: MIT */
/* sbatch_values.c - times, sizes, counts and lists of nodes, as sbatch writes them. */
#include "slurm/batch/sbatch_values.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/mem.h"

int sbatch_number(const char *text, int64_t min, int64_t max, int64_t *out, struct err *err)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || *end || errno || value < min || value > max)
		return err_set(err, ERR_USAGE,
			       "\"%.60s\": must be a whole number from %lld to %lld", text,
			       (long long)min, (long long)max);
	*out = value;
	return 0;
}

/* --- times ------------------------------------------------------------------------------------ */

/* Digits at *at; an absent number is 0, as in sbatch: "1-:30". */
static int64_t digits(const char **at)
{
	int64_t value = 0;

	while (isdigit((unsigned char)**at) && value < INT_MAX)
		value = value * 10 + (*(*at)++ - '0');
	return value;
}

int sbatch_duration(const char *text, int64_t *out_s, struct err *err)
{
	static const char what[] = "must be a time like \"90\" (minutes), \"M:S\", \"H:M:S\", "
				   "\"D-H\", \"D-H:M\", \"D-H:M:S\" or \"UNLIMITED\"";
	int64_t part[3] = { 0 }, days = 0;
	const char *at = text;
	bool with_days = strchr(text, '-') != NULL;
	int count = 0;

	if (strcmp(text, "-1") == 0 || strcasecmp(text, "UNLIMITED") == 0 ||
	    strcasecmp(text, "INFINITE") == 0) {
		*out_s = SBATCH_UNLIMITED;
		return 0;
	}
	if (!isdigit((unsigned char)*at))
		return err_set(err, ERR_USAGE, "\"%.40s\": %s", text, what);
	if (with_days) {
		days = digits(&at);
		if (*at++ != '-')
			return err_set(err, ERR_USAGE, "\"%.40s\": %s", text, what);
	}
	do
		part[count++] = digits(&at);
	while (*at == ':' && count < 3 && at++);
	if (*at || (with_days && !isdigit((unsigned char)at[-1])))
		return err_set(err, ERR_USAGE, "\"%.40s\": %s", text, what);
	if (with_days || count == 3)
		*out_s = days * 86400 + part[0] * 3600 + part[1] * 60 + part[2];
	else
		*out_s = part[0] * 60 + part[1];
	return *out_s > INT_MAX ? err_set(err, ERR_USAGE, "\"%.40s\": is too long", text) : 0;
}

/* -1: not said */
struct moment {
	int hour, minute, second, month, day, year;
};

static void take_day(struct moment *m, time_t when)
{
	struct tm tm;

	localtime_r(&when, &tm);
	m->month = tm.tm_mon;
	m->day = tm.tm_mday;
	m->year = tm.tm_year;
}

static void take_instant(struct moment *m, time_t when)
{
	struct tm tm;

	take_day(m, when);
	localtime_r(&when, &tm);
	m->hour = tm.tm_hour;
	m->minute = tm.tm_min;
	m->second = tm.tm_sec;
}

static bool skip_word(const char **at, const char *word)
{
	size_t len = strlen(word);

	if (strncasecmp(*at, word, len) != 0)
		return false;
	*at += len;
	return true;
}

/* What stands after "now": "", "+60", "-5minutes", "+2 days". */
static bool take_offset(const char **at, struct moment *m, time_t now)
{
	static const struct {
		const char *name;
		int64_t seconds;
	} units[] = {
		{ "seconds", 1 },    { "second", 1 },    { "minutes", 60 }, { "minute", 60 },
		{ "hours", 3600 },   { "hour", 3600 },   { "days", 86400 }, { "day", 86400 },
		{ "weeks", 604800 }, { "week", 604800 },
	};
	int64_t count = 0, sign = 1;
	bool has_digits = false;

	while (isblank((unsigned char)**at))
		(*at)++;
	if (**at == '+' || **at == '-') {
		sign = *(*at)++ == '-' ? -1 : 1;
		while (isspace((unsigned char)**at))
			(*at)++;
		has_digits = isdigit((unsigned char)**at);
		count = digits(at);
		while (isspace((unsigned char)**at))
			(*at)++;
		for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
			if (skip_word(at, units[i].name)) {
				count *= units[i].seconds;
				break;
			}
		}
		if (!has_digits)
			return false;
	}
	take_instant(m, now + (time_t)(sign * count));
	return true;
}

/* From one to `most` digits. */
static bool take_digits(const char **at, int most, int *out)
{
	int count = 0;

	for (*out = 0; count < most && isdigit((unsigned char)**at); count++)
		*out = *out * 10 + (*(*at)++ - '0');
	return count > 0;
}

static bool take_mark(const char **at, const char *marks)
{
	bool there = **at && strchr(marks, **at);

	*at += there;
	return there;
}

/* "H:MM", "HH:MM[:SS]", then perhaps "am" or "pm". */
static bool take_clock(const char **at, struct moment *m)
{
	int hour, minute, second = 0;

	if (!take_digits(at, 2, &hour) || !take_mark(at, ":") || !take_digits(at, 2, &minute))
		return false;
	if (take_mark(at, ":") && !take_digits(at, 2, &second))
		return false;
	while (isspace((unsigned char)**at))
		(*at)++;
	if (skip_word(at, "pm"))
		hour += hour == 12 ? 0 : 12;
	else if (skip_word(at, "am") && hour == 12)
		hour = 0;
	m->hour = hour;
	m->minute = minute;
	m->second = second;
	return hour < 24 && minute < 60 && second < 60;
}

/* "YYYY-MM-DD", "MMDDYY", "MM/DD/YY", "MM.DD", … */
static bool take_date(const char **at, struct moment *m)
{
	int year = -1, month, day;

	if (strspn(*at, "0123456789") == 4 && (*at)[4] == '-') {
		if (!take_digits(at, 4, &year) || !take_mark(at, "-") ||
		    !take_digits(at, 2, &month) || !take_mark(at, "-") || !take_digits(at, 2, &day))
			return false;
		year -= 1900;
	} else {
		if (!take_digits(at, 2, &month))
			return false;
		take_mark(at, "/.");
		if (!take_digits(at, 2, &day))
			return false;
		take_mark(at, "/.");
		if (take_digits(at, 2, &year))
			year += 100;
		else
			year = -1;
	}
	m->month = month - 1;
	m->day = day;
	m->year = year;
	return month >= 1 && month <= 12 && day >= 1 && day <= 31;
}

static bool take_piece(const char **at, struct moment *m, time_t now)
{
	static const struct {
		const char *word;
		int hour;
	} hours[] = {
		{ "midnight", 0 },
		{ "noon", 12 },
		{ "fika", 15 },
		{ "teatime", 16 },
	};

	for (size_t i = 0; i < sizeof(hours) / sizeof(hours[0]); i++) {
		if (skip_word(at, hours[i].word)) {
			m->hour = hours[i].hour;
			m->minute = m->second = 0;
			return true;
		}
	}
	if (skip_word(at, "today")) {
		take_day(m, now);
		return true;
	}
	if (skip_word(at, "tomorrow")) {
		take_day(m, now + 86400);
		return true;
	}
	if (skip_word(at, "now"))
		return take_offset(at, m, now);
	if (!isdigit((unsigned char)**at))
		return false;
	if ((*at)[1] == ':' || ((*at)[1] && (*at)[2] == ':'))
		return take_clock(at, m);
	return take_date(at, m);
}

/* What was not said: the soonest. */
static void fill_in(struct moment *m, time_t now)
{
	struct tm tm;
	int today;

	localtime_r(&now, &tm);
	today = tm.tm_hour * 60 + tm.tm_min;
	if (m->hour < 0)
		m->hour = m->minute = 0;
	if (m->month < 0)
		take_day(m, m->hour * 60 + m->minute > today ? now : now + 86400);
	if (m->year < 0) {
		bool later = m->month != tm.tm_mon  ? m->month > tm.tm_mon
			     : m->day != tm.tm_mday ? m->day > tm.tm_mday
						    : m->hour * 60 + m->minute > today;

		m->year = tm.tm_year + !later;
	}
}

int sbatch_moment(const char *text, time_t now, time_t *out, struct err *err)
{
	struct moment m = { -1, -1, 0, -1, -1, -1 };
	const char *at = text;
	struct tm tm = { .tm_isdst = -1 };
	bool good = true;

	if (strncasecmp(text, "uts", 3) == 0) {
		int64_t when = 0;

		if (sbatch_number(text + 3, 1000000, INT64_MAX / 2, &when, err) < 0)
			return -1;
		*out = (time_t)when;
		return 0;
	}
	while (good && *at) {
		if (isblank((unsigned char)*at) || *at == '-' || *at == 'T')
			at++;
		else
			good = take_piece(&at, &m, now);
	}
	if (!good || (m.hour < 0 && m.month < 0))
		return err_set(
			err, ERR_USAGE,
			"\"%.40s\": must be a time like \"16:00\", \"tomorrow\", \"now+1hour\" "
			"or \"2030-01-20T12:34:00\"",
			text);
	fill_in(&m, now);
	tm.tm_sec = m.second;
	tm.tm_min = m.minute;
	tm.tm_hour = m.hour;
	tm.tm_mday = m.day;
	tm.tm_mon = m.month;
	tm.tm_year = m.year;
	*out = mktime(&tm);
	return *out < 0 ? err_set(err, ERR_USAGE, "\"%.40s\": there is no such time", text) : 0;
}

/* --- amounts ---------------------------------------------------------------------------------- */

int sbatch_megabytes(const char *text, int64_t *out_mb, struct err *err)
{
	static const char units[] = "kmgt";
	char *end;
	long long value = strtoll(text, &end, 10);
	const char *unit = *end ? strchr(units, tolower((unsigned char)*end)) : units + 1;
	bool good = end != text && value >= 0 && value < (1LL << 40) && unit;

	if (good && *end) {
		end++;
		end += *end == 'b' || *end == 'B';
		good = *end == '\0';
	}
	if (!good)
		return err_set(
			err, ERR_USAGE,
			"\"%.40s\": must be an amount like \"16G\" (K, M, G, T; bare: megabytes)",
			text);
	*out_mb = unit == units ? (value + 1023) / 1024 : value << (10 * (unit - units - 1));
	return 0;
}

static bool take_count(const char **at, int64_t *out)
{
	if (!isdigit((unsigned char)**at))
		return false;
	*out = digits(at);
	if (**at == 'k' || **at == 'K' || **at == 'm' || **at == 'M')
		*out *= tolower((unsigned char)*(*at)++) == 'k' ? 1024 : 1048576;
	return *out <= INT_MAX;
}

int sbatch_nodes(const char *text, int64_t *out_min, int64_t *out_max, struct err *err)
{
	const char *at = text;
	int64_t min = 1, max;
	bool good = take_count(&at, &min);

	max = min = good ? min : 1;
	if (!good && *at == '-') /* "-4": at most four */
		good = true;
	if (good && *at == '-') {
		at++;
		max = 0;
		good = *at == '\0' || take_count(&at, &max);
	}
	while (isspace((unsigned char)*at))
		at++;
	if (!good || *at || (max && max < min))
		return err_set(err, ERR_USAGE,
			       "\"%.40s\": must be a number of nodes like \"4\" or \"2-4\"", text);
	*out_min = min;
	*out_max = max;
	return 0;
}

int sbatch_signal_number(const char *text, int64_t *out, struct err *err)
{
	static const struct {
		const char *name;
		int number;
	} names[] = {
		{ "HUP", SIGHUP },   { "INT", SIGINT },   { "QUIT", SIGQUIT }, { "ABRT", SIGABRT },
		{ "KILL", SIGKILL }, { "ALRM", SIGALRM }, { "TERM", SIGTERM }, { "USR1", SIGUSR1 },
		{ "USR2", SIGUSR2 }, { "URG", SIGURG },   { "CONT", SIGCONT }, { "STOP", SIGSTOP },
		{ "TSTP", SIGTSTP }, { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU },
	};
	const char *name = strncasecmp(text, "SIG", 3) == 0 ? text + 3 : text;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		if (strcasecmp(name, names[i].name) == 0) {
			*out = names[i].number;
			return 0;
		}
	}
	if (isdigit((unsigned char)*text))
		return sbatch_number(text, 1, 0xffff, out, err);
	return err_set(err, ERR_USAGE, "\"%.20s\": must be a signal like USR1, TERM or 10", text);
}

/* --- lists ------------------------------------------------------------------------------------ */

enum { MAX_NODES = 1 << 16 };

struct names {
	char **items;
	size_t count, room;
};

static int by_name(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool names_add(struct names *n, char *name)
{
	if (n->count >= MAX_NODES) {
		free(name);
		return false;
	}
	if (n->count == n->room) {
		n->room = n->room ? 2 * n->room : 16;
		n->items = xrealloc(n->items, n->room * sizeof(char *));
	}
	n->items[n->count++] = name;
	return true;
}

/* One range "007-012" of a bracket, each value put before what follows the bracket. */
static bool add_name(struct names *n, const char *head, size_t head_len, const char *rest);

static bool add_range(struct names *n, const char *head, size_t head_len, const char *range,
		      size_t len, const char *rest)
{
	char low[12] = "", high[12] = "";
	const char *dash = memchr(range, '-', len);
	size_t low_len = dash ? (size_t)(dash - range) : len;
	size_t high_len = dash ? len - low_len - 1 : len;
	bool good = low_len > 0 && low_len < 10 && high_len > 0 && high_len < 10;

	if (!good)
		return false;
	memcpy(low, range, low_len);
	memcpy(high, dash ? dash + 1 : range, high_len);
	if (strspn(low, "0123456789") != low_len || strspn(high, "0123456789") != high_len)
		return false;
	for (long i = strtol(low, NULL, 10); good && i <= strtol(high, NULL, 10); i++) {
		char *name = xasprintf("%.*s%0*ld", (int)head_len, head, (int)low_len, i);

		good = add_name(n, name, strlen(name), rest);
		free(name);
	}
	return good;
}

/* `rest` ends at a comma outside of brackets or at the end of the text. */
static bool add_name(struct names *n, const char *head, size_t head_len, const char *rest)
{
	size_t plain = strcspn(rest, "[,"), inside;
	char *joined = xasprintf("%.*s%.*s", (int)head_len, head, (int)plain, rest);
	bool good = true;

	if (rest[plain] != '[')
		return names_add(n, joined);
	rest += plain + 1;
	inside = strcspn(rest, "]");
	good = rest[inside] == ']';
	for (const char *at = rest; good && at < rest + inside;) {
		size_t len = strcspn(at, ",]");

		good = add_range(n, joined, strlen(joined), at, len, rest + inside + 1);
		at += len + 1;
	}
	free(joined);
	return good && inside > 0;
}

int sbatch_node_count(const char *text, int64_t *out, struct err *err)
{
	struct names n = { 0 };
	bool good = true;

	for (const char *at = text; good && *at;) {
		size_t len = 0;
		int depth = 0;

		while (at[len] && (at[len] != ',' || depth > 0)) {
			depth += (at[len] == '[') - (at[len] == ']');
			len++;
		}
		good = len == 0 || add_name(&n, "", 0, at);
		at += len + (at[len] == ',');
	}
	if (n.count > 1)
		qsort(n.items, n.count, sizeof(char *), by_name);
	*out = n.count > 0;
	for (size_t i = 1; i < n.count; i++)
		*out += strcmp(n.items[i - 1], n.items[i]) != 0;
	for (size_t i = 0; i < n.count; i++)
		free(n.items[i]);
	free(n.items);
	if (good && *out > 0)
		return 0;
	return err_set(err, ERR_USAGE, "\"%.60s\": must be a list of nodes like \"n[1-3],login\"",
		       text);
}

static int by_index(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* "7", "0-15", "0-20:4": adds them, at most `max` in all. */
static bool add_indices(struct sbatch_indices *to, const char **at, int64_t max, bool is_kept)
{
	int64_t low, high, step = 1, more;
	bool good = isdigit((unsigned char)**at);

	high = low = digits(at);
	if (good && **at == '-') {
		++*at;
		good = isdigit((unsigned char)**at);
		high = digits(at);
		if (good && **at == ':') {
			++*at;
			step = digits(at);
		}
	}
	if (!good || low > high || step <= 0 || (high - low) / step >= max - (int64_t)to->count)
		return false;
	more = (high - low) / step + 1;
	if (is_kept)
		to->items = xrealloc(to->items, (to->count + (size_t)more) * sizeof(*to->items));
	for (int64_t i = 0; is_kept && i < more; i++)
		to->items[to->count + (size_t)i] = low + i * step;
	to->count += (size_t)more;
	return true;
}

static void sort_indices(struct sbatch_indices *list)
{
	size_t kept = 1;

	qsort(list->items, list->count, sizeof(*list->items), by_index);
	for (size_t i = 1; i < list->count; i++)
		if (list->items[i] != list->items[kept - 1])
			list->items[kept++] = list->items[i];
	list->count = kept;
}

int sbatch_array(const char *text, int64_t max, struct sbatch_indices *out, struct err *err)
{
	static const char what[] = "must be array indices like \"0-15\", \"1,3,5\", \"0-20:4\" or "
				   "\"1-10%2\"";
	struct sbatch_indices all = { 0 };
	const char *at = text;
	bool good;

	at += *at == '[';
	do
		good = add_indices(&all, &at, max, out != NULL);
	while (good && *at == ',' && at++);
	at += good && *at == ']';
	if (good && *at == '%') {
		at++;
		good = isdigit((unsigned char)*at);
		all.limit = digits(&at);
	}
	if (!good || *at != '\0') {
		free(all.items);
		return err_set(err, ERR_USAGE, "\"%.60s\": %s, at most %lld of them", text, what,
			       (long long)max);
	}
	if (out) {
		sort_indices(&all);
		*out = all;
	}
	return 0;
}
