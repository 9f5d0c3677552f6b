/* SPDX-License-Identifier: MIT */
/* amounts.c - a number and its unit, read to the last character: what is left over is refused. */
#include "common/config/amounts.h"

#include <string.h>

#include "common/config/keys.h"

#define WEEK_MS (7 * 86400e3)

enum { PART_DIGITS = 9, BYTES_DIGITS = 18 };

/* Digits at *at, at most so many of them; -1 when there is none. */
static int64_t digits(const char **at, int most)
{
	int64_t value = 0;
	int count = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (++count > most)
			return -1;
		value = value * 10 + (**at - '0');
	}
	return count ? value : -1;
}

int64_t bytes_parse(const char *text, struct err *err)
{
	static const char suffixes[] = "KMGTP";
	const char *at = text, *suffix = NULL;
	int64_t value = digits(&at, BYTES_DIGITS);
	int shift;

	if (value >= 0 && *at)
		suffix = strchr(suffixes, *at >= 'a' ? *at - 'a' + 'A' : *at);
	shift = suffix ? 10 * (int)(suffix - suffixes + 1) : 0;
	if (value < 0 || (*at && (!suffix || at[1] != '\0')) || value > INT64_MAX >> shift)
		return err_set(err, ERR_USAGE,
			       "\"%.40s\" is no size; write it like \"500G\" or \"2T\"", text);
	return value << shift;
}

int64_t mem_parse_mb(const char *text, struct err *err)
{
	static const char suffixes[] = "KMGT";
	const char *at = text, *suffix = NULL;
	int64_t value = digits(&at, PART_DIGITS);

	if (value >= 0 && *at)
		suffix = strchr(suffixes, *at >= 'a' ? *at - 'a' + 'A' : *at);
	if (value < 0 || (*at && (!suffix || at[1] != '\0')))
		return err_set(err, ERR_USAGE,
			       "\"%.40s\" is no amount of memory; write it like \"16G\", \"512M\" "
			       "or \"1024\" (megabytes)",
			       text);
	if (!suffix || *suffix == 'M')
		return value;
	if (*suffix == 'K')
		return (value + 1023) / 1024;
	return *suffix == 'G' ? value * 1024 : value * 1024 * 1024;
}

/* Slurm's own forms: M, M:S, H:M:S, D-H, D-H:M, D-H:M:S. The value in ms, or -1. */
static int64_t slurm_time_ms(const char *text)
{
	const char *at = text;
	int64_t part[3] = { 0 }, days = 0;
	int count = 0;
	bool with_days = strchr(text, '-') != NULL;

	if (with_days) {
		days = digits(&at, PART_DIGITS);
		if (days < 0 || days > 36500 || *at++ != '-')
			return -1;
	}
	while (count < 3) {
		part[count] = digits(&at, PART_DIGITS);
		if (part[count++] < 0)
			return -1;
		if (*at != ':')
			break;
		at++;
	}
	if (*at != '\0')
		return -1;
	if (with_days || count == 3)
		return ((days * 24 + part[0]) * 3600 + part[1] * 60 + part[2]) * 1000;
	return (part[0] * 60 + part[1]) * 1000;
}

int time_limit_parse(const char *text, int64_t *out_ms, struct err *err)
{
	*out_ms = slurm_time_ms(text);
	if (*out_ms < 0 && duration_parse(text, out_ms, NULL) < 0)
		return err_set(err, ERR_USAGE,
			       "\"%.40s\" is no time limit; write it like \"20h\", \"2d\" or "
			       "\"D-HH:MM:SS\"",
			       text);
	if (*out_ms < 1000 || (double)*out_ms > 52 * WEEK_MS)
		return err_set(err, ERR_USAGE, "must be from one second to 52 weeks");
	return 0;
}
