/* SPDX-License-Identifier: MIT */
/* mpi.c - ranks that srun or mpiexec started, over MPI; a library of its own (liblbmpi.so), so that
 * a site without MPI lacks nothing else.
 *
 * Calls do not block but are asked about, between short sleeps: a blocking one on fewer cores than
 * ranks takes ten times as long, and could not keep to a deadline.
 *
 * Any thread may call MPI, one at a time (MPI_THREAD_SERIALIZED, which takes no lock within MPICH):
 * who waits lets others in while it sleeps, so that a rank can end all in the midst of an
 * exchange. */
#include <mpi.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "kernels/comm.h"
#include "kernels/machine/seconds.h"

enum { MESSAGE_BYTES = 1 << 28, NAP_LEAST_NS = 20000, NAP_MOST_NS = 500000, YIELDS = 20 };
enum tag { TAG_BYTES, TAG_QUESTION, TAG_ANSWER };

/* Who waits has that long to answer one whose patience is over. */
static const double answer_s = 0.5;

struct mpi {
	struct comm comm;
	_Atomic double deadline_s; /* may be set while another thread waits */
	MPI_Request *request;
	int *whose; /* of each request */
	int requests, room;
	char (*node)[COMM_NODE_BYTES]; /* by rank */
};

static pthread_mutex_t calls = PTHREAD_MUTEX_INITIALIZER; /* into MPI, of which there is one */

static void nap(long ns)
{
	const struct timespec pause = { 0, ns };

	pthread_mutex_unlock(&calls);
	nanosleep(&pause, NULL);
	pthread_mutex_lock(&calls);
}

static void mpi_close(struct comm *comm)
{
	struct mpi *m = (struct mpi *)comm;

	if (!m)
		return;
	MPI_Finalize();
	free(m->request);
	free(m->whose);
	free(m->node);
	free(m);
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
		int rc = sends ? MPI_Isend(bytes, count, MPI_BYTE, rank, TAG_BYTES, MPI_COMM_WORLD,
					   request)
			       : MPI_Irecv(bytes, count, MPI_BYTE, rank, TAG_BYTES, MPI_COMM_WORLD,
					   request);
		if (rc != MPI_SUCCESS)
			return rc;
	}
	return MPI_SUCCESS;
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

/* --- who is missing --------------------------------------------------------------------------- */

/* Most wait for one that waits itself, and nobody sees whom that one waits for. So who has waited
 * for too long asks all others; those that only wait answer, and the rest is named. */

static void send_word(int rank, enum tag tag)
{
	static char nothing;
	MPI_Request sent;

	if (MPI_Isend(&nothing, 0, MPI_BYTE, rank, tag, MPI_COMM_WORLD, &sent) == MPI_SUCCESS)
		MPI_Request_free(&sent);
}

/* Whose word has come; -1: nobody's. */
static int take_word(enum tag tag)
{
	MPI_Status status;
	int has_come = 0;
	char nothing;

	if (MPI_Iprobe(MPI_ANY_SOURCE, tag, MPI_COMM_WORLD, &has_come, &status) != MPI_SUCCESS ||
	    !has_come)
		return -1;
	MPI_Recv(&nothing, 0, MPI_BYTE, status.MPI_SOURCE, tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
	return status.MPI_SOURCE;
}

/* We wait, too. */
static void answer(void)
{
	for (int who = take_word(TAG_QUESTION); who >= 0; who = take_word(TAG_QUESTION))
		send_word(who, TAG_ANSWER);
}

/* is_there: [size]. Late answers to an earlier question may be among them: they are as good. */
static void ask(const struct mpi *m, bool *is_there)
{
	double until = seconds() + answer_s;
	int left = m->comm.size - 1;

	for (int r = 0; r < m->comm.size; r++)
		if (r != m->comm.rank)
			send_word(r, TAG_QUESTION);
	while (left > 0 && seconds() < until) {
		answer();
		int who = take_word(TAG_ANSWER);
		if (who < 0) {
			nap(NAP_MOST_NS);
			continue;
		}
		left -= !is_there[who];
		is_there[who] = true;
	}
}

/* Who owes us something; requests are in the order of ranks, those to receive first. */
static bool is_awaited(const struct mpi *m, int rank)
{
	for (int i = 0; i < m->requests; i++)
		if (m->whose[i] == rank)
			return true;
	return false;
}

static void say_missing(const struct mpi *m, char *why)
{
	bool *is_there = calloc((size_t)m->comm.size, sizeof(*is_there));
	int length = snprintf(why, COMM_TEXT_BYTES, "rank"), count = 0;
	bool all_there = true;

	if (is_there)
		ask(m, is_there);
	for (int r = 0; is_there && r < m->comm.size; r++)
		all_there = all_there && (is_there[r] || r == m->comm.rank);
	for (int r = 0; r < m->comm.size && length < COMM_TEXT_BYTES / 2; r++)
		if (r != m->comm.rank && (all_there ? is_awaited(m, r) : !is_there[r]))
			length += snprintf(why + length, (size_t)(COMM_TEXT_BYTES - length),
					   "%s %d on %s", count++ ? "," : "", r, m->node[r]);
	snprintf(why + length, (size_t)(COMM_TEXT_BYTES - length), " did not answer for %.0f s",
		 m->deadline_s);
	free(is_there);
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
		if (turn >= YIELDS) {
			answer();
			nap(ns);
		}
		ns = ns * 5 / 4 < NAP_MOST_NS ? ns * 5 / 4 : NAP_MOST_NS;
	}
}

