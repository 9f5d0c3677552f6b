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

bool cpu_packed(struct device *dev, size_t bytes)
{
	const size_t large_pages = 4 << 20; /* cpu_aligned() takes them for so much */

	bytes = bytes < large_pages ? large_pages : bytes;
	if (bytes <= dev->packed_bytes)
		return true;
	free(dev->packed);
	dev->packed = cpu_aligned(bytes);
	dev->packed_bytes = dev->packed ? bytes : 0;
	if (!dev->packed)
		cpu_fail(dev, "no memory for packed operands");
	return dev->packed;
}

float *cpu_quantized(struct device *dev, int side, size_t bytes)
{
	bytes = (bytes + CPU_ALIGN_BYTES - 1) / CPU_ALIGN_BYTES * CPU_ALIGN_BYTES;
	if (bytes > dev->quantized_bytes[side]) {
		free(dev->quantized[side]);
		dev->quantized[side] = aligned_alloc(CPU_ALIGN_BYTES, bytes);
		dev->quantized_bytes[side] = dev->quantized[side] ? bytes : 0;
	}
	if (!dev->quantized[side])
		cpu_fail(dev, "no memory for operands of few bits");
	return dev->quantized[side];
}
