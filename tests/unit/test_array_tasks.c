/* SPDX-License-Identifier: MIT */
/* test_array_tasks.c - the marks of an array's tasks: each says one thing, and only what is on the
 * disk is told. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/run/array_end.h"
#include "common/run/array_tasks.h"
#include "common/run/attempt.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

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

static void end_task(const char *folder)
{
	struct attempt_exit e = { .cause = CAUSE_COMPLETED, .token = TOKEN, .text = "done" };

	assert_int_equal(folder_make(folder, 0755, NULL), 0);
	assert_int_equal(attempt_exit_write(folder, &e, NULL), 0);
}

/* Slurm may start one again that is done already, in the same attempt: then it has both marks. */
static void each_task_ends_once(void **state)
{
	struct attempt_exit e;

	(void)state;
	mkdir("twice", 0755);
	mkdir("twice/attempts", 0755);
	mkdir("twice/attempts/1", 0755);
	end_task("twice/attempts/1/task-0");
	end_task("twice/attempts/1/task-1");
	write_text("twice/attempts/1/done-0", "");
	array_end_write("twice/attempts/1", 3, TOKEN);
	assert_int_equal(attempt_exit_read("twice/attempts/1", &e, NULL), -1);
	end_task("twice/attempts/1/task-2");
	array_end_write("twice/attempts/1", 3, TOKEN);
	assert_int_equal(attempt_exit_read("twice/attempts/1", &e, NULL), 0);
	assert_string_equal(e.text, "all 3 tasks completed");
}

/* On a file system whose times have whole seconds, two tasks that get done in one leave the folder
 * with the same time. The first one is looked at in between, the second one when that time is over.
 * False: this machine was too busy to look in between. */
static bool is_second_seen(void)
{
	enum { WINDOW_MS = 2000, LEFT_MS = 100 };
	int64_t changed_ns = 0, done, all, time_ms = clock_wall_ms() - WINDOW_MS + LEFT_MS;
	const struct timespec time = { time_ms / 1000, time_ms % 1000 * 1000000 };

	assert_int_equal(array_tasks_forget("coarse", NULL), 0);
	assert_int_equal(array_task_done("coarse", "0", NULL), 0);
	utimensat(AT_FDCWD, "coarse/tasks", (struct timespec[]){ time, time }, 0);
	assert_true(array_tasks_count("coarse", &changed_ns, &done, &all));
	assert_int_equal(done, 1);
	if (clock_wall_ms() >= time_ms + WINDOW_MS)
		return false;
	assert_int_equal(array_task_done("coarse", "1", NULL), 0);
	utimensat(AT_FDCWD, "coarse/tasks", (struct timespec[]){ time, time }, 0);
	while (clock_wall_ms() < time_ms + WINDOW_MS)
		poll(NULL, 0, LEFT_MS / 4);
	assert_true(array_tasks_count("coarse", &changed_ns, &done, &all));
	assert_int_equal(done, 2);
	assert_false(array_tasks_count("coarse", &changed_ns, &done, &all));
	return true;
}

static void two_in_one_second_are_two(void **state)
{
	(void)state;
	mkdir("coarse", 0755);
	while (!is_second_seen())
		;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_done_was_not_cancelled),
		cmocka_unit_test(what_cannot_be_marked_is_no_news),
		cmocka_unit_test(what_left_nothing_has_not_begun),
		cmocka_unit_test(each_task_ends_once),
		cmocka_unit_test(two_in_one_second_are_two),
	};

	return cmocka_run_group_tests_name("tasks of arrays", tests, NULL, NULL);
}