static int begin_all(struct mpi *m, const struct comm_part *send, const struct comm_part *receive)
{
	int me = m->comm.rank, size = m->comm.size, rc = MPI_SUCCESS;

	m->requests = 0;
	for (int i = 1; rc == MPI_SUCCESS && i < size; i++)
		rc = begin(m, &receive[(me + i) % size], (me + i) % size, false);
	for (int i = 1; rc == MPI_SUCCESS && i < size; i++)
		rc = begin(m, &send[(me + i) % size], (me + i) % size, true);
	return rc;
}

static enum comm_result mpi_exchange(struct comm *comm, const struct comm_part *send,
				     const struct comm_part *receive, char *why)
{
	struct mpi *m = (struct mpi *)comm;
	enum comm_result result = COMM_FAILED;
	int me = comm->rank;

	if (receive[me].bytes > 0 && receive[me].at != send[me].at)
		memcpy(receive[me].at, send[me].at, receive[me].bytes);
	pthread_mutex_lock(&calls);
	int rc = begin_all(m, send, receive);
	if (rc == MPI_SUCCESS)
		result = wait_all(m, why);
	else
		snprintf(why, COMM_TEXT_BYTES, "MPI error %d", rc);
	pthread_mutex_unlock(&calls);
	return result;
}

static void leave(int signo)
{
	(void)signo;
	_exit(1);
}

/* The launcher ends all, ourselves first: the last chance to say why. MPI_Abort may end in abort(),
 * which would look like a crash of this rank, when mostly it tells of another. */
static void mpi_fail(struct comm *comm, const char *text)
{
	(void)comm;
	fprintf(stderr, "lbworker: %s\n", text);
	fflush(NULL);
	pthread_mutex_lock(&calls);
	signal(SIGABRT, leave);
	MPI_Abort(MPI_COMM_WORLD, 1);
	pthread_mutex_unlock(&calls);
}

static void mpi_set_deadline(struct comm *comm, double deadline_s)
{
	((struct mpi *)comm)->deadline_s = deadline_s;
}

/* Where everybody runs, and a first word from all. */
static bool learn_nodes(struct mpi *m, const char *node, char *why)
{
	size_t size = (size_t)m->comm.size;
	struct comm_part *send = calloc(size, sizeof(*send)),
			 *receive = calloc(size, sizeof(*receive));
	char own[COMM_NODE_BYTES] = "";
	bool is_well = false;

	m->node = calloc(size, sizeof(*m->node));
	if (m->node && send && receive) {
		snprintf(own, sizeof(own), "%s", node);
		for (size_t r = 0; r < size; r++) {
			snprintf(m->node[r], sizeof(m->node[r]), "its node");
			send[r] = (struct comm_part){ own, sizeof(own) };
			receive[r] = (struct comm_part){ m->node[r], sizeof(m->node[r]) };
		}
		is_well = mpi_exchange(&m->comm, send, receive, why) == COMM_OK;
	} else {
		snprintf(why, COMM_TEXT_BYTES, "out of memory");
	}
	free(send);
	free(receive);
	return is_well;
}

static struct comm *mpi_open(const struct comm_options *options, char *why)
{
	struct mpi *m = calloc(1, sizeof(*m));
	int provided;

	if (!m || MPI_Init_thread(NULL, NULL, MPI_THREAD_SERIALIZED, &provided) != MPI_SUCCESS) {
		snprintf(why, COMM_TEXT_BYTES, "MPI_Init_thread failed");
		free(m);
		return NULL;
	}
	m->deadline_s = options->deadline_s;
	m->comm.one_thread = provided < MPI_THREAD_SERIALIZED;
	MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
	MPI_Comm_rank(MPI_COMM_WORLD, &m->comm.rank);
	MPI_Comm_size(MPI_COMM_WORLD, &m->comm.size);
	if (learn_nodes(m, options->node, why))
		return &m->comm;
	mpi_fail(&m->comm, why);
	return NULL;
}

static const struct comm_table table = {
	.abi_version = COMM_ABI,
	.struct_bytes = sizeof(struct comm_table),
	.name = "MPI",
	.open = mpi_open,
	.exchange = mpi_exchange,
	.fail = mpi_fail,
	.close = mpi_close,
	.set_deadline = mpi_set_deadline,
};

const struct comm_table *lbmpi_table(void);
__attribute__((visibility("default"))) const struct comm_table *lbmpi_table(void)
{
	return &table;
}
