/* SPDX-License-Identifier: MIT */
/* clock.h - the two clocks. Wall time is what people read; only monotonic time measures waits. */
#ifndef COMMON_BASE_CLOCK_H
#define COMMON_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>

int64_t clock_wall_ms(void); /* since 1970-01-01 UTC */
int64_t clock_mono_ms(void); /* since some fixed point; never jumps */
double clock_mono_us(void);  /* the same clock, for what takes less than a millisecond */

/* When what is looked at so often is due again: at a multiple of every_ms (> 0), so that all that
 * is looked at as often is due at once, and wakes its process once. */
static inline int64_t clock_next_round(int64_t now_ms, int64_t every_ms)
{
	return now_ms - now_ms % every_ms + every_ms;
}

/* "2026-11-20 14:03:22" local time, or "-" for wall_ms <= 0. */
enum { CLOCK_TEXT_MAX = 32 };
const char *clock_text(int64_t wall_ms, char out[CLOCK_TEXT_MAX]);
/* "2026-11-20 14:03:22 +0100": the same with its zone, for who may read it in another one. */
const char *clock_text_zoned(int64_t wall_ms, char out[CLOCK_TEXT_MAX]);
/* "1d02h", "3h12m", "4m05s", "12s"; "-" when negative. */
const char *duration_text(int64_t ms, char out[CLOCK_TEXT_MAX]);

/* Local time is that of this zone from now on, as TZ has it; NULL: the machine's. Not while other
 * threads look at either. */
void clock_set_zone(const char *tz);

/* Weeks begin on Monday's midnight, here. That of the week in which wall_ms lies (weeks_ago 0), or
 * of one before. */
int64_t clock_monday(int64_t wall_ms, int weeks_ago);
/* "2026-W47": that week, as ISO 8601 counts. */
const char *clock_week(int64_t wall_ms, char out[CLOCK_TEXT_MAX]);

#endif
