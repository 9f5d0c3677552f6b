/* SPDX-License-Identifier: MIT */
/* base/ - what every room may use: the device, random numbers, number formats, tensor files.
 *
 * device.h - the device that computes: a GPU where one is asked for and there, else this
 * machine. */
#ifndef LBWORKER_DEVICE_H
#define LBWORKER_DEVICE_H

#include <stdbool.h>
#include <stdio.h>

#include "common/base/err.h"
#include "kernels/backend.h"

enum device_choice { DEVICE_AUTO, DEVICE_CPU, DEVICE_CUDA };

struct device_order {
	enum device_choice choice;
	/* what people set them with, for errors; the latter NULL: nobody asked, and a CPU computes
	 * in fp32 */
	const char *choice_name, *compute_name;
	FILE *notes; /* where one line says why the CPU computes; NULL: nowhere */
	int threads;
	enum compute compute;
	bool deterministic;
	int index;         /* of the GPU; -1: as the launcher says */
	const char *cache; /* folder for what is measured on a GPU; NULL: not kept */
};

struct opened {
	const struct backend *backend;
	struct device *device; /* the caller closes it; NULL on failure */
	enum compute compute;  /* what the device can do of what was asked for */
};

/* 0, or -1 with err. */
int device_open(struct opened *out, const struct device_order *order, struct err *err);

#endif
