/* SPDX-License-Identifier: MIT */
#include "worker/lbworker/device.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/files.h"
#include "common/log.h"
#include "common/mem.h"
#include "kernels/load.h"

static void warn(const char *text)
{
	log_warn("%s", text);
}

/* NULL with a line in why[BACKEND_TEXT_BYTES]. */
static struct device *open_with(const struct backend *be, const struct config *c, char *why)
{
	char *cache = c->device_cache[0] == '/' ? xstrdup(c->device_cache)
						: xasprintf("%s/%s", c->dump_folder, c->device_cache);
	bool is_cached = c->device_cache[0] && be != &backend_cpu &&
			 folder_make(cache, 0755, NULL) == 0;
	struct device *device = be->open(&(struct backend_options){
		.threads = (int)c->threads, .warn = warn, .compute = (enum compute)c->compute,
		.deterministic = c->deterministic, .cache = is_cached ? cache : NULL,
	}, why);

	free(cache);
	return device;
}

static int open_cpu(struct config *c, const struct backend **backend, struct device **device,
		    struct err *err)
{
	char why[BACKEND_TEXT_BYTES];

	if (c->compute != COMPUTE_FP32) {
		if (c->device == DEVICE_CPU)
			return err_set(err, ERR_USAGE, "training.mixed_precision_param: the CPU "
				       "computes in \"float32\" only");
		log_warn("the CPU computes in float32, not in bfloat16");
		c->compute = COMPUTE_FP32;
	}
	*backend = &backend_cpu;
	*device = open_with(*backend, c, why);
	return *device ? 0 : err_set(err, ERR_IO, "%s", why);
}

int device_open(struct config *c, const struct backend **backend, struct device **device,
		struct err *err)
{
	char why[BACKEND_TEXT_BYTES];

	*device = NULL;
	if (c->device == DEVICE_CPU)
		return open_cpu(c, backend, device, err);
	*backend = backend_load_cuda(why);
	*device = *backend ? open_with(*backend, c, why) : NULL;
	if (*device)
		return 0;
	if (c->device == DEVICE_CUDA)
		return err_set(err, ERR_IO, "device.name = \"cuda\": %s", why);
	printf("%s; the CPU computes\n", why);
	return open_cpu(c, backend, device, err);
}
