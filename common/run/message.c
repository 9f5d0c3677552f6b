/* SPDX-License-Identifier: MIT */
/* message.c - one check for everybody who hears a trainer, so that what lbrun acknowledges is
 * exactly what lbd can store. Strict in what a field means, tolerant of fields that we do not
 * know. */
#include "common/run/message.h"

#include <stdbool.h>
#include <string.h>

#include "common/base/json.h"

enum { MESSAGE_MAX_PATH = 4095 };

static const char *const names[MESSAGE_COUNT] = {
	[MESSAGE_HELLO] = "hello",           [MESSAGE_PHASE] = "phase", [MESSAGE_STEP] = "step",
	[MESSAGE_CHECKPOINT] = "checkpoint", [MESSAGE_BYE] = "bye",
};

static int need_int(const json_t *line, const char *key, int64_t min, struct err *err)
{
	const json_t *value = json_object_get(line, key);

	if (json_is_integer(value) && json_integer_value(value) >= min)
		return 0;
	return err_set(err, ERR_USAGE, "\"%s\" must be an integer of at least %lld", key,
		       (long long)min);
}

static int need_word(const json_t *line, const char *key, const char *const *words,
		     const char *allowed, struct err *err)
{
	const char *text = js_str(line, key, "");

	for (size_t i = 0; words[i]; i++) {
		if (strcmp(words[i], text) == 0)
			return 0;
	}
	return err_set(err, ERR_USAGE, "\"%s\" must be one of %s", key, allowed);
}

static int check_hello(const json_t *line, struct err *err)
{
	if (need_int(line, "rank", 0, err) < 0 || need_int(line, "world", 1, err) < 0 ||
	    need_int(line, "pid", 1, err) < 0)
		return -1;
	if (js_int(line, "rank", 0) >= js_int(line, "world", 0))
		return err_set(err, ERR_USAGE, "\"rank\" must be less than \"world\"");
	return 0;
}

/* Of a phase, in one word: what people read as a column of their own. */
static int check_what(const json_t *what, struct err *err)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz0123456789_-";
	const char *text = json_string_value(what);
	size_t len = text ? json_string_length(what) : 0;

	if (!what || (len > 0 && len <= PHASE_WHAT_MAX && strspn(text, letters) == len))
		return 0;
	return err_set(err, ERR_USAGE, "\"what\" must be 1 to %d letters a-z, digits, _ or -",
		       PHASE_WHAT_MAX);
}

static int check_phase(const json_t *line, struct err *err)
{
	static const char *const words[] = { "setup", "train", "checkpoint", "eval", NULL };

	if (need_word(line, "name", words, "setup, train, checkpoint, eval", err) < 0)
		return -1;
	return check_what(json_object_get(line, "what"), err);
}

static int check_step(const json_t *line, struct err *err)
{
	const json_t *loss = json_object_get(line, "loss");

	if (need_int(line, "step", 0, err) < 0)
		return -1;
	/* null is how a trainer says that the loss is no number. */
	if (loss && !json_is_number(loss) && !json_is_null(loss))
		return err_set(err, ERR_USAGE, "\"loss\" must be a number or null");
	return 0;
}

static int check_checkpoint(const json_t *line, struct err *err)
{
	const char *path = js_str(line, "path", "");

	if (need_int(line, "step", 0, err) < 0)
		return -1;
	if (path[0] == '\0' || strlen(path) > MESSAGE_MAX_PATH)
		return err_set(err, ERR_USAGE, "\"path\" must be a string of 1 to %d bytes",
			       MESSAGE_MAX_PATH);
	return 0;
}

static int check_bye(const json_t *line, struct err *err)
{
	static const char *const words[] = { "done", "stopped", "diverged", NULL };

	return need_word(line, "status", words, "done, stopped, diverged", err);
}

static int (*const checks[MESSAGE_COUNT])(const json_t *line, struct err *err) = {
	[MESSAGE_HELLO] = check_hello, [MESSAGE_PHASE] = check_phase,
	[MESSAGE_STEP] = check_step,   [MESSAGE_CHECKPOINT] = check_checkpoint,
	[MESSAGE_BYE] = check_bye,
};

static int check(const json_t *line, enum message_type *type, struct err *err)
{
	const char *name = js_str(line, "type", NULL);

	if (!json_is_object(line))
		return err_set(err, ERR_USAGE, "a message must be a JSON object");
	if (!name)
		return err_set(err, ERR_USAGE, "\"type\" is missing");
	for (int i = 0; i < MESSAGE_COUNT; i++) {
		if (strcmp(names[i], name) != 0)
			continue;
		*type = (enum message_type)i;
		return checks[i](line, err) < 0 ? err_wrap(err, "%s", name) : 0;
	}
	return err_set(err, ERR_USAGE,
		       "unknown type \"%.40s\"; allowed: hello, phase, step, checkpoint, bye",
		       name);
}

json_t *message_parse(const char *line, size_t len, enum message_type *type, struct err *err)
{
	json_t *value;

	if (len > MESSAGE_MAX_BYTES) {
		err_set(err, ERR_USAGE, "line of %zu bytes; at most %d are allowed", len,
			MESSAGE_MAX_BYTES);
		return NULL;
	}
	value = js_parse(line, len, err);
	if (value && check(value, type, err) < 0) {
		json_decref(value);
		value = NULL;
	}
	return value;
}
