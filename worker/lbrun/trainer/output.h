/* SPDX-License-Identifier: MIT */
/* output.h - what the trainer prints, with `[host:rank] ` in front of every line, to our stdout.
 *
 * Bounded: nothing grows with what the trainer prints. Where stdout cannot take more (a pipe that
 * nobody reads) we stop reading and the trainer waits; where it refuses (disk full) we drop and go
 * on reading, so that the trainer never stops for it. */
#ifndef LBRUN_TRAINER_OUTPUT_H
#define LBRUN_TRAINER_OUTPUT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	OUTPUT_STREAMS = 2,          /* the trainer's stdout and stderr */
	OUTPUT_PARTIAL_BYTES = 4096, /* a longer line is written in pieces */
	OUTPUT_IDLE_MS = 200,        /* an unfinished line is shown after this */
	OUTPUT_POLL_MAX = OUTPUT_STREAMS + 1,
};

struct output_stream {
	int fd;   /* -1 = closed */
	bool raw; /* lines that begin with "[host:rank]" keep that prefix */
	bool ended;
	int64_t since_ms; /* when the unfinished line last grew */
	size_t len;
	char data[16 * 1024];
};

struct output {
	int fd;
	bool plain; /* as it comes: no prefix, nothing added */
	char prefix[96];
	size_t prefix_len;
	struct output_stream streams[OUTPUT_STREAMS];
	/* Set by the owner, or NULL: all that is read, as it comes. */
	void (*on_bytes)(void *arg, int stream, const char *data, size_t len);
	void *arg;
	const struct output_stream *unfinished; /* whose line is the last one in the file */
	bool is_blocked;                        /* stdout takes nothing at the moment */
	int64_t dropped_bytes;
	int64_t read_ms; /* when something was read last; 0 = never */
	size_t len;
	char data[32 * 1024];
};

void output_init(struct output *o, int fd, const char *host, int rank);
/* Takes ownership of fd, which becomes non-blocking. */
void output_attach(struct output *o, int stream, int fd, bool raw);

/* Adds what to wait for; returns how many. */
int output_poll(const struct output *o, struct pollfd *fds);
/* Reads what there is, at most one chunk a stream, and writes it. */
void output_turn(struct output *o, int64_t now_ms);
/* When an unfinished line is to be shown; INT64_MAX = nothing waits. */
int64_t output_next_ms(const struct output *o);

/* All that is still in the pipes, then closes them; for after the last writer's death. */
void output_finish(struct output *o, int64_t now_ms);
/* One line of lbrun's own. */
void output_say(struct output *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
