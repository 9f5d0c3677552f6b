// SPDX-License-Identifier: MIT
// cudart.cc - the functions of the CUDA runtime that the backend calls, on host memory. Work is done
// when it is queued; while a stream is captured it is kept, and a graph runs it again.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atomic>
#include <map>
#include <string>
#include <vector>

#include "tests/emulation/queue.h"

namespace {

typedef std::vector<std::function<void()>> work_list;

// A GPU's memory is none of the host's. Where the processor has protection keys (PKU), ours is behind one that only work
// that was queued holds: code of the host that reads a pointer of the device dies as it would beside a real GPU.
// Sanitizers keep their own books of small tensors instead.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(PKEY_DISABLE_ACCESS)
const bool guards = false;
#else
const bool guards = true;
#endif

int guard_key()
{
	static const int key = guards ? pkey_alloc(0, PKEY_DISABLE_ACCESS) : -1;
	return key;
}

void guard(void *memory, size_t bytes)
{
	if (guard_key() > 0)
		pkey_mprotect(memory, bytes, PROT_READ | PROT_WRITE, guard_key());
}

// As long as it stands this thread may read and write the GPU's memory.
struct on_the_gpu {
	on_the_gpu()
	{
		before = guard_key() > 0 ? pkey_get(guard_key()) : 0;
		if (guard_key() > 0)
			pkey_set(guard_key(), 0);
	}
	~on_the_gpu()
	{
		if (guard_key() > 0)
			pkey_set(guard_key(), (unsigned)before);
	}
	int before;
};

// More than any tensor of a test has: what is larger is a work area. The system gives memory for what is touched there,
// a sanitizer keeps no books of it, and the next one of its size takes it over.
const size_t TENSOR_BYTES = (size_t)4 << 20;

std::multimap<size_t, void *> areas; // that are free
work_list late;			// of streams beside the first
unsigned long kept_late;	// so many were ever put there,
std::atomic<unsigned long> done_late; // and so many are done
std::vector<double> late_ms;	// when each was done
void *first_stream;
work_list *captured;		// NULL: nothing is captured
thread_local bool is_capturing;	// this thread, as captures are asked for: others may wait meanwhile
std::map<void *, size_t> taken;	// device memory
std::map<unsigned long long, std::pair<size_t, int>> chunks; // of virtual memory: bytes, references
size_t used_bytes, most_bytes;
unsigned long graph_runs, allocations, queued, fetches;	// queued: outside of graphs

// LB_EMULATION_COUNTS: the file that tells at the end what was asked of the GPU.
struct counts {
	~counts()
	{
		const char *path = getenv("LB_EMULATION_COUNTS");
		FILE *to = path ? fopen(path, "w") : NULL;
		if (!to)
			return;
		fprintf(to, "%lu %lu %lu %zu\n", graph_runs, queued, allocations, most_bytes);
		fclose(to);
	}
} told_at_the_end;

// LB_EMULATION_BYTES: a GPU so small that something does not fit
size_t device_bytes()
{
	const char *bytes = getenv("LB_EMULATION_BYTES");
	return bytes ? strtoull(bytes, NULL, 10) : (size_t)8 << 30;
}

double now_ms()
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return 1e3 * (double)now.tv_sec + 1e-6 * (double)now.tv_nsec;
}

struct event {
	double at_ms;
	bool is_captured;	// recorded within the capture
	std::atomic<unsigned long> after; // so much of what was late; another thread may ask
};

// What was left for later is done now.
void catch_up()
{
	work_list now;
	now.swap(late);
	for (auto &work : now) {
		emulated_enqueue(work);
		late_ms.push_back(now_ms());
		done_late++;
	}
}

cudaError_t not_now()
{
	return is_capturing ? cudaErrorStreamCaptureUnsupported : cudaSuccess;
}

void note_taken(size_t bytes)
{
	allocations++;
	used_bytes += bytes;
	if (used_bytes > most_bytes)
		most_bytes = used_bytes;
}

} // namespace

