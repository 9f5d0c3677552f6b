/* SPDX-License-Identifier: GPL-2.0-or-later */
/* sbatch.c - a job by the site's own sbatch: for sites whose filters (CliFilterPlugins) look at
 * what that command is given, and would never see a job that libslurm made. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "slurm/helper/calls.h"

enum { SAID_BYTES = 4096, NOT_STARTED = 126 };

static void add_all(struct strv *l, const json_t *array, size_t from)
{
	for (size_t i = from; i < json_array_size(array); i++) {
		char *text = js_bytes_take(json_array_get(array, i));

		if (text)
			strv_add(l, text);
	}
}

static void add_text(struct strv *l, const json_t *request, const char *key, const char *option)
{
	char *text = js_bytes_take(json_object_get(request, key));

	if (text)
		strv_add(l, xasprintf("%s%s", option, text));
	free(text);
}

/* What lbd says itself comes last, and counts. */
static void words_begin(struct strv *words, const json_t *request)
{
	strv_add(words, xstrdup("sbatch"));
	add_all(words, json_object_get(request, "sbatch"), 0);
	strv_add(words, xstrdup("--no-requeue"));
	add_text(words, request, "name", "--job-name=");
	add_text(words, request, "comment", "--comment=");
}

static void words_make(struct strv *words, const json_t *request)
{
	words_begin(words, request);
	strv_add(words, xstrdup("--parsable"));
	strv_add(words, xstrdup("--hold"));
	add_text(words, request, "script_path", "");
	add_all(words, json_object_get(request, "argv"), 1);
}

static bool is_variable(const char *entry, const char *name)
{
	size_t len = strlen(name);

	return strncmp(entry, name, len) == 0 && entry[len] == '=';
}

/* sbatch passes its environment on to the job. It is to find our cluster, and not to wait for the
 * end. */
static void env_make(struct strv *env, const json_t *request)
{
	const char *conf = getenv("SLURM_CONF");
	struct strv all = { 0 };
	bool has_conf = false;

	add_all(&all, json_object_get(request, "env"), 0);
	for (size_t i = 0; i < all.count; i++) {
		has_conf |= is_variable(all.items[i], "SLURM_CONF");
		if (!is_variable(all.items[i], "SBATCH_WAIT"))
			strv_add(env, xstrdup(all.items[i]));
	}
	if (conf && !has_conf)
		strv_add(env, xasprintf("SLURM_CONF=%s", conf));
	strv_free(all.items);
}

/* --- the process ------------------------------------------------------------------------------ */

static const char *value_of(char *const *env, const char *name)
{
	for (; env && *env; env++) {
		if (is_variable(*env, name))
			return strchr(*env, '=') + 1;
	}
	return NULL;
}

/* sbatch tells Slurm of its own limits and umask: they are to be the submitter's. */
static void take_limits(char *const *env)
{
	static const struct {
		const char *name;
		int resource;
	} limits[] = {
		{ "SLURM_RLIMIT_CPU", RLIMIT_CPU },
		{ "SLURM_RLIMIT_FSIZE", RLIMIT_FSIZE },
		{ "SLURM_RLIMIT_DATA", RLIMIT_DATA },
		{ "SLURM_RLIMIT_STACK", RLIMIT_STACK },
		{ "SLURM_RLIMIT_CORE", RLIMIT_CORE },
		{ "SLURM_RLIMIT_RSS", RLIMIT_RSS },
		{ "SLURM_RLIMIT_NPROC", RLIMIT_NPROC },
		{ "SLURM_RLIMIT_NOFILE", RLIMIT_NOFILE },
		{ "SLURM_RLIMIT_MEMLOCK", RLIMIT_MEMLOCK },
		{ "SLURM_RLIMIT_AS", RLIMIT_AS },
	};
	const char *mask = value_of(env, "SLURM_UMASK");

	if (mask)
		umask((mode_t)strtoul(mask, NULL, 8));
	for (size_t i = 0; i < sizeof(limits) / sizeof(limits[0]); i++) {
		const char *text = value_of(env, limits[i].name);
		struct rlimit limit;

		if (!text || getrlimit(limits[i].resource, &limit) < 0)
			continue;
		text += *text == 'U'; /* of --propagate */
		limit.rlim_cur = strtoul(text, NULL, 10);
		if (limit.rlim_cur > limit.rlim_max)
			limit.rlim_cur = limit.rlim_max;
		setrlimit(limits[i].resource, &limit);
	}
}

