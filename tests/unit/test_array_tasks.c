/* SPDX-License-Identifier: MIT */
/* test_array_tasks.c - the marks of an array's tasks: each says one thing, and only what is on the
 * disk is told. */
#include "tests/unit/unit.h"

#include <sys/stat.h>

#include "common/base/files.h"
#include "common/run/array_end.h"
#include "common/run/array_tasks.h"

static void what_is_done_was_not_cancelled(void **state)
{
	size_t count;

	(void)state;
	mkdir("run", 0755);
	assert_true(array_task_cancelled("run", 3));
	assert_false(array_task_cancelled("run", 3)); /* no news */
	assert_true(array_task_is_cancelled("run", "3"));
	assert_int_equal(array_task_done("run", "3", NULL), 0);
	assert_false(array_task_is_cancelled("run", "3"));
	assert_false(array_task_cancelled("run", 3));
	assert_null(array_tasks_cancelled("run", &count));
}

/* Who hears that a task is not run again must be able to rely on it. */
static void what_cannot_be_marked_is_no_news(void **state)
{
	(void)state;
	mkdir("other", 0755);
	write_text("other/tasks", "no folder");
	assert_false(array_task_cancelled("other", 3));
}

static void what_left_nothing_has_not_begun(void **state)
{
	int64_t tasks[] = { 0, 2, 4, 6 };

	(void)state;
	assert_int_equal(folder_make("attempt", 0755, NULL), 0);
	assert_int_equal(folder_make("attempt/task-2", 0755, NULL), 0);
	write_text("attempt/done-4", ""); /* it was not to run */
	assert_int_equal(array_unbegun("attempt", tasks, COUNT(tasks)), 2);
	assert_int_equal(tasks[0], 0);
	assert_int_equal(tasks[1], 6);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_done_was_not_cancelled),
		cmocka_unit_test(what_cannot_be_marked_is_no_news),
		cmocka_unit_test(what_left_nothing_has_not_begun),
	};

	return cmocka_run_group_tests_name("tasks of arrays", tests, NULL, NULL);
}
