/* SPDX-License-Identifier: MIT */
/* nvml_standin.c - a libnvidia-ml.so.1 for tests: what it says of its GPUs stands in the folder
 * $NCCL_STANDIN, a file for each GPU, "gpu0", "gpu1", …:
 *
 *   use memory_mb total_mb milliwatts mhz celsius throttle_bits ecc_corrected ecc_uncorrected
 *   crc_errors
 *
 * and behind these, where they are known, remap_failed and recovery. GPU 0 is PCI 0000:3b:00, GPU 1
 * 0000:3c:00, … A file "xid", "GPU XID", is an event, and is removed when it is told. Where the
 * folder has one with the name of the Slurm node, the files are in there. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct device {
	unsigned index;
	unsigned long long values[12];
	int known;
};
static struct device devices[8];
static unsigned count;

static FILE *open_file(const char *name, char path[4096])
{
	const char *folder = getenv("NCCL_STANDIN"), *node = getenv("SLURMD_NODENAME");

	if (!folder)
		folder = "/nowhere";
	snprintf(path, 4096, "%s/%s", folder, node ? node : "");
	if (node && access(path, X_OK) == 0)
		snprintf(path, 4096, "%s/%s/%s", folder, node, name);
	else
		snprintf(path, 4096, "%s/%s", folder, name);
	return fopen(path, "re");
}

static int read_device(struct device *d)
{
	char name[16], path[4096];
	FILE *f;
	int got = 0;

	snprintf(name, sizeof(name), "gpu%u", d->index);
	f = open_file(name, path);
	while (f && got < 12 && fscanf(f, "%llu", &d->values[got]) == 1)
		got++;
	if (f)
		fclose(f);
	d->known = got;
	return got >= 10 ? 0 : 999;
}

int nvmlInit_v2(void);
int nvmlInit_v2(void)
{
	for (count = 0; count < 8; count++) {
		devices[count].index = count;
		if (read_device(&devices[count]) != 0)
			break;
	}
	return count > 0 ? 0 : 9;
}

int nvmlShutdown(void);
int nvmlShutdown(void)
{
	return 0;
}

int nvmlDeviceGetCount_v2(unsigned *out);
int nvmlDeviceGetCount_v2(unsigned *out)
{
	*out = count;
	return 0;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **out);
int nvmlDeviceGetHandleByIndex_v2(unsigned index, struct device **out)
{
	*out = &devices[index];
	return index < count ? 0 : 2;
}

int nvmlDeviceGetUUID(const struct device *d, char *text, unsigned size);
int nvmlDeviceGetUUID(const struct device *d, char *text, unsigned size)
{
	snprintf(text, size, "GPU-%08u-stand-in", d->index);
	return 0;
}

int nvmlDeviceGetUtilizationRates(struct device *d, unsigned out[2]);
int nvmlDeviceGetUtilizationRates(struct device *d, unsigned out[2])
{
	int rc = read_device(d);

	out[0] = (unsigned)d->values[0];
	out[1] = 0;
	return rc;
}

int nvmlDeviceGetMemoryInfo(const struct device *d, unsigned long long out[3]);
int nvmlDeviceGetMemoryInfo(const struct device *d, unsigned long long out[3])
{
	out[0] = d->values[2] << 20;
	out[1] = (d->values[2] - d->values[1]) << 20;
	out[2] = d->values[1] << 20;
	return 0;
}

int nvmlDeviceGetPowerUsage(const struct device *d, unsigned *out);
int nvmlDeviceGetPowerUsage(const struct device *d, unsigned *out)
{
	*out = (unsigned)d->values[3];
	return 0;
}

int nvmlDeviceGetClockInfo(const struct device *d, int which, unsigned *out);
int nvmlDeviceGetClockInfo(const struct device *d, int which, unsigned *out)
{
	*out = (unsigned)d->values[4];
	return which == 1 ? 0 : 2;
}

int nvmlDeviceGetTemperature(const struct device *d, int sensor, unsigned *out);
int nvmlDeviceGetTemperature(const struct device *d, int sensor, unsigned *out)
{
	*out = (unsigned)d->values[5];
	return sensor == 0 ? 0 : 2;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(const struct device *d, unsigned long long *out);
int nvmlDeviceGetCurrentClocksThrottleReasons(const struct device *d, unsigned long long *out)
{
	*out = d->values[6];
	return 0;
}

int nvmlDeviceGetTotalEccErrors(const struct device *d, int type, int which,
				unsigned long long *out);
int nvmlDeviceGetTotalEccErrors(const struct device *d, int type, int which,
				unsigned long long *out)
{
	*out = d->values[type == 0 ? 7 : 8];
	return which == 0 ? 0 : 2;
}

int nvmlDeviceGetNvLinkErrorCounter(const struct device *d, unsigned link, int counter,
				    unsigned long long *out);
int nvmlDeviceGetNvLinkErrorCounter(const struct device *d, unsigned link, int counter,
				    unsigned long long *out)
{
	*out = counter == 2 ? d->values[9] : 0;
	return link < 2 ? 0 : 3; /* two links, the others not supported */
}

int nvmlDeviceGetRemappedRows(const struct device *d, unsigned *corrected, unsigned *uncorrected,
			      unsigned *pending, unsigned *failed);
int nvmlDeviceGetRemappedRows(const struct device *d, unsigned *corrected, unsigned *uncorrected,
			      unsigned *pending, unsigned *failed)
{
	*corrected = *uncorrected = *pending = 0;
	*failed = (unsigned)d->values[10];
	return d->known > 10 ? 0 : 3;
}

struct pci {
	char legacy[16];
	unsigned domain, bus, device, id, subsystem;
	char text[32];
};

int nvmlDeviceGetPciInfo_v3(const struct device *d, struct pci *pci);
int nvmlDeviceGetPciInfo_v3(const struct device *d, struct pci *pci)
{
	*pci = (struct pci){ .bus = 0x3b + d->index };
	return 0;
}

struct field {
	unsigned id, scope;
	long long timestamp, latency;
	int type, status;
	unsigned long long value;
};

int nvmlDeviceGetFieldValues(const struct device *d, int count_of, struct field *fields);
int nvmlDeviceGetFieldValues(const struct device *d, int count_of, struct field *fields)
{
	for (int i = 0; i < count_of; i++) {
		fields[i].status = fields[i].id == 230 && d->known > 11 ? 0 : 3;
		fields[i].type = 1;
		fields[i].value = d->values[11];
	}
	return 0;
}

int nvmlEventSetCreate(void **set);
int nvmlEventSetCreate(void **set)
{
	static int only;

	*set = &only;
	return 0;
}

int nvmlDeviceRegisterEvents(const struct device *d, unsigned long long types, const void *set);
int nvmlDeviceRegisterEvents(const struct device *d, unsigned long long types, const void *set)
{
	return d && set && types == 8 ? 0 : 2;
}

struct event {
	struct device *device;
	unsigned long long type, data;
	unsigned instances[2];
};

int nvmlEventSetWait_v2(const void *set, struct event *out, unsigned ms);
int nvmlEventSetWait_v2(const void *set, struct event *out, unsigned ms)
{
	enum { TIMEOUT = 10 };
	char path[4096];
	FILE *f = open_file("xid", path);
	unsigned gpu = 0;
	int got = f ? fscanf(f, "%u %llu", &gpu, &out->data) : 0;

	(void)set;
	if (f)
		fclose(f);
	if (got != 2 || gpu >= count) {
		if (ms > 0)
			usleep(ms * 1000);
		return TIMEOUT;
	}
	unlink(path);
	out->device = &devices[gpu];
	out->type = 8;
	return 0;
}
