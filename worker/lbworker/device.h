/* SPDX-License-Identifier: MIT */
/* device.h - the device that a config asks for. */
#ifndef LBWORKER_DEVICE_H
#define LBWORKER_DEVICE_H

#include "common/err.h"
#include "kernels/backend.h"
#include "worker/lbworker/config.h"

/* Opens the GPU where one is wished for and can be used, else the CPU, and says so when that is not
 * what one would expect. On the CPU config->compute becomes COMPUTE_FP32, the one type that it
 * computes in; who asks for the CPU and for another type is refused. 0 with a device that
 * (*backend)->close() takes back, or -1 with err. */
int device_open(struct config *config, const struct backend **backend, struct device **device,
		struct err *err);

#endif
