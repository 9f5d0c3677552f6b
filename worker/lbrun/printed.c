/* SPDX-License-Identifier: MIT */
#include "worker/lbrun/printed.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "common/regexp.h"
#include "common/text.h"

enum { NUMBER_BYTES = 40, NODE_BYTES = 65 };

int printed_init(struct printed *p, const struct attempt_watch *watch, struct err *err)
{
	if (watch->progress_regex)
		p->progress = regexp_create(watch->progress_regex, false, err);
	if (watch->progress_regex && !p->progress)
		return err_wrap(err, "watch.progress_regex");
	for (char **text = watch->node_errors; text && *text; text++) {
		if (p->error_count == PRINTED_ERRORS_MAX)
			return err_set(err, ERR_USAGE, "watch.node_error_regex: more than %d",
				       PRINTED_ERRORS_MAX);
		p->errors[p->error_count] = regexp_create(*text, false, err);
		if (!p->errors[p->error_count])
			return err_wrap(err, "watch.node_error_regex");
		p->error_count++;
	}
	return 0;
}

void printed_fini(struct printed *p)
{
	regexp_destroy(p->progress);
	while (p->error_count > 0)
		regexp_destroy(p->errors[--p->error_count]);
	p->progress = NULL;
}

/* --- a step ----------------------------------------------------------------------------------- */

/* "1,234" and "1_234" are numbers as well. */
static bool read_number(const char *value, size_t len, double *out)
{
	char text[NUMBER_BYTES];
	size_t n = 0;
	char *end;

	for (size_t i = 0; i < len && n < sizeof(text) - 1; i++) {
		if (value[i] != ',' && value[i] != '_')
			text[n++] = value[i];
	}
	text[n] = '\0';
	errno = 0;
	*out = strtod(text, &end);
	return end != text && *end == '\0';
}

static void add_field(void *arg, const char *name, const char *value, size_t len)
{
	json_t *line = arg;
	double number;

	if (!read_number(value, len, &number) || strcmp(name, "type") == 0)
		return;
	if (strcmp(name, "step") != 0 && strcmp(name, "rank") != 0)
		js_set_real(line, name, number);	/* null when it is not finite */
	else if (number >= 0 && number < 1e15)
		js_set_int(line, name, (int64_t)number);
}

static void heed_step(struct printed *p, const char *text, size_t len, int64_t rank)
{
	json_t *line;

	if (!p->progress || !regexp_match(p->progress, text, len))
		return;
	line = json_object();
	js_set_str(line, "type", "step");
	regexp_each_group(p->progress, text, add_field, line);
	if (json_object_get(line, "step"))
		p->on_step(p->arg, line, js_int(line, "rank", rank));
	json_decref(line);
}

/* --- lines ------------------------------------------------------------------------------------ */

static void heed_errors(struct printed *p, const char *node, const char *text, size_t len)
{
	for (int i = 0; i < p->error_count; i++) {
		if (regexp_match(p->errors[i], text, len)) {
			p->on_error(p->arg, node, text);
			return;
		}
	}
}

/* "[n1:3] text", as the shepherd of a rank writes it. Returns the text. */
static const char *skip_prefix(const char *line, char node[NODE_BYTES], int64_t *rank)
{
	long long number;
	int n = 0;

	*rank = -1;
	node[0] = '\0';
	/* NOLINTNEXTLINE(cert-err34-c): a number that is out of range is no harm here */
	if (sscanf(line, "[%64[^]: ]:%lld] %n", node, &number, &n) < 2 || n == 0) {
		node[0] = '\0';
		return line;
	}
	*rank = number;
	return line + n;
}

static void heed_line(struct printed *p, char *line, size_t len)
{
	char node[NODE_BYTES];
	const char *text;
	int64_t rank;

	line[len] = '\0';
	text = skip_prefix(line, node, &rank);
	len -= (size_t)(text - line);
	heed_step(p, text, len, rank);
	heed_errors(p, node, text, len);
	if (p->on_rank_killed && node[0] &&
	    strncmp(text, PRINTED_RANK_KILLED, strlen(PRINTED_RANK_KILLED)) == 0)
		p->on_rank_killed(p->arg, node);
}

void printed_bytes(struct printed *p, int stream, const char *data, size_t len)
{
	if (!p->progress && p->error_count == 0 && !p->on_rank_killed)
		return;
	for (size_t i = 0; i < len; i++) {
		if (data[i] == '\n' || data[i] == '\r') {
			if (p->lines[stream].len > 0 && !p->lines[stream].is_too_long)
				heed_line(p, p->lines[stream].data, p->lines[stream].len);
			p->lines[stream].len = 0;
			p->lines[stream].is_too_long = false;
		} else if (p->lines[stream].len < PRINTED_LINE_BYTES - 1) {
			p->lines[stream].data[p->lines[stream].len++] = data[i];
		} else {
			p->lines[stream].is_too_long = true;
		}
	}
}
