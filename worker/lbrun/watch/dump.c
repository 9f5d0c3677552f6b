/* SPDX-License-Identifier: MIT */
/* dump.c - writes down the processes below lbrun: states, stacks, command lines.
 *
 * What can block comes last: the memory of a process (its command line, debuggers) may be locked by
 * the very thing that hangs. */
#include "worker/lbrun/watch/dump.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbrun/watch/stacks.h"
#include "worker/lbrun/trainer/trainer.h"

enum {
	TEXT_MAX_BYTES = 16 * 1024,
	THREADS_MAX = 512, /* of one process */
	DEBUGGED_MAX = 64, /* processes */
	AWAIT_STEP_MS = 20,
};

/* --- /proc ------------------------------------------------------------------------------------ */

/* The file in one piece, NULs as spaces; the length, or -1. */
static ssize_t read_text(char *out, size_t size, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t len = 0;
	ssize_t n = fd < 0 ? -1 : 1;

	while (fd >= 0 && len < size - 1 && (n = read(fd, out + len, size - 1 - len)) > 0)
		len += (size_t)n;
	out[len] = '\0';
	if (fd >= 0) {
		int saved = errno;

		close(fd);
		errno = saved;
	}
	for (size_t i = 0; i < len; i++) {
		if (out[i] == '\0')
			out[i] = ' ';
	}
	return n < 0 ? -1 : (ssize_t)len;
}

/* "label: text", each further line indented. */
static void put(FILE *out, const char *folder, const char *name, const char *label)
{
	char *path = path_join("%s/%s", folder, name);
	char text[TEXT_MAX_BYTES];

	if (read_text(text, sizeof(text), path) < 0) {
		fprintf(out, "%s(%s: %s)\n", label, name, strerror(errno));
	} else {
		char *rest = text;
		const char *line;

		while ((line = strsep(&rest, "\n"))) {
			if (line[0])
				fprintf(out, "%s%s\n", label, line);
		}
	}
	free(path);
}

/* The one line of a status file that begins with `key`. */
static void put_status_line(FILE *out, const char *folder, const char *key)
{
	char *path = path_join("%s/status", folder);
	char text[TEXT_MAX_BYTES];
	const char *line = NULL;

	if (read_text(text, sizeof(text), path) > 0)
		line = strstr(text, key);
	if (line)
		fprintf(out, "%.*s  ", (int)strcspn(line, "\n"), line);
	free(path);
}

static void put_thread(FILE *out, const char *folder, const char *tid, bool has_stack)
{
	fprintf(out, "  thread %s  ", tid);
	put_status_line(out, folder, "Name:");
	put_status_line(out, folder, "State:");
	put(out, folder, "wchan", "waits in ");
	if (has_stack)
		put(out, folder, "stack", "    ");
}

/* Kernel stacks are for root alone on most systems: tried once, not a thousand times. */
static bool can_read_stack(const char *folder)
{
	char *path = path_join("%s/stack", folder);
	char text[TEXT_MAX_BYTES];
	bool can = read_text(text, sizeof(text), path) >= 0;

	free(path);
	return can;
}

static void put_threads(FILE *out, const char *folder)
{
	char *tasks = path_join("%s/task", folder);
	DIR *dir = opendir(tasks);
	bool has_stack = can_read_stack(folder);
	const struct dirent *entry;
	int count = 0;

	while (dir && (entry = readdir(dir)) && count < THREADS_MAX) {
		char *task;

		if (entry->d_name[0] == '.')
			continue;
		task = path_join("%s/%s", tasks, entry->d_name);
		put_thread(out, task, entry->d_name, has_stack);
		free(task);
		count++;
	}
	if (dir)
		closedir(dir);
	if (!has_stack)
		put(out, folder, "stack", "  kernel stack ");
	free(tasks);
}

static void put_process(FILE *out, pid_t pid)
{
	char *folder = path_join("/proc/%d", (int)pid);

	fprintf(out, "\n--- process %d\n", (int)pid);
	put(out, folder, "comm", "comm ");
	put(out, folder, "status", "  ");
	put_threads(out, folder);
	fflush(out);
	free(folder);
}

static void put_command(FILE *out, pid_t pid)
{
	char *folder = path_join("/proc/%d", (int)pid);

	fprintf(out, "%d", (int)pid);
	put(out, folder, "cmdline", "  ");
	fflush(out);
	free(folder);
}

/* --- debuggers -------------------------------------------------------------------------------- */

static const struct debugger {
	const char *program;
	bool is_for_python;
	const char *const args[10]; /* NULL in the middle = the pid */
	size_t count;
} debuggers[] = {
	{ "py-spy", true, { "py-spy", "dump", "--pid", NULL }, 4 },
	{ "gdb",
	  false,
	  { "gdb", "-nx", "-batch", "-ex", "set pagination off", "-p", NULL, "-ex",
	    "thread apply all bt 64" },
	  9 },
};

static bool is_python(pid_t pid)
{
	char *path = path_join("/proc/%d/comm", (int)pid);
	char text[64];
	bool is = read_text(text, sizeof(text), path) > 0 && strncmp(text, "python", 6) == 0;

	free(path);
	return is;
}

void dump_await(pid_t pid, int64_t ms)
{
	int64_t until_ms = clock_mono_ms() + ms;
	pid_t ended;

	while ((ended = waitpid(pid, NULL, WNOHANG)) == 0 && clock_mono_ms() < until_ms)
		poll(NULL, 0, AWAIT_STEP_MS);
	if (ended != 0)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void __attribute__((noreturn))
debugger_child(const struct debugger *d, pid_t pid, int out, pid_t parent)
{
	char *argv[sizeof(d->args) / sizeof(d->args[0]) + 1] = { NULL };
	int null = open("/dev/null", O_RDONLY);

	child_begin(parent);
	for (size_t i = 0; i < d->count; i++)
		argv[i] = d->args[i] ? xstrdup(d->args[i]) : xasprintf("%d", (int)pid);
	/* It must not go and ask a server for symbols. */
	unsetenv("DEBUGINFOD_URLS");
	if (null >= 0 && dup2(null, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0)
		execvp(d->program, argv);
	_exit(127);
}

static void debug(FILE *out, const struct debugger *d, pid_t pid)
{
	pid_t parent = getpid();
	pid_t child;

	fprintf(out, "\n--- %s on %d\n", d->program, (int)pid);
	fflush(out);
	child = fork();
	if (child == 0)
		debugger_child(d, pid, fileno(out), parent);
	if (child > 0)
		dump_await(child, STACKS_DEBUGGER_MS);
}

static void debug_all(FILE *out, const struct debugger *d, const pid_t *pids, size_t count,
		      int64_t until_ms)
{
	if (!path_has_program(getenv("PATH"), d->program))
		return;
	for (size_t i = 0; i < count && i < DEBUGGED_MAX; i++) {
		if (clock_mono_ms() >= until_ms) {
			fprintf(out, "\n%s: no time for the other processes\n", d->program);
			return;
		}
		if (!d->is_for_python || is_python(pids[i]))
			debug(out, d, pids[i]);
	}
}

/* --- all of it -------------------------------------------------------------------------------- */

void dump_processes(FILE *out, const pid_t *pids, size_t count, int64_t until_ms)
{
	for (size_t i = 0; i < count; i++)
		put_process(out, pids[i]);
	fprintf(out, "\n--- command lines\n");
	for (size_t i = 0; i < count; i++)
		put_command(out, pids[i]);
	for (size_t i = 0; i < sizeof(debuggers) / sizeof(debuggers[0]); i++)
		debug_all(out, &debuggers[i], pids, count, until_ms);
}
