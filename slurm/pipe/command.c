/* SPDX-License-Identifier: MIT */
/* command.c - runs one of Slurm's commands, and reads what it says. What a command prints goes into
 * memory that it writes to itself: it can neither block on us nor leave us waiting for a grandchild
 * that keeps a pipe open. */
#include "slurm/pipe/command.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/strv.h"
#include "common/host/limits.h"
#include "slurm/wire.h"

enum { STATUS_NOT_STARTED = 126 };

extern char **environ;

/* --- the process ------------------------------------------------------------------------------ */

static void __attribute__((noreturn))
child(char *const *words, char *const *env, const char *folder, int out, int errors)
{
	int null = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
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

/* NUL-terminated, owned. */
static char *read_back(int fd, size_t max, size_t *len)
{
	struct stat st;
	size_t size = fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0 ? (size_t)st.st_size : 0;
	char *text = xmalloc((size < max ? size : max) + 1);

	*len = 0;
	if (size > max)
		size = max;
	while (*len < size) {
		ssize_t n = pread(fd, text + *len, size - *len, (off_t)*len);

		if (n <= 0)
			break;
		*len += (size_t)n;
	}
	text[*len] = '\0';
	if (fd >= 0)
		close(fd);
	return text;
}

/* --- what it said ----------------------------------------------------------------------------- */

static const char *without_heads(const char *line)
{
	static const char *const heads[] = {
		"sbatch: ", "squeue: ", "scontrol: ", "scancel: ",
		"error: ",  "fatal: ",  "warning: ",  "allocation failure: ",
	};

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (strncmp(line, heads[i], strlen(heads[i])) == 0)
			line += strlen(heads[i]);
	}
	return line;
}

/* A filter's reason stands before the line that says that there was one. */
static void in_one_line(char *text, char out[COMMAND_SAID_BYTES])
{
	char *rest = text, *line;
	size_t len = 0;

	out[0] = '\0';
	while ((line = strsep(&rest, "\n")) && len < COMMAND_SAID_BYTES) {
		if (*line)
			len += (size_t)snprintf(out + len, COMMAND_SAID_BYTES - len, "%s%s",
						len ? "; " : "", without_heads(line));
	}
}

void command_run(char *const *words, char *const *env, const char *folder, struct said *said)
{
	int out = memfd_create("out", MFD_CLOEXEC), errors = memfd_create("errors", MFD_CLOEXEC);
	pid_t pid = out >= 0 && errors >= 0 ? fork() : -1;
	char *text;
	size_t len;

	*said = (struct said){ .status = COMMAND_NOT_STARTED };
	if (pid == 0)
		child(words, env, folder, out, errors);
	if (pid > 0)
		said->status = await(pid);
	said->out = read_back(out, WIRE_MAX_REPLY, &said->len);
	text = read_back(errors, COMMAND_SAID_BYTES - 1, &len);
	in_one_line(text, said->errors);
	free(text);
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
		if (strncmp(entry, kept[i], strlen(kept[i])) == 0)
			return false;
	}
	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (strncmp(entry, heads[i], strlen(heads[i])) == 0)
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
	strv_add(env, xstrdup("SLURM_TIME_FORMAT=%s"));
	strv_add(env, xstrdup("SLURM_BITSTR_LEN=0")); /* all tasks of an array, not the first */
}
