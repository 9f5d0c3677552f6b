/* SPDX-License-Identifier: MIT */
/* arrays.c - arrays of one rank to the others, by NCCL on a stream of their own, the lane (struct
 * arrays_table of kernels/comm.h). Each exchange is forked from the device's stream by an event and
 * joined to it by another, its ticket, so that within a recorded program it is a branch of the
 * graph. A thread of its own looks at what is under way: arrays_watch.c. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/cuda/arrays_watch.h"

enum { POLL_NS = 200000 };

/* --- calls ------------------------------------------------------------------------------------ */

/* A communicator that does not block says "in progress" and is asked again. */
static enum nccl_result settle(struct arrays *a, enum nccl_result result)
{
	const struct timespec pause = { 0, POLL_NS };

	while (result == NCCL_IN_PROGRESS && arrays_are_well(a)) {
		nanosleep(&pause, NULL);
		if (a->nccl->async_error(a->comm, &result) != NCCL_SUCCESS)
			return NCCL_INTERNAL_ERROR;
	}
	return arrays_are_well(a) ? result : NCCL_SUCCESS; /* why it is not is known */
}

/* False: it has failed before. */
static bool begin_call(struct arrays *a)
{
	if (!arrays_are_well(a) || a->dev->error[0] != '\0')
		return false;
	pthread_mutex_lock(&a->call);
	arrays_set_calling(a, true);
	if (arrays_are_well(a) && a->comm)
		return true;
	arrays_set_calling(a, false);
	pthread_mutex_unlock(&a->call);
	return false;
}

/* An event behind it, unless it is a part of a program that is recorded. Where all are in use the
 * last one comes behind this, too: what nobody looked at could stand still for ever. */
static void note_queued(struct arrays *a, cudaStream_t stream)
{
	const struct place *at = AT("exchange", 0, 0, 0, 0);

	if (a->dev->is_recording)
		return;
	pthread_mutex_lock(&a->lock);
	uint64_t number = a->queued - a->done < UNDER_WAY ? a->queued : a->queued - 1;
	pthread_mutex_unlock(&a->lock);
	if (!cuda_ok(a->dev, at, cudaEventRecord(a->event[number % UNDER_WAY], stream)))
		return;
	pthread_mutex_lock(&a->lock);
	a->queued = number + 1;
	if (a->done > number) /* it was through, and is not any more */
		a->done = number;
	pthread_mutex_unlock(&a->lock);
}

static void end_call(struct arrays *a, const char *what, enum nccl_result result,
		     cudaStream_t stream)
{
	result = settle(a, result);
	if (result != NCCL_SUCCESS)
		arrays_fail_call(a, what, result);
	else if (arrays_are_well(a))
		note_queued(a, stream);
	arrays_set_calling(a, false);
	pthread_mutex_unlock(&a->call);
}

bool cuda_arrays_agree(struct device *dev, bool yes)
{
	const struct arrays *a = dev->arrays;

	return a ? a->options.all_agree(a->options.arg, yes) : yes;
}

bool cuda_arrays_launch(struct device *dev, const struct place *at, cudaGraphExec_t program)
{
	struct arrays *a = dev->arrays;

	if (a && !begin_call(a))
		return true; /* it is known why, and told */
	bool good = cuda_ok(dev, at, cudaGraphLaunch(program, dev->stream));
	if (a)
		end_call(a, "replay", NCCL_SUCCESS, dev->stream);
	return good;
}

/* In the order in which all ranks do it: nobody's k-th word is to one who sends his to another. */
static enum nccl_result queue_parts(struct arrays *a, const struct comm_part *send,
				    const struct comm_part *receive)
{
	int size = a->options.size, me = a->options.rank;
	enum nccl_result result = a->nccl->group_start();

	for (int i = 1; result == NCCL_SUCCESS && i < size; i++) {
		int to = (me + i) % size, from = (me + size - i) % size;
		if (send[to].bytes > 0)
			result = a->nccl->send(send[to].at, send[to].bytes, NCCL_UINT8, to, a->comm,
					       a->lane);
		if (receive[from].bytes > 0 &&
		    (result == NCCL_SUCCESS || result == NCCL_IN_PROGRESS))
			result = a->nccl->receive(receive[from].at, receive[from].bytes, NCCL_UINT8,
						  from, a->comm, a->lane);
		if (result == NCCL_IN_PROGRESS)
			result = NCCL_SUCCESS; /* the group's end tells */
	}
	enum nccl_result end = a->nccl->group_end();
	return result != NCCL_SUCCESS ? result : end;
}

static bool has_parts(const struct arrays *a, const struct comm_part *part)
{
	for (int r = 0; r < a->options.size; r++)
		if (r != a->options.rank && part[r].bytes > 0)
			return true;
	return false;
}

