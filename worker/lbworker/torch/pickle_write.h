/* SPDX-License-Identifier: MIT */
/* pickle_write.h - a pickle of protocol 2, opcode by opcode. */
#ifndef LBWORKER_PICKLE_WRITE_H
#define LBWORKER_PICKLE_WRITE_H

#include <stdint.h>

#include "common/base/mem.h"

/* Opcodes, and what follows them, as they are; no zero among them. */
void pickle_put(struct buf *out, const char *opcodes);
void pickle_put_text(struct buf *out, const char *text);
void pickle_put_size(struct buf *out, uint64_t value);
void pickle_put_real(struct buf *out, double value);

#endif
