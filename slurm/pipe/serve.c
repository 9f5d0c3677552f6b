/* SPDX-License-Identifier: MIT */
/* serve.c - the loop of a helper.
 *
 * lbd starts it with its own process id as the argument and kills it when it takes too long. It
 * holds no state that matters: a fresh one carries on. */
#include "slurm/pipe/serve.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"

static void handle(const struct op *ops, const char *line, size_t len)
{
	struct err err = { 0 };
	json_t *request = js_parse(line, len, &err);
	const char *name = js_str(request, "op", "");
	struct answer a = { .id = js_int(request, "id", 0), .body = json_object() };

	buf_init(&a.rows, WIRE_MAX_REPLY);
	while (ops->name && strcmp(ops->name, name) != 0)
		ops++;
	if (ops->name)
		ops->run(request, &a);
	else
		answer_set(&a, SCHEDULER_REFUSED, "no such request: %s", request ? name : err.text);
	answer_write(&a);
	json_decref(request);
}

/* Handles every complete line of the buffer; only the bytes from `fresh` on may hold new ends. */
static void handle_lines(const struct op *ops, struct buf *in, size_t fresh)
{
	size_t start = 0;
	const char *end;

	while ((end = memchr(in->data + fresh, '\n', in->len - fresh))) {
		size_t at = (size_t)(end - in->data);

		handle(ops, in->data + start, at - start);
		start = fresh = at + 1;
	}
	explicit_bzero(in->data, start); /* environments may hold secrets */
	buf_drop(in, start);
}

static int read_requests(const struct op *ops)
{
	static char chunk[1 << 16];
	struct buf in;
	ssize_t n;

	buf_init(&in, WIRE_MAX_REQUEST);
	while ((n = read(STDIN_FILENO, chunk, sizeof(chunk))) != 0) {
		size_t fresh = in.len;

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 || buf_add(&in, chunk, (size_t)n)) {
			log_error("a request cannot be read: %s",
				  n < 0 ? strerror(errno) : "too long");
			break;
		}
		handle_lines(ops, &in, fresh);
	}
	buf_fini(&in);
	return n != 0;
}

/* Dies with lbd, also when lbd died before we could ask for that. */
static bool follow_parent(const char *pid)
{
	if (prctl(PR_SET_PDEATHSIG, SIGKILL))
		return false;
	return strtol(pid, NULL, 10) == (long)getppid();
}

int serve(const char *program, const char *version, const struct op *ops, int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("%s\n", version);
		return 0;
	}
	if (argc != 2) {
		fprintf(stderr,
			"usage: %s PID_OF_LBD | --version (started by lbd, not by people)\n",
			program);
		return 2;
	}
	log_init(program, LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
#ifndef __SANITIZE_ADDRESS__
	prctl(PR_SET_DUMPABLE, 0); /* job environments, with their secrets, pass through here */
#endif
	if (!follow_parent(argv[1]))
		return 1;
	if (answers_open()) {
		log_error("no descriptors: %s", strerror(errno));
		return 1;
	}
	return read_requests(ops);
}
