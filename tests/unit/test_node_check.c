/* SPDX-License-Identifier: MIT */
/* test_node_check.c - who is worse than the others, reports as files, and the bad node among
 * many. */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <sys/resource.h>

#include "common/base/files.h"
#include "common/check/node_report.h"
#include "common/check/node_search.h"
#include "common/gpu/past_xids.h"
#include "tests/unit/unit.h"
#include "worker/lbworker/check/health.h"
#include "worker/lbworker/check/node.h"

/* --- the search ------------------------------------------------------------------------------- */

/* Bits of `bad`: a group fails when one of them is in it. */
static int rounds_to_find(int size, const bool *bad, int *found)
{
	struct node_search s;
	bool *failed = calloc((size_t)size + 1, sizeof(*failed));
	char *seen = calloc((size_t)size + 1, 1);
	int rounds;

	node_search_begin(&s, size);
	while (node_search_next(&s)) {
		memset(seen, 0, (size_t)size + 1);
		for (int a = 0; a < s.asks; a++) {
			failed[a] = false;
			assert_true(s.ask[a].count >= 2);
			for (int k = 0; k < s.ask[a].count; k++) {
				int node = s.ask[a].first + k * s.ask[a].stride;
				assert_in_range(node, 0, size - 1);
				assert_int_equal(seen[node]++, 0); /* they work at the same time */
				failed[a] = failed[a] || bad[node];
			}
		}
		node_search_heard(&s, failed);
		assert_in_range(s.rounds, 1, 4 * size + 8);
	}
	for (int i = 0; i < size; i++)
		if (s.standing[i] != NODE_UNKNOWN)
			assert_int_equal(s.standing[i], bad[i] ? NODE_BAD : NODE_GOOD);
	*found = node_search_bad(&s);
	rounds = s.rounds;
	node_search_end(&s);
	free(seen);
	free(failed);
	return rounds;
}

/* Rounds that cut to three or fewer, one or two for those, one for luck. */
static int most_rounds(int size)
{
	int rounds = 4;

	for (int left = size; left > 3; left = (left + 2) / 3)
		rounds++;
	return rounds;
}

static void test_one_among_many(void **state)
{
	static const int sizes[] = { 3, 4, 5, 6, 7, 8, 9, 16, 27, 64, 100, 243, 1000, 4096 };

	(void)state;
	for (size_t k = 0; k < sizeof(sizes) / sizeof(sizes[0]); k++) {
		int size = sizes[k], step = size > 100 ? 37 : 1;
		bool *bad = calloc((size_t)size, sizeof(*bad));
		for (int which = 0; which < size; which += step) {
			int found;
			bad[which] = true;
			int rounds = rounds_to_find(size, bad, &found);
			bad[which] = false;
			assert_int_equal(found, 1);
			assert_true(rounds <= most_rounds(size));
		}
		free(bad);
	}
}

static void test_several(void **state)
{
	unsigned dice = 12345;

	(void)state;
	for (int round = 0; round < 500; round++) {
		bool bad[60] = { false };
		int count = 0, found;
		for (int i = 0; i < 4; i++) {
			dice = dice * 1103515245u + 12345u;
			bool *one = &bad[(dice >> 8) % 60];
			count += !*one;
			*one = true;
		}
		rounds_to_find(60, bad, &found);
		assert_int_equal(found, count);
	}
}

static void test_what_cannot_be_known(void **state)
{
	bool none[9] = { false }, both[2] = { true, true }, all[9];
	int found;

	(void)state;
	memset(all, true, sizeof(all));
	rounds_to_find(9, none, &found); /* only all of them together fail */
	assert_int_equal(found, 0);
	rounds_to_find(2, both, &found);
	assert_int_equal(found, 0);
	rounds_to_find(9, all, &found); /* nobody is known to be good */
	assert_int_equal(found, 0);
}

/* --- beside the others ------------------------------------------------------------------------ */

static const struct check_limits limits = { .slow_share = 0.5, .clock_s = 1 };

static struct check_result usual(int rank)
{
	struct check_result r = { .rank = rank,
				  .speed = { 100, 20, 1, 5 },
				  .nic = { { "eth0", true, 25000, 0 },
					   { "mlx5_0/1", true, 400000, 0 } },
				  .nics = 2 };

