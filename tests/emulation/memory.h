/* SPDX-License-Identifier: MIT */
/* memory.h - the memory of the emulated GPU: so much of it, and none of the host's. */
#ifndef TESTS_EMULATION_MEMORY_H
#define TESTS_EMULATION_MEMORY_H

#include <stddef.h>

/* BYTES of it, that are NaN; NULL: there are none left. Each such call is counted. */
void *emulated_memory_take(size_t bytes);
/* False: MEMORY is none that was taken. */
bool emulated_memory_free(void *memory);

/* For memory that is made of other things (maps.cc): is there room for BYTES, they are taken now,
 * and are given back. */
bool emulated_memory_has_room(size_t bytes);
void emulated_memory_note(size_t bytes);
void emulated_memory_forget(size_t bytes);
/* Only code of the GPU may read and write BYTES at MEMORY from now on. */
void emulated_memory_guard(void *memory, size_t bytes);

size_t emulated_memory_bytes(void); /* of the whole GPU */
size_t emulated_memory_used_bytes(void);
size_t emulated_memory_most_bytes(void);   /* that were ever used */
unsigned long emulated_memory_calls(void); /* that took some */

/* As long as it stands this thread runs code of the GPU. */
struct on_the_gpu {
	on_the_gpu();
	~on_the_gpu();
	int before;
};

#endif