/* What goes on the lane next comes behind what is on the device's stream. */
static bool fork_lane(struct arrays *a, const struct place *at)
{
	return cuda_ok(a->dev, at, cudaEventRecord(a->forked, a->dev->stream)) &&
	       cuda_ok(a->dev, at, cudaStreamWaitEvent(a->lane, a->forked, 0));
}

/* Behind what is on the lane. */
static uint64_t make_ticket(struct arrays *a, const struct place *at)
{
	uint64_t ticket = a->tickets + 1;

	if (!cuda_ok(a->dev, at, cudaEventRecord(a->ticket[ticket % TICKETS], a->lane)))
		return 0;
	return a->tickets = ticket;
}

/* --- for a trace --- */

static size_t note(struct arrays *a, struct arrays_span *span, size_t room)
{
	size_t noted = a->spans;

	a->span = span;
	a->span_room = room;
	a->spans = 0;
	return noted;
}

static bool is_noted(const struct arrays *a)
{
	return a->span && a->spans < a->span_room && !a->dev->is_recording;
}

static size_t sum_sent(const struct arrays *a, const struct comm_part *part)
{
	size_t bytes = 0;

	for (int r = 0; r < a->options.size; r++)
		bytes += r != a->options.rank ? part[r].bytes : 0;
	return bytes;
}

/* Behind the fork, before anything of it is on the lane. */
static void note_begin(struct arrays *a, const struct comm_part *send)
{
	struct timespec now;

	if (!is_noted(a))
		return;
	clock_gettime(CLOCK_MONOTONIC, &now);
	a->span[a->spans] = (struct arrays_span){
		.start_us = 1e6 * (double)now.tv_sec + 1e-3 * (double)now.tv_nsec,
		.from_mark = cuda_mark_in(a->dev, a->lane),
		.bytes = sum_sent(a, send),
	};
}

static void note_end(struct arrays *a)
{
	if (is_noted(a))
		a->span[a->spans++].to_mark = cuda_mark_in(a->dev, a->lane);
}

static void wait_ticket(struct arrays *a, uint64_t ticket)
{
	if (ticket > 0)
		cuda_ok(a->dev, AT("wait", 0, 0, 0, 0),
			cudaStreamWaitEvent(a->dev->stream, a->ticket[ticket % TICKETS], 0));
}

static uint64_t begin(struct arrays *a, const struct comm_part *send,
		      const struct comm_part *receive)
{
	const struct place *at = AT("exchange", 0, 0, 0, 0);
	int me = a->options.rank;

	if (receive[me].bytes > 0 && receive[me].at != send[me].at)
		cuda_ok(a->dev, at,
			cudaMemcpyAsync(receive[me].at, send[me].at, receive[me].bytes,
					cudaMemcpyDeviceToDevice, a->dev->stream));
	if ((!has_parts(a, send) && !has_parts(a, receive)) || !begin_call(a))
		return 0;
	bool is_forked = fork_lane(a, at);
	note_begin(a, send);
	end_call(a, "exchange", is_forked ? queue_parts(a, send, receive) : NCCL_CUDA_ERROR,
		 a->lane);
	note_end(a);
	return is_forked ? make_ticket(a, at) : 0;
}

static enum nccl_result queue_reduce(struct arrays *a, const struct comm_part *part)
{
	enum nccl_result result = a->nccl->group_start();

	for (int r = 0; result == NCCL_SUCCESS && r < a->options.size; r++) {
		if (part[r].bytes > 0)
			result = a->nccl->reduce(part[r].at, part[r].at,
						 part[r].bytes / sizeof(float), NCCL_FLOAT32,
						 NCCL_SUM, r, a->comm, a->lane);
		if (result == NCCL_IN_PROGRESS)
			result = NCCL_SUCCESS;
	}
	enum nccl_result end = a->nccl->group_end();
	return result != NCCL_SUCCESS ? result : end;
}

static uint64_t begin_sum(struct arrays *a, const struct comm_part *part)
{
	const struct place *at = AT("reduce", 0, 0, 0, 0);

	if (!begin_call(a))
		return 0;
	bool is_forked = fork_lane(a, at);
	note_begin(a, part);
	end_call(a, "reduce", is_forked ? queue_reduce(a, part) : NCCL_CUDA_ERROR, a->lane);
	note_end(a);
	return is_forked ? make_ticket(a, at) : 0;
}

static enum comm_result failed(struct arrays *a, char *why)
{
	pthread_mutex_lock(&a->lock);
	enum comm_result result = a->result;
	if (result != COMM_OK)
		snprintf(why, COMM_TEXT_BYTES, "%s", a->why);
	pthread_mutex_unlock(&a->lock);
	return result;
}

/* --- open and close --------------------------------------------------------------------------- */

