/* SPDX-License-Identifier: MIT */
/* test_formats.c - every code and rounding of every format beside a table that knows nothing of our
 * code (tests/formats/oracle.py), by the definition and by each set of instructions. The short form
 * leaves out the definition on the inputs that only formats without a row of their own need;
 * `make check-formats` (LB_FORMATS=all) leaves out nothing and says how much it compared. */
#include <math.h>
#include <zlib.h>

#include "kernels/formats/format.h"
#include "kernels/machine/instructions.h"
#include "tests/unit/cpu_device.h"
#include "tests/unit/source.h"

enum { BF16_INPUTS = 65536, WIDE_INPUTS = 1 << 17, LINE_BYTES = 1 << 16 };

extern const struct backend backend_cpu_base, backend_cpu_avx2, backend_cpu_avx512;

static const struct random_stream stream = { 0x123456789abcdef0, 7, 11 };

static struct {
	uint64_t comparisons, differences;
} count;

static const struct backend *const *sets(size_t *n)
{
	static const struct backend *const all[] = {
		&backend_cpu_base,
#if defined(__x86_64__)
		&backend_cpu_avx2,
		&backend_cpu_avx512,
#endif
	};

	*n = (size_t)instructions_used() + 1;
	*n = *n < sizeof(all) / sizeof(all[0]) ? *n : sizeof(all) / sizeof(all[0]);
	return all;
}

static void compare(bool equal, const char *what, const char *line)
{
	if (!equal) {
		count.differences++;
		print_error("%s: not as in: %.60s\n", what, line);
	}
}

static float *inputs(const char *kind, size_t *n)
{
	bool wide = strcmp(kind, "wide") == 0;

	*n = wide ? WIDE_INPUTS : BF16_INPUTS;
	uint32_t *bits = xmalloc(*n * sizeof(*bits));
	for (size_t i = 0; i < *n; i++) {
		bits[i] = wide ? (uint32_t)(i * 2654435761u + 12345u) : (uint32_t)i << 16;
		if (wide && i % 2 == 1)
			bits[i] = (bits[i] & 0x807fffffu) | (107 + (bits[i] >> 23 & 255) % 40)
								    << 23;
	}
	return (float *)(void *)bits;
}

/* --- codes to numbers ------------------------------------------------------------------------- */

static bool same(float a, float b)
{
	return memcmp(&a, &b, sizeof(a)) == 0 || (isnan(a) && isnan(b));
}

static void check_values(const struct format *f, const char *text, const char *line)
{
	char *end;
	uint8_t codes[256];
	float want[256], got[256];
	size_t n, all = (size_t)1 << f->bits;
	const struct backend *const *set = sets(&n);

	for (size_t code = 0; code < all; code++, text = end) {
		want[code] = strtof(text, &end);
		assert_ptr_not_equal(text, end);
		codes[code] = (uint8_t)code;
		count.comparisons++;
		compare(same(format_decode(f, (uint32_t)code), want[code]), "definition", line);
	}
	for (size_t s = 0; s < n; s++) {
		const struct backend_options options = { .threads = 1 };
		struct device *dev = set[s]->open(&options, NULL);
		set[s]->decode(dev, got, codes, all, f);
		for (size_t code = 0; code < all; code++) {
			count.comparisons++;
			compare(same(got[code], want[code]), set[s]->describe(dev), line);
		}
		set[s]->close(dev);
	}
}

/* --- numbers to codes ------------------------------------------------------------------------- */

static void by_definition(uint16_t *codes, const float *x, size_t n, const struct encoding *e)
{
	for (size_t i = 0; i < n; i++)
		codes[i] = (uint16_t)format_encode(&e->format, x[i], &e->how,
						   random_word(&stream, i));
}

static void by_set(uint16_t *codes, const float *x, size_t n, const struct encoding *e,
		   const struct backend *be, struct device *dev)
{
	uint8_t *narrow = xmalloc(n);
	size_t first = 3; /* in two calls, so that streams begin anywhere */
	struct encoding behind = *e;

	behind.first = first;
	if (e->format.bits > 8) {
		be->encode(dev, codes, x, first, e);
		be->encode(dev, codes + first, x + first, n - first, &behind);
	} else {
		be->encode(dev, narrow, x, first, e);
		be->encode(dev, narrow + first, x + first, n - first, &behind);
		for (size_t i = 0; i < n; i++)
			codes[i] = narrow[i];
	}
	free(narrow);
}

static uint32_t crc(const uint16_t *codes, size_t n)
{
	return (uint32_t)crc32(0, (const Bytef *)codes, (uInt)(n * sizeof(*codes)));
}

/* "CODE:COUNT ..." one by one, so that a difference has a place. */
static void check_runs(const struct encoding *e, const char *text, const char *line)
{
	size_t n, at = 0;
	float *x = inputs("bf16", &n);
	unsigned code, times;
	int used;

	for (; sscanf(text, "%x:%u%n", &code, &times, &used) == 2; text += used)
		for (; times > 0; times--, at++) {
			uint32_t got = format_encode(&e->format, x[at], &e->how, 0);
			count.comparisons++;
			if (got != code)
				print_error("%a: %x, not %x\n", (double)x[at], got, code);
			compare(got == code, "definition", line);
		}
	assert_int_equal(at, n);
	free(x);
}

