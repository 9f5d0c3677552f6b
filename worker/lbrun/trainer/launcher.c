/* SPDX-License-Identifier: MIT */
/* launcher.c - puts srun, torchrun and the profiler in front of the command.
 *
 * torchrun's static rendezvous, with our number of each node: rank 0 is then on the batch host,
 * where LB_SOCKET is, and nobody has to guess which host is meant by its name. */
#include "worker/lbrun/trainer/launcher.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/base/mem.h"
#include "common/base/strv.h"
#include "worker/lbrun/trainer/allocation.h"

/* Below those that systems hand out. */
enum { FIRST_PORT = 15000, PORTS = 15000, PORT_TRIES = 100 };
enum { MOST_RANKS_LEAST = 1000 }; /* more than CPUs, where a script shares them */

bool launcher_is_srun(const struct attempt_params *p)
{
	return strcmp(p->launcher, "srun") == 0;
}

bool launcher_has_ranks(const struct attempt_params *p)
{
	return launcher_is_srun(p) || p->torchrun;
}

bool launcher_has_shepherds(const struct attempt_params *p)
{
	return launcher_has_ranks(p) || p->profiler;
}

/* --- where ------------------------------------------------------------------------------------ */

static bool is_known(const char *host)
{
	struct addrinfo *found = NULL;
	bool is = getaddrinfo(host, NULL, NULL, &found) == 0;

	if (is)
		freeaddrinfo(found);
	return is;
}

/* What Slurm calls a node may be no name that anybody can look up. */
static void choose_host(char *host, size_t size)
{
	const char *given = getenv("MASTER_ADDR"), *node = getenv("SLURMD_NODENAME");

	host[0] = host[size - 1] = '\0';
	if (given && given[0])
		snprintf(host, size, "%s", given);
	else if (node && node[0] && is_known(node))
		snprintf(host, size, "%s", node);
	else
		gethostname(host, size - 1);
}

static bool is_free(int port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool is = fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0;

	if (fd >= 0)
		close(fd);
	return is;
}

static int64_t choose_port(int64_t seed)
{
	const char *given = getenv("MASTER_PORT");
	int64_t port = FIRST_PORT + seed % PORTS;

	if (given && given[0])
		return strtoll(given, NULL, 10);
	for (int i = 0; i < PORT_TRIES && !is_free((int)port); i++)
		port = FIRST_PORT + (port - FIRST_PORT + 1) % PORTS;
	return port;
}

int64_t launcher_nodes(void)
{
	int nodes = env_number("SLURM_JOB_NUM_NODES");

	return nodes > 0 ? nodes : 1;
}

int64_t launcher_most_ranks(void)
{
	int64_t cpus = launcher_nodes() * sysconf(_SC_NPROCESSORS_CONF);

	return cpus > MOST_RANKS_LEAST ? cpus : MOST_RANKS_LEAST;
}

void meeting_choose(struct meeting *m, int64_t seed)
{
	choose_host(m->host, sizeof(m->host));
	m->port = choose_port(seed);
	m->nodes = launcher_nodes();
}

/* --- words ------------------------------------------------------------------------------------ */

static void add_nodelist(struct strv *w)
{
	if (allocation_nodelist())
		strv_add(w, xasprintf("--nodelist=%s", allocation_nodelist()));
}

static void add_srun(struct strv *w, char *const *options, const char *socket_folder)
{
	static const char mounts[] = "--container-mounts=";

	strv_add(w, xstrdup("srun"));
	strv_add(w, xstrdup("--kill-on-bad-exit=1"));
	add_nodelist(w);
	for (; options && *options; options++) {
		bool may_add = socket_folder && strncmp(*options, mounts, sizeof(mounts) - 1) == 0;

		strv_add(w, may_add ? xasprintf("%s,%s:%s", *options, socket_folder, socket_folder)
				    : xstrdup(*options));
	}
}

static void add_rank(struct strv *w, const char *self)
{
	strv_add(w, xstrdup(self));
	strv_add(w, xstrdup("--rank"));
	strv_add(w, xstrdup("--"));
}

/* "--nproc_per_node=4" among torchrun's words. */
static const char *ranks_of(char *const *torchrun)
{
	static const char option[] = "--nproc_per_node=";
	const char *ranks = "1";

	for (; *torchrun; torchrun++) {
		if (strncmp(*torchrun, option, sizeof(option) - 1) == 0)
			ranks = *torchrun + sizeof(option) - 1;
	}
	return ranks;
}

static void add_node(struct strv *w, const struct attempt_params *p, const char *self)
{
	strv_add(w, xstrdup(self));
	strv_add(w, xstrdup("--node"));
	strv_add(w, xstrdup(ranks_of(p->torchrun)));
	strv_add(w, xstrdup("--"));
}

static void add_torchrun(struct strv *w, const struct attempt_params *p, const struct meeting *m)
{
	strv_add_all(w, p->torchrun);
	strv_add(w, xasprintf("--nnodes=%lld", (long long)m->nodes));
	strv_add(w, xasprintf("--master_addr=%s", m->host));
	strv_add(w, xasprintf("--master_port=%lld", (long long)m->port));
	strv_add(w, xstrdup("--no_python"));
}

char **launcher_argv(const struct attempt_params *p, const struct meeting *m, const char *self,
		     const char *socket_folder)
{
	bool is_srun = launcher_is_srun(p);
	struct strv w = { 0 };

	if (is_srun)
		add_srun(&w, p->srun, socket_folder);
	if (p->torchrun && (is_srun || p->profiler))
		add_node(&w, p, self);
	else if (is_srun || p->profiler)
		add_rank(&w, self);
	strv_add_all(&w, p->profiler);
	if (p->torchrun) {
		add_torchrun(&w, p, m);
		add_rank(&w, self);
	}
	strv_add_all(&w, p->command);
	return w.items;
}

/* --- a check of the nodes --------------------------------------------------------------------- */

/* A rank that fails must not take the others' reports with it. */
static void add_check_srun(struct strv *w, const struct attempt_params *p)
{
	strv_add(w, xstrdup("srun"));
	strv_add(w, xstrdup("--kill-on-bad-exit=0"));
	add_nodelist(w);
	if (!launcher_is_srun(p)) {
		strv_add(w, xasprintf("--ntasks=%lld", (long long)launcher_nodes()));
		strv_add(w, xstrdup("--ntasks-per-node=1"));
	}
	for (char *const *options = p->srun; options && *options; options++)
		if (strncmp(*options, "--container-", 12) != 0)
			strv_add(w, xstrdup(*options));
}

char **launcher_check_argv(const struct attempt_params *p, const char *self, const char *folder,
			   bool *is_srun)
{
	struct strv w = { 0 };
	int64_t timeout_s = p->preflight_ms / 2000;

	*is_srun = launcher_is_srun(p) || launcher_nodes() > 1;
	if (*is_srun) {
		add_check_srun(&w, p);
		add_rank(&w, self);
	}
	strv_add(&w, xasprintf("%.*s/lbworker", (int)(strrchr(self, '/') - self), self));
	strv_add(&w, xstrdup("check"));
	strv_add(&w, xstrdup("--reports"));
	strv_add(&w, xstrdup(folder));
	strv_add(&w, xstrdup("--timeout"));
	strv_add(&w, xasprintf("%lld", (long long)(timeout_s > 0 ? timeout_s : 1)));
	strv_add_all(&w, p->preflight);
	return w.items;
}
