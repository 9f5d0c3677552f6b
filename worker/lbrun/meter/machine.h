/* SPDX-License-Identifier: MIT */
/* machine.h - CPU, memory and waits for file systems of a tree of processes and of its job. */
#ifndef LBRUN_METER_MACHINE_H
#define LBRUN_METER_MACHINE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct machine_reading {
	int64_t cpu_ms;      /* used so far, by those that ended, too, as far as a parent waited */
	int64_t resident_mb; /* together; what they share is counted for each */
	bool is_blocked;     /* one of them waits for a disk or a file system just now */
	int64_t job_peak_mb; /* of the job's control group; -1 = there is none */
	int64_t io_stall_us; /* so long some of the job waited for I/O; -1 = not known */
};

/* Of `root` and its descendants. */
void machine_read(pid_t root, struct machine_reading *out);

/* The folder of the control group of this process's job: what Slurm calls job_N; owned, NULL where
 * there is none. `cgroups` is /proc/self/cgroup's text. */
char *machine_job_group(const char *cgroups, const char *mount);

#endif
