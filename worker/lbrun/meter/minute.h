/* SPDX-License-Identifier: MIT */
/* minute.h - readings of a minute become one line of the spool. Pure. */
#ifndef LBRUN_METER_MINUTE_H
#define LBRUN_METER_MINUTE_H

#include <jansson.h>

#include "worker/lbrun/meter/machine.h"
#include "common/gpu/nvml.h"

/* of values that may be unknown */
struct mean {
	double sum;
	int64_t count;
};

struct gpu_minute {
	int index; /* as nvidia-smi has it */
	struct mean use, watts, mhz;
	int64_t memory_mb, memory_total_mb, celsius; /* the highest; -1 = not known */
	int64_t readings, power, thermal, hardware;  /* in so many clocks were held down by it */
	struct gpu_reading last;
};

struct minute {
	int64_t begin_ms;
	struct machine_reading first, last;
	int64_t readings, blocked, resident_mb;
	struct gpu_minute gpus[NVML_GPUS_MAX];
	int gpu_count;
};

void minute_begin(struct minute *m, int64_t now_ms);
void minute_machine(struct minute *m, const struct machine_reading *r);
void minute_gpu(struct minute *m, int gpu, int index, const struct gpu_reading *r);
/* {"seconds","cpu","resident_mb","blocked","job_peak_mb","io_stall","gpus":[…]}, a new reference;
 * what is not known is missing. */
json_t *minute_line(const struct minute *m, int64_t now_ms);

#endif
