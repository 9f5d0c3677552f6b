/* SPDX-License-Identifier: MIT */
/* allocation.c - the job's nodes as Slurm's own variables tell of them, and scontrol, which makes a
 * job smaller. */
#include "worker/lbrun/trainer/allocation.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/run/hosts.h"
#include "worker/lbrun/trainer/slurm_command.h"
#include "worker/lbrun/trainer/trainer.h"

enum { LIST_BYTES = 64 * 1024 };

static char *nodelist; /* of a launch; NULL = there are no spares */

const char *allocation_nodelist(void)
{
	return nodelist;
}

/* The steps of the trainer are full; --overlap shares their resources. A node that fails ends no
 * other. */
pid_t allocation_start(int64_t nodes, const char *option, const char *arg, int out)
{
	pid_t parent = getpid(), pid;
	char self[PATH_MAX], count[24];
	char *where = nodelist ? xasprintf("--nodelist=%s", nodelist) : xstrdup("--quiet");
	int null;

	snprintf(count, sizeof(count), "%lld", (long long)nodes);
	pid = path_own_program(self, NULL) < 0 ? -1 : fork();
	if (pid == 0) {
		child_begin(parent);
		null = open("/dev/null", O_RDWR);
		for (int fd = 0; fd <= STDERR_FILENO && null >= 0; fd++)
			dup2(fd != STDIN_FILENO && out >= 0 ? out : null, fd);
		execlp("srun", "srun", "--overlap", "--quiet", "--input=none",
		       "--kill-on-bad-exit=0", "--ntasks-per-node=1", "--cpus-per-task=1",
		       "--mem=0", "--gres=none", where, "-N", count, "-n", count, self, option, arg,
		       (char *)NULL);
		_exit(127);
	}
	free(where);
	return pid;
}

static void set_number(const char *name, int64_t n)
{
	char text[24];

	snprintf(text, sizeof(text), "%lld", (long long)n);
	setenv(name, text, 1);
}

/* "8(x5)", for every node: so it is for fewer. What differs between nodes is better not told. */
static void set_per_node(const char *name, size_t nodes)
{
	const char *text = getenv(name);
	size_t len = text ? strcspn(text, "(,") : 0;
	char *fewer;

	if (!text)
		return;
	if (strchr(text, ',')) {
		unsetenv(name);
		return;
	}
	fewer = nodes > 1 ? xasprintf("%.*s(x%zu)", (int)len, text, nodes)
			  : xasprintf("%.*s", (int)len, text);
	setenv(name, fewer, 1);
	free(fewer);
}

/* Tasks are counted by node where there are spares (run_spec_check.c). */
static void set_tasks(const char *name, size_t nodes)
{
	int per_node = env_number("SLURM_NTASKS_PER_NODE");

	if (getenv(name))
		set_number(name, (int64_t)nodes * (per_node > 0 ? per_node : 1));
}

static void narrow(const struct allocation *a)
{
	json_t *used = json_array();

	for (size_t i = 0; i < a->used; i++)
		json_array_append(used, json_array_get(a->nodes, i));
	free(nodelist);
	nodelist = hosts_fold(used, LIST_BYTES);
	json_decref(used);
	setenv("SLURM_JOB_NODELIST", nodelist, 1);
	setenv("SLURM_NODELIST", nodelist, 1);
	set_number("SLURM_JOB_NUM_NODES", (int64_t)a->used);
	set_number("SLURM_NNODES", (int64_t)a->used);
	set_tasks("SLURM_NTASKS", a->used);
	set_tasks("SLURM_NPROCS", a->used);
	set_per_node("SLURM_TASKS_PER_NODE", a->used);
	set_per_node("SLURM_JOB_CPUS_PER_NODE", a->used);
}

void allocation_open(struct allocation *a, int64_t spares)
{
	const char *list = getenv("SLURM_JOB_NODELIST");
	json_t *nodes = hosts_expand(list ? list : "");

	*a = (struct allocation){ 0 };
	if (spares <= 0 || json_array_size(nodes) <= (size_t)spares) {
		json_decref(nodes);
		return;
	}
	a->nodes = nodes;
	a->used = json_array_size(nodes) - (size_t)spares;
	narrow(a);
}

