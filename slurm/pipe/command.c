/* SPDX-License-Identifier: MIT */
/* command.c - runs one of Slurm's commands, and reads what it says. What a command prints goes into
 * memory that it writes to itself: it can neither block on us nor leave us waiting for a grandchild
 * that keeps a pipe open. */
#include "slurm/pipe/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "common/host/limits.h"
#include "slurm/wire.h"

enum {
	STATUS_NOT_STARTED = 126,
	LOOK_MS = 50,
	ERRORS_BYTES = COMMAND_SAID_BYTES / 2, /* as one line they may be half as long again */
	ASLEEP_MS = 900, /* so long nobody who sleeps for a second has done anything */
};

extern char **environ;

/* --- the process ------------------------------------------------------------------------------ */

static void __attribute__((noreturn))
child(char *const *words, char *const *env, const char *folder, int out, int errors)
{
	int null = open("/dev/null", O_RDONLY);
	sigset_t none;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0); /* a site's wrapper is ended with what it has started */
	signal(SIGPIPE, SIG_DFL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(errors, 2) == 2 &&
	    (!folder || chdir(folder) == 0)) {
		/* sbatch tells Slurm of its own: they are to be the submitter's */
		limits_take(env);
		execvpe(words[0], words, env);
	}
	_exit(STATUS_NOT_STARTED);
}

static int await(pid_t pid)
{
	int status;
	pid_t rc;

	do
		rc = waitpid(pid, &status, 0);
	while (rc < 0 && errno == EINTR);
	if (rc != pid || !WIFEXITED(status))
		return COMMAND_KILLED;
	return WEXITSTATUS(status) == STATUS_NOT_STARTED ? COMMAND_NOT_STARTED
							 : WEXITSTATUS(status);
}

/* The last `max` bytes: what a command fails of it says last. NUL-terminated, owned. */
static char *read_back(int fd, size_t max, size_t *len)
{
	struct stat st;
	size_t size = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0;
	size_t left_out = size > max ? size - max : 0;
	char *text = xmalloc(size - left_out + 1);

	*len = 0;
	while (*len < size - left_out) {
		ssize_t n = pread(fd, text + *len, size - left_out - *len,
				  (off_t)(left_out + *len));

		if (n <= 0)
			break;
		*len += (size_t)n;
	}
	text[*len] = '\0';
	return text;
}

/* --- what it said ----------------------------------------------------------------------------- */

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

static const char *const programs[] = { "sbatch: ", "squeue: ", "scontrol: ", "scancel: " };
enum { FAILURES = 2 }; /* of these say that it failed: */
static const char *const kinds[] = { "error: ", "fatal: ", "warning: ", "allocation failure: " };

static size_t head_of(const char *line, const char *const *heads, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (text_begins_with(line, heads[i]))
			return strlen(heads[i]);
	}
	return 0;
}

static const char *without_heads(const char *line)
{
	size_t len;

	line += head_of(line, programs, COUNT(programs));
	while ((len = head_of(line, kinds, COUNT(kinds))) > 0)
		line += len;
	return line;
}

/* Behind the last line by which the program itself says that it failed. */
static char *behind_failure(char *text)
{
	char *behind = text;

	for (char *line = text, *end; *line; line = end) {
		size_t head = head_of(line, programs, COUNT(programs));

		end = line + strcspn(line, "\n");
		end += *end == '\n';
		if (head > 0 && head_of(line + head, kinds, FAILURES) > 0)
			behind = end;
	}
	return behind;
}

static void add_lines(char *text, char out[COMMAND_SAID_BYTES])
{
	char *rest = text, *line;
	size_t len = strlen(out);

	while ((line = strsep(&rest, "\n")) && len < COMMAND_SAID_BYTES) {
		if (*line)
			len += (size_t)snprintf(out + len, COMMAND_SAID_BYTES - len, "%s%s",
						len ? "; " : "", without_heads(line));
	}
}

/* A filter's reason stands before the line that says that there was one, and that comes last here,
 * whatever a site's wrapper prints behind it. */
static void in_one_line(char *text, char out[COMMAND_SAID_BYTES])
{
	char *behind = behind_failure(text);

	out[0] = '\0';
	add_lines(behind, out);
	*behind = '\0';
	add_lines(text, out);
}

static bool has_said(int errors, const char *says)
{
	size_t len;
	char *text = read_back(errors, ERRORS_BYTES, &len);
	bool has = strstr(text, says) != NULL;

	free(text);
	return has;
}

