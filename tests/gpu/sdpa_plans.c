/* SPDX-License-Identifier: MIT */
/* sdpa_plans.c - the attention graphs that a training asks cuDNN for are ones it can plan for an
 * H200: built from a description of that GPU, so that no GPU is needed. Exit 77: there is no
 * cuDNN. */
#include <stdio.h>
#include <time.h>

#include "kernels/cuda/lib/sdpa.h"

/* As cuDNN itself writes the properties of a GPU. */
static const char h200[] =
	"{\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],"
	"\"regsPerBlock\":65536,\"multiProcessorCount\":132,\"warpSize\":32,"
	"\"maxSharedMemoryPerBlock\":49152,\"maxSharedMemoryPerBlockOptin\":232448,"
	"\"reservedSharedMemoryPerBlock\":1024,\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,"
	"\"maxThreadsPerBlock\":1024,\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,"
	"\"supportCoopLaunch\":1,\"totalGlobalMem\":150000000000,\"smClockRateKHz\":1980000,"
	"\"memClockRateKHz\":3201000,\"l2CacheSize\":62914560,\"deviceName\":\"NVIDIA H200\","
	"\"cudaDeviceId\":0,\"deviceVer\":900,\"driverVer\":13000,\"cudnnVersion\":91900,"
	"\"schemaVersion\":4}";

/* clang-format off */
static const struct {
	const char *of;
	struct attention a;
} shapes[] = {
	{ "llama 124M", { .batch = 64, .seq = 1024, .heads = 12, .kv_heads = 12, .head_dim = 64 } },
	{ "llama 1B", { .batch = 4, .seq = 8192, .heads = 32, .kv_heads = 8, .head_dim = 64 } },
	{ "llama 8B", { .batch = 1, .seq = 8192, .heads = 32, .kv_heads = 8, .head_dim = 128 } },
	{ "neox, mixed heads", { .batch = 8, .seq = 2048, .heads = 16, .kv_heads = 16,
				 .head_dim = 64, .interleaved = true } },
	{ "odd length", { .batch = 2, .seq = 333, .heads = 8, .kv_heads = 4, .head_dim = 128 } },
	{ "one token", { .batch = 1, .seq = 1, .heads = 8, .kv_heads = 8, .head_dim = 64 } },
};
/* clang-format on */
enum { SHAPES = sizeof(shapes) / sizeof(shapes[0]), NO_CUDNN = 77 };

static double now_s(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static int plan(const struct cudnn *api, int number, size_t i, enum sdpa_pass pass)
{
	static const char *const names[SDPA_PASSES] = { "forward", "backward",
							"deterministic backward" };
	char why[512] = "";
	double start = now_s();
	struct sdpa_plan *p = sdpa_plan_create(api, NULL, h200, &shapes[i].a, pass, why,
					       sizeof(why));

	printf("%sok %d - cuDNN plans %s of %s for an H200\n", p ? "" : "not ", number, names[pass],
	       shapes[i].of);
	if (p)
		printf("# %zu operations, %zu bytes of workspace, %.2f s\n",
		       sdpa_plan_operations(p), sdpa_plan_workspace(p), now_s() - start);
	else
		printf("# %s\n", why);
	sdpa_plan_destroy(p);
	return why[0] != '\0';
}

int main(void)
{
	struct cudnn api;
	char why[256];
	int failed = 0, number = 0;

	if (!cudnn_open(&api, why, sizeof(why))) {
		printf("1..0 # SKIP %s\n", why);
		return NO_CUDNN;
	}
	for (size_t i = 0; i < SHAPES; i++)
		for (int pass = 0; pass < SDPA_PASSES; pass++)
			failed += plan(&api, ++number, i, (enum sdpa_pass)pass);
	printf("1..%d\n", number);
	cudnn_close(&api);
	return failed != 0;
}
