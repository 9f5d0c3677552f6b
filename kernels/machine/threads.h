/* SPDX-License-Identifier: MIT */
/* threads.h - threads that work beside those that hear signals. */
#ifndef KERNELS_MACHINE_THREADS_H
#define KERNELS_MACHINE_THREADS_H

#include <pthread.h>
#include <stdbool.h>

/* As pthread_create(3); no signal is ever delivered to it. False: no thread is to be had. */
bool threads_start(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
