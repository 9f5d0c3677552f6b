/* SPDX-License-Identifier: MIT */
/* queue.h - what is queued on an emulated stream: done at once, or kept while a graph is
 * captured. */
#ifndef TESTS_EMULATION_QUEUE_H
#define TESTS_EMULATION_QUEUE_H

#include <functional>

void emulated_enqueue(const std::function<void()> &work);
/* For calls that may not happen in a capture. */
bool emulated_is_capturing(void);

#endif
