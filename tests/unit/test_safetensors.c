/* SPDX-License-Identifier: MIT */
/* test_safetensors.c - a file goes out and comes back; headers that lie are refused in one line. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <cmocka.h>

#include "worker/lbworker/base/safetensors.h"

static char path[] = "/tmp/lb-test-safetensors.XXXXXX";

static int make_file(void **state)
{
	int fd = mkstemp(path);
	(void)state;
	return fd < 0 ? -1 : close(fd);
}

static int remove_file(void **state)
{
	(void)state;
	return unlink(path);
}

static void test_round_trip(void **state)
{
	static const float a[6] = { 1, 2, 3, 4, 5, 6 };
	static const int32_t b[2] = { -7, 8 };
	static const char *const metadata[] = { "format", "pt", NULL };
	const struct st_tensor out[] = {
		{ .name = "a", .type = ST_F32, .dimensions = 2, .shape = { 2, 3 }, .data = a },
		{ .name = "b.\"odd\"", .type = ST_I32, .dimensions = 1, .shape = { 2 }, .data = b },
		{ .name = "empty", .type = ST_F32, .dimensions = 1, .shape = { 0 }, .data = NULL },
	};
	static const uint64_t shape_a[ST_MAX_DIMENSIONS] = { 2, 3 },
			      shape_b[ST_MAX_DIMENSIONS] = { 2 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(st_write(path, out, 3, metadata, &err), 0);
	struct st_file *file = st_open(path, &err);
	if (!file)
		fail_msg("%s", err.text);
	assert_int_equal(st_count(file), 3);
	assert_memory_equal(st_find(file, "a", ST_F32, shape_a, &err)->data, a, sizeof(a));
	assert_memory_equal(st_find(file, "b.\"odd\"", ST_I32, shape_b, &err)->data, b, sizeof(b));
	assert_null(st_find(file, "c", ST_F32, shape_a, &err));
	assert_non_null(strstr(err.text, "no tensor c"));
	err_clear(&err);
	assert_null(st_find(file, "a", ST_F32, shape_b, &err));
	assert_non_null(strstr(err.text, "a is F32 2x3, the model needs F32 2"));
	st_close(file);
}

static void write_raw(uint64_t header_bytes, const char *header, size_t data_bytes)
{
	FILE *out = fopen(path, "wb");
	assert_non_null(out);
	fwrite(&header_bytes, sizeof(header_bytes), 1, out);
	fwrite(header, strlen(header), 1, out);
	for (size_t i = 0; i < data_bytes; i++)
		fputc(0, out);
	assert_int_equal(fclose(out), 0);
}

static void test_hostile(void **state)
{
	/* clang-format off */
	static const struct {
		const char *header;
		uint64_t length; /* 0: the true one */
		size_t data;
		const char *says;
	} cases[] = {
		{ "{}", UINT64_MAX, 0, "cut short" },
		{ "{}", 3, 0, "cut short" },
		{ "", 0, 0, "cut short" },
		{ "{", 0, 0, "header" },
		{ "[]", 0, 0, "no JSON object" },
		{ "{\"a\":1}", 0, 0, "missing" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1]}}", 0, 4, "missing" },
		{ "{\"a\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[0,2]}}", 0, 1, "outside" },
		{ "{\"a\":{\"dtype\":\"F64\",\"shape\":1,\"data_offsets\":[0,2]}}", 0, 2, "list of sizes" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[-1],\"data_offsets\":[0,4]}}", 0, 4, "no size" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[\"1\"],\"data_offsets\":[0,4]}}", 0, 4,
		  "no size" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,0]}}", 0, 4, "outside" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,8]}}", 0, 4, "outside" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[-4,0]}}", 0, 4, "outside" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 0, 4, "disagree" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[4611686018427387904,4],\"data_offsets\":[0,0]}}",
		  0, 0, "disagree" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 0, 9,
		  "belong to no tensor" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[4,8]}}", 0, 8, "gap" },
		{ "{\"a\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]},"
		  "\"b\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}", 0, 4, "overlaps" },
	};
	/* clang-format on */

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		write_raw(cases[i].length ? cases[i].length : strlen(cases[i].header),
			  cases[i].header, cases[i].data);
		struct st_file *file = st_open(path, &err);
		if (file || !strstr(err.text, cases[i].says) || !strstr(err.text, path))
			fail_msg("case %zu: wanted \"%s\", got \"%s\"", i, cases[i].says, err.text);
	}
}

