/* SPDX-License-Identifier: MIT */
/* queue.h - what is queued on an emulated stream: done at once, or kept while a graph is
 * captured. */
#ifndef TESTS_EMULATION_QUEUE_H
#define TESTS_EMULATION_QUEUE_H

#include <functional>

void emulated_enqueue(const std::function<void()> &work);
/* The same on one of several streams: beside the first it is done as late as can be, when somebody
 * waits for it, so that what is written over too early shows. */
void emulated_enqueue_on(void *stream, const std::function<void()> &work);
/* 90 is 9.0, unless LB_EMULATION_CAPABILITY says so. */
int emulated_capability(void);
/* For calls that may not happen in a capture. */
bool emulated_is_capturing(void);

#endif
