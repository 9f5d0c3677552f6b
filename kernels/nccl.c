/* SPDX-License-Identifier: MIT */
/* nccl.c - finds NCCL, and takes its functions by one table of names. */
#include "kernels/nccl.h"

#include <dlfcn.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/comm.h"
#include "kernels/wheels.h"

static const char soname[] = "libnccl.so.2";

/* clang-format off */
#define SYMBOL(field, name) { offsetof(struct nccl, field), name, false }
/* clang-format on */

static const struct {
	size_t at;
	const char *name;
	bool is_optional;
} symbols[] = {
	SYMBOL(get_version, "ncclGetVersion"),
	SYMBOL(get_id, "ncclGetUniqueId"),
	SYMBOL(init, "ncclCommInitRankConfig"),
	SYMBOL(destroy, "ncclCommDestroy"),
	SYMBOL(abort, "ncclCommAbort"),
	SYMBOL(async_error, "ncclCommGetAsyncError"),
	SYMBOL(error_string, "ncclGetErrorString"),
	{ offsetof(struct nccl, last_error), "ncclGetLastError", true },
	SYMBOL(group_start, "ncclGroupStart"),
	SYMBOL(group_end, "ncclGroupEnd"),
	SYMBOL(send, "ncclSend"),
	SYMBOL(receive, "ncclRecv"),
	SYMBOL(reduce, "ncclReduce"),
};

static void *open_library(char *why)
{
	const char *given = getenv("LB_NCCL_LIBRARY");
	bool is_given = given && given[0] != '\0';
	void *library = dlopen(is_given ? given : soname, RTLD_NOW | RTLD_LOCAL);

	if (!library && !is_given && wheels_open(soname))
		library = dlopen(soname, RTLD_NOW | RTLD_LOCAL);
	if (library)
		return library;
	if (is_given)
		snprintf(why, COMM_TEXT_BYTES, "LB_NCCL_LIBRARY: %.200s", dlerror());
	else
		snprintf(why, COMM_TEXT_BYTES,
			 "no NCCL (%s) where the loader looks, nor in a Python environment: "
			 "pip install nvidia-nccl-cu13, or LB_NCCL_LIBRARY=FILE",
			 soname);
	return NULL;
}

static bool take_symbols(struct nccl *n, char *why)
{
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(n->library, symbols[i].name);
		if (!symbol && !symbols[i].is_optional) {
			snprintf(why, COMM_TEXT_BYTES,
				 "%.160s lacks %s: it is older than NCCL 2.14", n->place,
				 symbols[i].name);
			return false;
		}
		memcpy((char *)n + symbols[i].at, &symbol, sizeof(symbol));
	}
	return true;
}

const struct nccl *nccl_open(char *why)
{
	static struct nccl nccl;
	struct link_map *map;

	if (nccl.version > 0)
		return &nccl;
	nccl.library = open_library(why);
	if (!nccl.library)
		return NULL;
	if (dlinfo(nccl.library, RTLD_DI_LINKMAP, &map) == 0)
		snprintf(nccl.place, sizeof(nccl.place), "%s", map->l_name);
	if (take_symbols(&nccl, why)) {
		if (nccl.get_version(&nccl.version) == NCCL_SUCCESS)
			return &nccl;
		snprintf(why, COMM_TEXT_BYTES, "%.160s: ncclGetVersion fails", nccl.place);
	}
	nccl.version = 0;
	return NULL;
}

void nccl_version_text(int version, char *out, size_t bytes)
{
	/* up to 2.8 it was 1000 major + 100 minor + patch */
	int major = version < 10000 ? version / 1000 : version / 10000;
	int minor = version < 10000 ? version / 100 % 10 : version / 100 % 100;

	snprintf(out, bytes, "%d.%d.%d", major, minor, version % 100);
}
