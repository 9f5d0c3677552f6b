/* SPDX-License-Identifier: MIT */
/* procs.c - a process is its pid and the time of its start, from /proc. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/procs.h"

/* what we want of /proc/PID/stat */
struct proc_stat {
	int64_t pid, parent, session, start_ticks;
	char state;
};

enum { FIELD_STATE = 3, FIELD_PARENT = 4, FIELD_SESSION = 6, FIELD_START = 22 };

/* Field 2, the program's name in brackets, may hold anything: count on from the last bracket. */
static int parse_stat(char *text, struct proc_stat *out)
{
	char *end = strrchr(text, ')'), *save = NULL;
	int field = FIELD_STATE;

	for (char *w = end ? strtok_r(end + 1, " ", &save) : NULL; w;
	     w = strtok_r(NULL, " ", &save)) {
		if (field == FIELD_STATE)
			out->state = *w;
		else if (field == FIELD_PARENT)
			out->parent = strtoll(w, NULL, 10);
		else if (field == FIELD_SESSION)
			out->session = strtoll(w, NULL, 10);
		else if (field == FIELD_START)
			out->start_ticks = strtoll(w, NULL, 10);
		field++;
	}
	return field > FIELD_START ? 0 : -1;
}

static int read_stat(int64_t pid, struct proc_stat *out)
{
	char path[64], *text;
	int rc;

	snprintf(path, sizeof(path), "/proc/%lld/stat", (long long)pid);
	text = file_read(path, 4096, NULL, NULL);
	rc = text ? parse_stat(text, out) : -1;
	out->pid = pid;
	free(text);
	return rc;
}

/* The boot of this machine does not change while we run. */
static const char *boot_id(void)
{
	static char id[BOOT_ID_BYTES];

	if (!id[0]) {
		char *text = file_read("/proc/sys/kernel/random/boot_id", 256, NULL, NULL);

		snprintf(id, sizeof(id), "%.36s", text ? text : "unknown");
		id[strcspn(id, "\n")] = '\0';
		free(text);
	}
	return id;
}

int proc_name_of(int64_t pid, struct proc_name *out)
{
	struct proc_stat st;

	memset(out, 0, sizeof(*out));
	if (read_stat(pid, &st))
		return -1;
	out->pid = pid;
	out->start_ticks = st.start_ticks;
	snprintf(out->boot_id, sizeof(out->boot_id), "%s", boot_id());
	return 0;
}

bool proc_is_alive(const struct proc_name *name)
{
	struct proc_stat st;

	return name->pid > 0 && strcmp(name->boot_id, boot_id()) == 0 &&
	       read_stat(name->pid, &st) == 0 && st.start_ticks == name->start_ticks &&
	       st.state != 'Z' && st.state != 'X';
}

bool pid_is_gone(int64_t pid)
{
	struct proc_stat st;

	if (kill((pid_t)pid, 0) != 0 && errno == ESRCH)
		return true;
	return read_stat(pid, &st) == 0 && (st.state == 'Z' || st.state == 'X');
}

/* The pidfd is taken first and the identity checked after: the process that is signalled is the one
 * that was checked, even if it dies and its pid is reused in between. */
int proc_signal(const struct proc_name *name, int signo)
{
	int fd, rc;

	if (name->pid <= 0)
		return -1;
	fd = (int)syscall(SYS_pidfd_open, (pid_t)name->pid, 0);
	if (fd < 0 && errno == ESRCH)
		return -1;
	if (!proc_is_alive(name))
		rc = -1;
	else if (fd < 0)
		rc = kill((pid_t)name->pid,
			  signo); /* Linux before 5.3, old filters of containers */
	else
		rc = (int)syscall(SYS_pidfd_send_signal, fd, signo, NULL, 0);
	if (fd >= 0)
		close(fd);
	return rc ? -1 : 0;
}

struct family {
	struct proc_stat *all;
	bool *is_member;
	size_t count;
};

/* 0: an entry of /proc that is no process. */
static int64_t pid_of(const struct dirent *entry)
{
	char *end;
	long long pid = strtoll(entry->d_name, &end, 10);

	return *end || pid < 0 ? 0 : pid;
}