/* Its end wakes us at once: SIGCHLD is blocked. Who is stopped meanwhile, or late, proves
 * nothing. */
static int await_once(pid_t pid, const sigset_t *chld, int errors, const char *says)
{
	const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };
	int64_t silent_ms = clock_mono_ms(), now_ms = silent_ms;
	siginfo_t ended = { 0 };
	bool sleeps = false;

	while (!sleeps) {
		if (waitid(P_PID, (id_t)pid, &ended, WEXITED | WNOHANG | WNOWAIT) < 0 ||
		    ended.si_pid == pid)
			return await(pid);
		silent_ms = now_ms;
		sigtimedwait(chld, NULL, &pause);
		now_ms = clock_mono_ms();
		sleeps = has_said(errors, says);
	}
	kill(-pid, SIGKILL);
	now_ms = clock_mono_ms();
	return await(pid) == COMMAND_KILLED && now_ms - silent_ms < ASLEEP_MS ? COMMAND_SLEEPS
									      : COMMAND_KILLED;
}

void command_run_once(char *const *words, char *const *env, const char *folder, const char *says,
		      struct said *said)
{
	int out = file_in_memory("out"), errors = file_in_memory("errors");
	sigset_t chld, before;
	char *text;
	size_t len;
	pid_t pid;

	*said = (struct said){ .status = COMMAND_NOT_STARTED };
	sigemptyset(&chld);
	sigaddset(&chld, SIGCHLD);
	sigprocmask(SIG_BLOCK, &chld, &before);
	pid = out >= 0 && errors >= 0 ? fork() : -1;
	if (pid == 0)
		child(words, env, folder, out, errors);
	if (pid > 0)
		said->status = says ? await_once(pid, &chld, errors, says) : await(pid);
	sigprocmask(SIG_SETMASK, &before, NULL);
	said->out = read_back(out, WIRE_MAX_REPLY, &said->len);
	text = read_back(errors, ERRORS_BYTES, &len);
	in_one_line(text, said->errors);
	free(text);
	if (out >= 0)
		close(out);
	if (errors >= 0)
		close(errors);
}

void command_run(char *const *words, char *const *env, const char *folder, struct said *said)
{
	command_run_once(words, env, folder, NULL, said);
}

void command_ask(const char *const *words, struct said *said)
{
	struct strv env = { 0 }, copy = { 0 };

	do
		strv_add(&copy, xstrdup(*words));
	while (*++words);
	command_env(&env);
	command_run(copy.items, env.items, NULL, said);
	strv_free(env.items);
	strv_free(copy.items);
}

const char *said_last(const struct said *said)
{
	enum { MOST = 440 };
	size_t len = strlen(said->errors);

	return said->errors + (len > MOST ? len - MOST : 0);
}

void said_clear(struct said *said)
{
	free(said->out);
	*said = (struct said){ 0 };
}

/* --- its environment -------------------------------------------------------------------------- */

/* What a person set for themselves, or a job that we run in was given. Where the cluster is and who
 * asks stays. */
static bool is_left_out(const char *entry)
{
	static const char *const kept[] = { "SLURM_CONF=", "SLURM_CONF_SERVER=", "SLURM_JWT=" };
	static const char *const heads[] = {
		"SLURM_", "SQUEUE_", "SBATCH_", "SCANCEL_", "SCONTROL_",
		"SINFO_", "SACCT_",  "LC_",     "LANG=",    "LANGUAGE=",
	};

	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++) {
		if (text_begins_with(entry, kept[i]))
			return false;
	}
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (text_begins_with(entry, heads[i]))
			return true;
	}
	return false;
}

void command_env(struct strv *env)
{
	for (char **entry = environ; entry && *entry; entry++) {
		if (!is_left_out(*entry))
			strv_add(env, xstrdup(*entry));
	}
	strv_add(env, xstrdup("LC_ALL=C"));
	/* not its federation, whose nodes may have the same names */
	strv_add(env, xstrdup("SQUEUE_LOCAL=1"));
	strv_add(env, xstrdup("SINFO_LOCAL=1"));
	strv_add(env, xstrdup("SLURM_TIME_FORMAT=%s"));
	strv_add(env, xstrdup("SLURM_BITSTR_LEN=0")); /* all tasks of an array, not the first */
}
