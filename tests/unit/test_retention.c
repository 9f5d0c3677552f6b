/* SPDX-License-Identifier: MIT */
/* test_retention.c - which checkpoints go: never one that anybody may need. */
#include "tests/unit/unit.h"

#include "common/checkpoint/retention.h"

enum { MOST = 16 };

static bool is_odd(void *arg, const struct checkpoint *c)
{
	(void)arg;
	return c->step % 2 != 0;
}

/* "40 30! 20? 10*": steps newest first, '!' not valid, '?' suspect, '*' called the best, each of 10
 * bytes. Gives the steps that go. */
static const char *choose(struct retention r, const char *text,
			  bool (*needed)(void *arg, const struct checkpoint *c))
{
	static char out[200];
	struct checkpoint items[MOST] = { 0 };
	struct checkpoint_list list = { .items = items };
	bool goes[MOST] = { false };
	size_t count, told = 0;
	char *end;

	while (*text) {
		struct checkpoint *c = &items[list.count++];

		c->step = strtoll(text, &end, 10);
		c->is_valid = *end != '!';
		c->is_suspect = *end == '?';
		c->is_best = *end == '*';
		c->bytes = 10;
		text = end + (*end && strchr("!?*", *end));
		text += *text == ' ';
	}
	out[0] = '\0';
	count = retention_choose(&r, &list, needed, NULL, goes);
	for (size_t i = 0; i < list.count; i++) {
		if (goes[i])
			snprintf(out + strlen(out), sizeof(out) - strlen(out), "%s%lld",
				 told++ ? " " : "", (long long)items[i].step);
	}
	assert_int_equal(count, told);
	return out;
}

static void test_count(void **state)
{
	(void)state;
	assert_string_equal(choose((struct retention){ 0 }, "50 40 30 20 10", NULL), "");
	assert_string_equal(choose((struct retention){ 3, 0, 0 }, "50 40 30 20 10", NULL), "20 10");
	assert_string_equal(choose((struct retention){ 3, 20, 0 }, "50 40 30 20 10", NULL), "10");
	assert_string_equal(choose((struct retention){ 3, 0, 0 }, "20 10", NULL), "");
	assert_string_equal(choose((struct retention){ 3, 0, 0 }, "", NULL), "");
}

static void test_the_best_stays(void **state)
{
	(void)state;
	assert_string_equal(choose((struct retention){ 2, 0, 0 }, "50 40 30 20* 10*", NULL),
			    "30 10");
	assert_string_equal(choose((struct retention){ 0, 0, 1 }, "50 40 30 20* 10*", NULL),
			    "30 10");
}

static void test_newest_two_valid_stay(void **state)
{
	(void)state;
	assert_string_equal(choose((struct retention){ 1, 0, 0 }, "50 40 30", NULL), "30");
	assert_string_equal(choose((struct retention){ 1, 0, 0 }, "50! 40 30! 20 10", NULL), "10");
	assert_string_equal(choose((struct retention){ 0, 0, 1 }, "50! 40 30! 20 10", NULL), "10");
	assert_string_equal(choose((struct retention){ 1, 0, 1 }, "50! 40! 30! 20 10!", NULL), "");
}

/* A relaunch takes the newest that is not suspect: two of these stay, whatever else there is. */
static void test_suspects_do_not_count(void **state)
{
	(void)state;
	assert_string_equal(choose((struct retention){ 2, 0, 0 }, "50? 40? 30 20 10", NULL), "10");
	assert_string_equal(choose((struct retention){ 2, 0, 0 }, "50? 40? 30", NULL), "");
	assert_string_equal(choose((struct retention){ 1, 0, 1 }, "50? 40? 30? 20?", NULL), "");
	assert_string_equal(choose((struct retention){ 3, 0, 0 }, "50 40? 30! 20 10 5", NULL), "5");
	assert_string_equal(choose((struct retention){ 0, 0, 1 }, "50? 40 30 20", NULL), "20");
	/* one that is older than what is kept goes as any other does */
	assert_string_equal(choose((struct retention){ 2, 0, 0 }, "50 40 30? 20", NULL), "30 20");
}

static void test_needed_stay(void **state)
{
	(void)state;
	assert_string_equal(choose((struct retention){ 2, 0, 0 }, "8 7 6 5 4 3", is_odd), "6 4");
	assert_string_equal(choose((struct retention){ 0, 0, 1 }, "8 7 6 5 4 3", is_odd), "6 4");
}

static void test_bytes(void **state)
{
	(void)state;
	assert_string_equal(choose((struct retention){ 0, 0, 35 }, "50 40 30 20 10", NULL),
			    "20 10");
	assert_string_equal(choose((struct retention){ 0, 0, 50 }, "50 40 30 20 10", NULL), "");
	/* what is not valid counts, and stays */
	assert_string_equal(choose((struct retention){ 0, 0, 30 }, "50 40! 30 20 10", NULL),
			    "20 10");
	/* milestones go last */
	assert_string_equal(choose((struct retention){ 0, 10, 30 }, "51 45 30 25 20", NULL),
			    "25 20");
	assert_string_equal(choose((struct retention){ 0, 20, 20 }, "51 45 40 25 20", NULL),
			    "40 25 20");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_count),
		cmocka_unit_test(test_the_best_stays),
		cmocka_unit_test(test_newest_two_valid_stay),
		cmocka_unit_test(test_suspects_do_not_count),
		cmocka_unit_test(test_needed_stay),
		cmocka_unit_test(test_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
