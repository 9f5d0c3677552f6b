/* SPDX-License-Identifier: MIT */
/* message.c - one check for everybody who hears a trainer, so that what lbrun acknowledges is
 * exactly what lbd can store. Strict in what a field means, tolerant of fields that we do not
 * know. */
#include "common/run/message.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

enum { MESSAGE_MAX_PATH = 4095 };

/* As of what a trainer prints: sums of such numbers fit. */
static const int64_t count_end = 1000000000000000;

static const char *const names[MESSAGE_COUNT] = {
	[MESSAGE_HELLO] = "hello",           [MESSAGE_PHASE] = "phase", [MESSAGE_STEP] = "step",
	[MESSAGE_CHECKPOINT] = "checkpoint", [MESSAGE_BYE] = "bye",
};

static int need_int(const json_t *line, const char *key, int64_t min, struct err *err)
{
	const json_t *value = json_object_get(line, key);

	if (json_is_integer(value) && json_integer_value(value) >= min &&
	    json_integer_value(value) < count_end)
		return 0;
	return err_set(err, ERR_USAGE, "\"%s\" must be an integer of at least %lld, below 10^15",
		       key, (long long)min);
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

/* --- plain step lines ------------------------------------------------------------------------- */

/* Read in one pass: less than JSON allows, and nothing that jansson would refuse or read otherwise
 * (tests/fuzz/fuzz_spool.c compares). Whatever is out of the ordinary is left to jansson. */
enum {
	MEMBERS_MAX = 32, /* each is compared with all before it: names must not come twice */
	DIGITS_MAX = 18,  /* of which an int64_t holds any */
	NUMBER_MAX = 40,  /* bytes; with an exponent of two digits no number is too large */
};

struct word {
	const char *at;
	size_t len;
};

struct cursor {
	const char *at, *end;
};

static bool take(struct cursor *c, char wanted)
{
	if (c->at == c->end || *c->at != wanted)
		return false;
	c->at++;
	return true;
}

/* In quotes; of plain characters. */
static bool take_word(struct cursor *c, struct word *out)
{
	if (!take(c, '"'))
		return false;
	out->at = c->at;
	while (c->at < c->end && *c->at != '"') {
		if (*c->at < ' ' || *c->at > '~' || *c->at == '\\')
			return false;
		c->at++;
	}
	out->len = (size_t)(c->at - out->at);
	return take(c, '"');
}

static size_t take_digits(struct cursor *c)
{
	const char *first = c->at;

	while (c->at < c->end && *c->at >= '0' && *c->at <= '9')
		c->at++;
	return (size_t)(c->at - first);
}

/* By JSON's grammar; *is_whole: no fraction, no exponent. */
static bool take_number(struct cursor *c, struct word *out, bool *is_whole)
{
	const char *first = c->at, *digits;
	size_t count;

	take(c, '-');
	digits = c->at;
	count = take_digits(c);
	if (count == 0 || count > DIGITS_MAX || (count > 1 && *digits == '0'))
		return false;
	*is_whole = true;
	if (take(c, '.')) {
		*is_whole = false;
		if (take_digits(c) == 0)
			return false;
	}
	if (take(c, 'e') || take(c, 'E')) {
		*is_whole = false;
		if (!take(c, '-'))
			take(c, '+');
		count = take_digits(c);
		if (count == 0 || count > 2)
			return false;
	}
	*out = (struct word){ first, (size_t)(c->at - first) };
	return out->len <= NUMBER_MAX && c->at < c->end; /* strtod looks at what follows */
}

static bool is_word(const struct word *w, const char *text, size_t len)
{
	return w->len == len && memcmp(w->at, text, len) == 0;
}

#define IS(w, text) is_word(w, text, sizeof(text) - 1)

static int64_t whole(const struct word *number)
{
	bool is_negative = *number->at == '-';
	int64_t value = 0;

	for (size_t i = is_negative; i < number->len; i++)
		value = 10 * value + number->at[i] - '0';
	return is_negative ? -value : value;
}

/* The locale's decimal point is none of JSON's; jansson has the same care. False: where a whole
 * number is wanted, another one stands. */
static bool note(struct step_line *out, const struct word *name, const struct word *number,
		 bool is_whole)
{
	int64_t *counted = IS(name, "step")          ? &out->step
			   : IS(name, "rank")        ? &out->rank
			   : IS(name, "target_step") ? &out->target_step
						     : NULL;
	double *measured = IS(name, "loss")           ? &out->loss
			   : IS(name, "tokens_per_s") ? &out->tokens_per_s
			   : IS(name, "mfu")          ? &out->mfu
						      : NULL;
	char *end;

	if (counted && is_whole)
		*counted = whole(number);
	if (!measured)
		return !counted || is_whole;
	*measured = strtod(number->at, &end);
	return end == number->at + number->len;
}

static bool is_new(const struct word *known, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_word(&known[i], known[count].at, known[count].len))
			return false;
	return true;
}

bool step_line_read(const char *text, size_t len, struct step_line *out)
{
	struct cursor c = { text, text + len };
	struct word known[MEMBERS_MAX], value;
	bool is_step = false, is_whole;
	size_t count = 0;

	*out = (struct step_line){ JS_NONE, JS_NONE, JS_NONE, NAN, NAN, NAN };
	if (!take(&c, '{'))
		return false;
	do {
		struct word *name = &known[count];

		if (count == MEMBERS_MAX || !take_word(&c, name) || !is_new(known, count) ||
		    !take(&c, ':'))
			return false;
		count++;
		if (IS(name, "type")) {
			is_step = take_word(&c, &value) && IS(&value, "step");
			if (!is_step)
				return false;
		} else if (!take_number(&c, &value, &is_whole) ||
			   !note(out, name, &value, is_whole)) {
			return false;
		}
	} while (take(&c, ','));
	return is_step && take(&c, '}') && c.at == c.end;
}

void step_line_of(const json_t *line, struct step_line *out)
{
	*out = (struct step_line){
		.step = js_int(line, "step", JS_NONE),
		.rank = js_int(line, "rank", JS_NONE),
		.target_step = js_int(line, "target_step", JS_NONE),
		.loss = js_real(line, "loss", NAN),
		.tokens_per_s = js_real(line, "tokens_per_s", NAN),
		.mfu = js_real(line, "mfu", NAN),
	};
}
