/* SPDX-License-Identifier: MIT */
/* text.c - cleans, colours and measures what a terminal shows.
 *
 * Run names, reasons, log lines and node names come from other people's programs: all of it passes
 * through clean() before a terminal sees it. */
#include "ctl/base/text.h"

#include <langinfo.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <wchar.h>

#include "common/base/mem.h"
#include "common/run/run_state.h"
#include "common/base/text.h"

int terminal_width(int fd)
{
	struct winsize size = { 0 };
	const char *columns = getenv("COLUMNS");
	long n = 0;

	if (ioctl(fd, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	if (columns)
		n = strtol(columns, NULL, 10);
	return n > 0 && n < 10000 ? (int)n : 80;
}

void style_of(FILE *stream, bool no_color, struct style *out)
{
	const char *term = getenv("TERM");
	const char *asked = getenv("NO_COLOR");
	bool dumb = !term || !term[0] || strcmp(term, "dumb") == 0;

	*out = (struct style){ 0 };
	out->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
	if (!isatty(fileno(stream)))
		return;
	out->width = terminal_width(fileno(stream));
	out->terminal = !dumb;
	out->color = !dumb && !no_color && !(asked && asked[0]);
}

/* Bytes of the escape sequence at text, which begins with ESC: CSI up to its final byte, OSC and
 * its like up to BEL or ST, else ESC and one character. */
static size_t escape_len(const char *text)
{
	size_t i = 2;

	if (text[1] == '[') {
		while (text[i] >= 0x20 && text[i] < 0x40)
			i++;
		return text[i] >= 0x40 && text[i] < 0x7f ? i + 1 : i;
	}
	if (text[1] && strchr("]PX^_", text[1])) {
		while (text[i] && text[i] != '\a' && text[i] != '\n' &&
		       !(text[i] == '\x1b' && text[i + 1] == '\\'))
			i++;
		if (text[i] == '\a')
			return i + 1;
		return text[i] == '\x1b' ? i + 2 : i;
	}
	return text[1] >= 0x20 && text[1] < 0x7f ? 2 : 1;
}

/* Well-formed UTF-8 of `len` bytes as a code point. */
static unsigned decode(const char *text, size_t len)
{
	unsigned point = (unsigned char)text[0];

	if (len > 1)
		point &= 0xffu >> (len + 1);
	for (size_t i = 1; i < len; i++)
		point = point << 6 | ((unsigned char)text[i] & 0x3f);
	return point;
}

/* Controls, and the marks that turn the direction of what follows or break the line. */
static bool is_harmful(unsigned point)
{
	return point < 0x20 || (point >= 0x7f && point < 0xa0) || point == 0x61c ||
	       (point >= 0x200b && point <= 0x200f) || (point >= 0x2028 && point <= 0x202e) ||
	       (point >= 0x2060 && point <= 0x206f) || point == 0xfeff;
}

static enum text_fate harmless(const char *at, size_t *len, unsigned how)
{
	if (at[0] == '\x1b') {
		*len = escape_len(at);
		return TEXT_DROP;
	}
	if (at[0] == '\t' && (how & CLEAN_KEEP_TABS))
		return TEXT_KEEP;
	return is_harmful(decode(at, *len)) || (*len > 1 && (how & CLEAN_ASCII)) ? TEXT_MASK
										 : TEXT_KEEP;
}

void clean(char *text, unsigned how)
{
	text_filter(text, harmless, how);
}

char *clean_copy(const char *text, const struct style *style)
{
	char *copy = xstrdup(text && text[0] ? text : "-");

	/* A file or a pipe takes UTF-8 whatever the locale says; a terminal may not. */
	clean(copy, style->width > 0 && !style->utf8 ? CLEAN_ASCII : CLEAN_LINE);
	return copy;
}

void print_lines(const char *indent, const char *text, const struct style *style)
{
	unsigned how = style->width > 0 && !style->utf8 ? CLEAN_ASCII : CLEAN_LINE;

	while (*text) {
		size_t len = strcspn(text, "\n");
		char *line = xstrndup(text, len);

		clean(line, how | CLEAN_KEEP_TABS);
		printf("%s%s\n", indent, line);
		free(line);
		text += len + (text[len] == '\n');
	}
}

/* wcwidth knows the locale's characters only; what it does not know counts one. */
static int point_columns(unsigned point)
{
	int n = point < 0x80 ? 1 : wcwidth((wchar_t)point);

	return n < 0 ? 1 : n;
}

size_t bytes_within(const char *text, int columns)
{
	size_t len = strlen(text);
	size_t at = 0;

	while (at < len) {
		size_t step = text_utf8_step(text + at, len - at);

		columns -= step ? point_columns(decode(text + at, step)) : 1;
		if (columns < 0)
			break;
		at += step ? step : 1;
	}
	return at;
}

int columns_of(const char *text)
{
	size_t len = strlen(text);
	int columns = 0;

	for (size_t at = 0, step; at < len; at += step ? step : 1) {
		step = text_utf8_step(text + at, len - at);
		columns += step ? point_columns(decode(text + at, step)) : 1;
	}
	return columns;
}

const char *color_code(const struct style *style, enum color color)
{
	static const char *const codes[COLOR_COUNT] = {
		[COLOR_NONE] = "\x1b[0m", [COLOR_GOOD] = "\x1b[32m", [COLOR_WAIT] = "\x1b[33m",
		[COLOR_BAD] = "\x1b[31m", [COLOR_DIM] = "\x1b[2m",   [COLOR_BOLD] = "\x1b[1m",
	};

	return style->color ? codes[color] : "";
}

enum color state_color(const char *run_state)
{
	static const enum color colors[RUN_STATE_COUNT + 1] = {
		[RUN_CREATED] = COLOR_WAIT,  [RUN_SUBMITTING] = COLOR_WAIT,
		[RUN_QUEUED] = COLOR_WAIT,   [RUN_RUNNING] = COLOR_GOOD,
		[RUN_STOPPING] = COLOR_WAIT, [RUN_BACKOFF] = COLOR_WAIT,
		[RUN_HELD] = COLOR_WAIT,     [RUN_COMPLETED] = COLOR_BOLD,
		[RUN_FAILED] = COLOR_BAD,    [RUN_KILLED] = COLOR_BAD,
	};

	return colors[run_state_from_name(run_state)];
}

const char *short_number(double value, char out[NUMBER_TEXT_MAX])
{
	static const char units[] = " kMGTP";
	double size = fabs(value);
	int unit = 0;

	if (!isfinite(value)) {
		snprintf(out, NUMBER_TEXT_MAX, "-");
		return out;
	}
	while (size >= 999.5 && unit < 5) {
		size /= 1000;
		value /= 1000;
		unit++;
	}
	snprintf(out, NUMBER_TEXT_MAX, "%.*f%.*s", size < 9.95 && (unit || size != floor(size)),
		 value, unit > 0, units + unit);
	return out;
}

const char *size_text(int64_t bytes, char out[NUMBER_TEXT_MAX])
{
	static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB", "PiB" };
	double size = (double)bytes;
	int unit = 0;

	while (size >= 999.5 && unit < 5) {
		size /= 1024;
		unit++;
	}
	if (bytes <= 0)
		snprintf(out, NUMBER_TEXT_MAX, "0");
	else
		snprintf(out, NUMBER_TEXT_MAX, "%.*f %s", unit > 0 && size < 99.95, size,
			 units[unit]);
	return out;
}

const char *loss_text(double value, char out[NUMBER_TEXT_MAX])
{
	double size = fabs(value);

	if (!isfinite(value))
		snprintf(out, NUMBER_TEXT_MAX, "-");
	else if (size != 0 && (size < 0.001 || size >= 100000))
		snprintf(out, NUMBER_TEXT_MAX, "%.3e", value);
	else
		snprintf(out, NUMBER_TEXT_MAX, "%.*f", size < 10 ? 4 : 2, value);
	return out;
}

const char *step_text(int64_t step, int64_t target, char out[2 * NUMBER_TEXT_MAX])
{
	size_t size = (size_t)2 * NUMBER_TEXT_MAX;

	if (step < 0)
		snprintf(out, size, "-");
	else if (target > 0)
		snprintf(out, size, "%lld/%lld", (long long)step, (long long)target);
	else
		snprintf(out, size, "%lld", (long long)step);
	return out;
}

char *bar(double fraction, int columns, bool utf8)
{
	static const char *const eighths[] = { "░", "▏", "▎", "▍", "▌", "▋", "▊", "▉" };
	int cells = utf8 ? columns : columns - 2;
	struct buf out;
	int parts;

	if (!(fraction > 0))
		fraction = 0;
	if (fraction > 1)
		fraction = 1;
	buf_init(&out, 64 * 1024);
	parts = cells > 0 ? (int)(fraction * cells * 8) : 0;
	if (!utf8 && cells > 0)
		buf_add(&out, "[", 1);
	for (int i = 0; i < cells; i++, parts -= 8) {
		if (utf8)
			buf_addf(&out, "%s", parts >= 8 ? "█" : eighths[parts > 0 ? parts : 0]);
		else
			buf_add(&out, parts >= 8 ? "#" : ".", 1);
	}
	if (!utf8 && cells > 0)
		buf_add(&out, "]", 1);
	return buf_take(&out);
}

/* Means of `columns` equal shares of the finite values; returns how many there are. */
static int shares(const double *values, size_t count, int columns, double *means)
{
	double *finite = xcalloc(count, sizeof(*finite));
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		if (isfinite(values[i]))
			finite[n++] = values[i];
	}
	if ((size_t)columns > n)
		columns = (int)n;
	for (int c = 0; c < columns; c++) {
		size_t from = n * (size_t)c / (size_t)columns;
		size_t to = n * ((size_t)c + 1) / (size_t)columns;

		means[c] = 0;
		for (size_t i = from; i < to; i++)
			means[c] += finite[i] / (double)(to - from);
	}
	free(finite);
	return columns;
}

char *sparkline(const double *values, size_t count, int columns, bool utf8)
{
	static const char *const blocks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	static const char *const ascii[] = { "_", ".", "-", "~", "=", "+", "*", "#" };
	double *means = xcalloc(columns > 0 ? (size_t)columns : 0, sizeof(*means));
	int n = columns > 0 ? shares(values, count, columns, means) : 0;
	double low = INFINITY, high = -INFINITY;
	struct buf out;

	for (int i = 0; i < n; i++) {
		low = fmin(low, means[i]);
		high = fmax(high, means[i]);
	}
	buf_init(&out, 64 * 1024);
	for (int i = 0; i < n; i++) {
		/* Halved, so that the range of two huge values stays finite. */
		double range = high / 2 - low / 2;
		int level = range > 0 ? (int)((means[i] / 2 - low / 2) / range * 7.999) : 0;

		buf_addf(&out, "%s", (utf8 ? blocks : ascii)[level]);
	}
	free(means);
	return buf_take(&out);
}