void emulated_enqueue(const std::function<void()> &work)
{
	if (captured)
		captured->push_back(work);
	else {
		on_the_gpu here;
		queued++;
		work();
	}
}

void emulated_enqueue_on(void *stream, const std::function<void()> &work)
{
	if (stream == first_stream)
		emulated_enqueue(work);
	else {
		kept_late++;
		late.push_back(work);
	}
}

// For the stand-in of NCCL, which is a library of its own: what it does is queued like all else.
extern "C" __attribute__((visibility("default"))) void lb_emulated_enqueue(void *stream, void (*work)(void *),
									    void *arg)
{
	emulated_enqueue_on(stream, [=] { work(arg); });
}

int emulated_capability(void)
{
	const char *capability = getenv("LB_EMULATION_CAPABILITY");
	return capability ? (int)strtol(capability, NULL, 10) : 90;
}

bool emulated_is_capturing(void)
{
	return captured != NULL;
}

extern "C" {

// LB_EMULATION_GPUS: how many there are
cudaError_t cudaGetDeviceCount(int *count)
{
	const char *gpus = getenv("LB_EMULATION_GPUS");
	int driver;
	*count = gpus ? (int)strtol(gpus, NULL, 10) : 1;
	cudaDriverGetVersion(&driver);
	return driver / 1000 < CUDART_VERSION / 1000 ? cudaErrorInsufficientDriver : cudaSuccess;
}

// LB_EMULATION_GPU=taken: by a process that shares it with nobody
cudaError_t cudaSetDevice(int)
{
	const char *how = getenv("LB_EMULATION_GPU");
	return how && strcmp(how, "taken") == 0 ? cudaErrorDevicesUnavailable : cudaSuccess;
}

cudaError_t cudaGetDevice(int *device)
{
	*device = 0;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int)
{
	memset(p, 0, sizeof(*p));
	strncpy(p->name, "emulated GPU", sizeof(p->name) - 1);
	p->major = emulated_capability() / 10;
	p->minor = emulated_capability() % 10;
	p->multiProcessorCount = 132;
	p->totalGlobalMem = device_bytes();
	return cudaSuccess;
}

// LB_EMULATION_DRIVER: as 12080
cudaError_t cudaDriverGetVersion(int *version)
{
	const char *driver = getenv("LB_EMULATION_DRIVER");
	*version = driver ? (int)strtol(driver, NULL, 10) : CUDART_VERSION;
	return cudaSuccess;
}

cudaError_t cudaRuntimeGetVersion(int *version)
{
	*version = CUDART_VERSION;
	return cudaSuccess;
}

// LB_EMULATION_CODE: of which generation the code is, as 80
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *of, const void *)
{
	const char *code = getenv("LB_EMULATION_CODE");
	of->ptxVersion = of->binaryVersion = code ? (int)strtol(code, NULL, 10) : 90;
	return cudaSuccess;
}

cudaError_t cudaGetLastError(void)
{
	return cudaSuccess;
}

const char *cudaGetErrorString(cudaError_t status)
{
	switch (status) {
	case cudaSuccess: return "no error";
	case cudaErrorMemoryAllocation: return "out of memory";
	case cudaErrorStreamCaptureUnsupported: return "not permitted while a stream is captured";
	case cudaErrorInvalidValue: return "invalid argument";
	default: return "unknown error";
	}
}

