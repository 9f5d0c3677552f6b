/* SPDX-License-Identifier: MIT */
/* await.c - await FILE: until there is one; await RUN STATE SECONDS: until lbd says so; fails with 3 when
 * it does not in time, with 1 where nobody answers. Tests wait most of the time, and a shell that waits starts ten programs a second. */
#include <signal.h>
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

static bool is_in_state(struct client *client, const char *run, const char *state, struct err *err)
{
	json_t *answer = client_ask(client, VERB_STATUS, json_pack("{s:s}", "run", run), err);
	const char *now = json_string_value(json_object_get(answer, "state"));
	bool is = now && strcmp(now, state) == 0;

	json_decref(answer);
	return is;
}

static int await_state(const char *run, const char *state, int64_t seconds)
{
	int64_t begin_ms = clock_mono_ms();
	struct client client;
	struct err err = { 0 };
	bool is = false;

	if (client_init(&client, NULL, &err) < 0)
		return 1;
	while (err.code == ERR_NONE && clock_mono_ms() < begin_ms + seconds * 1000) {
		is = is_in_state(&client, run, state, &err);
		if (is)
			break;
		pause_since(begin_ms);
	}
	client_fini(&client);
	return is ? 0 : err.code == ERR_NONE ? 3 : 1;
}

int main(int argc, char **argv)
{
	int64_t begin_ms = clock_mono_ms();

	if (argc == 4)
		return await_state(argv[1], argv[2], strtoll(argv[3], NULL, 10));
	if (argc != 2)
		return 2;
	while (access(argv[1], F_OK) != 0)
		pause_since(begin_ms);
	return 0;
}
