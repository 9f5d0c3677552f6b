/* SPDX-License-Identifier: MIT */
/* handler_taps.c - lbd's handlers without a socket: a request goes in, its answer comes out
 * here. */
#include "tests/sim/handler_taps.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/run/request.h"
#include "daemon/control/control.h"
#include "daemon/handlers.h"
#include "tests/sim/sim.h"

/* They hand over no world of ours: one simulated world at a time. */
static struct {
	struct sim *sim;
	bool is_answered;
} taps;

void handler_taps_open(struct sim *sim)
{
	taps.sim = sim;
}

void handler_taps_close(void)
{
	taps.sim = NULL;
}

bool handler_ask(struct sim *sim, enum verb verb, json_t *args)
{
	struct request request = {
		.lbd = &sim->daemon.lbd,
		.verb = verb,
		.args = args,
		.peer = { .uid = getuid(), .user = "ann", .role = ROLE_OWNER },
	};

	taps.is_answered = false;
	handle(&request);
	json_decref(args);
	return taps.is_answered && !sim->daemon.is_dead;
}

/* --- the taps --------------------------------------------------------------------------------- */

void __wrap_request_answer(struct request *request, json_t *data);
void __wrap_request_refuse(struct request *request, const struct err *err);
void __wrap_request_end(void *request, json_t *data, const struct err *why);
int64_t __real_clock_mono_ms(void);
int64_t __wrap_clock_mono_ms(void);
int64_t __real_clock_wall_ms(void);
int64_t __wrap_clock_wall_ms(void);
int __wrap_file_sync(const char *path, struct err *err);
int __wrap_folder_sync(const char *path, struct err *err);
int __wrap_trainer_request_write(const char *folder, enum trainer_request request, const char *by,
				 struct err *err);

void __wrap_request_answer(struct request *request, json_t *data)
{
	(void)request;
	json_decref(data);
	taps.is_answered = true;
}

void __wrap_request_refuse(struct request *request, const struct err *err)
{
	(void)request;
	(void)err;
}

void __wrap_request_end(void *request, json_t *data, const struct err *why)
{
	if (why)
		__wrap_request_refuse(request, why);
	else
		__wrap_request_answer(request, data);
}

int64_t __wrap_clock_mono_ms(void)
{
	return taps.sim ? taps.sim->now_ms + taps.sim->daemon.mono_offset_ms
			: __real_clock_mono_ms();
}

int64_t __wrap_clock_wall_ms(void)
{
	return taps.sim ? daemon_wall_ms(taps.sim) : __real_clock_wall_ms();
}

/* The specs on the real disk need not outlive a power cut. */
int __wrap_file_sync(const char *path, struct err *err)
{
	(void)path;
	(void)err;
	return 0;
}

int __wrap_folder_sync(const char *path, struct err *err)
{
	(void)path;
	(void)err;
	return 0;
}

/* "…/r07/attempts/3" */
int __wrap_trainer_request_write(const char *path, enum trainer_request request, const char *by,
				 struct err *err)
{
	const char *number = strrchr(path, '/') + 1, *attempts = strstr(path, "/attempts/");
	struct sim *sim = taps.sim;
	int run = 10 * (attempts[-2] - '0') + attempts[-1] - '0';
	struct folder *folder = disk_folder(&sim->disk, run, strtoll(number, NULL, 10));

	(void)by;
	if (daemon_dies_here(sim))
		return 0;
	if (folder == NULL || request != TRAINER_REQUEST_SAVE)
		return err_set(err, ERR_IO, "no such folder");
	folder->wants_save = true;
	sim_fact(sim, FACT_SAVE_ASKED, run, folder->number, 0, 0);
	lbrun_notice(sim, folder);
	return 0;
}
