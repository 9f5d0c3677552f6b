/* SPDX-License-Identifier: MIT */
/* test_report.c - what the trainer says to lbrun is what common/run/message.h accepts, orders
 * arrive, and an lbrun that is absent, deaf or dead costs neither the training nor its time. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/run/message.h"
#include "worker/lbworker/telemetry/report.h"

static char folder[] = "/tmp/lb-test-report.XXXXXX";

/* lbrun's side */
struct peer {
	char path[64];
	int listener, fd;
	struct buf in;
	struct report *report;
};

static int set_up(void **state)
{
	struct peer *p = xcalloc(1, sizeof(*p));
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	snprintf(p->path, sizeof(p->path), "%s/sock", folder);
	snprintf(address.sun_path, sizeof(address.sun_path), "%s", p->path);
	unlink(p->path);
	p->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (bind(p->listener, (const struct sockaddr *)&address, sizeof(address)) != 0 ||
	    listen(p->listener, 1) != 0)
		return -1;
	p->report = report_open(p->path);
	p->fd = accept(p->listener, NULL, NULL);
	buf_init(&p->in, 16 << 20);
	*state = p;
	return p->fd < 0 ? -1 : 0;
}

static int tear_down(void **state)
{
	struct peer *p = *state;

	report_close(p->report);
	if (p->fd >= 0)
		close(p->fd);
	close(p->listener);
	buf_fini(&p->in);
	free(p);
	return 0;
}

/* Reads until `lines` lines are there, and checks each as lbrun does. */
static json_t *read_lines(struct peer *p, size_t lines)
{
	json_t *all = json_array();

	while (json_array_size(all) < lines) {
		char bytes[4096];
		const char *end = p->in.len ? memchr(p->in.data, '\n', p->in.len) : NULL;
		if (!end) {
			ssize_t got = recv(p->fd, bytes, sizeof(bytes), 0);
			assert_true(got > 0);
			assert_int_equal(buf_add(&p->in, bytes, (size_t)got), 0);
			continue;
		}
		struct err err = { 0 };
		enum message_type type;
		size_t length = (size_t)(end - p->in.data);
		json_t *line = message_parse(p->in.data, length, &type, &err);
		if (!line)
			fail_msg("%s", err.text);
		json_array_append_new(all, line);
		buf_drop(&p->in, length + 1);
	}
	return all;
}

static const struct report_step a_step = { .step = 7,
					   .target_step = 9,
					   .tokens = 4096,
					   .loss = 2.5,
					   .grad_norm = 0.25,
					   .lr = 1e-3,
					   .tokens_per_s = 1000,
					   .step_ms = 12.5 };

static void test_lines(void **state)
{
	struct peer *p = *state;

	report_phase(p->report, "train");
	report_step(p->report, &a_step);
	report_checkpoint(p->report, 7, "/a/step-00000007");
	report_bye(p->report, "done");
	json_t *lines = read_lines(p, 5);
	const json_t *hello = json_array_get(lines, 0), *step = json_array_get(lines, 2);
	assert_int_equal(js_int(hello, "pid", 0), getpid());
	assert_int_equal(js_int(step, "step", 0), 7);
	assert_int_equal(js_int(step, "target_step", 0), 9);
	assert_true(js_real(step, "loss", 0) == 2.5 && js_real(step, "lr", 0) == 1e-3);
	assert_string_equal(js_str(json_array_get(lines, 3), "path", ""), "/a/step-00000007");
	assert_string_equal(js_str(json_array_get(lines, 4), "status", ""), "done");
	json_decref(lines);
}

static void test_orders(void **state)
{
	struct peer *p = *state;
	static const char text[] = "{\"type\":\"ack\",\"seq\":1}\nrubbish\n{\"type\":\"sa";
	static const char rest[] = "ve\"}\n";
	static const char stop[] = "{\"type\":\"stop\"}\n";

	assert_int_equal(report_orders(p->report), REPORT_NOTHING);
	assert_int_equal(send(p->fd, text, sizeof(text) - 1, 0), sizeof(text) - 1);
	assert_int_equal(report_orders(p->report), REPORT_NOTHING);
	assert_int_equal(send(p->fd, rest, sizeof(rest) - 1, 0), sizeof(rest) - 1);
	assert_int_equal(report_orders(p->report), REPORT_SAVE);
	assert_int_equal(report_orders(p->report), REPORT_NOTHING);
	assert_int_equal(send(p->fd, stop, sizeof(stop) - 1, 0), sizeof(stop) - 1);
	assert_int_equal(report_orders(p->report), REPORT_STOP);
}

/* Nobody reads: the training goes on at once, whole lines are dropped, none is torn. */
static void test_deaf(void **state)
{
	struct peer *p = *state;
	int64_t start = clock_mono_ms();

	for (int i = 0; i < 20000; i++)
		report_step(p->report, &a_step);
	assert_true(clock_mono_ms() - start < 60000); /* a wait of 3 ms at each would be seen */
	for (int i = 0; i < 10; i++) { /* what waits is sent on when there is room again */
		json_decref(read_lines(p, 100));
		assert_int_equal(report_orders(p->report), REPORT_NOTHING);
	}
}

static void test_dead(void **state)
{
	struct peer *p = *state;

	close(p->fd);
	p->fd = -1;
	for (int i = 0; i < 10; i++) {
		report_step(p->report, &a_step);
		assert_int_equal(report_orders(p->report), REPORT_NOTHING);
	}
}

static void test_absent(void **state)
{
	struct report *nobody = report_open(NULL), *missing = report_open("/nonexistent/socket");
	char long_path[300];

	(void)state;
	memset(long_path, 'x', sizeof(long_path));
	long_path[sizeof(long_path) - 1] = '\0';
	struct report *too_long = report_open(long_path);
	report_step(nobody, &a_step);
	report_step(missing, &a_step);
	report_step(too_long, &a_step);
	assert_int_equal(report_orders(nobody), REPORT_NOTHING);
	report_close(nobody);
	report_close(missing);
	report_close(too_long);
}

static int make_folder(void **state)
{
	(void)state;
	log_init("test_report", LOG_LEVEL_ERROR);
	return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state)
{
	(void)state;
	return folder_remove(folder, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_lines, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_orders, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_deaf, set_up, tear_down),
		cmocka_unit_test_setup_teardown(test_dead, set_up, tear_down),
		cmocka_unit_test(test_absent),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