static void check_crc(const struct encoding *e, const char *text, const char *line)
{
	char kind[8];
	unsigned want;
	size_t n, of;
	struct format row;
	bool all = getenv("LB_FORMATS") != NULL;

	assert_int_equal(sscanf(text, "%7s %x", kind, &want), 2);
	bool named = format_find(e->format.name, &row) && !strchr("1234567", row.name[1]);
	float *x = inputs(kind, &of);
	uint16_t *codes = xmalloc(of * sizeof(*codes));
	if (all || named || strcmp(kind, "bf16") == 0) {
		by_definition(codes, x, of, e);
		count.comparisons += of;
		compare(crc(codes, of) == want, "definition", line);
	}
	const struct backend *const *set = sets(&n);
	for (size_t s = 0; s < n; s++) {
		const struct backend_options options = { .threads = 2 };
		struct device *dev = set[s]->open(&options, NULL);
		by_set(codes, x, of, e, set[s], dev);
		count.comparisons += of;
		compare(crc(codes, of) == want, set[s]->describe(dev), line);
		set[s]->close(dev);
	}
	free(codes);
	free(x);
}

static void check_line(const char *line)
{
	static const char *const roundings[] = { "nearest", "stochastic", "toward_zero" };
	char what[8], name[16], rounding[16];
	struct encoding e = { .random = stream };
	int used, saturate;

	assert_int_equal(sscanf(line, "%7s %15s%n", what, name, &used), 2);
	if (!format_find(name, &e.format))
		fail_msg("no format %s", name);
	if (strcmp(what, "values") == 0) {
		check_values(&e.format, line + used, line);
		return;
	}
	const char *rest = line + used;
	assert_int_equal(sscanf(rest, "%15s %d%n", rounding, &saturate, &used), 2);
	while (strcmp(rounding, roundings[e.how.rounding]) != 0)
		e.how.rounding++;
	e.how.saturate = saturate;
	rest += used;
	if (strcmp(what, "runs") == 0)
		check_runs(&e, rest, line);
	else
		check_crc(&e, rest, line);
}

static void test_table(void **state)
{
	char *line = xmalloc(LINE_BYTES);
	FILE *f = fopen(source_path("tests/formats/formats.txt"), "r");
	size_t lines = 0;

	(void)state;
	assert_non_null(f);
	while (fgets(line, LINE_BYTES, f))
		if (line[0] != '#') {
			check_line(line);
			lines++;
		}
	fclose(f);
	free(line);
	assert_true(lines > 500);
	printf("formats: %llu comparisons, %llu differences\n",
	       (unsigned long long)count.comparisons, (unsigned long long)count.differences);
	assert_int_equal(count.differences, 0);
}

/* --- what no table shows ---------------------------------------------------------------------- */

/* The mean of a million draws lies within five of its standard deviations. */
static void test_stochastic_mean(void **state)
{
	enum { DRAWS = 1000000 };
	static const float shares[] = { 0.001f, 0.25f, 0.5f, 0.9f };
	struct encoding e = { .how = { ROUND_STOCHASTIC, true }, .random = { .key = 5 } };
	struct device *dev = open_device(1);
	float *x = xmalloc(DRAWS * sizeof(*x)), *y = xmalloc(DRAWS * sizeof(*y));
	uint8_t *codes = xmalloc(DRAWS);

	(void)state;
	assert_true(format_find("e4m3fn", &e.format));
	for (size_t s = 0; s < COUNT(shares); s++) {
		double sum = 0, p = shares[s];
		e.random.step = (uint32_t)s;
		for (size_t i = 0; i < DRAWS; i++)
			x[i] = 8 + shares[s]; /* between 8 and 9 */
		backend_cpu()->encode(dev, codes, x, DRAWS, &e);
		backend_cpu()->decode(dev, y, codes, DRAWS, &e.format);
		for (size_t i = 0; i < DRAWS; i++)
			sum += (double)y[i] - 8;
		assert_true(fabs(sum / DRAWS - p) < 5 * sqrt(p * (1 - p) / DRAWS));
	}
	free(codes);
	free(x);
	free(y);
	backend_cpu()->close(dev);
}

static void test_names(void **state)
{
	static const char *const none[] = {
		"e0m3", "e4m4", "e9m0", "e4m3x", "e4", "fp8", "", "int5"
	};
	struct format f;

	(void)state;
	for (size_t i = 0; i < COUNT(none); i++)
		assert_false(format_find(none[i], &f));
	assert_true(format_find("e3m3", &f));
	assert_int_equal(f.kind, FORMAT_FINITE);
	assert_int_equal(f.bits, 7);
	assert_true(format_find("e2m1fn", &f)); /* as ml_dtypes calls e2m1 */
	assert_true(format_max(&f) == 6);
	assert_true(format_find("e4m3fn", &f));
	assert_true(format_max(&f) == 448);
	assert_int_equal(format_emax(&f), 8);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_table),
		cmocka_unit_test(test_stochastic_mean),
		cmocka_unit_test(test_names),
	};
	return cmocka_run_group_tests_name("formats", tests, NULL, NULL);
}