// Fresh memory is NaN, an area in its first bytes: what nobody wrote shows. NULL: there is none.
static void *memory_of(size_t bytes)
{
	void *memory = NULL;
	auto area = areas.find(bytes);
	if (area != areas.end()) {
		memory = area->second;
		areas.erase(area);
	} else if (bytes > TENSOR_BYTES || guards) {
		memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
			      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (memory == MAP_FAILED)
			return NULL;
		guard(memory, bytes);
	} else if (posix_memalign(&memory, 256, bytes)) {
		return NULL;
	}
	on_the_gpu here;
	memset(memory, 0xff, bytes < TENSOR_BYTES ? bytes : TENSOR_BYTES);
	return memory;
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
	if (not_now() != cudaSuccess)
		return not_now();
	if (used_bytes + bytes > device_bytes() || !(*out = memory_of(bytes)))
		return cudaErrorMemoryAllocation;
	taken[*out] = bytes;
	note_taken(bytes);
	return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
	if (memory && !taken.count(memory))
		return cudaErrorInvalidValue;
	if (!memory)
		return cudaSuccess;
	const size_t bytes = taken[memory];
	used_bytes -= bytes;
	taken.erase(memory);
	if (bytes > TENSOR_BYTES)
		areas.insert({ bytes, memory });
	else if (guards)
		munmap(memory, bytes);
	else
		free(memory);
	return cudaSuccess;
}

// Virtual memory: chunks lie one behind the other in a file without a name, and are mapped for real, so that
// addresses of one chunk are of the same memory.
static const size_t CHUNK_BYTES = 4096; // a GPU has 2 MiB; trainings are small here

static int memory_file(void)
{
	static int file = memfd_create("emulated GPU", MFD_CLOEXEC);
	return file;
}

static CUresult CUDAAPI device_get(CUdevice *device, int ordinal)
{
	*device = ordinal;
	return CUDA_SUCCESS;
}

// LB_EMULATION_MAPS=0: a GPU without.
static CUresult CUDAAPI device_attribute(int *value, CUdevice_attribute what, CUdevice)
{
	const char *maps = getenv("LB_EMULATION_MAPS");
	if (what != CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED)
		return CUDA_ERROR_INVALID_VALUE;
	*value = !maps || strcmp(maps, "0") != 0;
	return CUDA_SUCCESS;
}

static bool has_maps()
{
	int has;
	device_attribute(&has, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 0);
	return has;
}

static CUresult CUDAAPI granularity(size_t *bytes, const CUmemAllocationProp *prop,
				    CUmemAllocationGranularity_flags)
{
	*bytes = CHUNK_BYTES;
	return prop->location.type == CU_MEM_LOCATION_TYPE_DEVICE ? CUDA_SUCCESS
								  : CUDA_ERROR_INVALID_VALUE;
}

static CUresult CUDAAPI reserve_addresses(CUdeviceptr *at, size_t bytes, size_t, CUdeviceptr,
					  unsigned long long)
{
	if (!has_maps())
		return CUDA_ERROR_NOT_SUPPORTED;
	void *memory = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	*at = (CUdeviceptr)(uintptr_t)memory;
	return memory == MAP_FAILED ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}