/* Published models hold what no weight is: masks of attention, counters, kernels of vision. */
static void test_others_beside(void **state)
{
	static const uint64_t shape[ST_MAX_DIMENSIONS] = { 1 }, mask[ST_MAX_DIMENSIONS] = { 1, 3 };
	static const char header[] =
		"{\"mask\":{\"dtype\":\"BOOL\",\"shape\":[1,3],\"data_offsets\":[0,3]},"
		"\"ids\":{\"dtype\":\"I64\",\"shape\":[1],\"data_offsets\":[3,11]},"
		"\"scale\":{\"dtype\":\"F8_E8M0\",\"shape\":[1],\"data_offsets\":[11,12]},"
		"\"patch\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1],\"data_offsets\":[12,16]},"
		"\"w\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[16,20]},"
		"\"none\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[16,16]}}   ";
	struct err err = { 0 };

	(void)state;
	write_raw(strlen(header), header, 20);
	struct st_file *file = st_open(path, &err);
	if (!file)
		fail_msg("%s", err.text);
	assert_non_null(st_find(file, "w", ST_F32, shape, &err));
	assert_null(st_find(file, "mask", ST_F32, mask, &err));
	assert_non_null(strstr(err.text, "mask is BOOL 1x3, the model needs F32 1x3"));
	err_clear(&err);
	assert_null(st_find(file, "patch", ST_F32, shape, &err));
	assert_non_null(strstr(err.text, "patch is F32 1x1x1x1"));
	err_clear(&err);
	assert_null(st_find(file, "ids", ST_OTHER, shape, &err));
	st_close(file);
}

/* Of an index with millions of names: the format's own library takes 100 MB. */
static void test_long_header(void **state)
{
	enum { LONG = 70 * 1000 * 1000 };
	char *header = malloc(LONG + 1);
	struct err err = { 0 };

	(void)state;
	memset(header, ' ', LONG);
	memcpy(header, "{}", 2);
	header[LONG] = '\0';
	write_raw(LONG, header, 0);
	struct st_file *file = st_open(path, &err);
	if (!file)
		fail_msg("%s", err.text);
	st_close(file);
	free(header);
}

/* A mixture of experts: each name is looked for once for each of dozens of layers. */
static void test_many(void **state)
{
	enum { MANY = 20000, ROUNDS = 10, NAME_BYTES = 24 };
	struct st_tensor *out = calloc(MANY, sizeof(*out));
	char(*name)[NAME_BYTES] = calloc(MANY, NAME_BYTES);
	int32_t *number = calloc(MANY, sizeof(*number));
	struct err err = { 0 };

	(void)state;
	for (int i = 0; i < MANY; i++) {
		number[i] = i;
		snprintf(name[i], NAME_BYTES, "expert.%d", i);
		out[i] = (struct st_tensor){ .name = name[i],
					     .type = ST_I32,
					     .dimensions = 1,
					     .shape = { 1 },
					     .data = &number[i] };
	}
	assert_int_equal(st_write(path, out, MANY, NULL, &err), 0);
	struct st_file *file = st_open(path, &err);
	if (!file)
		fail_msg("%s", err.text);
	clock_t begin = clock();
	for (int round = 0; round < ROUNDS; round++)
		for (int i = 0; i < MANY; i++)
			assert_int_equal(*(const int32_t *)st_named(file, name[i])->data, i);
	assert_true(clock() - begin < 2 * CLOCKS_PER_SEC);
	st_close(file);
	free(number);
	free(name);
	free(out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_round_trip),    cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_others_beside), cmocka_unit_test(test_long_header),
		cmocka_unit_test(test_many),
	};
	return cmocka_run_group_tests(tests, make_file, remove_file);
}
