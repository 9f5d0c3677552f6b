/* SPDX-License-Identifier: MIT */
/* local_start.c - opens output and lock, finds the script's interpreter, and forks. */
#include "slurm/local/local_start.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { FIRST_LINE_BYTES = 4096 }; /* a script's, which names its interpreter */

/* a job that this lbd started; freed in on_child_closed */
struct child {
	uv_process_t process;
	struct child *next, **link; /* NULL link: not in the list */
	struct local_children *home;
	uint32_t job_id;
};

static void on_child_closed(uv_handle_t *handle)
{
	struct child *c = handle->data;
	struct local_children *l = c->home;

	if (c->next)
		c->next->link = c->link;
	*c->link = c->next;
	free(c);
	l->on_gone(l->arg);
}

static void on_child_exit(uv_process_t *process, int64_t status, int signo)
{
	struct child *c = process->data;

	uv_close((uv_handle_t *)process, on_child_closed);
	c->home->on_exit(c->home->arg, c->job_id, signo ? signo : (int)status << 8);
}

void local_children_let_go(struct local_children *l)
{
	for (struct child *c = l->first; c; c = c->next)
		if (!uv_is_closing((uv_handle_t *)&c->process))
			uv_close((uv_handle_t *)&c->process, on_child_closed);
}

/* A child inherits the CPUs of the thread that forks it. */
static int spawn_bound(uv_loop_t *loop, struct child *c, const uv_process_options_t *options,
		       const cpu_set_t *cpus)
{
	cpu_set_t ours[MACHINE_CPU_SETS];
	bool is_bound = CPU_COUNT(cpus) > 0 && sched_getaffinity(0, sizeof(ours), ours) == 0;
	int rc;

	if (is_bound && sched_setaffinity(0, sizeof(*cpus), cpus))
		log_warn("a local job runs on other CPUs than it was given: %s", strerror(errno));
	rc = uv_spawn(loop, &c->process, options);
	if (is_bound)
		sched_setaffinity(0, sizeof(ours), ours);
	return rc;
}

/* As the kernel does, but also where the file system forbids to execute: the script's own first
 * line names its interpreter, with one argument at most. `args` points into `line`. */
static void read_interpreter(const struct local_job *job, char line[FIRST_LINE_BYTES],
			     char *args[4])
{
	static char sh[] = "/bin/sh";
	int fd = open(job->script_path, O_RDONLY | O_CLOEXEC), n = 0;
	ssize_t len = fd < 0 ? -1 : read(fd, line, FIRST_LINE_BYTES - 1);
	char *save = NULL;

	if (fd >= 0)
		close(fd);
	line[len < 0 ? 0 : len] = '\0';
	line[strcspn(line, "\n")] = '\0';
	args[n] = strncmp(line, "#!", 2) == 0 ? strtok_r(line + 2, " \t", &save) : NULL;
	if (args[n] == NULL)
		args[n] = sh;
	else if ((args[n + 1] = strtok_r(NULL, "", &save)) != NULL)
		n++;
	args[++n] = job->script_path;
	args[++n] = NULL;
}

/* As Slurm, which begins in /tmp what has lost its folder: lbrun then tells the run what is in the
 * way, where a child that cannot be started could tell nobody. */
static const char *folder_of(const struct local_job *job)
{
	char *inside = path_join("%s/.", job->workdir);
	bool can_enter = access(inside, X_OK) == 0;

	free(inside);
	return can_enter ? job->workdir : "/";
}

/* `descriptors`: output and lock. 0 or a libuv error; *pid is set on success. */
static int spawn(struct local_children *l, struct local_job *job, char **env,
		 const int descriptors[2], int *pid)
{
	char line[FIRST_LINE_BYTES], *args[4];
	uv_stdio_container_t stdio[LOCAL_LOCK_FD + 1] = {
		{ .flags = UV_IGNORE },
		{ .flags = UV_INHERIT_FD, .data.fd = descriptors[0] },
		{ .flags = UV_INHERIT_FD, .data.fd = descriptors[0] },
		[LOCAL_LOCK_FD] = { .flags = UV_INHERIT_FD, .data.fd = descriptors[1] },
	};
	uv_process_options_t options = {
		.exit_cb = on_child_exit,
		.args = args,
		.env = env,
		.cwd = folder_of(job),
		.flags = UV_PROCESS_DETACHED,
		.stdio = stdio,
		.stdio_count = LOCAL_LOCK_FD + 1,
	};
	struct child *c = xcalloc(1, sizeof(*c));
	int rc;

	read_interpreter(job, line, args);
	options.file = args[0];
	rc = spawn_bound(l->loop, c, &options, &job->cpus);

	c->process.data = c;
	c->home = l;
	c->job_id = job->status.ref.job_id;
	c->next = l->first;
	c->link = &l->first;
	if (c->next)
		c->next->link = &c->next;
	l->first = c;
	*pid = c->process.pid;
	if (rc)
		uv_close((uv_handle_t *)&c->process, on_child_closed);
	return rc;
}

static int folder_of_output(const struct local_job *job, struct err *err)
{
	char *folder = xstrndup(job->output, (size_t)(strrchr(job->output, '/') - job->output));
	int rc = folder_make(folder, 0750, err);

	free(folder);
	return rc;
}

int local_start(struct local_children *l, const struct local_jobs *jobs, struct local_job *job,
		char **env, bool *is_child, struct err *err)
{
	int fds[2] = { -1, -1 }, rc = -1, pid;

	if (job->task.array_id && folder_of_output(job, err))
		return -1;
	fds[0] = open(job->output, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
	fds[1] = local_job_lock(jobs, job, err);
	if (fds[0] < 0)
		err_errno(err, "%s", job->output);
	if (fds[0] >= 0 && fds[1] >= 0) {
		*is_child = true;
		rc = spawn(l, job, env, fds, &pid);
		if (rc)
			rc = err_set(err, ERR_IO, "cannot start %s in %s: %s", job->script_path,
				     job->workdir, uv_strerror(rc));
	}
	for (int i = 0; i < 2; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	if (rc)
		return -1;
	/* A process that is gone already leaves no name; its exit is on the way. */
	proc_name_of(pid, &job->proc);
	job->is_child = true;
	return 0;
}
