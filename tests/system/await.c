/* SPDX-License-Identifier: MIT */
/* await.c - Tests wait most of the time, and a shell that waits starts ten programs a second. Fails
 * with 3 when it takes longer, with 1 where nobody answers.
 *
 *   await FILE                            until there is one
 *   await RUN STATE SECONDS [ATTEMPTS]    until lbd says so, and that it has had so many attempts
 *   await line FILE BEGIN SECONDS         until it has a whole line that begins so, which is
 *                                         printed */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "ctl/base/client.h"

enum { FIRST_PAUSE_MS = 10, LAST_PAUSE_MS = 100 };

/* Looks often at first: most of what is waited for is near. */
static void pause_since(int64_t begin_ms)
{
	int64_t ms = (clock_mono_ms() - begin_ms) / 8;

	nap(ms < FIRST_PAUSE_MS ? FIRST_PAUSE_MS : ms > LAST_PAUSE_MS ? LAST_PAUSE_MS : ms);
}

struct awaited {
	const char *run, *state;
	size_t attempts; /* 0: any number */
	int64_t seconds;
};

static bool is_there(struct client *client, const struct awaited *a, struct err *err)
{
	json_t *answer = client_ask(client, VERB_STATUS, json_pack("{s:s}", "run", a->run), err);
	const char *now = json_string_value(json_object_get(answer, "state"));
	bool is = now && strcmp(now, a->state) == 0 &&
		  (!a->attempts ||
		   json_array_size(json_object_get(answer, "attempts")) == a->attempts);

	json_decref(answer);
	return is;
}

static int await_run(const struct awaited *a)
{
	int64_t begin_ms = clock_mono_ms();
	struct client client;
	struct err err = { 0 };
	bool is = false;

	if (client_init(&client, NULL, &err) < 0)
		return 1;
	while (err.code == ERR_NONE && clock_mono_ms() < begin_ms + a->seconds * 1000) {
		is = is_there(&client, a, &err);
		if (is)
			break;
		pause_since(begin_ms);
	}
	client_fini(&client);
	return is ? 0 : err.code == ERR_NONE ? 3 : 1;
}

static bool print_line(const char *path, const char *begin)
{
	FILE *file = fopen(path, "r");
	char *line = NULL;
	size_t room = 0;
	ssize_t len;
	bool is = false;

	while (file && !is && (len = getline(&line, &room, file)) > 0)
		is = line[len - 1] == '\n' && strncmp(line, begin, strlen(begin)) == 0;
	if (is)
		fputs(line, stdout);
	free(line);
	if (file)
		fclose(file);
	return is;
}

static int await_line(const char *path, const char *begin, int64_t seconds)
{
	int64_t begin_ms = clock_mono_ms();

	while (!print_line(path, begin)) {
		if (clock_mono_ms() >= begin_ms + seconds * 1000)
			return 3;
		pause_since(begin_ms);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int64_t begin_ms = clock_mono_ms();

	if (argc == 5 && strcmp(argv[1], "line") == 0)
		return await_line(argv[2], argv[3], strtoll(argv[4], NULL, 10));
	if (argc == 4 || argc == 5) {
		const struct awaited a = { argv[1], argv[2],
					   argc == 5 ? strtoul(argv[4], NULL, 10) : 0,
					   strtoll(argv[3], NULL, 10) };

		return await_run(&a);
	}
	if (argc != 2)
		return 2;
	while (access(argv[1], F_OK) != 0)
		pause_since(begin_ms);
	return 0;
}
