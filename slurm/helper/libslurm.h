/* SPDX-License-Identifier: GPL-2.0-or-later */
/* libslurm.h - <slurm/slurm.h>, made to live beside slurm/scheduler.h: both name a JOB_PENDING and
 * a JOB_RUNNING, and those of Slurm step aside. And all that differs between its releases, from
 * 20.11 to 26.05: lbd-slurm is one source for all of them, and asks nowhere else which it is. */
#ifndef SLURM_HELPER_LIBSLURM_H
#define SLURM_HELPER_LIBSLURM_H

#define JOB_PENDING SLURM_JOB_PENDING
#define JOB_RUNNING SLURM_JOB_RUNNING
#include <slurm/slurm.h>
#include <slurm/slurm_errno.h>
#include <slurm/slurmdb.h>
#undef JOB_PENDING
#undef JOB_RUNNING

#define SLURM_SINCE(major, minor) (SLURM_VERSION_NUMBER >= SLURM_VERSION_NUM(major, minor, 0))

/* --- members of a job's description that come and go ------------------------------------------ */

/* Each stands for its argument where the release has the member, else for nothing. */
#if SLURM_SINCE(21, 8)
#define IF_CONTAINER(...) __VA_ARGS__
#define LACKS_CONTAINER
#else
#define IF_CONTAINER(...)
#define LACKS_CONTAINER "container",
#endif
#if SLURM_SINCE(22, 5)
#define IF_PREFER(...) __VA_ARGS__
#define LACKS_PREFER
#else
#define IF_PREFER(...)
#define LACKS_PREFER "prefer", "req_context",
#endif
#if SLURM_SINCE(24, 5)
#define IF_POWER(...)
#define LACKS_POWER "power",
#else
#define IF_POWER(...) __VA_ARGS__
#define LACKS_POWER
#endif

#if SLURM_SINCE(23, 2)
#define IF_EXTRA(...) __VA_ARGS__
#define LACKS_EXTRA
#else
#define IF_EXTRA(...)
#define LACKS_EXTRA "extra", "container_id",
#endif
#if SLURM_SINCE(24, 11)
#define IF_OOM_KILL_STEP(...) __VA_ARGS__
#define LACKS_OOM_KILL_STEP
#else
#define IF_OOM_KILL_STEP(...)
#define LACKS_OOM_KILL_STEP "oom_kill_step",
#endif

#if SLURM_SINCE(24, 5)
#define IF_SEGMENT(...) __VA_ARGS__
#define LACKS_SEGMENT
#else
#define IF_SEGMENT(...)
#define LACKS_SEGMENT "segment", "resv_ports", "stepmgr", "exclusive=topo",
#endif
#if SLURM_SINCE(26, 5)
#define IF_SEGMENTS(...) __VA_ARGS__
#define LACKS_SEGMENTS
#else
#define IF_SEGMENTS(...)
#define LACKS_SEGMENTS \
	"spread_segments", "consolidate_segments", "container_type", "mem_update", "resources",
#endif

/* Fields (slurm/batch/batch.h) that this release cannot express, and NULL. */
#define SLURM_LACKS \
	{ \
		LACKS_CONTAINER LACKS_PREFER LACKS_POWER LACKS_EXTRA LACKS_OOM_KILL_STEP \
			LACKS_SEGMENT LACKS_SEGMENTS NULL \
	}

/* In front of generic resources, and of what binds tasks to them. */
#if SLURM_SINCE(23, 11)
#define GRES "gres/"
#define BIND_GPU "gres/gpu:"
#elif SLURM_SINCE(21, 8)
#define GRES "gres:"
#define BIND_GPU "gpu:"
#else
#define GRES ""
#define BIND_GPU "gpu:"
#endif

/* Since 23.11 sbatch says all that is for each task in one place, CPUs too: "cpu:4,gres/gpu:1",
 * with "=" since 24.05. */
#define TASKS_HAVE_TRES SLURM_SINCE(23, 11)
#if SLURM_SINCE(24, 5)
#define TASK_COUNT "="
#else
#define TASK_COUNT ":"
#endif

