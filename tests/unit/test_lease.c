/* SPDX-License-Identifier: MIT */
/* test_lease.c - who holds the lease, and when it is over. */
#include "tests/unit/unit.h"

#include <unistd.h>

#include "common/base/files.h"
#include "common/run/lease.h"
#include "common/base/procs.h"

static struct lease some_lease(void)
{
	struct lease l = { .generation = 7,
			   .nonce = "00112233445566778899aabbccddeeff",
			   .pid = getpid(),
			   .job_id = 17,
			   .since_ms = 1795000000000,
			   .renewed_ms = 1795000001000,
			   .lease_ms = 30000,
			   .version = "0.1.0",
			   .why = "\"quoted\"" };
	struct proc_name self;

	lease_set_here(&l);
	assert_int_equal(proc_name_of(getpid(), &self), 0);
	l.start_ticks = self.start_ticks;
	return l;
}

static void test_round_trip(void **state)
{
	struct lease l = some_lease(), back;
	char text[LEASE_BYTES], path[] = "/tmp/lb-lease.XXXXXX";
	int fd = mkstemp(path);

	(void)state;
	memset(l.log, '\x01', sizeof(l.log) - 1); /* six bytes each as JSON: too long, left out */
	lease_print(&l, text);
	assert_int_equal(text[LEASE_BYTES - 1], '\n');
	assert_int_equal(write(fd, text, LEASE_BYTES), LEASE_BYTES);
	assert_int_equal(lease_read(path, &back, NULL), 0);
	memset(l.log, 0, sizeof(l.log));
	assert_int_equal(back.generation, 7);
	assert_string_equal(back.nonce, l.nonce);
	assert_string_equal(back.host, l.host);
	assert_string_equal(back.why, l.why);
	assert_string_equal(back.log, "");
	assert_int_equal(back.start_ticks, l.start_ticks);
	assert_int_equal(back.renewed_ms, l.renewed_ms);
	close(fd);
	unlink(path);
}

static void test_whose(void **state)
{
	struct lease l = some_lease();

	(void)state;
	assert_true(lease_is_here(&l));
	assert_true(lease_is_alive_here(&l));
	l.start_ticks++; /* the pid was given to another process */
	assert_false(lease_is_alive_here(&l));
	l.start_ticks--;
	l.boot_id[0] = l.boot_id[0] == 'x' ? 'y' : 'x';
	assert_false(lease_is_here(&l));
	assert_false(lease_is_alive_here(&l));
	l = some_lease();
	l.host[0]++;
	assert_false(lease_is_here(&l));
}

static void test_refused(void **state)
{
	struct lease l;
	char path[] = "/tmp/lb-lease.XXXXXX";
	int fd = mkstemp(path);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(write(fd, "{\"generation\":0}", 16), 16);
	assert_int_equal(lease_read(path, &l, &err), -1);
	assert_int_equal(err.code, ERR_USAGE);
	close(fd);
	unlink(path);
	err_clear(&err);
	assert_int_equal(lease_read(path, &l, &err), -1);
	assert_int_equal(err.code, ERR_NOT_FOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_whose),
		cmocka_unit_test(test_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
