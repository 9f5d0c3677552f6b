/* SPDX-License-Identifier: MIT */
/* message.h - the lines that trainers send to lbrun over LB_SOCKET, checked in one place.
 *
 * docs/PROTOCOL.md is the contract; one JSON object a line, UTF-8, at most 64 KiB. */
#ifndef COMMON_RUN_MESSAGE_H
#define COMMON_RUN_MESSAGE_H

#include <jansson.h>

#include "common/base/err.h"

enum { MESSAGE_MAX_BYTES = 64 * 1024, PHASE_WHAT_MAX = 32 };

enum message_type {
	MESSAGE_HELLO, /* {"type":"hello","rank":0,"world":1,"pid":123} */
	MESSAGE_PHASE, /* {"type":"phase","name":"setup|train|checkpoint|eval","what":"imports"} */
	MESSAGE_STEP,  /* {"type":"step","step":N,"loss":x, …any numeric field…} */
	MESSAGE_CHECKPOINT, /* {"type":"checkpoint","step":N,"path":P} */
	MESSAGE_BYE,        /* {"type":"bye","status":"done|stopped"} */
	MESSAGE_COUNT
};

/* Parses and checks one line (without the newline). On success *type is set and the object is
 * returned (the caller decrefs). NULL with err (ERR_USAGE) says what is wrong with it. Unknown
 * extra fields are kept; an unknown type is an error. */
json_t *message_parse(const char *line, size_t len, enum message_type *type, struct err *err);

#endif
