/* SPDX-License-Identifier: MIT */
/* tasks.c - how operations are split into tasks, and the memory that a task may work in. */
#include "kernels/cpu/cpu.h"

#include <stdlib.h>

size_t cpu_rows_per_task(size_t row_floats)
{
	const size_t floats_per_task = 16384;
	return row_floats >= floats_per_task ? 1 : floats_per_task / (row_floats ? row_floats : 1);
}

bool cpu_scratch(struct device *dev, size_t bytes)
{
	if (bytes <= dev->scratch_bytes)
		return true;
	bytes = (bytes + CPU_ALIGN_BYTES - 1) / CPU_ALIGN_BYTES * CPU_ALIGN_BYTES;
	dev->scratch_bytes = 0;
	for (unsigned i = 0; i < dev->threads; i++) {
		free(dev->scratch[i]);
		dev->scratch[i] = aligned_alloc(CPU_ALIGN_BYTES, bytes);
		if (!dev->scratch[i]) {
			cpu_fail(dev, "no memory for scratch");
			return false;
		}
		memset(dev->scratch[i], 0, bytes);
	}
	dev->scratch_bytes = bytes;
	return true;
}

float *cpu_room(struct device *dev, struct cpu_room *room, size_t bytes, const char *lacking)
{
	if (bytes > room->bytes) {
		free(room->at);
		room->at = cpu_aligned(bytes);
		room->bytes = room->at ? bytes : 0;
	}
	if (!room->at)
		cpu_fail(dev, lacking);
	return room->at;
}

float *cpu_packed(struct device *dev, size_t bytes)
{
	const size_t large_pages = 4 << 20; /* cpu_aligned() takes them for so much */

	return cpu_room(dev, &dev->packed, bytes < large_pages ? large_pages : bytes,
			"no memory for packed operands");
}

float *cpu_quantized(struct device *dev, int side, size_t bytes)
{
	return cpu_room(dev, &dev->quantized[side], bytes, "no memory for operands of few bits");
}
