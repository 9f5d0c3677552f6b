/* SPDX-License-Identifier: MIT */
/* samples.c - the samples of a micro-batch, from the data to where the model is fed from. */
#include "common/base/clock.h"
#include "worker/lbworker/train/training.h"

/* A batch of samples `first`, first + stride, ... */
static int read_batch(struct training *t, const struct data *data, uint64_t first, uint64_t stride,
		      struct err *err)
{
	const struct config *c = &t->config;
	double start_us = clock_mono_us();
	int rc = 0;

	t->loaded = NULL;
	backend_range(t->backend, t->device, "data");
	for (int64_t i = 0; rc == 0 && i < c->local_batch_size; i++)
		rc = data_sample(data, first + (uint64_t)i * stride, t->tokens + i * c->seq_len,
				 t->targets + i * c->seq_len, err);
	backend_range_end(t->backend, t->device);
	t->data_s += (clock_mono_us() - start_us) * 1e-6;
	trace_span(t->trace, "data", start_us);
	return rc;
}

int training_samples(struct training *t, const struct data *data, uint64_t first, struct err *err)
{
	if (t->loaded == data && t->loaded_first == first)
		return 0;
	if (read_batch(t, data, first, 1, err))
		return -1;
	t->loaded = data;
	t->loaded_first = first;
	return 0;
}

/* --- validation ------------------------------------------------------------------------------ */

static int64_t whole_batches(const struct training *t)
{
	int64_t steps = t->config.validation_steps;

	return steps >= 0 ? steps
			  : (int64_t)data_samples(t->validation) / t->config.local_batch_size;
}

int64_t training_validation_passes(const struct training *t)
{
	int64_t all = (int64_t)data_samples(t->validation), each = t->config.local_batch_size;

	return whole_batches(t) + (t->config.validation_steps >= 0 ? 0 : all % each);
}

int64_t training_validation_tokens(const struct training *t)
{
	int64_t all = (int64_t)data_samples(t->validation), each = t->config.local_batch_size;

	return (t->config.validation_steps >= 0 ? whole_batches(t) * each : all) *
	       t->config.seq_len;
}

int training_validation_samples(struct training *t, int64_t pass, double *weight, struct err *err)
{
	int64_t whole = whole_batches(t), each = t->config.local_batch_size;
	uint64_t first = (uint64_t)(pass < whole ? pass * each : whole * each + pass - whole);

	precision_pass(t->precision, first);
	*weight = pass < whole ? 1 : 1.0 / (double)each;
	return pass < whole ? training_samples(t, t->validation, first, err)
			    : read_batch(t, t->validation, first, 0, err);
}
