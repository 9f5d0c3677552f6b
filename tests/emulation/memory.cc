// SPDX-License-Identifier: MIT
// memory.cc - the memory of the emulated GPU. A GPU's memory is none of the host's: where the
// processor has protection keys (PKU), ours is behind one that only work that was queued holds, and
// code of the host that reads a pointer of the device dies as it would beside a real GPU. Sanitizers
// keep their own books of small tensors instead.
#include "tests/emulation/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <map>

namespace {

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

// More than any tensor of a test has: what is larger is a work area. The system gives memory for
// what is touched there, a sanitizer keeps no books of it, and the next one of its size takes it
// over.
const size_t TENSOR_BYTES = (size_t)4 << 20;

std::multimap<size_t, void *> areas; // that are free
std::map<void *, size_t> taken;
size_t used_bytes, most_bytes;
unsigned long calls;

// Fresh memory is NaN, an area in its first bytes: what nobody wrote shows. NULL: there is none.
void *memory_of(size_t bytes)
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
		emulated_memory_guard(memory, bytes);
	} else if (posix_memalign(&memory, 256, bytes)) {
		return NULL;
	}
	on_the_gpu here;
	memset(memory, 0xff, bytes < TENSOR_BYTES ? bytes : TENSOR_BYTES);
	return memory;
}

} // namespace

on_the_gpu::on_the_gpu()
{
	before = guard_key() > 0 ? pkey_get(guard_key()) : 0;
	if (guard_key() > 0)
		pkey_set(guard_key(), 0);
}

on_the_gpu::~on_the_gpu()
{
	if (guard_key() > 0)
		pkey_set(guard_key(), (unsigned)before);
}

void emulated_memory_guard(void *memory, size_t bytes)
{
	if (guard_key() > 0)
		pkey_mprotect(memory, bytes, PROT_READ | PROT_WRITE, guard_key());
}

// LB_EMULATION_BYTES: a GPU so small that something does not fit
size_t emulated_memory_bytes(void)
{
	const char *bytes = getenv("LB_EMULATION_BYTES");
	return bytes ? strtoull(bytes, NULL, 10) : (size_t)8 << 30;
}

size_t emulated_memory_used_bytes(void)
{
	return used_bytes;
}

size_t emulated_memory_most_bytes(void)
{
	return most_bytes;
}

unsigned long emulated_memory_calls(void)
{
	return calls;
}

bool emulated_memory_has_room(size_t bytes)
{
	return used_bytes + bytes <= emulated_memory_bytes();
}

void emulated_memory_note(size_t bytes)
{
	calls++;
	used_bytes += bytes;
	if (used_bytes > most_bytes)
		most_bytes = used_bytes;
}

void emulated_memory_forget(size_t bytes)
{
	used_bytes -= bytes;
}

void *emulated_memory_take(size_t bytes)
{
	void *memory = emulated_memory_has_room(bytes) ? memory_of(bytes) : NULL;
	if (!memory)
		return NULL;
	taken[memory] = bytes;
	emulated_memory_note(bytes);
	return memory;
}

bool emulated_memory_free(void *memory)
{
	auto at = taken.find(memory);
	if (at == taken.end())
		return false;
	const size_t bytes = at->second;
	taken.erase(at);
	emulated_memory_forget(bytes);
	if (bytes > TENSOR_BYTES)
		areas.insert({ bytes, memory });
	else if (guards)
		munmap(memory, bytes);
	else
		free(memory);
	return true;
}