static void __attribute__((noreturn))
child(char **words, char **env, const char *folder, int out, int said)
{
	int null = open("/dev/null", O_RDONLY);

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	signal(SIGPIPE, SIG_DFL);
	if (null >= 0 && dup2(null, 0) == 0 && dup2(out, 1) == 1 && dup2(said, 2) == 2 &&
	    (!folder || chdir(folder) == 0)) {
		take_limits(env);
		execvpe(words[0], words, env);
	}
	_exit(NOT_STARTED);
}

/* Its exit status, or -1 when it has none. */
static int await(pid_t pid)
{
	int status;
	pid_t rc;

	do
		rc = waitpid(pid, &status, 0);
	while (rc < 0 && errno == EINTR);
	return rc == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void read_back(int fd, char text[SAID_BYTES])
{
	ssize_t n = fd < 0 ? 0 : pread(fd, text, SAID_BYTES - 1, 0);

	text[n > 0 ? n : 0] = '\0';
	if (fd >= 0)
		close(fd);
}

/* --- what it said ----------------------------------------------------------------------------- */

static const char *without_heads(const char *line)
{
	static const char *const heads[] = { "sbatch: ", "error: ", "fatal: ", "warning: ",
					     "allocation failure: " };

	for (size_t i = 0; i < sizeof(heads) / sizeof(heads[0]); i++) {
		if (strncmp(line, heads[i], strlen(heads[i])) == 0)
			line += strlen(heads[i]);
	}
	return line;
}

/* All its lines as one, without the name of the program in front of each. A filter's reason stands
 * before the line that says that there was one. */
static void in_one_line(const char *said, char out[SAID_BYTES])
{
	char *copy = xstrdup(said), *rest = copy, *line;
	size_t len = 0;

	out[0] = '\0';
	while ((line = strsep(&rest, "\n")) && len < SAID_BYTES) {
		if (*line)
			len += (size_t)snprintf(out + len, SAID_BYTES - len, "%s%s",
						len ? "; " : "", without_heads(line));
	}
	free(copy);
}

/* "12", or "12;cluster". */
static int judge(int status, const char *out, const char *said, struct answer *a, uint32_t *job_id)
{
	char line[SAID_BYTES];
	char *end;
	unsigned long id = strtoul(out, &end, 10);

	in_one_line(said, line);
	if (status == NOT_STARTED)
		return answer_set(a, SCHEDULER_DOWN, "sbatch cannot be started");
	if (status > 0)
		return slurm_failed_in_words(a, line, "sbatch");
	if (status < 0 || end == out || id == 0 || id >= UINT32_MAX)
		return answer_set(a, SCHEDULER_UNCLEAR, "sbatch did not tell the job's number");
	*job_id = (uint32_t)id;
	if (line[0])
		answer_set(a, SCHEDULER_OK, "%s", line);
	return 0;
}

/* Its exit status as in await; what it printed is in the texts. Takes what `words` hold. */
static int run_sbatch(struct strv *words, const json_t *request, char out_text[SAID_BYTES],
		      char said_text[SAID_BYTES])
{
	char *folder = js_bytes_take(json_object_get(request, "submit_dir"));
	int out = memfd_create("out", MFD_CLOEXEC), said = memfd_create("said", MFD_CLOEXEC);
	struct strv env = { 0 };
	int status = NOT_STARTED;
	pid_t pid;

	env_make(&env, request);
	pid = out >= 0 && said >= 0 ? fork() : -1;
	if (pid == 0)
		child(words->items, env.items, folder, out, said);
	if (pid > 0)
		status = await(pid);
	read_back(out, out_text);
	read_back(said, said_text);
	strv_free(words->items);
	strv_free(env.items);
	free(folder);
	return status;
}

int sbatch_submit(const json_t *request, struct answer *a, uint32_t *job_id)
{
	char out[SAID_BYTES], said[SAID_BYTES];
	struct strv words = { 0 };

	words_make(&words, request);
	answer_acting(a);
	return judge(run_sbatch(&words, request, out, said), out, said, a, job_id);
}

int sbatch_test(const json_t *request, struct answer *a)
{
	char out[SAID_BYTES], said[SAID_BYTES], line[SAID_BYTES];
	struct strv words = { 0 };
	int status;

	words_begin(&words, request);
	strv_add(&words, xstrdup("--test-only"));
	strv_add(&words, xstrdup("--wrap=true")); /* its job.sh is not written yet */
	status = run_sbatch(&words, request, out, said);
	in_one_line(said, line);
	if (status == NOT_STARTED || status < 0)
		return answer_set(a, SCHEDULER_DOWN, "sbatch cannot be started");
	return status == 0 ? 0 : slurm_failed_in_words(a, line, "sbatch");
}