static void close_arrays(struct arrays *a)
{
	if (!a)
		return;
	bool well = arrays_are_well(a) && a->dev->error[0] == '\0';
	if (well) { /* while the watchdog looks on */
		cudaStreamSynchronize(a->dev->stream);
		cudaStreamSynchronize(a->lane);
	}
	pthread_mutex_lock(&a->lock);
	a->ends = true;
	pthread_mutex_unlock(&a->lock);
	if (a->has_watchdog)
		pthread_join(a->watchdog, NULL);
	if (a->comm && well && arrays_are_well(a))
		a->nccl->destroy(a->comm);
	else if (a->comm)
		a->nccl->abort(a->comm);
	for (size_t i = 0; i < UNDER_WAY; i++)
		if (a->event[i])
			cudaEventDestroy(a->event[i]);
	for (size_t i = 0; i < TICKETS; i++)
		if (a->ticket[i])
			cudaEventDestroy(a->ticket[i]);
	if (a->forked)
		cudaEventDestroy(a->forked);
	if (a->lane)
		cudaStreamDestroy(a->lane);
	a->dev->arrays = NULL;
	pthread_mutex_destroy(&a->call);
	pthread_mutex_destroy(&a->lock);
	free(a);
}

static bool make_event(struct arrays *a, cudaEvent_t *event)
{
	return cuda_ok(a->dev, AT("open", 0, 0, 0, 0),
		       cudaEventCreateWithFlags(event, cudaEventDisableTiming));
}

static bool make_lane(struct arrays *a)
{
	const struct place *at = AT("open", 0, 0, 0, 0);
	bool good = make_event(a, &a->forked);

	for (size_t i = 0; good && i < UNDER_WAY; i++)
		good = make_event(a, &a->event[i]);
	for (size_t i = 0; good && i < TICKETS; i++)
		good = make_event(a, &a->ticket[i]);
	return good &&
	       cuda_ok(a->dev, at, cudaStreamCreateWithFlags(&a->lane, cudaStreamNonBlocking));
}

static void set_deadline(struct arrays *a, double deadline_s)
{
	pthread_mutex_lock(&a->lock);
	a->options.deadline_s = deadline_s;
	pthread_mutex_unlock(&a->lock);
}

/* Meets the others. */
static void meet(struct arrays *a)
{
	struct nccl_config config = { .size = sizeof(config),
				      .magic = (unsigned)NCCL_CONFIG_MAGIC,
				      .version = NCCL_CONFIG_VERSION,
				      .blocking = 0,
				      .cga_cluster_size = NCCL_UNDEFINED,
				      .min_ctas = NCCL_UNDEFINED,
				      .max_ctas = NCCL_UNDEFINED,
				      .split_share = NCCL_UNDEFINED };
	const struct arrays_options *o = &a->options;
	double patience_s = o->deadline_s;

	a->options.deadline_s = o->begin_s;
	pthread_mutex_lock(&a->call);
	arrays_set_calling(a, true);
	enum nccl_result result = a->nccl->init(&a->comm, o->size, *o->id, o->rank, &config);
	result = settle(a, result);
	if (result != NCCL_SUCCESS)
		arrays_fail_call(a, "meeting the other ranks", result);
	arrays_set_calling(a, false);
	pthread_mutex_unlock(&a->call);
	set_deadline(a, patience_s);
}

static struct arrays *open_arrays(struct device *dev, const struct arrays_options *options,
				  char *why)
{
	struct arrays *a = calloc(1, sizeof(*a));

	if (!a) {
		snprintf(why, COMM_TEXT_BYTES, "out of memory");
		return NULL;
	}
	*a = (struct arrays){ .dev = dev,
			      .options = *options,
			      .nccl = options->nccl,
			      .moved_ms = arrays_now_ms(),
			      .result = COMM_OK };
	pthread_mutex_init(&a->call, NULL);
	pthread_mutex_init(&a->lock, NULL);
	dev->arrays = a;
	/* It would map the arrays of recorded exchanges into other processes, which memory of
	 * several chunks (shares.c) does not allow. */
	setenv("NCCL_GRAPH_REGISTER", "0", 0);
	if (!make_lane(a))
		arrays_fail(a, COMM_FAILED, dev->error);
	else if (pthread_create(&a->watchdog, NULL, arrays_watch, a) != 0)
		arrays_fail(a, COMM_FAILED, "no thread for the watchdog of NCCL");
	else {
		a->has_watchdog = true;
		meet(a);
	}
	if (failed(a, why) == COMM_OK)
		return a;
	close_arrays(a);
	return NULL;
}

static int capability(const struct device *dev)
{
	return dev->capability;
}

const struct arrays_table cuda_arrays = {
	.capability = capability,
	.open = open_arrays,
	.begin = begin,
	.begin_sum = begin_sum,
	.wait = wait_ticket,
	.note = note,
	.set_deadline = set_deadline,
	.failed = failed,
	.close = close_arrays,
};
