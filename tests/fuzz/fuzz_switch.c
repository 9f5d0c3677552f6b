/* SPDX-License-Identifier: MIT */
/* fuzz_switch.c - a switch that somebody left: any name, any kind of file, any text. It counts or
 * is refused, once; what counts may be printed, means what its name says, and is found by its name
 * alone, too. */
#include "tests/fuzz/fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/team/switches.h"

enum { KINDS = 8, NAME_BYTES = 250 };

static void on_refused(const char *file, uid_t uid, const char *by, const char *why, void *arg)
{
	fuzz_check(file && uid == geteuid() && by[0] && why[0]);
	for (const char *c = file; *c; c++)
		fuzz_check((unsigned char)*c >= 0x20 && *c != 0x7f);
	++*(int *)arg;
}

/* The first byte says what kind of file, then its name to the first newline, then its text. */
static bool leave(int dir, const uint8_t *data, size_t size, char name[NAME_BYTES + 1])
{
	const uint8_t *end = memchr(data, '\n', size);
	size_t len = end ? (size_t)(end - data) : size, left = end ? size - len - 1 : 0;
	int fd;

	if (len < 2 || len - 1 > NAME_BYTES || memchr(data + 1, '\0', len - 1) ||
	    memchr(data + 1, '/', len - 1))
		return false;
	memcpy(name, data + 1, len - 1);
	name[len - 1] = '\0';
	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return false;
	if (data[0] % KINDS == 1)
		return symlinkat("/etc/passwd", dir, name) == 0;
	if (data[0] % KINDS == 2)
		return mkfifoat(dir, name, 0600) == 0;
	fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		    data[0] % KINDS == 3 ? 0 : 0600);
	if (fd < 0)
		return false;
	fuzz_check(write(fd, end ? end + 1 : data, left) == (ssize_t)left);
	close(fd);
	return true;
}

static void check_one(int dir, const struct switch_rules *rules, const struct switches *all)
{
	const struct switch_file *s = &all->items[0];
	bool is_group = s->selector.kind == SELECT_GROUP, is_user = s->selector.kind == SELECT_USER;
	struct switch_run run = { s->selector.kind == SELECT_RUN ? s->selector.word : "other",
				  is_group ? s->selector.word : "",
				  is_user ? s->selector.word : "me" };
	struct switch_file named;
	bool is_order = s->level != SWITCH_SAVE, is_glob = s->selector.kind == SELECT_GLOB;

	for (const char *c = s->text; *c; c++)
		fuzz_check((unsigned char)*c >= 0x20 && *c != 0x7f);
	fuzz_check(s->by[0] && s->level < SWITCH_LEVEL_COUNT);
	fuzz_check(is_glob ||
		   (switches_find(all, run.name, run.group, run.owner) != NULL) == is_order);
	fuzz_check(is_glob || switches_lookup(dir, rules, &run, &named) == is_order);
	fuzz_check(!is_order || is_glob || strcmp(named.file, s->file) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct switch_rules rules = { .owner = geteuid() };
	struct switch_reading *reading;
	struct switches all;
	struct err err = { 0 };
	char name[NAME_BYTES + 1];
	int refused = 0, dir;
	static int made;

	if (!made)
		fuzz_check((made = mkdir(fuzz_path("switches"), 0700) == 0));
	dir = switches_open(fuzz_path("switches"), &rules, &err);
	fuzz_check(dir >= 0);
	if (leave(dir, data, size, name)) {
		reading = switches_begin(dir, &rules, NULL, &err);
		fuzz_check(reading &&
			   switches_step(reading, 1000, on_refused, &refused, &err) == 0);
		switches_end(reading, &all);
		fuzz_check(name[0] == '.' || strcmp(name, "README") == 0 ||
			   all.count + (size_t)refused == 1);
		if (all.count == 1)
			check_one(dir, &rules, &all);
		switches_clear(&all);
		fuzz_check(unlinkat(dir, name, 0) == 0);
	}
	close(dir);
	return 0;
}
