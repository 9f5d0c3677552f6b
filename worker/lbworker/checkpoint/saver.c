/* SPDX-License-Identifier: MIT */
/* saver.c - one short-lived thread per checkpoint; what it shares with the loop is the copy, which
 * the loop leaves alone until it has joined the thread. */
#include "worker/lbworker/checkpoint/saver.h"

#include <stdlib.h>

#include "common/base/clock.h"
#include "common/base/mem.h"
#include "kernels/machine/cpus.h"
#include "kernels/machine/threads.h"

struct saver {
	struct checkpoint_parts parts;
	struct checkpoint_rules rules;
	struct checkpoint_copy *copy;
	pthread_t thread;
	bool is_thread; /* false: written in saver_start, no thread could be had */
	bool in_flight;
	atomic_bool is_written;
	struct saver_result result;
};

struct saver *saver_create(const struct checkpoint_parts *parts,
			   const struct checkpoint_rules *rules, struct err *err)
{
	struct checkpoint_copy *copy = checkpoint_copy_create(parts, err);

	if (!copy)
		return NULL;
	struct saver *s = xcalloc(1, sizeof(*s));
	*s = (struct saver){ .parts = *parts, .rules = *rules, .copy = copy };
	atomic_init(&s->is_written, true);
	return s;
}

void saver_destroy(struct saver *s)
{
	struct saver_result result;

	if (!s)
		return;
	if (saver_collect(s, true, &result))
		free(result.path);
	checkpoint_copy_destroy(s->copy);
	free(s);
}

static void *write_it(void *arg)
{
	struct saver *s = arg;
	double start_us = clock_mono_us();

	(void)checkpoint_publish(s->copy, &s->rules, &s->result.path, &s->result.err);
	s->result.write_s = (clock_mono_us() - start_us) * 1e-6;
	atomic_store(&s->is_written, true);
	return NULL;
}

static void *write_beside(void *arg)
{
	cpus_unbind(); /* the core of the thread that trains is not ours */
	return write_it(arg);
}

int saver_start(struct saver *s, double *seconds, struct err *err)
{
	const struct model *m = s->parts.model;
	double start_us = clock_mono_us();

	backend_range(m->backend, m->device, "checkpoint");
	int rc = checkpoint_copy_take(s->copy, &s->parts, err);
	backend_range_end(m->backend, m->device);
	*seconds = (clock_mono_us() - start_us) * 1e-6;
	if (rc != 0)
		return -1;
	s->result = (struct saver_result){ .step = s->parts.state->step, .copy_s = *seconds };
	s->in_flight = true;
	atomic_store(&s->is_written, false);
	s->is_thread = threads_start(&s->thread, write_beside, s);
	if (!s->is_thread)
		write_it(s);
	return 0;
}

bool saver_busy(const struct saver *s)
{
	return s->in_flight;
}

const atomic_bool *saver_is_through(const struct saver *s)
{
	return &s->is_written;
}

bool saver_collect(struct saver *s, bool wait, struct saver_result *out)
{
	if (!s->in_flight || (!wait && !atomic_load(&s->is_written)))
		return false;
	if (s->is_thread)
		pthread_join(s->thread, NULL);
	s->in_flight = false;
	*out = s->result;
	return true;
}
