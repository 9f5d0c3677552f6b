/* SPDX-License-Identifier: MIT */
/* cpu_device.h - a CPU to compute on, and numbers to compute with. */
#ifndef TESTS_UNIT_CPU_DEVICE_H
#define TESTS_UNIT_CPU_DEVICE_H

#include "common/base/mem.h"
#include "kernels/load.h"
#include "tests/unit/unit.h"

static inline struct device *open_device(int threads)
{
	const struct backend_options options = { .threads = threads };
	char why[BACKEND_TEXT_BYTES];
	struct device *dev = backend_cpu()->open(&options, why);

	if (!dev)
		fail_msg("%s", why);
	return dev;
}

/* Normal, the same for a `tensor` every time; the caller frees. */
static inline float *noise(uint32_t tensor, size_t count)
{
	const struct normal normal = { .key = 7, .tensor = tensor, .std = 1.0 };
	struct device *dev = open_device(1);
	float *x = xmalloc(count * sizeof(float));

	backend_cpu()->normal(dev, x, count, &normal);
	backend_cpu()->close(dev);
	return x;
}

#endif
