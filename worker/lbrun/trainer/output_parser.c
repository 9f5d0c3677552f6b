/* SPDX-License-Identifier: MIT */
/* output_parser.c - cuts output into lines, and holds each against the rows of steps and
 * complaints. */
#include "worker/lbrun/trainer/output_parser.h"

#include <stdio.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/regexp.h"
#include "common/base/text.h"
#include "worker/lbrun/trainer/escapes.h"
#include "worker/lbrun/steps/steps.h"

static const struct prefix nobodys = { .rank = -1 };

/* tqdm's, with an end that is known or without */
static const char bar[] =
	"^[^|\\[]*?(?:\\d{1,3}%\\|[^|]*\\|[^\\[]*|\\d+it )\\[\\d+:\\d\\d[^\\]]*\\] ?";

static int read_progress(struct output_parser *p, const char *text, struct err *err)
{
	if (!text || strcmp(text, PROGRESS_NONE) == 0)
		return 0;
	if (strcmp(text, PROGRESS_AUTO) == 0) {
		p->steps = steps_create();
		return 0;
	}
	p->progress = regexp_create(text, false, err);
	return p->progress ? 0 : err_wrap(err, "watch.progress_regex");
}

int output_parser_init(struct output_parser *p, const struct attempt_watch *watch,
		       bool has_shepherds, int64_t most_ranks, struct err *err)
{
	p->prefixes = prefixes_create(has_shepherds, most_ranks);
	p->bar = regexp_built_in(bar);
	output_parser_reset(p);
	if (read_progress(p, watch->progress_regex, err) < 0)
		return -1;
	for (char **text = watch->node_errors; text && *text; text++) {
		if (p->error_count == OUTPUT_PARSER_ERRORS_MAX)
			return err_set(err, ERR_USAGE, "watch.node_error_regex: more than %d",
				       OUTPUT_PARSER_ERRORS_MAX);
		p->errors[p->error_count] = regexp_create(*text, false, err);
		if (!p->errors[p->error_count])
			return err_wrap(err, "watch.node_error_regex");
		p->error_count++;
	}
	return 0;
}

void output_parser_fini(struct output_parser *p)
{
	regexp_destroy(p->progress);
	while (p->error_count > 0)
		regexp_destroy(p->errors[--p->error_count]);
	p->progress = NULL;
	steps_destroy(p->steps);
	p->steps = NULL;
	prefixes_destroy(p->prefixes);
	p->prefixes = NULL;
	regexp_destroy(p->bar);
	p->bar = NULL;
}

void output_parser_reset(struct output_parser *p)
{
	for (int i = 0; i < OUTPUT_STREAMS; i++) {
		p->lines[i].prefix = nobodys;
		p->lines[i].len = 0;
		p->lines[i].is_too_long = false;
	}
	if (p->steps)
		steps_reset(p->steps);
}

/* --- a step ----------------------------------------------------------------------------------- */

static void add_field(void *arg, const char *name, const char *value, size_t len)
{
	json_t *line = arg;
	double number;

	if (!text_number(value, len, &number) || strcmp(name, "type") == 0)
		return;
	if (strcmp(name, "step") != 0 && strcmp(name, "rank") != 0)
		js_set_real(line, name, number); /* null when it is not finite */
	else if (number >= 0 && number < 1e15)
		js_set_int(line, name, (int64_t)number);
}

/* A new reference; NULL where the line tells no step. */
static json_t *step_of(struct output_parser *p, const char *text, size_t len)
{
	json_t *line;

	if (p->steps)
		return steps_read(p->steps, text, len);
	if (!p->progress || !regexp_match(p->progress, text, len))
		return NULL;
	line = json_object();
	js_set_str(line, "type", "step");
	regexp_each_group(p->progress, text, add_field, line);
	if (json_object_get(line, "step"))
		return line;
	json_decref(line);
	return NULL;
}

static void tell_step(struct output_parser *p, json_t *step, int64_t rank)
{
	if (step)
		p->on_step(p->arg, step, js_int(step, "rank", rank));
	json_decref(step);
}

/* `line`: with its prefix. */
static void handle_step(struct output_parser *p, const struct prefix *prefix, const char *text,
			const char *line)
{
	int64_t rank = prefix->rank;
	json_t *step;

	if (p->is_told && p->is_told(p->arg))
		return;
	step = step_of(p, text, strlen(text));
	/* "12: loss 3.4" is of rank 12 or of step 12 */
	if (!step && prefix->is_guess && !(p->steps && steps_wait(p->steps))) {
		step = step_of(p, line, strlen(line));
		rank = -1;
	}
	tell_step(p, step, rank);
}

/* --- lines ------------------------------------------------------------------------------------ */

static void handle_errors(struct output_parser *p, const char *node, const char *text, size_t len)
{
	for (int i = 0; i < p->error_count; i++) {
		if (regexp_match(p->errors[i], text, len)) {
			p->on_error(p->arg, node, text);
			return;
		}
	}
}

