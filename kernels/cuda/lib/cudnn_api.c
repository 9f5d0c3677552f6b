/* SPDX-License-Identifier: MIT */
/* cudnn_api.c - one table of names. */
#include "kernels/cuda/lib/cudnn_api.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define SYMBOL(field, name) { offsetof(struct cudnn, field), name }
/* clang-format on */

static const struct {
	size_t at;
	const char *name;
} symbols[] = {
	SYMBOL(create_handle, "cudnnCreate"),
	SYMBOL(destroy_handle, "cudnnDestroy"),
	SYMBOL(set_stream, "cudnnSetStream"),
	SYMBOL(version, "cudnnGetVersion"),
	SYMBOL(error_string, "cudnnGetErrorString"),
	SYMBOL(last_error, "cudnnGetLastErrorString"),
	SYMBOL(create, "cudnnBackendCreateDescriptor"),
	SYMBOL(destroy, "cudnnBackendDestroyDescriptor"),
	SYMBOL(finalize, "cudnnBackendFinalize"),
	SYMBOL(set, "cudnnBackendSetAttribute"),
	SYMBOL(get, "cudnnBackendGetAttribute"),
	SYMBOL(execute, "cudnnBackendExecute"),
};

bool cudnn_open(struct cudnn *out, char *why, size_t bytes)
{
	*out = (struct cudnn){ .library = dlopen("libcudnn.so.9", RTLD_NOW | RTLD_LOCAL) };
	if (!out->library) {
		snprintf(why, bytes,
			 "no cuDNN 9 (libcudnn.so.9) where the loader looks, nor in the "
			 "nvidia/cudnn/lib of a Python environment ($VIRTUAL_ENV, $CONDA_PREFIX, "
			 "python3 on PATH): pip install nvidia-cudnn-cu13 there");
		return false;
	}
	for (size_t i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
		void *symbol = dlsym(out->library, symbols[i].name);
		if (!symbol) {
			snprintf(why, bytes, "cuDNN lacks %s", symbols[i].name);
			cudnn_close(out);
			return false;
		}
		memcpy((char *)out + symbols[i].at, &symbol, sizeof(symbol));
	}
	return true;
}

void cudnn_close(struct cudnn *api)
{
	if (api->library)
		dlclose(api->library);
	api->library = NULL;
}
