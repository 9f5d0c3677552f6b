/* SPDX-License-Identifier: MIT */
/* device.c - opens the GPU or the CPU, and says why it is not the GPU. */
#include "worker/lbworker/base/device.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/log.h"
#include "kernels/machine/instructions.h"
#include "kernels/load.h"

static void warn(const char *text)
{
	log_warn("%s", text);
}

static struct device *open_with(const struct backend *be, const struct device_order *o,
				enum compute compute, char *why)
{
	bool is_cached = o->cache && be != backend_cpu() && folder_make(o->cache, 0755, NULL) == 0;

	return be->open(
		&(struct backend_options){
			.threads = o->threads,
			.warn = warn,
			.compute = compute,
			.deterministic = o->deterministic,
			.index = o->index,
			.cache = is_cached ? o->cache : NULL,
		},
		why);
}

/* The GPUs that a scheduler gave this job, which a CPU would hold for nothing; NULL: none. */
static const char *gpus_of_job(void)
{
	const char *visible = getenv("CUDA_VISIBLE_DEVICES");
	bool is_job = getenv("LB_RUN") || getenv("SLURM_JOB_ID");
	bool is_any = visible &&
		      (isdigit((unsigned char)visible[0]) || strncmp(visible, "GPU-", 4) == 0 ||
		       strncmp(visible, "MIG-", 4) == 0);

	return is_job && is_any ? visible : NULL;
}

/* The GPU, if one is asked for and there; else out->device stays NULL. */
static int open_gpu(struct opened *out, const struct device_order *o, struct err *err)
{
	char why[BACKEND_TEXT_BYTES];

	if (o->choice == DEVICE_CPU)
		return 0;
	out->backend = backend_load_cuda(why);
	out->device = out->backend ? open_with(out->backend, o, o->compute, why) : NULL;
	if (out->device)
		return 0;
	if (o->choice == DEVICE_CUDA)
		return err_set(err, ERR_IO, "%s: %s", o->choice_name, why);
	const char *gpus = gpus_of_job();
	if (gpus)
		return err_set(err, ERR_IO,
			       "%s; the job holds GPUs (CUDA_VISIBLE_DEVICES=%.40s), which "
			       "--device cpu does without",
			       why, gpus);
	if (o->notes)
		fprintf(o->notes, "%s; the CPU computes\n", why);
	return 0;
}

int device_open(struct opened *out, const struct device_order *o, struct err *err)
{
	char why[BACKEND_TEXT_BYTES];

	*out = (struct opened){ .compute = o->compute };
	if (open_gpu(out, o, err))
		return -1;
	if (out->device)
		return 0;
	if (!instructions_are_known())
		return err_set(err, ERR_USAGE, "LB_CPU_ISA: is base, avx2, avx512 or vnni, not %s",
			       getenv("LB_CPU_ISA"));
	/* what nobody asked for a CPU need not emulate */
	out->compute = o->compute != COMPUTE_FP32 && o->compute_name ? COMPUTE_BF16_WIDE
								     : COMPUTE_FP32;
	out->backend = backend_cpu();
	out->device = open_with(out->backend, o, out->compute, why);
	return out->device ? 0 : err_set(err, ERR_IO, "%s", why);
}
