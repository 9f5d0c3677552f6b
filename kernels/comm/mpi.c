/* SPDX-License-Identifier: MIT */
/* mpi.c - ranks that srun or mpiexec started, over MPI; a library of its own (liblbmpi.so), so that a
 * site without MPI lacks nothing else.
 *
 * Calls do not block but are asked about, between short sleeps: a blocking one on fewer cores than
 * ranks takes ten times as long, and could not keep to a deadline. */
#include <mpi.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "kernels/comm.h"

enum { MESSAGE_BYTES = 1 << 28, NAP_LEAST_NS = 20000, NAP_MOST_NS = 500000, YIELDS = 20 };

struct mpi {
	struct comm comm;
	double deadline_s;
	MPI_Request *request;
	int *whose; /* of each request */
	int requests, room;
};

static void mpi_close(struct comm *comm)
{
	struct mpi *m = (struct mpi *)comm;

	if (!m)
		return;
	MPI_Finalize();
	free(m->request);
	free(m->whose);
	free(m);
}

static struct comm *mpi_open(const struct comm_options *options, char *why)
{
	struct mpi *m = calloc(1, sizeof(*m));
	int provided;

	if (!m || MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) != MPI_SUCCESS) {
		snprintf(why, COMM_TEXT_BYTES, "MPI_Init_thread failed");
		free(m);
		return NULL;
	}
	m->deadline_s = options->deadline_s;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &m->comm.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &m->comm.size);
	return &m->comm;
}

static MPI_Request *next_request(struct mpi *m, int rank)
{
	if (m->requests == m->room) {
		int room = m->room ? 2 * m->room : 64;
		MPI_Request *request = realloc(m->request, (size_t)room * sizeof(*request));
		m->request = request ? request : m->request;
		int *whose = realloc(m->whose, (size_t)room * sizeof(*whose));
		m->whose = whose ? whose : m->whose;
		if (!request || !whose)
			return NULL;
		m->room = room;
	}
	m->whose[m->requests] = rank;
	return &m->request[m->requests++];
}

/* In messages that an int can count. */
static int begin(struct mpi *m, const struct comm_part *part, int rank, bool sends)
{
	for (size_t at = 0; at < part->bytes; at += MESSAGE_BYTES) {
		size_t left = part->bytes - at;
		int count = (int)(left < MESSAGE_BYTES ? left : MESSAGE_BYTES);
		MPI_Request *request = next_request(m, rank);
		char *bytes = (char *)part->at + at;
		if (!request)
			return MPI_ERR_NO_MEM;
		*request = MPI_REQUEST_NULL;
		int rc = sends ? MPI_Isend(bytes, count, MPI_BYTE, rank, 0, MPI_COMM_WORLD, request)
			       : MPI_Irecv(bytes, count, MPI_BYTE, rank, 0, MPI_COMM_WORLD,
					   request);
		if (rc != MPI_SUCCESS)
			return rc;
	}
	return MPI_SUCCESS;
}

static double seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Tests what is not done yet and keeps that in front; how many are left, or -1. */
static int test_all(struct mpi *m)
{
	int left = 0;

	for (int i = 0; i < m->requests; i++) {
		int done = 0;
		if (MPI_Test(&m->request[i], &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
			return -1;
		if (done)
			continue;
		m->request[left] = m->request[i];
		m->whose[left++] = m->whose[i];
	}
	m->requests = left;
	return left;
}

/* Requests are in the order of ranks, those to receive first. */
static void say_missing(const struct mpi *m, char *why)
{
	int length = snprintf(why, COMM_TEXT_BYTES, "rank"), count = 0;

	for (int i = 0; i < m->requests && length < COMM_TEXT_BYTES / 2; i++)
		if (i == 0 || m->whose[i] != m->whose[i - 1])
			length += snprintf(why + length, (size_t)(COMM_TEXT_BYTES - length),
					   "%s %d", count++ ? "," : "", m->whose[i]);
	snprintf(why + length, (size_t)(COMM_TEXT_BYTES - length), " did not answer for %.0f s",
		 m->deadline_s);
}

static enum comm_result wait_all(struct mpi *m, char *why)
{
	double since = seconds();
	long ns = NAP_LEAST_NS;

	for (int before = m->requests, turn = 0;; turn++) {
		int left = test_all(m);
		if (left == 0)
			return COMM_OK;
		if (left < 0) {
			snprintf(why, COMM_TEXT_BYTES, "MPI failed between ranks %d and %d",
				 m->comm.rank, m->whose[0]);
			return COMM_FAILED;
		}
		if (left < before) {
			since = seconds();
			ns = NAP_LEAST_NS;
		} else if (seconds() - since > m->deadline_s) {
			say_missing(m, why);
			return COMM_FAILED;
		}
		before = left;
		const struct timespec pause = { 0, ns };
		if (turn >= YIELDS)
			nanosleep(&pause, NULL);
		ns = ns * 5 / 4 < NAP_MOST_NS ? ns * 5 / 4 : NAP_MOST_NS;
	}
}

static enum comm_result mpi_exchange(struct comm *comm, const struct comm_part *send,
				     const struct comm_part *receive, char *why)
{
	struct mpi *m = (struct mpi *)comm;
	int me = comm->rank, rc = MPI_SUCCESS;

	m->requests = 0;
	if (receive[me].bytes > 0 && receive[me].at != send[me].at)
		memcpy(receive[me].at, send[me].at, receive[me].bytes);
	for (int i = 1; rc == MPI_SUCCESS && i < comm->size; i++)
		rc = begin(m, &receive[(me + i) % comm->size], (me + i) % comm->size, false);
	for (int i = 1; rc == MPI_SUCCESS && i < comm->size; i++)
		rc = begin(m, &send[(me + i) % comm->size], (me + i) % comm->size, true);
	if (rc == MPI_SUCCESS)
		return wait_all(m, why);
	snprintf(why, COMM_TEXT_BYTES, "MPI error %d", rc);
	return COMM_FAILED;
}

/* The launcher ends all, ourselves first: the last chance to say why. */
static void mpi_fail(struct comm *comm, const char *text)
{
	(void)comm;
	fprintf(stderr, "lbworker: %s\n", text);
	fflush(NULL);
	MPI_Abort(MPI_COMM_WORLD, 1);
}

static const struct comm_table table = {
	.abi_version = COMM_ABI,
	.struct_bytes = sizeof(struct comm_table),
	.name = "MPI",
	.open = mpi_open,
	.exchange = mpi_exchange,
	.fail = mpi_fail,
	.close = mpi_close,
};

const struct comm_table *lbmpi_table(void);
__attribute__((visibility("default"))) const struct comm_table *lbmpi_table(void)
{
	return &table;
}