	snprintf(r.host, sizeof(r.host), "n%d", rank);
	return r;
}

static void test_judged(void **state)
{
	static const struct {
		const char *fault; /* NULL: none */
		int which;
		double speed, clock_s;
		bool is_down, lacks;
		int64_t mbps, errors;
	} cases[] = {
		{ NULL, CHECK_PRODUCT, 51, 0.9, false, false, 400000, 0 },
		{ "slow product: 49 GFLOP/s", CHECK_PRODUCT, 49, 0, false, false, 400000, 0 },
		{ "slow memory", CHECK_MEMORY, 9, 0, false, false, 400000, 0 },
		{ NULL, CHECK_DISK, 0.2, 0, false, false, 400000, 0 },
		{ "slow disk", CHECK_DISK, 0.04, 0, false, false, 400000, 0 },
		{ "slow link", CHECK_LINK, 1, 0, false, false, 400000, 0 },
		{ "clock: -3.0 s", CHECK_PRODUCT, 100, -3, false, false, 400000, 0 },
		{ "network: mlx5_0/1 is down", CHECK_PRODUCT, 100, 0, true, false, 400000, 0 },
		{ "network: mlx5_0/1 is not there", CHECK_PRODUCT, 100, 0, false, true, 0, 0 },
		{ "network: mlx5_0/1 runs at 200000 Mb/s, where others have 400000", CHECK_PRODUCT,
		  100, 0, false, false, 200000, 0 },
		{ "network: mlx5_0/1 counted 7 errors", CHECK_PRODUCT, 100, 0, false, false, 400000,
		  7 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct check_result all[5];
		for (int r = 0; r < 5; r++)
			all[r] = usual(r);
		struct check_result *odd = &all[3];
		odd->speed[cases[i].which] = cases[i].speed;
		odd->clock_s = cases[i].clock_s;
		odd->nic[1].is_up = !cases[i].is_down;
		odd->nic[1].mbps = cases[i].mbps;
		odd->nic[1].errors = cases[i].errors;
		odd->nics = cases[i].lacks ? 1 : 2;
		assert_int_equal(check_judge(all, 5, &limits), cases[i].fault != NULL);
		if (cases[i].fault)
			assert_memory_equal(odd->fault, cases[i].fault, strlen(cases[i].fault));
		for (int r = 0; r < 5; r++)
			assert_true(r == 3 || all[r].fault[0] == '\0');
	}
}

/* An interface that most do not use is nobody's fault; what was found before stays. */
static void test_left_alone(void **state)
{
	struct check_result all[3] = { usual(0), usual(1), usual(2) };

	(void)state;
	all[0].nic[1].is_up = all[1].nic[1].is_up = false;
	snprintf(all[2].fault, sizeof(all[2].fault), "disk: full");
	all[2].speed[CHECK_PRODUCT] = 1;
	assert_int_equal(check_judge(all, 3, &limits), 1);
	assert_string_equal(all[2].fault, "disk: full");
}

/* Clocks are told beside that of rank 0, which may be the one that is wrong. */
static void test_first_clock(void **state)
{
	struct check_result all[3] = { usual(0), usual(1), usual(2) };

	(void)state;
	all[1].clock_s = 5.01;
	all[2].clock_s = 4.99;
	assert_int_equal(check_judge(all, 3, &limits), 1);
	assert_string_equal(all[0].fault, "clock: -5.0 s beside the others");
}

static void test_bound(void **state)
{
	struct check_result one = usual(0);
	struct check_limits least = { .clock_s = 1, .least = { 200 } };

	(void)state;
	assert_int_equal(check_judge(&one, 1, &least), 1);
	assert_string_equal(one.fault, "slow product: 100 GFLOP/s, and it is to make 200");
}

/* --- files ------------------------------------------------------------------------------------ */

static void test_reports(void **state)
{
	struct check_limits told = { .slow_share = 0.25, .clock_s = 2, .least = { 0, 7 } }, read;
	struct err err = { 0 };
	size_t count;

	(void)state;
	assert_null(check_reports_read("none", &count, &read));
	assert_int_equal(count, 0);
	for (int r = 12; r >= 0; r -= 4) {
		struct check_result one = usual(r);
		one.clock_s = -0.5;
		one.nic[0].mbps = -1;
		snprintf(one.fault, sizeof(one.fault), r == 8 ? "memory: \"bad\"" : "");
		assert_int_equal(check_report_write(".", &one, &told, &err), 0);
	}
	struct check_result *all = check_reports_read(".", &count, &read);
	assert_int_equal(count, 4);
	assert_int_equal(all[2].rank, 8);
	assert_string_equal(all[2].host, "n8");
	assert_string_equal(all[2].fault, "memory: \"bad\"");
	assert_string_equal(all[1].nic[1].name, "mlx5_0/1");
	assert_true(all[1].nics == 2 && all[1].nic[1].is_up && all[1].nic[0].mbps == -1);
	assert_true(all[3].speed[CHECK_LINK] == 5 && all[3].clock_s == -0.5);
	assert_true(read.slow_share == 0.25 && read.clock_s == 2 && read.least[1] == 7);
	free(all);
}

/* --- what the machine tells ------------------------------------------------------------------- */

static void put(const char *path, const char *text)
{
	char *folder = strdup(path);

	*strrchr(folder, '/') = '\0';
	assert_int_equal(folder_make(folder, 0755, NULL), 0);
	write_text(path, text);
	free(folder);
}

static void test_links(void **state)
{
	struct check_result r = { 0 };

	(void)state;
	put("sys/class/net/eth0/device/vendor", "0x15b3\n");
	put("sys/class/net/eth0/operstate", "up\n");
	put("sys/class/net/eth0/speed", "25000\n");
	put("sys/class/net/eth0/statistics/rx_errors", "5\n");
	put("sys/class/net/eth1/device/vendor", "0x15b3\n");
	put("sys/class/net/eth1/operstate", "down\n");
	put("sys/class/net/eth1/speed", "-1\n");
	put("sys/class/net/lo/operstate", "unknown\n");
	put("sys/class/infiniband/mlx5_0/ports/1/state", "4: ACTIVE\n");
	put("sys/class/infiniband/mlx5_0/ports/1/rate", "400 Gb/sec (4X NDR)\n");
	put("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "3\n");
	put("sys/class/infiniband/mlx5_0/ports/1/counters/link_downed", "1\n");
	put("sys/class/infiniband/mlx5_0/ports/2/state", "1: DOWN\n");
	const struct health_options how = { .sys = "sys" };
	struct health *health = health_begin(&how);
	put("sys/class/infiniband/mlx5_0/ports/1/counters/symbol_error", "9\n");
	health_end(health, &r);
	assert_int_equal(r.nics, 4); /* lo has no hardware */
	assert_string_equal(r.nic[0].name, "eth0");
	assert_true(r.nic[0].is_up && r.nic[0].mbps == 25000 && r.nic[0].errors == 0);
	assert_true(!r.nic[1].is_up && r.nic[1].mbps == -1);
	assert_string_equal(r.nic[2].name, "mlx5_0/1");
	assert_true(r.nic[2].is_up && r.nic[2].mbps == 400000 && r.nic[2].errors == 6);
	assert_true(!r.nic[3].is_up);
	assert_int_equal(check_judge(&r, 1, &limits), 1);
	assert_string_equal(r.fault,
			    "network: mlx5_0/1 counted 6 errors while the node was checked");
}

/* --- XIDs of before --------------------------------------------------------------------------- */

static void test_past_xids(void **state)
{
	struct past_xids x;

	(void)state;
	/* as the kernel gives its log */
	write_text(
		"kmsg",
		"6,1,1000000,-;Linux version 6.1\n"
		"4,77,2000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=9, GPU has fallen off the bus.\n"
		" SUBSYSTEM=pci\n"
		"4,78,3000000,-;NVRM: Xid (0000:5e:00): 31, pid=9, MMU Fault\n"
		"4,79,4000000,-;NVRM: Xid (PCI:0000:3b:00): 79, pid=9, again\n"
		"4,80,5000000,-;NVRM: Xid without more\n");
	past_xids_read(&x, "kmsg");
	assert_int_equal(x.count, 2);
	assert_int_equal(x.xid[0].xid, 31);
	assert_string_equal(x.xid[0].pci, "0000:5e:00");
	assert_int_equal(x.xid[1].xid, 79);
	assert_string_equal(x.xid[1].pci, "0000:3b:00");
	assert_true(fabs(x.xid[0].age_s - x.xid[1].age_s - 1) < 1e-3);
	assert_true(fabs(x.reach_s - x.xid[1].age_s - 3) < 1e-3);
	assert_string_equal(x.source, "kmsg");
	/* journalctl's, syslog's, and one without times */
	write_text(
		"log",
		"[    2.500000] n1 kernel: NVRM: Xid (PCI:0000:01:00): 48, pid=1\n"
		"Nov  3 10:00:00 n1 kernel: [    4.000000] NVRM: Xid (PCI:0000:02:00): 63, pid=1\n"
		"Nov  3 10:00:00 n1 kernel: NVRM: Xid (PCI:0000:03:00): 95, pid=1\n");
	past_xids_read(&x, "log");
	assert_int_equal(x.count, 3);
	assert_true(fabs(x.xid[0].age_s - x.xid[1].age_s - 1.5) < 1e-3);
	assert_int_equal(x.xid[2].xid, 95);
	assert_true(x.xid[2].age_s == -1);
	/* of several starts of the machine: what is of earlier ones is left out, also where only
	 * its time says so */
	static const char *const starts[] = {
		"[    0.000000] n1 kernel: Linux version 6.1\n",
		"Nov  3 10:00:00 n1 kernel: Linux version 5.14\n",
		"6,1,0,-;Linux version 6.1\n",
		"[Tue Nov  3 10:00:00 2026] Linux version 6.1\n",
	};
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		char text[512];
		snprintf(text, sizeof(text),
			 "[    1.000000] n1 kernel: NVRM: Xid (PCI:0000:01:00): 48, pid=1\n"
			 "%s[99999999999.5] n1 kernel: NVRM: Xid (PCI:0000:02:00): 79, pid=1\n"
			 "[    1.500000] n1 kernel: NVRM: Xid (PCI:0000:03:00): 95, pid=1\n",
			 starts[i]);
		write_text("starts", text);
		past_xids_read(&x, "starts");
		assert_int_equal(x.count, 1);
		assert_int_equal(x.xid[0].xid, 95);
	}
	/* more than are kept: the newest stay */
	FILE *to = fopen("many", "we");
	for (int i = 0; i < 100; i++)
		fprintf(to, "4,%d,%d,-;NVRM: Xid (PCI:0000:%02x:00): 79, x\n", i, i, (unsigned)i);
	fclose(to);
	past_xids_read(&x, "many");
	assert_int_equal(x.count, PAST_XIDS_MAX);
	assert_string_equal(x.xid[PAST_XIDS_MAX - 1].pci, "0000:63:00");
	assert_string_equal(x.xid[0].pci, "0000:44:00");
	past_xids_read(&x, "none");
	assert_string_equal(x.source, "");
	assert_string_equal(x.why, "none: No such file or directory");
}

/* A disk that takes a part of what it is given says so by the next call only. */
static void test_full_disk(void **state)
{
	const struct check_options what = { .folder = ".", .disk_mib = 3 };
	struct rlimit before, limit = { (3 << 20) / 2, (3 << 20) / 2 };
	struct check_result result = { 0 };

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	limit.rlim_max = before.rlim_max;
	void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
	errno = 0;
	check_disk(&what, &result);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	signal(SIGXFSZ, handler);
	assert_contains(result.fault, "No space left on device");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_one_among_many),
		cmocka_unit_test(test_several),
		cmocka_unit_test(test_what_cannot_be_known),
		cmocka_unit_test(test_judged),
		cmocka_unit_test(test_left_alone),
		cmocka_unit_test(test_first_clock),
		cmocka_unit_test(test_bound),
		cmocka_unit_test(test_reports),
		cmocka_unit_test(test_full_disk),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_past_xids),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
