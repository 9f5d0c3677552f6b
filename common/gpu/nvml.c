/* SPDX-License-Identifier: MIT */
/* nvml.c - the calls of NVML that are needed, each looked up by name: an old driver lacks some. */
#include "common/gpu/nvml.h"

#include <dlfcn.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/gpu/nvml_abi.h"

struct calls {
	int (*init)(void);
	int (*shutdown)(void);
	int (*count)(unsigned *count);
	int (*by_index)(unsigned index, nvmlDevice_t *device);
	int (*uuid)(nvmlDevice_t device, char *text, unsigned size);
	int (*use)(nvmlDevice_t device, struct nvml_use *use);
	int (*memory)(nvmlDevice_t device, struct nvml_memory *memory);
	int (*power)(nvmlDevice_t device, unsigned *milliwatts);
	int (*clock)(nvmlDevice_t device, int which, unsigned *mhz);
	int (*throttle)(nvmlDevice_t device, unsigned long long *reasons);
	int (*temperature)(nvmlDevice_t device, int sensor, unsigned *celsius);
	int (*ecc)(nvmlDevice_t device, int type, int counter, unsigned long long *count);
	int (*link)(nvmlDevice_t device, unsigned link, int counter, unsigned long long *count);
	int (*remapped)(nvmlDevice_t device, unsigned *corrected, unsigned *uncorrected,
			unsigned *pending, unsigned *failed);
	int (*pci)(nvmlDevice_t device, struct nvml_pci *pci);
	int (*fields)(nvmlDevice_t device, int count, struct nvml_field *fields);
	int (*events)(void **set);
	int (*watch)(nvmlDevice_t device, unsigned long long types, void *set);
	int (*wait)(void *set, struct nvml_event *event, unsigned ms);
};

struct nvml {
	void *library, *events; /* events: NULL = it tells of none */
	struct calls call;
	nvmlDevice_t devices[NVML_GPUS_MAX];
	int indices[NVML_GPUS_MAX];
	int count;
};

/* clang-format off */
static const struct {
	const char *name;
	size_t offset;
} names[] = {
	{ "nvmlInit_v2", offsetof(struct calls, init) },
	{ "nvmlShutdown", offsetof(struct calls, shutdown) },
	{ "nvmlDeviceGetCount_v2", offsetof(struct calls, count) },
	{ "nvmlDeviceGetHandleByIndex_v2", offsetof(struct calls, by_index) },
	{ "nvmlDeviceGetUUID", offsetof(struct calls, uuid) },
	{ "nvmlDeviceGetUtilizationRates", offsetof(struct calls, use) },
	{ "nvmlDeviceGetMemoryInfo", offsetof(struct calls, memory) },
	{ "nvmlDeviceGetPowerUsage", offsetof(struct calls, power) },
	{ "nvmlDeviceGetClockInfo", offsetof(struct calls, clock) },
	{ "nvmlDeviceGetCurrentClocksThrottleReasons", offsetof(struct calls, throttle) },
	{ "nvmlDeviceGetCurrentClocksEventReasons", offsetof(struct calls, throttle) },
	{ "nvmlDeviceGetTemperature", offsetof(struct calls, temperature) },
	{ "nvmlDeviceGetTotalEccErrors", offsetof(struct calls, ecc) },
	{ "nvmlDeviceGetNvLinkErrorCounter", offsetof(struct calls, link) },
	{ "nvmlDeviceGetRemappedRows", offsetof(struct calls, remapped) },
	{ "nvmlDeviceGetPciInfo_v3", offsetof(struct calls, pci) },
	{ "nvmlDeviceGetFieldValues", offsetof(struct calls, fields) },
	{ "nvmlEventSetCreate", offsetof(struct calls, events) },
	{ "nvmlDeviceRegisterEvents", offsetof(struct calls, watch) },
	{ "nvmlEventSetWait", offsetof(struct calls, wait) },
	{ "nvmlEventSetWait_v2", offsetof(struct calls, wait) },
};
/* clang-format on */

enum { NAMES = sizeof(names) / sizeof(names[0]) };

static void look_up(struct nvml *n)
{
	for (size_t i = 0; i < NAMES; i++) {
		void *found = dlsym(n->library, names[i].name);

		if (found)
			memcpy((char *)&n->call + names[i].offset, &found, sizeof(found));
	}
}

/* "0,2" and "GPU-1234…" as CUDA takes them; nothing is chosen by an empty one, all without. */
static bool is_visible(const char *visible, unsigned index, const char *uuid)
{
	char *copy = xstrdup(visible), *rest = copy, *word;
	bool is = false;

	while (!is && (word = strsep(&rest, ","))) {
		char *end;
		unsigned long number = strtoul(word, &end, 10);

		is = end != word ? *end == '\0' && number == index
				 : word[0] && strncmp(word, uuid, strlen(word)) == 0;
	}
	free(copy);
	return is;
}

