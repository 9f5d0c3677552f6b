/* SPDX-License-Identifier: MIT */
/* fuzz_cron.c - a crontab: every line is an entry, a setting, or told as wrong; every entry has a
 * next time, or none. */
#include "tests/fuzz/fuzz.h"

#include "daemon/calendar/crontab.h"

static void on_bad(void *arg, const struct err *why)
{
	(void)arg;
	fuzz_check(strncmp(why->text, "crontab:", 8) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct cron_settings defaults = { CATCH_UP_ONE, OVERLAP_SKIP, 0, 0 };
	struct cron_entries entries = { 0 };
	struct zone utc = { 0 };
	char *text = fuzz_text(data, size);

	crontab_read(text, "crontab", "UTC", &defaults, &entries, on_bad, NULL);
	for (size_t i = 0; i < entries.count; i++) {
		int64_t next = cron_expr_next(&entries.items[i].expr, &utc, 1800000000,
					      1800000000 + 86400);

		fuzz_check(next == -1 || (next > 1800000000 && next % 60 == 0));
		fuzz_check(next == -1 || cron_expr_due(&entries.items[i].expr, &utc, next));
	}
	cron_entries_clear(&entries);
	free(text);
	return 0;
}
