/* SPDX-License-Identifier: MIT */
/* step_line.c - reads plain step lines in one pass. It takes less than JSON allows, and nothing that
 * jansson would refuse or read otherwise (tests/fuzz/fuzz_spool.c compares): whatever is out of the
 * ordinary is left to jansson. */
#include "common/run/step_line.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"

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

static bool is_new(const struct word *names, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (is_word(&names[i], names[count].at, names[count].len))
			return false;
	return true;
}

bool step_line_read(const char *text, size_t len, struct step_line *out)
{
	struct cursor c = { text, text + len };
	struct word names[MEMBERS_MAX], value;
	bool is_step = false, is_whole;
	size_t count = 0;

	*out = (struct step_line){ JS_NONE, JS_NONE, JS_NONE, NAN, NAN, NAN };
	if (!take(&c, '{'))
		return false;
	do {
		struct word *name = &names[count];

		if (count == MEMBERS_MAX || !take_word(&c, name) || !is_new(names, count) ||
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
