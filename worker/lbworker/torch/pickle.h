/* SPDX-License-Identifier: MIT */
/* torch/ - files that PyTorch writes and reads: nothing in them is executed.
 *
 * pickle.h - what a pickle says, as a tree: numbers, texts, lists, dictionaries. Where Python would
 * import and call something, there stands its name and what it would be called with.
 *
 * Protocols 0 to 5 as torch.save and pickle.dump write them (not the opcodes for text of protocol
 * 0). Read as if an enemy wrote it: no recursion, every number is held against what is there. */
#ifndef LBWORKER_PICKLE_H
#define LBWORKER_PICKLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/base/err.h"

enum pickle_kind {
	PICKLE_NONE,
	PICKLE_BOOL,
	PICKLE_INT, /* beyond 64 bits: the nearest */
	PICKLE_REAL,
	PICKLE_TEXT, /* or bytes */
	PICKLE_LIST, /* list, tuple, set */
	PICKLE_DICT, /* item: key, value, key, value, … */
	PICKLE_NAME, /* "module.name" */
	PICKLE_OUTSIDE /* item[0]: the persistent id of something beside the pickle */,
	PICKLE_MADE /* item[0] would be called with item[1]; item[2], if any: its state. What is put
		     * into it later follows as of a dictionary, or a list, in item[3]. */
};

struct pickle_value {
	enum pickle_kind kind;
	int64_t integer;
	double real;
	char *text; /* len bytes, then a zero */
	size_t len;
	struct pickle_value **item;
	size_t count;
};

struct pickle;
/* What bytes[0..len) say; a copy. NULL with err. */
struct pickle *pickle_read(const void *bytes, size_t len, struct err *err);
void pickle_free(struct pickle *pickle); /* NULL is fine; all values die with it */
const struct pickle_value *pickle_root(const struct pickle *pickle);

/* The value of that key of a dictionary (or of what was made and filled like one); NULL: there is
 * none, or it is something else. */
const struct pickle_value *pickle_member(const struct pickle_value *dict, const char *key);
/* The dictionary behind a value: itself, or what an OrderedDict was filled with. NULL: no such. */
const struct pickle_value *pickle_dict(const struct pickle_value *value);
/* Whether a value is that name, or was made by calling it. */
bool pickle_is(const struct pickle_value *value, const char *name);

#endif
