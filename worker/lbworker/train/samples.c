/* SPDX-License-Identifier: MIT */
/* samples.c - the samples of a micro-batch, from the data to where the model is fed from. */
#include "common/base/clock.h"
#include "worker/lbworker/train/training.h"

int training_samples(struct training *t, const struct data *data, uint64_t first, struct err *err)
{
	const struct config *c = &t->config;
	double start_us = clock_mono_us();
	int rc = 0;

	if (t->loaded == data && t->loaded_first == first)
		return 0;
	t->loaded = NULL;
	backend_range(t->backend, t->device, "data");
	for (int64_t i = 0; rc == 0 && i < c->local_batch_size; i++)
		rc = data_sample(data, first + (uint64_t)i, t->tokens + i * c->seq_len,
				 t->targets + i * c->seq_len, err);
	backend_range_end(t->backend, t->device);
	t->data_s += (clock_mono_us() - start_us) * 1e-6;
	trace_span(t->trace, "data", start_us);
	if (rc != 0)
		return -1;
	t->loaded = data;
	t->loaded_first = first;
	return 0;
}
