/* SPDX-License-Identifier: MIT */
/* test_step_line.c - message.h's plain step lines: what is read without a tree is what jansson
 * reads, and nothing that it refuses. */
#include "tests/unit/unit.h"

#include <math.h>

#include "common/base/json.h"
#include "common/run/message.h"

static bool same(double a, double b)
{
	return (isnan(a) && isnan(b)) || a == b;
}

static void holds_what_jansson_reads(const char *text, size_t len, const struct step_line *got)
{
	struct err err = { 0 };
	json_t *line = js_parse(text, len, &err);
	struct step_line wanted;

	if (!json_is_object(line) || strcmp(js_str(line, "type", ""), "step") != 0)
		fail_msg("%.*s: was taken (%s)", (int)len, text, err.text);
	step_line_of(line, &wanted);
	if (got->step != wanted.step || got->rank != wanted.rank ||
	    got->target_step != wanted.target_step || !same(got->loss, wanted.loss) ||
	    !same(got->tokens_per_s, wanted.tokens_per_s) || !same(got->mfu, wanted.mfu))
		fail_msg("%.*s: is read otherwise", (int)len, text);
	json_decref(line);
}

static void plain_lines_are_read(void **state)
{
	static const char *const lines[] = {
		"{\"type\":\"step\",\"step\":12}",
		"{\"step\":12,\"type\":\"step\",\"loss\":2.5}",
		"{\"type\":\"step\",\"step\":0,\"loss\":-0.0,\"lr\":1e-5,\"x\":1.5E+10}",
		"{\"type\":\"step\",\"step\":999999999999999999,\"loss\":1}",
		"{\"type\":\"step\",\"step\":-3,\"rank\":7,\"target_step\":100,\"mfu\":0.41}",
		"{\"type\":\"step\",\"step\":5,\"tokens_per_s\":81234.75,\"grad norm/2\":1.25}",
		"{\"type\":\"step\",\"loss\":0.1234567890123456}",
	};

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++) {
		struct step_line got;

		if (!step_line_read(lines[i], strlen(lines[i]), &got))
			fail_msg("%s: was not taken", lines[i]);
		holds_what_jansson_reads(lines[i], strlen(lines[i]), &got);
	}
}

/* Either no JSON, or some that is left to jansson. */
static void all_else_is_left(void **state)
{
	static const char *const lines[] = {
		"",
		"{",
		"{}",
		"[]",
		"{\"type\":\"step\"",
		"{\"type\":\"step\",}",
		"{\"type\":\"step\"}}",
		"{\"type\":\"step\"} ",
		"{ \"type\":\"step\"}",
		"{\"step\":1}",
		"{\"type\":\"hello\",\"step\":1}",
		"{\"type\":1}",
		"{\"type\":\"step\",\"type\":\"step\"}",
		"{\"type\":\"step\",\"a\":1,\"a\":1}",
		"{\"type\":\"step\",\"step\":1.0}",
		"{\"type\":\"step\",\"step\":1e2}",
		"{\"type\":\"step\",\"step\":1000000000000000000}",
		"{\"type\":\"step\",\"step\":01}",
		"{\"type\":\"step\",\"loss\":1.}",
		"{\"type\":\"step\",\"loss\":.5}",
		"{\"type\":\"step\",\"loss\":-}",
		"{\"type\":\"step\",\"loss\":+1}",
		"{\"type\":\"step\",\"loss\":1e}",
		"{\"type\":\"step\",\"loss\":1e999}",
		"{\"type\":\"step\",\"loss\":0x10}",
		"{\"type\":\"step\",\"loss\":NaN}",
		"{\"type\":\"step\",\"loss\":null}",
		"{\"type\":\"step\",\"loss\":\"1\"}",
		"{\"type\":\"step\",\"node\":\"n1\"}",
		"{\"type\":\"step\",\"a\":{}}",
		"{\"type\":\"step\",\"l\\u006fss\":1}",
		"{\"type\":\"step\",\"\xc3\xa4\":1}",
		"{\"type\":\"step\",\"a\xff\":1}",
		"{\"type\":\"step\" ,\"a\":1}",
	};
	struct step_line got;

	(void)state;
	for (size_t i = 0; i < COUNT(lines); i++)
		if (step_line_read(lines[i], strlen(lines[i]), &got))
			fail_msg("%s: was taken", lines[i]);
	assert_false(step_line_read("{\"type\":\"step\",\"a\0\":1}", 23, &got));
	/* a number that the line ends with: strtod must not look at what lies behind */
	assert_false(step_line_read("{\"type\":\"step\",\"loss\":12", 22, &got));
}

/* Lines with any byte changed, taken out or doubled, in a fixed order. */
static void what_is_taken_is_json(void **state)
{
	static const char line[] =
		"{\"type\":\"step\",\"step\":12,\"rank\":0,\"loss\":2.5e-1,\"mfu\":1}";
	static const char bytes[] = "{}[]\",:.-+eE0 1astp\\\x01\x7f\xc3";
	enum { SIZE = sizeof(line) - 1 };
	int taken = 0;

	(void)state;
	for (size_t at = 0; at < SIZE; at++) {
		for (size_t k = 0; k < sizeof(bytes); k++) {
			for (size_t cut = 0; cut <= 2; cut++) {
				char text[SIZE + 2];
				size_t rest = at + cut < SIZE ? SIZE - at - cut : 0;
				struct step_line got;

				memcpy(text, line, at);
				text[at] = bytes[k];
				memcpy(text + at + 1, line + at + cut, rest);
				if (!step_line_read(text, at + 1 + rest, &got))
					continue;
				taken++;
				holds_what_jansson_reads(text, at + 1 + rest, &got);
			}
		}
	}
	assert_in_range(taken, 100, SIZE * sizeof(bytes) * 3);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_lines_are_read),
		cmocka_unit_test(all_else_is_left),
		cmocka_unit_test(what_is_taken_is_json),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
