/* SPDX-License-Identifier: MIT */
/* record.c - values in what scontrol prints. */
#include "slurm/pipe/record.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

const char *record_value(const char *line, const char *name, size_t *len)
{
	const char *end = line + strcspn(line, "\n"), *at = line;
	size_t name_len = strlen(name);

	*len = 0;
	for (; (at = memmem(at, (size_t)(end - at), name, name_len)) != NULL; at += name_len) {
		const char *value = at + name_len + 1;

		if ((at != line && at[-1] != ' ') || value[-1] != '=')
			continue;
		*len = strcspn(value, " \n");
		if (*len && strncmp(value, "(null)", 6) != 0 && strncmp(value, "N/A", 3) != 0)
			return value;
		break;
	}
	*len = 0;
	return NULL;
}

const char *record_reason(const char *line, size_t *len)
{
	const char *reason = record_value(line, "Reason", len);

	if (!reason)
		return NULL;
	*len = strcspn(reason, "\n");
	for (size_t i = 0; i + 2 < *len; i++) {
		const char *who = reason + i + 2;

		if (strncmp(reason + i, " [", 2) == 0 && who[strcspn(who, "@] \n")] == '@')
			*len = i;
	}
	return reason;
}

const char *record_setting(const char *text, const char *name)
{
	size_t len = strlen(name);

	for (const char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL) {
		const char *value;

		if (strncmp(at, name, len) != 0) /* the text may end before it would */
			continue;
		value = at + len + strspn(at + len, " ");
		if (strncmp(value, "= ", 2) == 0)
			return value + 2;
	}
	return NULL;
}

int64_t record_number(const char *line, const char *name, int64_t none)
{
	size_t len;
	const char *value = record_value(line, name, &len);

	return value && isdigit((unsigned char)*value) ? strtoll(value, NULL, 10) : none;
}

int64_t record_minutes(const char *text)
{
	int64_t days = 0, part[3] = { 0 };
	const char *dash = strchr(text, '-');
	int parts = 0;
	char *end;

	if (!isdigit((unsigned char)*text))
		return -1;
	if (dash)
		days = strtoll(text, NULL, 10);
	for (text = dash ? dash + 1 : text; parts < 3; text = end + 1) {
		part[parts++] = strtoll(text, &end, 10);
		if (*end != ':')
			break;
	}
	if (parts == 1) /* seconds alone */
		return (days * 1440) + (part[0] + 59) / 60;
	if (parts == 2)
		return (days * 1440) + part[0] + (part[1] > 0);
	return (days * 24 + part[0]) * 60 + part[1] + (part[2] > 0);
}
