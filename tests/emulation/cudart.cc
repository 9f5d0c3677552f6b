// SPDX-License-Identifier: MIT
// cudart.cc - the functions of the CUDA runtime that the backend calls, on host memory. Work is done
// when it is queued; while a stream is captured it is kept, and a graph runs it again. What memory is
// stands in memory.cc, virtual memory in maps.cc.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <atomic>
#include <functional>
#include <vector>

#include "tests/emulation/memory.h"
#include "tests/emulation/queue.h"

namespace {

typedef std::vector<std::function<void()>> work_list;

work_list late;			// of streams beside the first
unsigned long kept_late;	// so many were ever put there,
std::atomic<unsigned long> done_late; // and so many are done
std::vector<double> late_ms;	// when each was done
void *first_stream;
work_list *captured;		// NULL: nothing is captured
thread_local bool is_capturing;	// this thread, as captures are asked for: others may wait meanwhile
thread_local int gpu;		// of this thread: the first, until it chooses another
unsigned long graph_runs, fetches;
std::atomic<unsigned long> queued; // outside of graphs
std::atomic<int> programs;	// graphs that can be run

// LB_EMULATION_COUNTS: the file that tells at the end what was asked of the GPU.
struct counts {
	~counts()
	{
		const char *path = getenv("LB_EMULATION_COUNTS");
		FILE *to = path ? fopen(path, "w") : NULL;
		if (!to)
			return;
		fprintf(to, "%lu %lu %lu %zu\n", graph_runs, queued.load(), emulated_memory_calls(),
			emulated_memory_most_bytes());
		fclose(to);
	}
} told_at_the_end;

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

// LB_EMULATION_GPU=taken: the first one, by a process that shares it with nobody. It is opened by
// whatever a thread calls that has chosen none.
cudaError_t not_taken()
{
	const char *how = getenv("LB_EMULATION_GPU");
	return gpu == 0 && how && strcmp(how, "taken") == 0 ? cudaErrorDevicesUnavailable : cudaSuccess;
}

// LB_EMULATION_BROKEN=N: the N-th of what is queued breaks the GPU, as those hear that wait or ask
// for memory behind it.
bool is_broken()
{
	const char *at = getenv("LB_EMULATION_BROKEN");
	return at && queued >= strtoul(at, NULL, 10);
}

cudaError_t not_now()
{
	return is_broken()    ? cudaErrorECCUncorrectable
	       : is_capturing ? cudaErrorStreamCaptureUnsupported
			      : not_taken();
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

// The same: how many recorded programs there are.
extern "C" __attribute__((visibility("default"))) int lb_emulated_programs(void)
{
	return programs;
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

cudaError_t cudaSetDevice(int device)
{
	gpu = device;
	return not_taken();
}

cudaError_t cudaGetDevice(int *device)
{
	*device = gpu;
	return cudaSuccess;
}

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int)
{
	memset(p, 0, sizeof(*p));
	strncpy(p->name, "emulated GPU", sizeof(p->name) - 1);
	p->major = emulated_capability() / 10;
	p->minor = emulated_capability() % 10;
	p->multiProcessorCount = 132;
	p->totalGlobalMem = emulated_memory_bytes();
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

// LB_EMULATION_CODE: of which generation the code is, as 80; none: there is none for this GPU
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *of, const void *)
{
	const char *code = getenv("LB_EMULATION_CODE");
	if (code && strcmp(code, "none") == 0)
		return cudaErrorNoKernelImageForDevice;
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
	case cudaErrorECCUncorrectable: return "uncorrectable ECC error encountered";
	case cudaErrorStreamCaptureUnsupported: return "not permitted while a stream is captured";
	case cudaErrorInvalidValue: return "invalid argument";
	case cudaErrorNoKernelImageForDevice: return "no kernel image is available for execution on the device";
	default: return "unknown error";
	}
}

cudaError_t cudaMalloc(void **out, size_t bytes)
{
	if (not_now() != cudaSuccess)
		return not_now();
	*out = emulated_memory_take(bytes);
	return *out ? cudaSuccess : cudaErrorMemoryAllocation;
}

cudaError_t cudaFree(void *memory)
{
	return !memory || emulated_memory_free(memory) ? cudaSuccess : cudaErrorInvalidValue;
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
	*all = emulated_memory_bytes();
	*unused = *all - emulated_memory_used_bytes();
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
	programs++;
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
	programs--;
	delete (work_list *)graph;
	return cudaSuccess;
}

} // extern "C"