static void handle_rank_end(struct output_parser *p, const struct prefix *prefix, const char *text)
{
	int signo = 0, status = 0;

	/* NOLINTBEGIN(cert-err34-c): a number that is out of range is no harm here */
	if (p->on_rank_end && prefix->is_shepherds &&
	    (sscanf(text, "lbrun: " OUTPUT_PARSER_RANK_KILLED, &signo) == 1 ||
	     sscanf(text, "lbrun: " OUTPUT_PARSER_RANK_FAILED, &status) == 1))
		p->on_rank_end(p->arg, prefix->node, prefix->rank, signo, status,
			       strstr(text, OUTPUT_PARSER_RANK_OOM) != NULL);
	/* NOLINTEND(cert-err34-c) */
}

static void handle_no_cache(struct output_parser *p, const struct prefix *prefix, const char *text,
			    size_t len)
{
	static const char begin[] = "lbrun: cache.folder: ", end[] = OUTPUT_PARSER_NO_CACHE;
	size_t from = strlen("lbrun: "), end_len = sizeof(end) - 1;
	char why[200];

	if (!p->on_no_cache || !prefix->is_shepherds || len < sizeof(begin) + end_len ||
	    strncmp(text, begin, sizeof(begin) - 1) != 0 || strcmp(text + len - end_len, end) != 0)
		return;
	snprintf(why, sizeof(why), "%.*s", (int)(len - end_len - from), text + from);
	p->on_no_cache(p->arg, prefix->node, why);
}

static bool is_known(const struct prefix *prefix)
{
	return prefix->node[0] || prefix->rank >= 0;
}

/* Only the first time that a bar is drawn its line has a prefix. */
static char *skip_prefix(struct output_parser *p, int stream, char *line, struct prefix *prefix)
{
	char *text = prefixes_skip(p->prefixes, line, prefix);

	if (!is_known(prefix)) {
		*prefix = p->lines[stream].prefix;
		prefix->is_guess = false;
	}
	p->lines[stream].prefix = *prefix;
	return text;
}

/* What a program that dies, or its launcher, says behind the bar that it had drawn; the text itself
 * where there is no bar, or nothing behind it. */
static char *skip_bars(struct output_parser *p, char *text, struct prefix *prefix)
{
	struct prefix own;
	char *behind = text;

	while (strchr(behind, '[') && regexp_match(p->bar, behind, strlen(behind)))
		behind += regexp_match_end(p->bar);
	if (behind == text || !*behind)
		return text;
	behind = prefixes_skip(p->prefixes, behind, &own);
	if (is_known(&own) || strncmp(behind, "srun: ", 6) == 0)
		*prefix = own;
	return behind;
}

static void handle_line(struct output_parser *p, int stream, char *line, size_t len)
{
	struct prefix prefix;
	char *text;

	line[len] = '\0';
	line[escapes_strip(line, len)] = '\0';
	text = skip_prefix(p, stream, line, &prefix);
	handle_step(p, &prefix, text, line);
	text = skip_bars(p, text, &prefix);
	len = strlen(text);
	handle_errors(p, prefix.node, text, len);
	handle_rank_end(p, &prefix, text);
	handle_no_cache(p, &prefix, text, len);
	if (p->on_line)
		p->on_line(p->arg, stream, prefix.node, prefix.rank, text, len);
}

static size_t line_len(const char *data, size_t len)
{
	const char *newline = memchr(data, '\n', len);
	size_t n = newline ? (size_t)(newline - data) : len;
	const char *redraw = memchr(data, '\r', n);

	return redraw ? (size_t)(redraw - data) : n;
}

static void add_part(struct output_parser *p, int stream, const char *data, size_t len)
{
	size_t room = OUTPUT_PARSER_LINE_BYTES - 1 - p->lines[stream].len;

	if (len > room)
		p->lines[stream].is_too_long = true;
	else
		memcpy(p->lines[stream].data + p->lines[stream].len, data, len);
	p->lines[stream].len += len > room ? 0 : len;
}

static void end_line(struct output_parser *p, int stream, char end)
{
	if (p->lines[stream].len > 0 && !p->lines[stream].is_too_long)
		handle_line(p, stream, p->lines[stream].data, p->lines[stream].len);
	p->lines[stream].len = 0;
	p->lines[stream].is_too_long = false;
	if (end == '\n')
		p->lines[stream].prefix = nobodys;
}

void output_parser_bytes(struct output_parser *p, int stream, const char *data, size_t len)
{
	while (len > 0) {
		size_t part = line_len(data, len);

		add_part(p, stream, data, part);
		if (part < len)
			end_line(p, stream, data[part]);
		part += part < len;
		data += part;
		len -= part;
	}
}

void output_parser_end(struct output_parser *p)
{
	for (int i = 0; i < OUTPUT_STREAMS; i++)
		end_line(p, i, '\n');
	if (p->steps)
		tell_step(p, steps_end(p->steps), -1);
}
