/* SPDX-License-Identifier: MIT */
/* test_tensorboard.c - the checksum's published values, and records read back by hand. */
#include "tests/unit/unit.h"

#include <glob.h>
#include <math.h>

#include "common/base/files.h"
#include "worker/lbworker/telemetry/crc32c.h"
#include "worker/lbworker/telemetry/tensorboard.h"

/* RFC 3720, appendix B.4, and the check value of the CRC catalogue. */
static void test_published_values(void **state)
{
	unsigned char bytes[32] = { 0 };

	(void)state;
	assert_int_equal(crc32c("123456789", 9), 0xe3069283u);
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x8a9136aau);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x62a8ab43u);
}

static uint32_t masked(const void *bytes, size_t count)
{
	uint32_t crc = crc32c(bytes, count);
	return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static void test_records(void **state)
{
	const struct tb_scalar scalars[] = { { "loss", 2.5 }, { "left out", NAN } };
	struct err err = { 0 };
	size_t length, at = 0;
	int records = 0;
	glob_t found;

	(void)state;
	struct tensorboard *tb = tensorboard_open("tb", 7, &err);
	if (!tb)
		fail_msg("%s", err.text);
	tensorboard_add(tb, 7, scalars, COUNT(scalars));
	tensorboard_close(tb);
	assert_int_equal(glob("tb/events.out.tfevents.*", 0, NULL, &found), 0);
	char *bytes = file_read(found.gl_pathv[0], 1 << 20, &length, &err);
	globfree(&found);
	assert_non_null(bytes);
	while (at < length) {
		uint64_t size;
		uint32_t crc;
		memcpy(&size, bytes + at, sizeof(size));
		memcpy(&crc, bytes + at + 8, sizeof(crc));
		assert_int_equal(crc, masked(bytes + at, 8));
		assert_true(size < length - at);
		memcpy(&crc, bytes + at + 12 + size, sizeof(crc));
		assert_int_equal(crc, masked(bytes + at + 12, size));
		at += 16 + size;
		records++;
	}
	assert_int_equal(records, 3); /* version, start, one step */
	/* the last: summary { value { tag "loss", 2.5 } } */
	static const char tail[] = "\x2a\x0d\x0a\x0b\x0a\x04loss\x15\x00\x00\x20\x40";
	assert_memory_equal(bytes + length - 4 - (sizeof(tail) - 1), tail, sizeof(tail) - 1);
	free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_published_values),
		cmocka_unit_test(test_records),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
