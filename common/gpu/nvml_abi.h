/* SPDX-License-Identifier: MIT */
/* nvml_abi.h - NVML's structures and numbers, as far as nvml.c needs them, as NVIDIA's own nvml.h
 * has them: make check-nvml compares (tests/nvml/abi.c). */
#ifndef COMMON_GPU_NVML_ABI_H
#define COMMON_GPU_NVML_ABI_H

typedef struct nvmlDevice_st *nvmlDevice_t;
struct nvml_use {
	unsigned gpu, memory;
};
struct nvml_memory {
	unsigned long long total, free, used;
};
struct nvml_event {
	nvmlDevice_t device;
	unsigned long long type, data;
	unsigned gpu_instance, compute_instance;
};
struct nvml_pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};
struct nvml_field {
	unsigned id, scope;
	long long timestamp, latency_us;
	int type, status; /* type: VALUE_UNSIGNED; status: 0, or an error */
	union {
		unsigned number;
		unsigned long long widest;
	} value;
};

enum {
	SM_CLOCK = 1,
	GPU_SENSOR = 0,
	ECC_CORRECTED = 0,
	ECC_UNCORRECTED = 1,
	ECC_VOLATILE = 0,
	XID_EVENT = 8,
	FIELD_RECOVERY = 230,
	VALUE_UNSIGNED = 1,
	LINKS = 36,        /* as many as any GPU has */
	LINK_COUNTERS = 4, /* replays, recoveries, CRC errors of flits and of data */
};

#endif
