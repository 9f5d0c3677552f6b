/* SPDX-License-Identifier: MIT */
/* compat_rows.h - other spellings, and keys whose value is what we do anyway. */
#ifndef WORKER_LBWORKER_CONFIG_COMPAT_ROWS_H
#define WORKER_LBWORKER_CONFIG_COMPAT_ROWS_H

#include <stddef.h>

struct compat_renamed {
	const char *from, *to;
};
extern const struct compat_renamed compat_renamed[];
extern const size_t compat_renamed_count;

struct compat_neutral {
	const char *key, *values;
};
extern const struct compat_neutral compat_neutral[];
extern const size_t compat_neutral_count;

#endif
