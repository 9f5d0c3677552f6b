/* SPDX-License-Identifier: MIT */
/* shares.c - arrays of which this rank keeps parts: each parameter has its address, and addresses
 * whose parameters are here in turn, or never, are of the same memory.
 *
 * CUDA's virtual memory: a range of addresses, and memory in chunks of some MiB behind them. All of
 * it is laid out once: nothing is mapped, waited for or lost while a step runs, so a pass with its
 * gathers can be one recorded program. Of memory that two addresses share, only what was written
 * through one of them is read there, by work behind it in the queue. */
#include <cuda.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/cuda/cuda.h"

enum { MAPPED_BY = 12000, TURNS_MAX = 8 }; /* a driver's version whose functions these are */

struct mapped {
	CUdeviceptr at;
	size_t bytes;
};

struct mapping {
	CUdeviceptr base;
	size_t bytes; /* of addresses */
	struct mapped *piece;
	size_t pieces, room;
};

/* --- the driver's functions, which no library of the runtime has ------------------------------ */

struct driver {
	__typeof__(&cuMemGetAllocationGranularity) granularity;
	__typeof__(&cuMemAddressReserve) reserve;
	__typeof__(&cuMemAddressFree) give_back;
	__typeof__(&cuMemCreate) create;
	__typeof__(&cuMemRelease) release;
	__typeof__(&cuMemMap) map;
	__typeof__(&cuMemUnmap) unmap;
	__typeof__(&cuMemSetAccess) access;
};

static bool driver_has(const char *name, void *function, size_t bytes)
{
	enum cudaDriverEntryPointQueryResult found;
	void *at = NULL;

	if (cudaGetDriverEntryPointByVersion(name, &at, MAPPED_BY, cudaEnableDefault, &found) !=
		    cudaSuccess ||
	    found != cudaDriverEntryPointSuccess || !at) {
		(void)cudaGetLastError();
		return false;
	}
	memcpy(function, &at, bytes);
	return true;
}

static bool driver_open(struct driver *d)
{
	return driver_has("cuMemGetAllocationGranularity", &d->granularity, sizeof(void *)) &&
	       driver_has("cuMemAddressReserve", &d->reserve, sizeof(void *)) &&
	       driver_has("cuMemAddressFree", &d->give_back, sizeof(void *)) &&
	       driver_has("cuMemCreate", &d->create, sizeof(void *)) &&
	       driver_has("cuMemRelease", &d->release, sizeof(void *)) &&
	       driver_has("cuMemMap", &d->map, sizeof(void *)) &&
	       driver_has("cuMemUnmap", &d->unmap, sizeof(void *)) &&
	       driver_has("cuMemSetAccess", &d->access, sizeof(void *));
}

static CUmemAllocationProp of_this_gpu(void)
{
	CUmemAllocationProp prop = { .type = CU_MEM_ALLOCATION_TYPE_PINNED };

	prop.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
	(void)cudaGetDevice(&prop.location.id);
	return prop;
}

/* --- whose chunk it is ------------------------------------------------------------------------ */

/* PRIVATE: of its address alone. Else of a turn, the at-th of its chunks; the first turn is of what
 * is never read. */
enum { PRIVATE = -1, NEVER_READ = 0 };
struct chunk {
	int turn;
	size_t at;
};

/* Whole chunks within [from, to); origin: where the run's first one is. */
static void share_chunks(struct chunk *chunk, size_t from, size_t to, size_t origin, size_t each,
			 int rest)
{
	size_t begin = (from + each - 1) / each, end = to / each,
	       first = (origin + each - 1) / each;

	for (size_t c = begin; c < end; c++)
		chunk[c] = rest == REST_IS_LOST ? (struct chunk){ NEVER_READ, 0 }
						: (struct chunk){ 1 + rest, c - first };
}

static struct chunk *chunks_of(size_t chunks, size_t each, const struct byte_run *run, size_t runs)
{
	struct chunk *chunk = malloc(chunks * sizeof(*chunk));

	for (size_t c = 0; chunk && c < chunks; c++)
		chunk[c] = (struct chunk){ PRIVATE, 0 };
	for (size_t i = 0; chunk && i < runs; i++) {
		const struct byte_run *r = &run[i];
		if (r->rest == REST_STAYS || r->rest >= TURNS_MAX)
			continue;
		share_chunks(chunk, r->from, r->own_from, r->from, each, r->rest);
		share_chunks(chunk, r->own_to, r->to, r->from, each, r->rest);
	}
	return chunk;
}

/* --- memory behind the addresses -------------------------------------------------------------- */

/* What a turn has taken: a handle for each of its chunks. */
struct turn {
	CUmemGenericAllocationHandle *handle;
	size_t count;
};

static bool map(const struct driver *d, struct mapping *m, CUdeviceptr at, size_t bytes,
		CUmemGenericAllocationHandle handle)
{
	if (m->pieces == m->room) {
		size_t room = m->room ? 2 * m->room : 64;
		struct mapped *grown = realloc(m->piece, room * sizeof(*grown));
		if (!grown)
			return false;
		m->piece = grown;
		m->room = room;
	}
	if (d->map(at, bytes, 0, handle, 0) != CUDA_SUCCESS)
		return false;
	m->piece[m->pieces++] = (struct mapped){ at, bytes };
	return true;
}

