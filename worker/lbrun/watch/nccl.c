/* SPDX-License-Identifier: MIT */
/* nccl.c - a byte into the pipe of each rank; RAS is lines over TCP on this machine. */
#include "worker/lbrun/watch/nccl.h"

#include <dirent.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"

#define PIPE_PREFIX "pipe_"
#define DUMP_PREFIX "rank_"

enum {
	WRITTEN_MS = 10 * 1000, /* PyTorch looks at its pipe every second */
	LOOK_MS = 100,
	RAS_S = 5, /* NCCL waits so long for its other processes */
	RAS_MAX_BYTES = 16 * 1024 * 1024,
};

/* --- the flight recorder ---------------------------------------------------------------------- */

void nccl_recorder_env(struct strv *env, const char *attempt_folder)
{
	char *folder = path_join("%s/" NCCL_RECORDER_FOLDER, attempt_folder);

	if (folder_make(folder, 0750, NULL) == 0) {
		if (!getenv("TORCH_NCCL_TRACE_BUFFER_SIZE") && !getenv("TORCH_FR_BUFFER_SIZE"))
			strv_add(env, xstrdup("TORCH_NCCL_TRACE_BUFFER_SIZE=2000"));
		if (!getenv("TORCH_NCCL_DUMP_ON_TIMEOUT"))
			strv_add(env, xstrdup("TORCH_NCCL_DUMP_ON_TIMEOUT=1"));
		if (!getenv("TORCH_NCCL_DEBUG_INFO_PIPE_FILE"))
			strv_add(env, path_join("TORCH_NCCL_DEBUG_INFO_PIPE_FILE=%s/" PIPE_PREFIX,
						folder));
		/* under both of its names: releases know one or the other */
		if (!getenv("TORCH_NCCL_DEBUG_INFO_TEMP_FILE") &&
		    !getenv("TORCH_FR_DUMP_TEMP_FILE")) {
			strv_add(env, path_join("TORCH_NCCL_DEBUG_INFO_TEMP_FILE=%s/" DUMP_PREFIX,
						folder));
			strv_add(env, path_join("TORCH_FR_DUMP_TEMP_FILE=%s/" DUMP_PREFIX, folder));
		}
	}
	free(folder);
}

/* A pipe that nobody on this node reads is one of another node's, or of a rank that is gone. */
static bool ask_one(const char *path)
{
	int fd = open(path, O_WRONLY | O_NONBLOCK | O_CLOEXEC);
	bool asked = fd >= 0 && write(fd, "1\n", 2) == 2;

	if (fd >= 0)
		close(fd);
	return asked;
}

/* "pipe_3.pipe" → "rank_3" */
static char *dump_of(const char *folder, const char *pipe_name)
{
	const char *rank = pipe_name + strlen(PIPE_PREFIX);

	return path_join("%s/" DUMP_PREFIX "%.*s", folder, (int)strspn(rank, "0123456789"), rank);
}

static void wait_for_dump(const char *path, time_t since_s, int64_t end_ms)
{
	struct stat st;

	while (clock_mono_ms() < end_ms &&
	       (stat(path, &st) < 0 || st.st_size == 0 || st.st_mtim.tv_sec < since_s))
		poll(NULL, 0, LOOK_MS);
}

void nccl_ask_recorders(const char *attempt_folder)
{
	char *folder = path_join("%s/" NCCL_RECORDER_FOLDER, attempt_folder);
	DIR *dir = opendir(folder);
	struct strv dumps = { 0 };
	time_t now_s = time(NULL) - 1;
	int64_t end_ms = clock_mono_ms() + WRITTEN_MS;
	const struct dirent *entry;

	while (dir && (entry = readdir(dir))) {
		char *path = path_join("%s/%s", folder, entry->d_name);

		if (text_begins_with(entry->d_name, PIPE_PREFIX) && ask_one(path))
			strv_add(&dumps, dump_of(folder, entry->d_name));
		free(path);
	}
	if (dir)
		closedir(dir);
	for (size_t i = 0; i < dumps.count; i++)
		wait_for_dump(dumps.items[i], now_s, end_ms);
	if (dumps.count > 0)
		strv_free(dumps.items);
	free(folder);
}

/* --- RAS -------------------------------------------------------------------------------------- */

static int connect_to(const char *host, const char *port)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	const struct timeval patience = { .tv_sec = 2 * RAS_S };
	int fd = -1;

	if (getaddrinfo(host, port, &hints, &list) != 0)
		return -1;
	for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
		fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		if (connect(fd, a->ai_addr, a->ai_addrlen) < 0) {
			close(fd);
			fd = -1;
		}
	}
	freeaddrinfo(list);
	return fd;
}

/* NCCL_RAS_ADDR is "HOST:PORT". */
static int connect_ras(void)
{
	const char *where = getenv("NCCL_RAS_ADDR"), *colon = where ? strrchr(where, ':') : NULL;
	char *host = colon ? xstrndup(where, (size_t)(colon - where)) : xstrdup("localhost");
	int fd = connect_to(host, colon ? colon + 1 : "28028");

	free(host);
	return fd;
}

/* A line out, a line back. */
static bool say(int fd, const char *line, char *answer, size_t size)
{
	size_t len = 0;

	answer[0] = '\0';
	if (file_write_all(fd, line, strlen(line)) < 0)
		return false;
	while (len + 1 < size && read(fd, answer + len, 1) == 1 && answer[len] != '\n')
		len++;
	answer[len] = '\0';
	return len > 0;
}

static void keep_answer(int fd, const char *path)
{
	char chunk[8192];
	struct buf all;
	ssize_t n;

	buf_init(&all, RAS_MAX_BYTES);
	while ((n = read(fd, chunk, sizeof(chunk))) > 0)
		if (buf_add(&all, chunk, (size_t)n) < 0)
			break;
	if (all.len > 0)
		file_write_visible(path, all.data, all.len, 0640, NULL);
	buf_fini(&all);
}

void nccl_ask_ras(const char *path)
{
	static const char status[] = "VERBOSE STATUS\n";
	char answer[256];
	int fd = connect_ras();

	if (fd < 0)
		return;
	if (say(fd, "CLIENT PROTOCOL 2\n", answer, sizeof(answer)) &&
	    strncmp(answer, "SERVER PROTOCOL", 15) == 0 &&
	    say(fd, "TIMEOUT 5\n", answer, sizeof(answer)) &&
	    say(fd, "SET FORMAT json\n", answer, sizeof(answer)) && /* older: an error, and text */
	    file_write_all(fd, status, sizeof(status) - 1) == 0)
		keep_answer(fd, path);
	close(fd);
}
