/* SPDX-License-Identifier: MIT */
/* test_kernel_pool.c - threads that are bound to cores, and memory that is there when it was asked
 * for. */
#include <dlfcn.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "kernels/cpu/pool.h"
#include "kernels/machine/cpus.h"
#include "slurm/local/machine.h"
#include "tests/unit/cpu_device.h"
#include "worker/lbworker/commands/command.h"

enum { WORKERS_MAX = 64 };

struct seen {
	atomic_uint arrived;
	unsigned workers;
	atomic_int cpus[WORKERS_MAX]; /* how many CPUs a worker may run on */
	atomic_int cpu[WORKERS_MAX];  /* one of them */
};

/* A kernel for 2,048 CPUs, as the first look at them meets it. */
static bool has_looked;

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set)
{
	int (*libc)(pid_t, size_t, cpu_set_t *);

	if (!has_looked && bytes < 2048 / 8)
		return -1;
	*(void **)&libc = dlsym(RTLD_NEXT, "sched_getaffinity");
	return libc(pid, bytes, set);
}

/* Must come first. */
static void test_many_cpus(void **state)
{
	(void)state;
	const struct local_limits limits = { .cpus = 2 };
	struct machine m;
	cpu_set_t all[2];

	assert_true(cpus_bind(0));
	cpus_unbind();
	unsetenv("OMP_NUM_THREADS");
	assert_int_equal(sched_getaffinity(0, sizeof(all), all), 0);
	assert_int_equal(command_threads(), CPU_COUNT_S(sizeof(all), all));
	machine_find(&m, &limits);
	assert_int_equal(CPU_COUNT(&m.cpus), CPU_COUNT_S(sizeof(all), all) > 1 ? 2 : 1);
	has_looked = true;
}

/* Each task waits for the others, so that every worker has one. */
static void look_task(const void *args, size_t index, unsigned worker)
{
	struct seen *const *seen = args;
	cpu_set_t set;

	(void)index;
	assert_int_equal(sched_getaffinity(0, sizeof(set), &set), 0);
	(*seen)->cpus[worker] = CPU_COUNT(&set);
	(*seen)->cpu[worker] = sched_getcpu();
	(*seen)->arrived++;
	while ((*seen)->arrived < (*seen)->workers)
		sched_yield();
}

/* One thread for each core: each is bound to its own. Any other number is left free. */
static void test_bound(void **state)
{
	unsigned cores = cpus_cores();
	cpu_set_t before, after;

	(void)state;
	sched_getaffinity(0, sizeof(before), &before);
	for (unsigned threads = cores; threads <= cores + 1 && threads < WORKERS_MAX; threads++) {
		struct seen seen = { .workers = threads }, *arg = &seen;
		struct pool *pool = pool_create(threads);
		assert_non_null(pool);
		pool_run(pool, threads, look_task, &arg);
		for (unsigned i = 0; i < threads && threads == cores; i++) {
			assert_int_equal(seen.cpus[i], 1);
			for (unsigned k = 0; k < i; k++)
				assert_int_not_equal(seen.cpu[i], seen.cpu[k]);
		}
		for (unsigned i = 0; i < threads && threads > cores; i++)
			assert_int_equal(seen.cpus[i], CPU_COUNT(&before));
		pool_destroy(pool);
		sched_getaffinity(0, sizeof(after), &after);
		assert_true(CPU_EQUAL(&before, &after));
	}
}

/* A thread whose core is gone is free, and does not stay on that of its parent. */
static void test_unbound(void **state)
{
	cpu_set_t before, after;

	(void)state;
	sched_getaffinity(0, sizeof(before), &before);
	assert_true(cpus_bind(0));
	assert_false(cpus_bind(cpus_cores()));
	sched_getaffinity(0, sizeof(after), &after);
	cpus_unbind();
	assert_true(CPU_EQUAL(&before, &after));
}

/* What alloc gave is there: writing all of it costs no page fault. */
static void test_touched(void **state)
{
	enum { BYTES = 9 << 20 };
	struct device *dev = open_device(2);
	char *memory = backend_cpu()->alloc(dev, BYTES, "a test");
	struct rusage before, after;

	(void)state;
	assert_non_null(memory);
	getrusage(RUSAGE_SELF, &before);
	for (size_t i = 0; i < BYTES; i += 1024) {
		assert_int_equal(memory[i], 0);
		memory[i] = 1;
	}
	getrusage(RUSAGE_SELF, &after);
	assert_in_range(after.ru_minflt - before.ru_minflt, 0, 8);
	backend_cpu()->free(dev, memory);
	backend_cpu()->close(dev);
}

/* A kernel of such pages, as ARM has it. */
enum { LARGE_PAGE = 64 << 10 };
static bool has_large_pages;

long sysconf(int name)
{
	long (*libc)(int);

	*(void **)&libc = dlsym(RTLD_NEXT, "sysconf");
	return has_large_pages && name == _SC_PAGESIZE ? LARGE_PAGE : libc(name);
}

int madvise(void *at, size_t bytes, int advice)
{
	if (advice != MADV_DONTNEED)
		return 0;
	if ((uintptr_t)at % LARGE_PAGE != 0)
		return -1;
	memset(at, 0, (bytes + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE);
	return 0;
}

/* What lies beside discarded memory stays, whatever pages the kernel has; whole ones go. */
static void test_discarded(void **state)
{
	enum { BYTES = 4 * LARGE_PAGE, STEP = 4096 };
	const struct backend *be = backend_cpu();
	struct device *dev = open_device(1);

	(void)state;
	has_large_pages = true;
	for (size_t from = 0; from <= LARGE_PAGE; from += STEP)
		for (size_t end = from; end <= BYTES; end += STEP) {
			char *memory = be->reserve(dev, BYTES);
			size_t gone = 0;
			assert_non_null(memory);
			memset(memory, 1, BYTES);
			be->discard(dev, memory + from, end - from);
			for (size_t i = 0; i < BYTES; i += STEP) {
				assert_true(memory[i] == 1 || (i >= from && i < end));
				gone += memory[i] == 0 ? STEP : 0;
			}
			assert_true(gone + 2 * LARGE_PAGE > end - from);
			be->free(dev, memory);
		}
	has_large_pages = false;
	be->close(dev);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_cpus), cmocka_unit_test(test_bound),
		cmocka_unit_test(test_unbound),   cmocka_unit_test(test_touched),
		cmocka_unit_test(test_discarded),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
