/* SPDX-License-Identifier: MIT */
/* threads.c - a thread inherits which signals are blocked. */
#include "kernels/machine/threads.h"

#include <signal.h>

bool threads_start(pthread_t *thread, void *(*run)(void *), void *arg)
{
	sigset_t all, before;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	bool is_started = pthread_create(thread, NULL, run, arg) == 0;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return is_started;
}