static CUresult CUDAAPI free_addresses(CUdeviceptr at, size_t bytes)
{
	return munmap((void *)(uintptr_t)at, bytes) ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// A handle is the chunk's place in the file, one more: 0 is none.
static CUresult CUDAAPI create_chunk(CUmemGenericAllocationHandle *handle, size_t bytes,
				     const CUmemAllocationProp *, unsigned long long)
{
	static off_t end;
	if (captured || bytes == 0 || bytes % CHUNK_BYTES != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (used_bytes + bytes > device_bytes() || ftruncate(memory_file(), end + (off_t)bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	void *fresh = mmap(NULL, bytes, PROT_WRITE, MAP_SHARED, memory_file(), end);
	if (fresh == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(fresh, 0xff, bytes);
	munmap(fresh, bytes);
	*handle = (CUmemGenericAllocationHandle)end + 1;
	chunks[*handle] = { bytes, 1 };
	end += (off_t)bytes;
	note_taken(bytes);
	return CUDA_SUCCESS;
}

// Memory goes with its last mapping.
static void forget_chunk(CUmemGenericAllocationHandle handle)
{
	if (--chunks[handle].second > 0)
		return;
	used_bytes -= chunks[handle].first;
	fallocate(memory_file(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)handle - 1,
		  (off_t)chunks[handle].first);
	chunks.erase(handle);
}

static CUresult CUDAAPI release_chunk(CUmemGenericAllocationHandle handle)
{
	if (!chunks.count(handle))
		return CUDA_ERROR_INVALID_VALUE;
	forget_chunk(handle);
	return CUDA_SUCCESS;
}

static std::map<CUdeviceptr, CUmemGenericAllocationHandle> mapped;

// Whole chunks only, and none of them may be read before cuMemSetAccess.
static CUresult CUDAAPI map_chunk(CUdeviceptr at, size_t bytes, size_t offset,
				  CUmemGenericAllocationHandle handle, unsigned long long flags)
{
	if (captured || !chunks.count(handle) || chunks[handle].first != bytes || offset || flags ||
	    mapped.count(at))
		return CUDA_ERROR_INVALID_VALUE;
	if (mmap((void *)(uintptr_t)at, bytes, PROT_NONE, MAP_SHARED | MAP_FIXED, memory_file(),
		 (off_t)handle - 1) == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	mapped[at] = handle;
	chunks[handle].second++;
	return CUDA_SUCCESS;
}

// As it was mapped only.
static CUresult CUDAAPI unmap_chunk(CUdeviceptr at, size_t bytes)
{
	if (!mapped.count(at) || chunks[mapped[at]].first != bytes)
		return CUDA_ERROR_INVALID_VALUE;
	mmap((void *)(uintptr_t)at, bytes, PROT_NONE,
	     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
	forget_chunk(mapped[at]);
	mapped.erase(at);
	return CUDA_SUCCESS;
}

static CUresult CUDAAPI allow_access(CUdeviceptr at, size_t bytes, const CUmemAccessDesc *, size_t)
{
	void *memory = (void *)(uintptr_t)at;
	if (mprotect(memory, bytes, PROT_READ | PROT_WRITE))
		return CUDA_ERROR_INVALID_VALUE;
	guard(memory, bytes);
	return CUDA_SUCCESS;
}

cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned,
					     unsigned long long,
					     enum cudaDriverEntryPointQueryResult *found)
{
	static const std::map<std::string, void *> all = {
		{ "cuDeviceGet", (void *)device_get },
		{ "cuDeviceGetAttribute", (void *)device_attribute },
		{ "cuMemGetAllocationGranularity", (void *)granularity },
		{ "cuMemAddressReserve", (void *)reserve_addresses },
		{ "cuMemAddressFree", (void *)free_addresses },
		{ "cuMemCreate", (void *)create_chunk },
		{ "cuMemRelease", (void *)release_chunk },
		{ "cuMemMap", (void *)map_chunk },
		{ "cuMemUnmap", (void *)unmap_chunk },
		{ "cuMemSetAccess", (void *)allow_access },
	};
	auto at = all.find(name);
	*function = at == all.end() ? NULL : at->second;
	*found = *function ? cudaDriverEntryPointSuccess : cudaDriverEntryPointSymbolNotFound;
	return cudaSuccess;
}

cudaError_t cudaMallocHost(void **out, size_t bytes)
{
	*out = malloc(bytes);
	return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFreeHost(void *memory)
{
	free(memory);
	return cudaSuccess;
}

cudaError_t cudaMemGetInfo(size_t *unused, size_t *all)
{
	*all = device_bytes();
	*unused = *all - used_bytes;
	return cudaSuccess;
}

// LB_EMULATION_FETCHES=N: the first N copies to the host are made, then all are refused
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind,
			    cudaStream_t)
{
	const char *most = getenv("LB_EMULATION_FETCHES");
	if (most && kind == cudaMemcpyDeviceToHost && fetches++ >= strtoul(most, NULL, 10))
		return cudaErrorInvalidValue;
	emulated_enqueue([=] { memcpy(to, from, bytes); });
	return cudaSuccess;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t bytes, cudaStream_t)
{
	emulated_enqueue([=] { memset(to, value, bytes); });
	return cudaSuccess;
}

cudaError_t cudaStreamCreateWithFlags(cudaStream_t *out, unsigned)
{
	*out = (cudaStream_t)malloc(1);
	if (!first_stream)
		first_stream = *out;
	return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
	if ((void *)stream == first_stream)
		first_stream = NULL;
	free((void *)stream);
	return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t)
{
	catch_up();
	return not_now();
}

// Within a capture an event was recorded there, or is waited for as the outside.
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t e, unsigned flags)
{
	if ((void *)stream == first_stream)
		catch_up();
	if (captured && ((event *)e)->is_captured)
		return cudaSuccess;
	if (((event *)e)->is_captured)
		return cudaErrorCapturedEvent;
	return captured && flags != cudaEventWaitExternal ? cudaErrorStreamCaptureIsolation
							  : cudaSuccess;
}

cudaError_t cudaEventCreateWithFlags(cudaEvent_t *out, unsigned)
{
	*out = (cudaEvent_t)calloc(1, sizeof(event));
	return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *out)
{
	return cudaEventCreateWithFlags(out, 0);
}

cudaError_t cudaEventDestroy(cudaEvent_t e)
{
	free((void *)e);
	return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t stream)
{
	((event *)e)->is_captured = captured != NULL;
	((event *)e)->at_ms = now_ms();
	((event *)e)->after = (void *)stream == first_stream || captured ? 0 : kept_late;
	return cudaSuccess;
}

cudaError_t cudaEventQuery(cudaEvent_t e)
{
	return ((event *)e)->after > done_late ? cudaErrorNotReady : cudaSuccess;
}

cudaError_t cudaEventSynchronize(cudaEvent_t)
{
	return not_now();
}

// Behind what was on its stream when it was recorded.
static double when_ms(const event *e)
{
	double done_ms = e->after > 0 && e->after <= late_ms.size() ? late_ms[e->after - 1] : 0;

	return e->at_ms > done_ms ? e->at_ms : done_ms;
}

cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start, cudaEvent_t end)
{
	*ms = (float)(when_ms((event *)end) - when_ms((event *)start));
	return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t, enum cudaStreamCaptureMode mode)
{
	if (mode != cudaStreamCaptureModeThreadLocal)
		return cudaErrorInvalidValue;
	captured = new work_list;
	is_capturing = true;
	return cudaSuccess;
}

// LB_EMULATION_CAPTURE=refused: as when a library does what cannot be captured
cudaError_t cudaStreamEndCapture(cudaStream_t, cudaGraph_t *out)
{
	const char *how = getenv("LB_EMULATION_CAPTURE");
	is_capturing = false;
	if (how && strcmp(how, "refused") == 0) {
		delete captured;
		captured = NULL;
		return cudaErrorStreamCaptureInvalidated;
	}
	*out = (cudaGraph_t)captured;
	captured = NULL;
	if (!late.empty()) { // a branch that nobody joined
		late.clear();
		done_late = kept_late;
		late_ms.resize(kept_late, now_ms());
		return cudaErrorStreamCaptureUnjoined;
	}
	return cudaSuccess;
}

cudaError_t cudaGraphInstantiate(cudaGraphExec_t *out, cudaGraph_t graph, unsigned long long)
{
	*out = (cudaGraphExec_t) new work_list(*(work_list *)graph);
	return cudaSuccess;
}

cudaError_t cudaGraphLaunch(cudaGraphExec_t graph, cudaStream_t)
{
	on_the_gpu here;
	graph_runs++;
	for (auto &work : *(work_list *)graph)
		work();
	return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
	delete (work_list *)graph;
	return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t graph)
{
	delete (work_list *)graph;
	return cudaSuccess;
}

} // extern "C"
