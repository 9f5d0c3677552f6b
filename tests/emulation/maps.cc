// SPDX-License-Identifier: MIT
// maps.cc - the emulated GPU's virtual memory, by the functions of the CUDA driver: chunks lie one
// behind the other in a file without a name, and are mapped for real, so that addresses of one chunk
// are of the same memory.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <string>

#include "tests/emulation/memory.h"
#include "tests/emulation/queue.h"

static std::map<unsigned long long, std::pair<size_t, int>> chunks; // bytes, references

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
	if (emulated_is_capturing() || bytes == 0 || bytes % CHUNK_BYTES != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!emulated_memory_has_room(bytes) || ftruncate(memory_file(), end + (off_t)bytes))
		return CUDA_ERROR_OUT_OF_MEMORY;
	void *fresh = mmap(NULL, bytes, PROT_WRITE, MAP_SHARED, memory_file(), end);
	if (fresh == MAP_FAILED)
		return CUDA_ERROR_OUT_OF_MEMORY;
	memset(fresh, 0xff, bytes);
	munmap(fresh, bytes);
	*handle = (CUmemGenericAllocationHandle)end + 1;
	chunks[*handle] = { bytes, 1 };
	end += (off_t)bytes;
	emulated_memory_note(bytes);
	return CUDA_SUCCESS;
}

// Memory goes with its last mapping.
static void forget_chunk(CUmemGenericAllocationHandle handle)
{
	if (--chunks[handle].second > 0)
		return;
	emulated_memory_forget(chunks[handle].first);
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
	if (emulated_is_capturing() || !chunks.count(handle) || chunks[handle].first != bytes || offset || flags ||
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
	emulated_memory_guard(memory, bytes);
	return CUDA_SUCCESS;
}

extern "C" cudaError_t cudaGetDriverEntryPointByVersion(const char *name, void **function, unsigned,
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