/* At each change of a waiting job with --ntasks-per-gpu the controller counts its tasks anew, as if
 * it had one GPU a node, unless the change says how many they are. */
#define CHANGES_COUNT_TASKS SLURM_SINCE(23, 2)

/* sbatch tells MPI's launchers how to use srun (slurm/batch/mpi_launchers.h). */
#define SBATCH_TELLS_LAUNCHERS SLURM_SINCE(23, 11)

/* --- errors and constants --------------------------------------------------------------------- */

/* Numbers that no call returns. */
#if !SLURM_SINCE(21, 8)
#define ESLURM_IN_STANDBY_USE_BACKUP (-2001)
#endif
#if !SLURM_SINCE(22, 5)
#define ESLURM_PARTITION_ASSOC (-2002)
#endif
/* A controller that holds MaxJobCount jobs says so since; the number had another name. */
#if SLURM_SINCE(26, 5)
#define ESLURM_ERROR_ON_DESC_TO_RECORD_COPY ESLURM_MAX_JOB_COUNT
#define CONTROLLER_IS_FULL ESLURM_MAX_JOB_COUNT
#else
#define CONTROLLER_IS_FULL EAGAIN
#endif
#ifndef CPU_FREQ_SCHEDUTIL
#define CPU_FREQ_SCHEDUTIL 0 /* no such governor */
#endif

/* --- calls and types -------------------------------------------------------------------------- */

/* As sbatch begins; libslurm itself would say "no" where nothing was said. */
static inline void libslurm_init_desc(job_desc_msg_t *desc)
{
	slurm_init_job_desc_msg(desc);
	IF_OOM_KILL_STEP(desc->oom_kill_step = NO_VAL16;)
}

/* A list of nodes' names. */
#if SLURM_SINCE(23, 11)
typedef hostlist_t *nodes_t;
#else
typedef hostlist_t nodes_t;
#endif

static inline int libslurm_kill_job(const char *id, uint16_t signo, uint16_t flags)
{
#if SLURM_SINCE(21, 8)
	return slurm_kill_job2(id, signo, flags, NULL);
#else
	return slurm_kill_job2(id, signo, flags);
#endif
}

static inline int libslurm_load_job(job_info_msg_t **list, uint32_t job_id, uint16_t flags)
{
#if SLURM_SINCE(26, 5)
	slurm_step_id_t id = SLURM_STEP_ID_INITIALIZER;

	id.job_id = job_id;
	return slurm_load_job(list, id, flags);
#else
	return slurm_load_job(list, job_id, flags);
#endif
}

static inline void libslurm_free_conf(slurm_conf_t *conf)
{
#if SLURM_SINCE(26, 5)
	slurm_free_conf(conf);
#else
	slurm_free_ctl_conf(conf);
#endif
}

static inline uint32_t libslurm_submitted_id(const submit_response_msg_t *response)
{
#if SLURM_SINCE(25, 11)
	return response->step_id.job_id;
#else
	return response->job_id;
#endif
}

/* What of a node is in use. Newer releases tell it otherwise; there only wholly idle nodes count as
 * free. */
static inline void libslurm_used_of(const node_info_t *node, uint16_t *cpus, uint64_t *mem_mb)
{
	*cpus = 0;
	*mem_mb = 0;
#if !SLURM_SINCE(24, 11)
	slurm_get_select_nodeinfo(node->select_nodeinfo, SELECT_NODEDATA_SUBCNT,
				  NODE_STATE_ALLOCATED, cpus);
	slurm_get_select_nodeinfo(node->select_nodeinfo, SELECT_NODEDATA_MEM_ALLOC,
				  NODE_STATE_ALLOCATED, mem_mb);
#else
	if ((node->node_state & NODE_STATE_BASE) != NODE_STATE_IDLE) {
		*cpus = node->cpus;
		*mem_mb = node->real_memory;
	}
#endif
}

#endif