/* The at-th chunk of a turn, taken when it is asked for first. */
static bool of_turn(const struct driver *d, struct turn *t, size_t at, size_t each, size_t *taken,
		    CUmemGenericAllocationHandle *handle)
{
	const CUmemAllocationProp prop = of_this_gpu();

	if (at >= t->count) {
		size_t count = at + 1;
		CUmemGenericAllocationHandle *grown = realloc(t->handle, count * sizeof(*grown));
		if (!grown)
			return false;
		memset(grown + t->count, 0, (count - t->count) * sizeof(*grown));
		t->handle = grown;
		t->count = count;
	}
	if (t->handle[at] == 0) {
		if (d->create(&t->handle[at], each, &prop, 0) != CUDA_SUCCESS) {
			t->handle[at] = 0;
			return false;
		}
		*taken += each;
	}
	*handle = t->handle[at];
	return true;
}

/* Memory of its own for a run of addresses. */
static bool map_own(const struct driver *d, struct mapping *m, CUdeviceptr at, size_t bytes,
		    size_t *taken)
{
	const CUmemAllocationProp prop = of_this_gpu();
	CUmemGenericAllocationHandle handle;

	if (d->create(&handle, bytes, &prop, 0) != CUDA_SUCCESS)
		return false;
	bool is_mapped = map(d, m, at, bytes, handle);
	(void)d->release(handle); /* it stays for as long as it is mapped */
	*taken += is_mapped ? bytes : 0;
	return is_mapped;
}

static bool map_all(const struct driver *d, struct mapping *m, const struct chunk *chunk,
		    size_t chunks, size_t each, size_t *taken)
{
	struct turn turn[1 + TURNS_MAX] = { 0 };
	CUmemGenericAllocationHandle handle;
	bool is_there = true;
	size_t run;

	for (size_t c = 0; is_there && c < chunks; c += run) {
		CUdeviceptr at = m->base + c * each;
		for (run = 1; chunk[c].turn == PRIVATE && c + run < chunks &&
			      chunk[c + run].turn == PRIVATE;)
			run++;
		is_there = chunk[c].turn == PRIVATE ? map_own(d, m, at, run * each, taken)
						    : of_turn(d, &turn[chunk[c].turn], chunk[c].at,
							      each, taken, &handle) &&
							      map(d, m, at, each, handle);
	}
	for (int i = 0; i <= TURNS_MAX; i++) {
		for (size_t h = 0; h < turn[i].count; h++)
			if (turn[i].handle[h])
				(void)d->release(turn[i].handle[h]);
		free(turn[i].handle);
	}
	return is_there;
}

void cuda_unmap(struct mapping *m)
{
	struct driver d;

	if (!m)
		return;
	if (driver_open(&d)) {
		for (size_t i = 0; i < m->pieces; i++)
			(void)d.unmap(m->piece[i].at, m->piece[i].bytes);
		(void)d.give_back(m->base, m->bytes);
	}
	free(m->piece);
	free(m);
}

static struct mapping *make(const struct driver *d, size_t bytes, size_t each,
			    const struct byte_run *run, size_t runs, size_t *taken)
{
	const CUmemAllocationProp prop = of_this_gpu();
	const CUmemAccessDesc access = { prop.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE };
	size_t chunks = (bytes + each - 1) / each;
	struct mapping *m = calloc(1, sizeof(*m));
	struct chunk *chunk = chunks_of(chunks, each, run, runs);
	bool is_there = m && chunk;

	if (is_there) {
		m->bytes = chunks * each;
		is_there = d->reserve(&m->base, m->bytes, 0, 0, 0) == CUDA_SUCCESS;
	}
	if (!is_there) {
		free(m);
		free(chunk);
		return NULL;
	}
	is_there = map_all(d, m, chunk, chunks, each, taken) &&
		   d->access(m->base, m->bytes, &access, 1) == CUDA_SUCCESS;
	free(chunk);
	if (is_there)
		return m;
	cuda_unmap(m);
	return NULL;
}

/* A driver may have the functions for a GPU that has none of it. */
static bool gpu_maps(void)
{
	const CUdevice_attribute wanted = CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED;
	__typeof__(&cuDeviceGet) get;
	__typeof__(&cuDeviceGetAttribute) ask;
	CUdevice gpu;
	int maps = 0;

	return driver_has("cuDeviceGet", &get, sizeof(void *)) &&
	       driver_has("cuDeviceGetAttribute", &ask, sizeof(void *)) &&
	       get(&gpu, of_this_gpu().location.id) == CUDA_SUCCESS &&
	       ask(&maps, wanted, gpu) == CUDA_SUCCESS && maps;
}

/* LB_CUDA_SHARES=0: all memory is taken, as where a driver has no such functions, or a GPU no such
 * memory. */
bool cuda_may_share(void)
{
	const char *how = getenv("LB_CUDA_SHARES");
	struct driver d;

	return (!how || strcmp(how, "0") != 0) && driver_open(&d) && gpu_maps();
}

struct mapping *cuda_map(size_t bytes, const struct byte_run *run, size_t runs, size_t *taken)
{
	const CUmemAllocationProp prop = of_this_gpu();
	size_t each = 0;
	struct driver d;

	*taken = 0;
	if (!driver_open(&d) ||
	    d.granularity(&each, &prop, CU_MEM_ALLOC_GRANULARITY_MINIMUM) != CUDA_SUCCESS)
		return NULL;
	return make(&d, bytes, each, run, runs, taken);
}

void *cuda_mapped_at(const struct mapping *m)
{
	void *at;

	_Static_assert(sizeof(at) == sizeof(m->base), "addresses of the driver are pointers");
	memcpy(&at, &m->base, sizeof(at));
	return at;
}