void allocation_close(struct allocation *a)
{
	json_decref(a->nodes);
	free(nodelist);
	nodelist = NULL;
	*a = (struct allocation){ 0 };
}

static size_t place_of(const struct allocation *a, const char *node)
{
	size_t i;
	json_t *name;

	json_array_foreach(a->nodes, i, name)
		if (strcmp(json_string_value(name), node) == 0)
			break;
	return i;
}

/* All but that one; owned by the caller. */
static char *all_but(const struct allocation *a, size_t place)
{
	json_t *rest = json_copy(a->nodes);
	char *list;

	json_array_remove(rest, place);
	list = hosts_fold(rest, LIST_BYTES);
	json_decref(rest);
	return list;
}

static int update(const char *list, const char *folder)
{
	char *job = xasprintf("JobId=%s", getenv("SLURM_JOB_ID"));
	char *nodes = xasprintf("NodeList=%s", list);
	int status = slurm_command((const char *[]){ "scontrol", "update", job, nodes, NULL },
				   folder);

	free(job);
	free(nodes);
	return status;
}

/* The job's nodes by now: those that died Slurm has taken out, without a word (--no-kill). "" =
 * Slurm does not say; owned by the caller. */
static char *present_nodes(const char *folder)
{
	char *job = xasprintf("--jobs=%s", getenv("SLURM_JOB_ID"));
	char *list = slurm_command_output(
		(const char *[]){ "squeue", "--noheader", job, "--format=%N", NULL }, folder);

	list[strcspn(list, " \n")] = '\0';
	free(job);
	return list;
}

static bool is_among(const json_t *names, const char *node)
{
	size_t i;
	json_t *name;

	json_array_foreach(names, i, name)
		if (strcmp(json_string_value(name), node) == 0)
			return true;
	return false;
}

/* In the order in which Slurm told them first. */
static int keep_present(struct allocation *a, const char *folder, struct err *err)
{
	char *list = present_nodes(folder);
	json_t *names = hosts_expand(list);

	free(list);
	if (json_array_size(names) == 0) {
		json_decref(names);
		return err_set(err, ERR_SCHEDULER, "Slurm does not tell the job's nodes (squeue)");
	}
	for (size_t i = json_array_size(a->nodes); i-- > 0;)
		if (!is_among(names, json_string_value(json_array_get(a->nodes, i))))
			json_array_remove(a->nodes, i);
	json_decref(names);
	return 0;
}

/* Shell code that tells a person's shell of the job's new size. */
static void remove_files(const char *folder)
{
	static const char *const kinds[] = { "sh", "csh" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		char *path = path_join("%s/slurm_job_%s_resize.%s", folder, getenv("SLURM_JOB_ID"),
				       kinds[i]);

		unlink(path);
		free(path);
	}
}

int allocation_drop(struct allocation *a, const char *node, const char *folder, struct err *err)
{
	size_t place = place_of(a, node);
	char *rest;
	int status;

	if (place == json_array_size(a->nodes))
		return err_set(err, ERR_NOT_FOUND, "%s is no node of the job", node);
	if (place == 0)
		return err_set(err, ERR_REFUSED, "%s has the job's script", node);
	if (json_array_size(a->nodes) <= a->used)
		return err_set(err, ERR_REFUSED, "no spare node is left");
	if (keep_present(a, folder, err) < 0)
		return -1;
	place = place_of(a, node);
	if (json_array_size(a->nodes) < a->used + (place < json_array_size(a->nodes)))
		return err_set(err, ERR_REFUSED, "no spare node is left");
	if (place < json_array_size(a->nodes)) { /* else Slurm has it back already */
		rest = all_but(a, place);
		status = update(rest, folder);
		free(rest);
		remove_files(folder);
		if (status != 0)
			return err_set(err, ERR_SCHEDULER,
				       "Slurm does not take %s back (scontrol update)", node);
		json_array_remove(a->nodes, place);
	}
	narrow(a);
	return 0;
}
