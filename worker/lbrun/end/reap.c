/* SPDX-License-Identifier: MIT */
/* reap.c - finds and kills every descendant of this process.
 *
 * One pass over /proc finds who lives now; a process that forks meanwhile is found by the next
 * pass, so callers that kill repeat until nobody is left. Only the kernel's own pid numbers are
 * used, within microseconds of reading them. */
#include "worker/lbrun/end/reap.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"

struct process {
	pid_t pid, parent;
	bool is_zombie, is_ours;
};

struct process_list {
	struct process *items;
	size_t count, cap;
};

/* "PID (name with any bytes, even brackets) STATE PPID …" */
static bool parse_stat(const char *text, struct process *out)
{
	const char *end = strrchr(text, ')');
	char state;
	int parent;

	/* NOLINTNEXTLINE(cert-err34-c): the kernel wrote it */
	if (!end || sscanf(end + 1, " %c %d", &state, &parent) != 2)
		return false;
	out->parent = parent;
	out->is_zombie = state == 'Z' || state == 'X';
	return true;
}

static bool read_process(int proc_fd, const char *pid, struct process *out)
{
	char path[64];
	char text[512];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%.40s/stat", pid);
	fd = openat(proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (n <= 0)
		return false;
	text[n] = '\0';
	*out = (struct process){ .pid = (pid_t)strtol(pid, NULL, 10) };
	return parse_stat(text, out);
}

static void list_add(struct process_list *list, const struct process *p)
{
	if (list->count == list->cap) {
		list->cap = list->cap ? list->cap * 2 : 256;
		list->items = xrealloc(list->items, list->cap * sizeof(*list->items));
	}
	list->items[list->count++] = *p;
}

static void list_all(struct process_list *list)
{
	DIR *proc = opendir("/proc");
	const struct dirent *entry;
	struct process p;

	if (!proc)
		return;
	while ((entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    read_process(dirfd(proc), entry->d_name, &p))
			list_add(list, &p);
	}
	closedir(proc);
}

static int by_pid(const void *a, const void *b)
{
	pid_t x = ((const struct process *)a)->pid;
	pid_t y = ((const struct process *)b)->pid;

	return (x > y) - (x < y);
}

static struct process *list_find(const struct process_list *list, pid_t pid)
{
	const struct process key = { .pid = pid };

	return bsearch(&key, list->items, list->count, sizeof(key), by_pid);
}

/* Marks descend from us down, one generation a round. */
static void mark_descendants(struct process_list *list, pid_t root)
{
	bool changed = true;

	while (changed) {
		changed = false;
		for (size_t i = 0; i < list->count; i++) {
			struct process *p = &list->items[i];
			const struct process *parent;

			if (p->is_ours)
				continue;
			parent = list_find(list, p->parent);
			if (p->parent == root || (parent && parent->is_ours)) {
				p->is_ours = true;
				changed = true;
			}
		}
	}
}

size_t descendants_list(pid_t root, pid_t **pids)
{
	struct process_list list = { 0 };
	size_t living = 0;

	list_all(&list);
	if (list.count > 0)
		qsort(list.items, list.count, sizeof(*list.items), by_pid);
	mark_descendants(&list, root);
	*pids = xcalloc(list.count + 1, sizeof(pid_t));
	for (size_t i = 0; i < list.count; i++) {
		if (list.items[i].is_ours && !list.items[i].is_zombie)
			(*pids)[living++] = list.items[i].pid;
	}
	free(list.items);
	return living;
}

pid_t process_parent(pid_t pid)
{
	int proc_fd = open("/proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct process p = { 0 };
	char name[16];

	snprintf(name, sizeof(name), "%d", (int)pid);
	if (!read_process(proc_fd, name, &p))
		p.parent = 0;
	close(proc_fd);
	return p.parent;
}

int descendants_signal(int signo)
{
	pid_t *pids;
	size_t living = descendants_list(getpid(), &pids);

	for (size_t i = 0; i < living; i++) {
		if (signo)
			kill(pids[i], signo);
		if (signo == SIGTERM)
			kill(pids[i], SIGCONT);
	}
	free(pids);
	return (int)living;
}
