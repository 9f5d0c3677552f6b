/* SPDX-License-Identifier: MIT */
/* lease.c - the lease as text, and what is known of its holder. */
#include "common/run/lease.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/procs.h"

enum { LEASE_VERSION = 1 };

/* clang-format off */
#define INT_ROW(member) {#member, offsetof(struct lease, member), 0}
#define TEXT_ROW(member) {#member, offsetof(struct lease, member), sizeof(((struct lease *)0)->member)}
/* clang-format on */

static const struct {
	const char *name;
	size_t offset, bytes; /* bytes 0: an int64_t */
} members[] = {
	INT_ROW(generation), TEXT_ROW(nonce),      TEXT_ROW(host),    TEXT_ROW(boot_id),
	INT_ROW(pid),        INT_ROW(start_ticks), INT_ROW(job_id),   INT_ROW(since_ms),
	INT_ROW(renewed_ms), INT_ROW(ended_ms),    INT_ROW(lease_ms), TEXT_ROW(version),
	TEXT_ROW(log),       TEXT_ROW(why),
};
enum { MEMBERS = sizeof(members) / sizeof(members[0]) };

char *lease_path(const char *home, int64_t generation)
{
	if (generation > 0)
		return path_join("%s/lbd.lease.%lld", home, (long long)generation);
	return path_join("%s/lbd.lease", home);
}

static void take_member(struct lease *out, size_t i, const json_t *o)
{
	char *at = (char *)out + members[i].offset;

	if (members[i].bytes > 0)
		snprintf(at, members[i].bytes, "%s", js_str(o, members[i].name, ""));
	else
		*(int64_t *)(void *)at = js_int(o, members[i].name, 0);
}

int lease_read(const char *path, struct lease *out, struct err *err)
{
	json_t *o = js_load(path, LEASE_BYTES, err);
	int rc = 0;

	memset(out, 0, sizeof(*out));
	if (o == NULL)
		return -1;
	for (size_t i = 0; i < MEMBERS; i++)
		take_member(out, i, o);
	if (out->generation < 1 || out->nonce[0] == '\0')
		rc = err_set(err, ERR_USAGE, "%s: this is no lease of an lbd", path);
	json_decref(o);
	return rc;
}

static json_t *to_json(const struct lease *lease)
{
	json_t *o = json_pack("{s:i}", "v", LEASE_VERSION);

	for (size_t i = 0; i < MEMBERS; i++) {
		const char *at = (const char *)lease + members[i].offset;

		if (members[i].bytes > 0)
			js_set_str(o, members[i].name, at);
		else
			js_set_int(o, members[i].name, *(const int64_t *)(const void *)at);
	}
	return o;
}

/* The log is the only text that may be long, and the first to be left out. */
void lease_print(const struct lease *lease, char out[LEASE_BYTES])
{
	json_t *o = to_json(lease);
	char *line = js_line(o), padded[LEASE_BYTES + 1];

	if (strlen(line) >= LEASE_BYTES) {
		js_set_str(o, "log", "");
		free(line);
		line = js_line(o);
	}
	snprintf(padded, sizeof(padded), "%-*s\n", LEASE_BYTES - 1, line);
	memcpy(out, padded, LEASE_BYTES);
	free(line);
	json_decref(o);
}

void lease_set_here(struct lease *lease)
{
	char *boot = file_read("/proc/sys/kernel/random/boot_id", 256, NULL, NULL);

	memset(lease->host, 0, sizeof(lease->host));
	gethostname(lease->host, sizeof(lease->host) - 1);
	snprintf(lease->boot_id, sizeof(lease->boot_id), "%.*s",
		 boot ? (int)strcspn(boot, "\n") : 0, boot ? boot : "");
	free(boot);
}

bool lease_is_here(const struct lease *lease)
{
	struct lease here;

	lease_set_here(&here);
	return strcmp(here.host, lease->host) == 0 && here.boot_id[0] != '\0' &&
	       strcmp(here.boot_id, lease->boot_id) == 0;
}

bool lease_is_alive_here(const struct lease *lease)
{
	struct proc_name name = { .pid = lease->pid, .start_ticks = lease->start_ticks };

	snprintf(name.boot_id, sizeof(name.boot_id), "%s", lease->boot_id);
	return proc_is_alive(&name);
}

bool lease_is_silent(const struct lease *lease)
{
	return clock_wall_ms() - lease->renewed_ms > 2 * lease->lease_ms;
}

char *lease_holder(const struct lease *lease)
{
	char when[CLOCK_TEXT_MAX];
	char *text = xasprintf("pid %lld on %s since %s", (long long)lease->pid, lease->host,
			       clock_text_zoned(lease->since_ms, when));
	char *whole = lease->job_id ? xasprintf("%s (job %lld)", text, (long long)lease->job_id)
				    : xstrdup(text);

	free(text);
	return whole;
}
