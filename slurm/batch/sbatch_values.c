/* SPDX-License-Identifier: MIT */
/* sbatch_values.c - sizes, counts and lists of nodes, as sbatch writes them. */
#include "slurm/batch/sbatch_values.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/compare.h"
#include "common/base/mem.h"
#include "common/base/text.h"

int64_t sbatch_digits(const char **at)
{
	int64_t value = 0;

	while (isdigit((unsigned char)**at) && value < INT_MAX)
		value = value * 10 + (*(*at)++ - '0');
	return value;
}

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
	*out = sbatch_digits(at);
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
		{ "TSTP", SIGTSTP }, { "TTIN", SIGTTIN }, { "TTOU", SIGTTOU }, { "CHLD", SIGCHLD },
		{ "PIPE", SIGPIPE },
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
	if (text_digits(low) != low_len || text_digits(high) != high_len)
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
		qsort(n.items, n.count, sizeof(char *), compare_names);
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

/* "7", "0-15", "0-20:4": adds them, at most `max` in all. */
static bool add_indices(struct sbatch_indices *to, const char **at, int64_t max, bool is_kept)
{
	int64_t low, high, step = 1, more;
	bool good = isdigit((unsigned char)**at);

	high = low = sbatch_digits(at);
	if (good && **at == '-') {
		++*at;
		good = isdigit((unsigned char)**at);
		high = sbatch_digits(at);
		if (good && **at == ':') {
			++*at;
			step = sbatch_digits(at);
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

	qsort(list->items, list->count, sizeof(*list->items), compare_int64);
	for (size_t i = 1; i < list->count; i++)
		if (list->items[i] != list->items[kept - 1])
			list->items[kept++] = list->items[i];
	list->count = kept;
}

/* "%2", once, behind any of them, is for all; "%" is what an empty variable leaves, and no limit. */
static bool take_limit(const char **at, int64_t *limit)
{
	if (**at != '%')
		return true;
	++*at;
	if (*limit > 0)
		return false;
	*limit = sbatch_digits(at);
	return **at == ',' || **at == ']' || **at == '\0';
}

/* Lists are often printed by a loop: as Slurm takes them, with a comma at the end, or blanks behind
 * commas. */
int sbatch_array(const char *text, int64_t max, struct sbatch_indices *out, struct err *err)
{
	static const char separators[] = ", ";
	static const char what[] = "must be array indices like \"0-15\", \"1,3,5\", \"0-20:4\" or "
				   "\"1-10%2\"";
	struct sbatch_indices all = { 0 };
	const char *at = text;
	bool good, is_more;

	at += *at == '[';
	at += strspn(at, separators);
	do {
		good = add_indices(&all, &at, max, out != NULL) && take_limit(&at, &all.limit);
		is_more = *at == ',';
		at += is_more ? strspn(at, separators) : 0;
	} while (good && is_more && isdigit((unsigned char)*at));
	at += good && *at == ']';
	if (!good || !take_limit(&at, &all.limit) || *at != '\0') {
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
