/* SPDX-License-Identifier: MIT */
/* test_message.c - lines of trainers: what each field may be. */
#include "tests/unit/unit.h"

#include "common/run/message.h"

static void test_lines(void **state)
{
	static const struct {
		const char *line;
		enum message_type type;
		const char *part; /* of the message; NULL = fine */
	} cases[] = {
		{ "{\"type\":\"hello\",\"rank\":0,\"world\":1,\"pid\":123}", MESSAGE_HELLO, NULL },
		{ "{\"type\":\"phase\",\"name\":\"checkpoint\"}", MESSAGE_PHASE, NULL },
		{ "{\"type\":\"phase\",\"name\":\"setup\",\"what\":\"data-2_b\"}", MESSAGE_PHASE,
		  NULL },
		{ "{\"type\":\"step\",\"step\":0}", MESSAGE_STEP, NULL },
		{ "{\"type\":\"step\",\"step\":7,\"loss\":1.5,\"x\":3,\"s\":\"t\"}", MESSAGE_STEP,
		  NULL },
		{ "{\"type\":\"step\",\"step\":7,\"loss\":null}", MESSAGE_STEP, NULL },
		{ "{\"type\":\"checkpoint\",\"step\":7,\"path\":\"/x\"}", MESSAGE_CHECKPOINT,
		  NULL },
		{ "{\"type\":\"bye\",\"status\":\"done\"}", MESSAGE_BYE, NULL },
		{ "", 0, "bad JSON" },
		{ "garbage", 0, "bad JSON" },
		{ "[]", 0, "must be a JSON object" },
		{ "{}", 0, "\"type\" is missing" },
		{ "{\"type\":5}", 0, "\"type\" is missing" },
		{ "{\"type\":\"nope\"}", 0, "unknown type \"nope\"" },
		{ "{\"type\":\"hello\",\"rank\":1,\"world\":1,\"pid\":1}", 0, "less than" },
		{ "{\"type\":\"hello\",\"rank\":-1,\"world\":1,\"pid\":1}", 0, "hello: \"rank\"" },
		{ "{\"type\":\"hello\",\"rank\":0,\"world\":1}", 0, "\"pid\"" },
		{ "{\"type\":\"phase\",\"name\":\"lunch\"}", 0, "setup, train" },
		{ "{\"type\":\"phase\",\"name\":\"setup\",\"what\":\"\"}", 0, "\"what\" must be" },
		{ "{\"type\":\"phase\",\"name\":\"setup\",\"what\":7}", 0, "\"what\" must be" },
		{ "{\"type\":\"phase\",\"name\":\"setup\",\"what\":\"a b\"}", 0,
		  "\"what\" must be" },
		{ "{\"type\":\"step\"}", 0, "\"step\" must be an integer" },
		{ "{\"type\":\"step\",\"step\":1.5}", 0, "\"step\" must be an integer" },
		{ "{\"type\":\"step\",\"step\":-1}", 0, "at least 0" },
		{ "{\"type\":\"step\",\"step\":999999999999999}", MESSAGE_STEP, NULL },
		{ "{\"type\":\"step\",\"step\":9223372036854775807}", 0, "below 10^15" },
		{ "{\"type\":\"checkpoint\",\"step\":1000000000000000,\"path\":\"/x\"}", 0,
		  "below 10^15" },
		{ "{\"type\":\"step\",\"step\":1,\"loss\":\"x\"}", 0, "\"loss\"" },
		{ "{\"type\":\"step\",\"step\":1,\"loss\":NaN}", 0, "bad JSON" },
		{ "{\"type\":\"checkpoint\",\"step\":1,\"path\":\"\"}", 0, "\"path\"" },
		{ "{\"type\":\"checkpoint\",\"step\":1}", 0, "\"path\"" },
		{ "{\"type\":\"bye\",\"status\":\"later\"}", 0, "done, stopped" },
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		enum message_type type = MESSAGE_COUNT;
		struct err err = { 0 };
		json_t *v = message_parse(cases[i].line, strlen(cases[i].line), &type, &err);

		if ((v == NULL) != (cases[i].part != NULL))
			fail_msg("%s: %s", cases[i].line, err.text);
		if (v)
			assert_int_equal(type, cases[i].type);
		else
			assert_contains(err.text, cases[i].part);
		json_decref(v);
	}
}

static void test_too_long(void **state)
{
	char *line = malloc(MESSAGE_MAX_BYTES + 1);
	enum message_type type;
	struct err err = { 0 };

	(void)state;
	memset(line, ' ', MESSAGE_MAX_BYTES + 1);
	memcpy(line, "{\"type\":\"step\",\"step\":1}", 24);
	json_t *v = message_parse(line, MESSAGE_MAX_BYTES, &type, &err);
	assert_non_null(v);
	json_decref(v);
	assert_null(message_parse(line, MESSAGE_MAX_BYTES + 1, &type, &err));
	assert_contains(err.text, "at most 65536");
	free(line);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_lines),
		cmocka_unit_test(test_too_long),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
