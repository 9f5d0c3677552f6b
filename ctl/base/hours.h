/* SPDX-License-Identifier: MIT */
/* hours.h - the parts into which goodput cuts a run's hours. */
#ifndef CTL_BASE_HOURS_H
#define CTL_BASE_HOURS_H

enum { HOURS_PARTS = 8 };

struct hours_part {
	const char *name;  /* the member of "hours" and "gpu_hours" (docs/PROTOCOL.md) */
	const char *words; /* what people see */
	const char
		*title; /* of a column, where there is little room; NULL: it is known by others */
	int rank;       /* the highest is left out first (text.h) */
};

extern const struct hours_part hours_parts[HOURS_PARTS];

#endif
