/* SPDX-License-Identifier: MIT */
/* error.c - the first failure of a device, kept until finish() tells it. */
#include "kernels/cpu/cpu.h"

#include <stdio.h>

void cpu_fail(struct device *dev, const char *what)
{
	if (dev->error[0] == '\0')
		snprintf(dev->error, sizeof(dev->error), "cpu: %s", what);
}
