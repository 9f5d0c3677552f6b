/* SPDX-License-Identifier: MIT */
/* find.h - which runs have a folder. */
#ifndef DAEMON_RECOVER_FIND_H
#define DAEMON_RECOVER_FIND_H

#include <stddef.h>
#include <stdint.h>

/* a run's folder */
struct found {
	char *name;
	int64_t created_ms;
};

/* The runs below this folder, oldest first. */
struct found *find_runs(const char *folder, size_t *count);
void free_runs(struct found *all, size_t count);
/* When the file was changed last; 0: it is not there. */
int64_t mtime_ms(const char *path);

#endif
