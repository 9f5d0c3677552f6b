/* SPDX-License-Identifier: MIT */
/* load.c - choosing among tables; looking for the libraries of CUDA and MPI, and refusing one that
 * was built from another backend.h or comm.h. */
#include "kernels/load.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/comm.h"
#include "kernels/machine/instructions.h"
#include "kernels/wheels.h"

typedef const struct backend *table_function(void);

/* kernels/cpu, compiled for each set (Makefile). */
extern const struct backend backend_cpu_base, backend_cpu_avx2, backend_cpu_avx512;

const struct backend *backend_cpu(void)
{
	switch (instructions_used()) {
#if defined(__x86_64__)
	case INSTRUCTIONS_AVX512:
	case INSTRUCTIONS_VNNI:
		return &backend_cpu_avx512;
	case INSTRUCTIONS_AVX2:
		return &backend_cpu_avx2;
#endif
	default:
		return &backend_cpu_base;
	}
}

/* "FOLDER-OF-THIS-PROGRAM/behind" */
static void beside(char out[PATH_MAX], const char *behind)
{
	char self[PATH_MAX / 2];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	self[length > 0 ? length : 0] = '\0';
	char *slash = strrchr(self, '/');
	if (slash)
		*slash = '\0';
	snprintf(out, PATH_MAX, "%s/%s", self, behind);
}

/* Opened by name when it is needed; where only a Python environment has it, it is opened here. */
static void find_cudnn(void)
{
	static const char name[] = "libcudnn.so.9";
	void *library = dlopen(name, RTLD_LAZY | RTLD_LOCAL);

	if (library)
		dlclose(library);
	else
		wheels_open(name);
}

/* What it is linked with may lie in a Python environment only: the loader names what it misses, one
 * at a time. NULL: dlerror() says why. */
static void *open_with_wheels(const char *path)
{
	enum { TRIES = 8 };

	find_cudnn();
	for (int i = 0; i < TRIES; i++) {
		char missing[PATH_MAX];
		void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
		const char *error = library ? NULL : dlerror();
		if (!error)
			return library;
		snprintf(missing, sizeof(missing), "%.*s", (int)strcspn(error, ":"), error);
		if (!strstr(error, "cannot open shared object file") || strchr(missing, '/') ||
		    !wheels_open(missing))
			break;
	}
	return dlopen(path, RTLD_NOW | RTLD_LOCAL); /* the error once more */
}

/* Behind a failure of the loader; one of the toolkit's libraries may be what it misses. */
static void say_lacking(const char *whose, char *why)
{
	const char *error = dlerror();
	bool is_theirs = strncmp(error, "lib", 3) == 0 && strstr(error, "cannot open shared");

	snprintf(why, BACKEND_TEXT_BYTES, "%s: %.120s%s", whose, error,
		 is_theirs ? "; the module of that CUDA has it, or pip install its nvidia-cublas "
			     "in the Python on PATH"
			   : "");
}

static void *open_library(char *why)
{
	static const char *const places[] = { "liblbcuda.so", "../lib/lowbits/liblbcuda.so" };
	const char *given = getenv("LB_CUDA_LIBRARY");
	char path[PATH_MAX];
	void *library = NULL;

	if (given && given[0] != '\0') {
		library = open_with_wheels(given);
		if (!library)
			say_lacking("LB_CUDA_LIBRARY", why);
		return library;
	}
	/* Without a driver the half gigabyte behind our library need not be mapped to find that
	 * out. */
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!driver) {
		snprintf(why, BACKEND_TEXT_BYTES,
			 "cuda: no GPU here: there is no driver "
			 "(libcuda.so.1)");
		return NULL;
	}
	for (size_t i = 0; !library && i < sizeof(places) / sizeof(places[0]); i++) {
		beside(path, places[i]);
		if (access(path, F_OK) != 0)
			continue;
		library = open_with_wheels(path);
		if (!library) {
			say_lacking("cuda", why);
			return NULL;
		}
	}
	if (!library)
		snprintf(why, BACKEND_TEXT_BYTES,
			 "cuda: there is no liblbcuda.so beside this program (it is built where "
			 "nvcc is found)");
	return library;
}

const struct backend *backend_load_cuda(char *why)
{
	table_function *table;
	void *library = open_library(why);

	if (!library)
		return NULL;
	*(void **)&table = dlsym(library, "lbcuda_backend");
	const struct backend *be = table ? table() : NULL;
	if (be && be->abi_version == BACKEND_ABI && be->struct_bytes == sizeof(struct backend))
		return be;
	snprintf(why, BACKEND_TEXT_BYTES,
		 "cuda: liblbcuda.so belongs to another version of this "
		 "program");
	return NULL;
}

const struct comm_table *comm_load_mpi(char *why)
{
	static const char *const places[] = { "liblbmpi.so", "../lib/lowbits/liblbmpi.so" };
	const struct comm_table *(*table)(void) = NULL;
	char path[PATH_MAX];
	void *library = NULL;

	snprintf(why, COMM_TEXT_BYTES,
		 "there is no liblbmpi.so beside this program (it is built where MPICH's headers "
		 "are: libmpich-dev)");
	for (size_t i = 0; !library && i < sizeof(places) / sizeof(places[0]); i++) {
		beside(path, places[i]);
		if (access(path, F_OK) != 0)
			continue;
		library = dlopen(path, RTLD_NOW | RTLD_GLOBAL);
		if (!library)
			snprintf(why, COMM_TEXT_BYTES, "%.240s", dlerror());
	}
	if (!library)
		return NULL;
	*(void **)&table = dlsym(library, "lbmpi_table");
	const struct comm_table *comm = table ? table() : NULL;
	if (comm && comm->abi_version == COMM_ABI && comm->struct_bytes == sizeof(*comm))
		return comm;
	snprintf(why, COMM_TEXT_BYTES, "liblbmpi.so belongs to another version of this program");
	return NULL;
}
