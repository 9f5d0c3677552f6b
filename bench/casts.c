/* SPDX-License-Identifier: MIT */
/* casts.c - how many GB of fp32 one core turns into codes in a second, format by format. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/formats/format.h"
#include "kernels/load.h"

enum { COUNT = 1 << 22, ROUNDS = 9 };

/* Of this thread alone, which does all of the work: what others take of the core does not count. */
static double now_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double best_gb_s(const struct backend *be, struct device *dev, const struct encoding *e,
			void *codes, const float *x)
{
	double best = 0;

	for (int i = 0; i < ROUNDS; i++) {
		double start = now_s();
		be->encode(dev, codes, x, COUNT, e);
		double rate = COUNT * sizeof(float) / (now_s() - start) * 1e-9;
		best = rate > best ? rate : best;
	}
	return best;
}

int main(void)
{
	static const char *const roundings[] = { "nearest", "stochastic" };
	const struct backend_options options = { .threads = 1 };
	const struct backend *be = backend_cpu();
	char why[BACKEND_TEXT_BYTES];
	struct device *dev = be->open(&options, why);
	float *x = malloc(COUNT * sizeof(*x));
	void *codes = malloc(COUNT * sizeof(uint16_t));

	if (!dev || !x || !codes)
		return 1;
	for (size_t i = 0; i < COUNT; i++)
		x[i] = ((float)(i * 2654435761u % 65536) / 32768 - 1) * 8;
	printf("%s\n", be->describe(dev));
	for (unsigned row = 0; format_row(row); row++)
		for (int r = 0; r < 2; r++) {
			const struct encoding e = { .format = *format_row(row),
						    .how = { (enum rounding)r, true } };
			printf("lowbits %-9s %-10s %6.2f GB/s\n", e.format.name, roundings[r],
			       best_gb_s(be, dev, &e, codes, x));
		}
	be->close(dev);
	free(x);
	free(codes);
	return 0;
}
