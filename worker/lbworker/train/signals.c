/* SPDX-License-Identifier: MIT */
/* signals.c - remembers that one has come. */
#include "worker/lbworker/train/signals.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t stop_signal;

static void on_signal(int number)
{
	stop_signal = number;
}

void signals_catch(void)
{
	struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };

	sigemptyset(&action.sa_mask);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
}

bool signals_ask_to_stop(void)
{
	return stop_signal != 0;
}
