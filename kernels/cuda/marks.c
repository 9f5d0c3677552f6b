/* SPDX-License-Identifier: MIT */
/* marks.c - moments on the device's own clock, as events in its queue. */
#include "kernels/cuda/cuda.h"

#include <stdlib.h>

struct marks {
	cudaEvent_t *event;
	uint32_t count, made;
};

uint32_t cuda_mark_in(struct device *dev, cudaStream_t stream)
{
	const struct place *at = AT("mark", 0, 0, 0, 0);
	struct marks *m = dev->marks;

	if (!m)
		m = dev->marks = calloc(1, sizeof(*m));
	if (m && m->count == m->made) {
		uint32_t room = m->made ? 2 * m->made : 1024;
		cudaEvent_t *event = realloc(m->event, room * sizeof(cudaEvent_t));
		if (event)
			m->event = event;
		while (event && m->made < room &&
		       cuda_ok(dev, at, cudaEventCreate(&m->event[m->made])))
			m->made++;
	}
	if (!m || m->count >= m->made) {
		cuda_fail(dev, at, "out of memory");
		return 0;
	}
	cuda_ok(dev, at, cudaEventRecord(m->event[m->count], stream));
	return m->count++;
}

uint32_t cuda_mark(struct device *dev)
{
	cuda_join_beside(dev); /* what runs aside belongs to the operation before the mark */
	return cuda_mark_in(dev, dev->stream);
}

double cuda_mark_us(struct device *dev, uint32_t mark)
{
	const struct place *at = AT("mark_us", 0, 0, 0, 0);
	const struct marks *m = dev->marks;
	float ms = 0;

	/* finish() may have come before the last of them was queued */
	if (m && mark < m->count && cuda_ok(dev, at, cudaEventSynchronize(m->event[mark])))
		cuda_ok(dev, at, cudaEventElapsedTime(&ms, m->event[0], m->event[mark]));
	return 1e3 * (double)ms;
}

void cuda_marks_clear(struct device *dev)
{
	if (dev->marks)
		dev->marks->count = 0;
}

void cuda_marks_destroy(struct device *dev)
{
	struct marks *m = dev->marks;

	for (uint32_t i = 0; m && i < m->made; i++)
		cudaEventDestroy(m->event[i]);
	if (m)
		free(m->event);
	free(m);
	dev->marks = NULL;
}