static void family_read(struct family *f)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t cap = 0;

	memset(f, 0, sizeof(*f));
	while (dir && (entry = readdir(dir))) {
		int64_t pid = pid_of(entry);

		if (pid <= 1)
			continue;
		if (f->count == cap) {
			cap = cap ? 2 * cap : 256;
			f->all = xrealloc(f->all, cap * sizeof(*f->all));
		}
		if (read_stat(pid, &f->all[f->count]) == 0)
			f->count++;
	}
	if (dir)
		closedir(dir);
	f->is_member = xcalloc(f->count + 1, sizeof(*f->is_member));
}

static bool belongs(const struct family *f, const struct proc_stat *p, int64_t root)
{
	if (p->session == root || p->parent == root)
		return true;
	for (size_t i = 0; i < f->count; i++)
		if (f->is_member[i] && f->all[i].pid == p->parent)
			return true;
	return false;
}

/* Marks until nothing new is found: a child may stand before its parent in the list. */
static void family_mark(struct family *f, int64_t root)
{
	bool is_growing = true;

	while (is_growing) {
		is_growing = false;
		for (size_t i = 0; i < f->count; i++) {
			if (f->is_member[i] || f->all[i].pid == root ||
			    !belongs(f, &f->all[i], root))
				continue;
			f->is_member[i] = true;
			is_growing = true;
		}
	}
}

/* The root goes last: with it, its descendants in other sessions could not be told any more. It is
 * stopped first, so that it starts no new ones. */
void proc_kill_family(const struct proc_name *name)
{
	struct family f;

	if (proc_signal(name, SIGSTOP))
		return;
	family_read(&f);
	family_mark(&f, name->pid);
	for (size_t i = 0; i < f.count; i++) {
		struct proc_name member = { f.all[i].pid, f.all[i].start_ticks, "" };

		snprintf(member.boot_id, sizeof(member.boot_id), "%s", boot_id());
		if (f.is_member[i])
			proc_signal(&member, SIGKILL);
	}
	free(f.all);
	free(f.is_member);
	proc_signal(name, SIGKILL);
}

enum { ENVIRON_MAX_BYTES = 4 << 20 };

/* Settings are separated by NULs. */
static bool has_setting(int64_t pid, const char *setting)
{
	char path[64], *text;
	size_t len = 0, want = strlen(setting) + 1;
	bool found = false;

	snprintf(path, sizeof(path), "/proc/%lld/environ", (long long)pid);
	text = file_read(path, ENVIRON_MAX_BYTES, &len, NULL);
	if (text == NULL)
		return false;
	for (size_t at = 0; at < len && !found; at += strlen(text + at) + 1)
		found = at + want <= len + 1 && strcmp(text + at, setting) == 0;
	free(text);
	return found;
}

/* Most of a machine's processes carry no mark: no more is read of them. One that does may end at
 * any moment, and another get its number: it is named, and then looked at again. */
size_t procs_marked(const char *setting, int signo)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	size_t count = 0;

	while (dir && (entry = readdir(dir))) {
		int64_t pid = pid_of(entry);
		struct proc_name name;

		if (pid <= 1 || pid == getpid() || !has_setting(pid, setting) ||
		    proc_name_of(pid, &name) || !has_setting(pid, setting) || !proc_is_alive(&name))
			continue;
		count++;
		if (signo)
			proc_signal(&name, signo);
	}
	if (dir)
		closedir(dir);
	return count;
}

int64_t proc_find_by_fd(int fd, const char *path)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int64_t found = 0;

	while (dir && !found && (entry = readdir(dir))) {
		char link[64], target[4096];
		int64_t pid = pid_of(entry);
		ssize_t len;

		if (pid == 0)
			continue;
		snprintf(link, sizeof(link), "/proc/%lld/fd/%d", (long long)pid, fd);
		len = readlink(link, target, sizeof(target) - 1);
		if (len < 0)
			continue;
		target[len] = '\0';
		if (strcmp(target, path) == 0)
			found = pid;
	}
	if (dir)
		closedir(dir);
	return found;
}

void proc_take_signals(void)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGCHLD, SIG_DFL);
}

const char *node_name(void)
{
	static char host[65];
	const char *node = getenv("SLURMD_NODENAME");

	gethostname(host, sizeof(host) - 1);
	return node && node[0] ? node : host;
}