static void choose(struct nvml *n)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	unsigned count = 0;

	if (n->call.count(&count) != 0)
		count = 0;
	for (unsigned i = 0; i < count && n->count < NVML_GPUS_MAX; i++) {
		char uuid[NVML_UUID_BYTES] = "";
		nvmlDevice_t device;

		if (n->call.by_index(i, &device) != 0)
			continue;
		if (n->call.uuid)
			n->call.uuid(device, uuid, sizeof(uuid));
		if (visible && !is_visible(visible, i, uuid))
			continue;
		n->devices[n->count] = device;
		n->indices[n->count++] = (int)i;
	}
}

static void watch_all(struct nvml *n)
{
	bool any = false;

	if (!n->call.events || !n->call.watch || !n->call.wait || n->call.events(&n->events) != 0) {
		n->events = NULL;
		return;
	}
	for (int i = 0; i < n->count; i++)
		any |= n->call.watch(n->devices[i], XID_EVENT, n->events) == 0;
	if (!any)
		n->events = NULL;
}

struct nvml *nvml_open(void)
{
	struct nvml *n = xcalloc(1, sizeof(*n));
	bool is_open = false;

	n->library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL);
	if (n->library) {
		look_up(n);
		is_open = n->call.init && n->call.count && n->call.by_index && n->call.init() == 0;
	}
	if (is_open)
		choose(n);
	if (n->count == 0) {
		nvml_close(n);
		return NULL;
	}
	watch_all(n);
	return n;
}

/* The library stays: it may have threads. */
void nvml_close(struct nvml *n)
{
	if (n && n->count > 0 && n->call.shutdown)
		n->call.shutdown();
	free(n);
}

int nvml_count(const struct nvml *n)
{
	return n ? n->count : 0;
}

int nvml_index(const struct nvml *n, int gpu)
{
	return n->indices[gpu];
}

static int64_t link_errors(const struct nvml *n, nvmlDevice_t device)
{
	unsigned long long count;
	int64_t sum = -1;

	for (unsigned link = 0; n->call.link && link < LINKS; link++)
		for (int counter = 0; counter < LINK_COUNTERS; counter++)
			if (n->call.link(device, link, counter, &count) == 0)
				sum = (sum < 0 ? 0 : sum) + (int64_t)count;
	return sum;
}

static int64_t ecc_errors(const struct nvml *n, nvmlDevice_t device, int type)
{
	unsigned long long count;

	return n->call.ecc && n->call.ecc(device, type, ECC_VOLATILE, &count) == 0 ? (int64_t)count
										   : -1;
}

void nvml_read(struct nvml *n, int gpu, struct gpu_reading *out)
{
	enum { MB = 1024 * 1024, MILLI = 1000 };
	nvmlDevice_t device = n->devices[gpu];
	const struct calls *call = &n->call;
	unsigned long long reasons;
	struct nvml_memory memory;
	struct nvml_use use;
	unsigned number;

	*out = (struct gpu_reading){ -1, -1, -1, -1, -1, -1, -1, -1, -1, -1 };
	if (call->use && call->use(device, &use) == 0)
		out->use_percent = use.gpu;
	if (call->memory && call->memory(device, &memory) == 0) {
		out->memory_mb = (int64_t)(memory.used / MB);
		out->memory_total_mb = (int64_t)(memory.total / MB);
	}
	if (call->power && call->power(device, &number) == 0)
		out->watts = number / MILLI;
	if (call->clock && call->clock(device, SM_CLOCK, &number) == 0)
		out->sm_mhz = number;
	if (call->temperature && call->temperature(device, GPU_SENSOR, &number) == 0)
		out->celsius = number;
	if (call->throttle && call->throttle(device, &reasons) == 0)
		out->throttle = (int64_t)reasons;
	out->ecc_corrected = ecc_errors(n, device, ECC_CORRECTED);
	out->ecc_uncorrected = ecc_errors(n, device, ECC_UNCORRECTED);
	out->nvlink_errors = link_errors(n, device);
}

void nvml_past(struct nvml *n, int gpu, struct gpu_past *out)
{
	struct nvml_field recovery = { .id = FIELD_RECOVERY };
	nvmlDevice_t device = n->devices[gpu];
	unsigned unused, failed;
	struct nvml_pci pci;

	*out = (struct gpu_past){ -1, -1, "" };
	if (n->call.pci && n->call.pci(device, &pci) == 0)
		snprintf(out->pci, sizeof(out->pci), "%04x:%02x:%02x", pci.domain, pci.bus,
			 pci.device);
	if (n->call.remapped && n->call.remapped(device, &unused, &unused, &unused, &failed) == 0)
		out->remap_failed = failed;
	if (n->call.fields && n->call.fields(device, 1, &recovery) == 0 && recovery.status == 0 &&
	    recovery.type == VALUE_UNSIGNED)
		out->recovery = recovery.value.number;
}

bool nvml_wait_xid(struct nvml *n, int ms, int *gpu, int64_t *xid)
{
	struct nvml_event event = { 0 };

	if (!n || !n->events) {
		poll(NULL, 0, ms);
		return false;
	}
	if (n->call.wait(n->events, &event, (unsigned)ms) != 0 || event.type != XID_EVENT)
		return false;
	*xid = (int64_t)event.data;
	*gpu = -1;
	for (int i = 0; i < n->count; i++)
		if (n->devices[i] == event.device)
			*gpu = n->indices[i];
	return true;
}
