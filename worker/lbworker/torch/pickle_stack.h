/* SPDX-License-Identifier: MIT */
/* pickle_stack.h - the values, the stack and the memo of a pickle machine: what its opcodes put
 * there and take away. Functions that fail set the machine's err. */
#ifndef LBWORKER_PICKLE_STACK_H
#define LBWORKER_PICKLE_STACK_H

#include "worker/lbworker/torch/pickle.h"

struct values {
	struct pickle_value **at;
	size_t count, room;
};

struct pickle {
	struct values all;   /* owns each */
	struct values stack; /* NULL: a mark */
	struct values memo;  /* by number; NULL: nothing was put there */
	struct pickle_value *root;
	const unsigned char *in, *end, *start;
	struct err *err;
};

/* -1: "its pickle, byte N: " and why. */
int pickle_bad(struct pickle *p, const char *why);
/* NULL may be pushed: a mark on the stack, nothing in the memo. */
void values_push(struct values *v, struct pickle_value *value);

/* A new value, owned by the machine; NULL with err. */
struct pickle_value *pickle_make(struct pickle *p, enum pickle_kind kind);
void pickle_add_item(struct pickle_value *v, struct pickle_value *item);

/* -1 where value is NULL: its maker has set err. */
int pickle_push(struct pickle *p, struct pickle_value *value);
/* The top of the stack; NULL with err where there is none. */
struct pickle_value *pickle_pop(struct pickle *p);
struct pickle_value *pickle_top(struct pickle *p);
/* The newest mark and all above it leave the stack. */
int pickle_pop_to_mark(struct pickle *p);

/* A list or dictionary of all from `from` on; what stands at `cut` and above leaves the stack, then
 * the new value is pushed. */
int pickle_gather(struct pickle *p, enum pickle_kind kind, size_t from, size_t cut);
int pickle_gather_marked(struct pickle *p, enum pickle_kind kind);
int pickle_gather_top(struct pickle *p, size_t count);
/* All above the newest mark, or the `count` on top, into the value below. */
int pickle_fill_marked(struct pickle *p, enum pickle_kind kind);
int pickle_fill_top(struct pickle *p, enum pickle_kind kind, size_t count);

#endif
