/* SPDX-License-Identifier: MIT */
/* fuzz_message.c - a line that a trainer sends to lbrun. */
#include "tests/fuzz/fuzz.h"

#include "common/run/message.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = { 0 };
	enum message_type type = MESSAGE_COUNT;
	json_t *line = message_parse((const char *)data, size, &type, &err);

	fuzz_check(line ? type < MESSAGE_COUNT : err.text[0] != '\0');
	json_decref(line);
	return 0;
}
