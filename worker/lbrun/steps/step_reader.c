/* SPDX-License-Identifier: MIT */
/* step_reader.c - lines held against the tables. */
#include "worker/lbrun/steps/step_reader.h"

#include <ctype.h>
#include <math.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/regexp.h"
#include "common/base/text.h"

enum { HEAD_BYTES = 80 }; /* of what stands in front of a count */

void step_reader_init(struct step_reader *r)
{
	for (size_t i = 0; i < step_row_count; i++)
		r->rows[i] = regexp_built_in(step_rows[i].pattern);
	for (size_t i = 0; i < step_field_count; i++)
		r->fields[i] = regexp_built_in(step_fields[i].pattern);
	for (size_t i = 0; i < STEP_WORD_COUNT; i++)
		r->words[i] = regexp_built_in(step_words[i]);
}

void step_reader_fini(struct step_reader *r)
{
	for (size_t i = 0; i < step_row_count; i++)
		regexp_destroy(r->rows[i]);
	for (size_t i = 0; i < step_field_count; i++)
		regexp_destroy(r->fields[i]);
	for (size_t i = 0; i < STEP_WORD_COUNT; i++)
		regexp_destroy(r->words[i]);
}

size_t step_reader_row(const struct step_reader *r, const char *line, size_t len)
{
	size_t i = 0;

	if (!strpbrk(line, "0123456789") && !strcasestr(line, "nan") && !strcasestr(line, "inf"))
		return step_row_count;
	while (i < step_row_count &&
	       !(strcasestr(line, step_rows[i].needle) && regexp_match(r->rows[i], line, len)))
		i++;
	return i;
}

/* Whatever stands between thousands. */
static bool read_number(const char *text, size_t len, double *out)
{
	char digits[32];
	size_t n = 0;

	for (size_t i = 0; i < len && n < sizeof(digits); i++)
		if (isdigit((unsigned char)text[i]) || text[i] == '.')
			digits[n++] = text[i];
	return text_number(digits, n, out);
}

static void take_group(void *arg, const char *name, const char *text, size_t len)
{
	struct step_match *m = arg;
	const struct {
		const char *name;
		int64_t *to;
	} numbers[] = {
		{ "step", &m->step },   { "target_step", &m->target_step },
		{ "epoch", &m->epoch }, { "epochs", &m->epochs },
		{ "batch", &m->batch }, { "batches", &m->batches },
	};
	char last = (char)(len > 0 ? toupper((unsigned char)text[len - 1]) : '0');
	double number, scale = last == 'K' ? 1e3 : last == 'M' ? 1e6 : 1;

	if (strcmp(name, "label") == 0) {
		m->label = text;
		m->label_len = len;
		return;
	}
	for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
		if (strcmp(name, numbers[i].name) == 0 && read_number(text, len, &number) &&
		    number * scale < 1e15)
			*numbers[i].to = llround(number * scale);
	}
	if (!m->count || text < m->count)
		m->count = text;
}

/* Do such words stand in front of the count? */
static bool is_behind(struct regexp *words, const char *line, const struct step_match *m)
{
	size_t len = m->count ? (size_t)(m->count - line) : 0;
	size_t shown = len < HEAD_BYTES ? len : HEAD_BYTES;

	return len > 0 && regexp_match(words, line + len - shown, shown);
}

static enum quality best_of(const struct step_reader *r, const char *line, size_t len,
			    const struct step_match *m)
{
	if (is_behind(r->words[STEP_WORD_INNER], line, m))
		return QUALITY_PART;
	if (is_behind(r->words[STEP_WORD_OTHER], line, m) ||
	    regexp_match(r->words[STEP_WORD_OTHER_LINE], line, len))
		return QUALITY_DOUBT;
	return QUALITY_LOSS;
}

struct step_match step_reader_match(const struct step_reader *r, size_t row, const char *line)
{
	struct step_match m = {
		.step = -1, .target_step = -1, .epoch = -1, .epochs = -1, .batch = -1, .batches = -1
	};

	regexp_each_group(r->rows[row], line, take_group, &m);
	return m;
}

/* By its label, or as it has a loss. */
static bool is_training_bar(const struct step_reader *r, const char *label,
			    const struct step_match *m)
{
	return (m->has_loss || regexp_match(r->words[STEP_WORD_BAR], label, m->label_len)) &&
	       !regexp_match(r->words[STEP_WORD_OTHER_BAR], label, m->label_len);
}

void step_reader_weigh(const struct step_reader *r, size_t row, const char *line, size_t len,
		       struct step_match *m)
{
	m->has_loss = regexp_match(r->words[STEP_WORD_LOSS], line, len);
	m->is_training_bar = step_rows[row].kind == STEP_BAR &&
			     is_training_bar(r, m->label ? m->label : "", m);
	m->best = best_of(r, line, len, m);
}

struct value {
	double number;
	bool is_there;
};

static void take_value(void *arg, const char *name, const char *text, size_t len)
{
	struct value *value = arg;

	(void)name;
	value->is_there = text_number(text, len, &value->number);
}

json_t *step_reader_fields(const struct step_reader *r, const char *line, size_t len)
{
	json_t *out = json_object();

	for (size_t i = 0; i < step_field_count; i++) {
		const struct step_field *field = &step_fields[i];
		struct value value = { 0 };

		if (json_object_get(out, field->name) || !strcasestr(line, field->needle) ||
		    !regexp_match(r->fields[i], line, len))
			continue;
		regexp_each_group(r->fields[i], line, take_value, &value);
		if (value.is_there && !(value.number < field->least))
			js_set_real(out, field->name, value.number * field->scale);
	}
	return out;
}
