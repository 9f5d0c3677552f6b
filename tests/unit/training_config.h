/* SPDX-License-Identifier: MIT */
/* training_config.h - configs of a training, from a text to what is read of it. */
#ifndef TESTS_UNIT_TRAINING_CONFIG_H
#define TESTS_UNIT_TRAINING_CONFIG_H

#include "tests/unit/unit.h"

#include "worker/lbworker/config/config.h"

#define BASE "[training]\ndataset_path = \"x\"\n"

static const char config_file[] = "c.toml"; /* in the test's own folder */

static inline int load(struct config *c, const char *text, bool lenient, FILE *ignored,
		       struct err *err)
{
	FILE *file = fopen(config_file, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
	*err = (struct err){ 0 };
	return config_load(
		c,
		&(struct config_order){ .path = config_file, .lenient = lenient, .notes = ignored },
		err);
}

/* A file whose text is *text once it is flushed or closed; the caller frees. */
static inline FILE *memory(char **text)
{
	static size_t bytes;

	return open_memstream(text, &bytes);
}

static inline void load_ok(struct config *c, const char *text)
{
	struct err err;

	if (load(c, text, false, NULL, &err))
		fail_msg("%s", err.text);
}

#endif
