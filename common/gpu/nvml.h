/* SPDX-License-Identifier: MIT */
/* gpu/ - NVIDIA's GPUs, as their driver tells of them.
 *
 * nvml.h - what NVIDIA's driver says of the GPUs that this process sees. libnvidia-ml.so.1 is
 * opened at run time; its calls may hang with the driver, so a process of its own makes them. */
#ifndef COMMON_GPU_NVML_H
#define COMMON_GPU_NVML_H

#include <stdbool.h>
#include <stdint.h>

enum { NVML_GPUS_MAX = 64, NVML_UUID_BYTES = 96 };

/* reasons for which clocks are held down, as NVML has them */
enum {
	THROTTLE_POWER = 0x4 | 0x80,    /* the power cap; the power brake */
	THROTTLE_THERMAL = 0x20 | 0x40, /* by the driver; by the hardware */
	THROTTLE_HARDWARE = 0x8,
};

/* -1 = not known */
struct gpu_reading {
	int64_t use_percent, memory_mb, memory_total_mb, watts, sm_mhz, celsius;
	int64_t throttle;                       /* bits */
	int64_t ecc_corrected, ecc_uncorrected; /* since the driver was loaded */
	int64_t nvlink_errors; /* replays, recoveries and CRC errors of all links */
};

/* What is left of faults of before, also where no log may be read. -1 = not known */
struct gpu_past {
	int64_t remap_failed; /* rows of memory could not be replaced, ever: 1 */
	int64_t recovery;     /* what its driver asks for, enum gpu_recovery */
	char pci[20];         /* as the kernel's log has it, "0000:3b:00"; "": not known */
};
enum gpu_recovery {
	RECOVERY_NONE,
	RECOVERY_RESET,
	RECOVERY_REBOOT,
	RECOVERY_DRAIN,
	RECOVERY_KINDS
};

struct nvml;

/* NULL where there is no driver, or no GPU. CUDA_VISIBLE_DEVICES chooses among them. */
struct nvml *nvml_open(void);
void nvml_close(struct nvml *n);
int nvml_count(const struct nvml *n);
/* Its index as nvidia-smi has it. */
int nvml_index(const struct nvml *n, int gpu);
void nvml_read(struct nvml *n, int gpu, struct gpu_reading *out);
void nvml_past(struct nvml *n, int gpu, struct gpu_past *out);
/* Waits up to so many ms for an XID of any of them. True: *gpu, its index as nvidia-smi has it (-1
 * = another one), and *xid. */
bool nvml_wait_xid(struct nvml *n, int ms, int *gpu, int64_t *xid);

#endif
