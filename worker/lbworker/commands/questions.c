/* SPDX-License-Identifier: MIT */
/* questions.c - a line of JSON to a question: one row for each form that it may have. */
#include "worker/lbworker/commands/questions.h"

#include <inttypes.h>
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <wctype.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "worker/lbworker/unicode/unicode.h"

static const char SPACES[] = " \t\n\r\v\f";

/* --- text as hellaswag's task prepares it --------------------------------------------------- */

static void replace_all(char **text, const char *what, const char *with)
{
	char *at = strstr(*text, what);

	while (at) {
		size_t before = (size_t)(at - *text);
		char *all = xasprintf("%.*s%s%s", (int)before, *text, with, at + strlen(what));
		free(*text);
		*text = all;
		at = strstr(all + before + strlen(with), what);
	}
}

/* What stands in brackets on one line, and the brackets. */
static void drop_brackets(char *text)
{
	char *open = strchr(text, '[');

	while (open) {
		size_t inner = strcspn(open, "]\n");
		if (open[inner] == ']')
			memmove(open, open + inner + 1, strlen(open + inner + 1) + 1);
		else
			open++;
		open = strchr(open, '[');
	}
}

/* Owned. */
static char *wikihow(const char *raw)
{
	size_t from = strspn(raw, SPACES), to = strlen(raw);

	while (to > from && strchr(SPACES, raw[to - 1]))
		to--;
	char *text = xasprintf("%.*s", (int)(to - from), raw + from);
	replace_all(&text, " [title]", ". ");
	drop_brackets(text);
	replace_all(&text, "  ", " ");
	return text;
}

/* The first character in upper case, all others in lower case; owned. */
static char *capitalized(const char *text)
{
	const unsigned char *at = (const unsigned char *)text, *end = at + strlen(text);
	locale_t locale = newlocale(LC_CTYPE_MASK, "C.UTF-8", (locale_t)0);
	struct buf out;
	unsigned char put[4];
	unsigned width;

	buf_init(&out, 4 * strlen(text) + 1);
	for (bool first = true; at < end; at += width, first = false) {
		wint_t c = (wint_t)unicode_decode(at, end, &width);
		if (locale)
			c = first ? towupper_l(c, locale) : towlower_l(c, locale);
		(void)buf_add(&out, put, unicode_encode((uint32_t)c, put));
	}
	if (locale)
		freelocale(locale);
	return buf_take(&out);
}

/* --- the forms ------------------------------------------------------------------------------ */

static bool take_choices(struct question *q, const json_t *list, char *(*prepare)(const char *))
{
	size_t count = json_array_size(list);

	for (size_t i = 0; i < count && count <= QUESTION_CHOICES_MAX; i++) {
		const char *text = json_string_value(json_array_get(list, i));
		if (!text)
			return false;
		q->choice[q->choices++] = prepare(text);
	}
	return q->choices > 0;
}

/* A number, also one in quotation marks. */
static bool take_gold(struct question *q, const json_t *gold)
{
	const char *text = json_string_value(gold);
	char *end = NULL;
	int64_t number = text ? strtoll(text, &end, 10) : json_integer_value(gold);

	if ((text ? end == text || *end : !json_is_integer(gold)) || number < 0 ||
	    (uint64_t)number >= q->choices)
		return false;
	q->gold = (size_t)number;
	return true;
}

static bool read_hellaswag(struct question *q, const json_t *o)
{
	const char *label = js_str(o, "activity_label", NULL), *a = js_str(o, "ctx_a", NULL),
		   *b = js_str(o, "ctx_b", NULL);

	if (!label || !a || !b || !take_choices(q, json_object_get(o, "endings"), wikihow) ||
	    !take_gold(q, json_object_get(o, "label")))
		return false;
	char *second = capitalized(b), *raw = xasprintf("%s: %s %s", label, a, second);
	q->context = wikihow(raw);
	free(raw);
	free(second);
	return true;
}

static bool read_arc(struct question *q, const json_t *o)
{
	const json_t *choices = json_object_get(o, "choices");
	const json_t *labels = json_object_get(choices, "label");
	const char *question = js_str(o, "question", NULL), *key = js_str(o, "answerKey", NULL);
	bool found = false;

	if (!question || !key || !take_choices(q, json_object_get(choices, "text"), xstrdup))
		return false;
	for (size_t i = 0; i < q->choices && !found; i++) {
		const char *label = json_string_value(json_array_get(labels, i));
		found = label && strcmp(label, key) == 0;
		q->gold = i;
	}
	q->context = xasprintf("Question: %s\nAnswer:", question);
	return found;
}

static bool read_plain(struct question *q, const json_t *o)
{
	const char *query = js_str(o, "query", NULL);

	if (!query || !take_choices(q, json_object_get(o, "choices"), xstrdup) ||
	    !take_gold(q, json_object_get(o, "gold")))
		return false;
	q->context = xstrdup(query);
	return true;
}

static const struct form {
	const char *key; /* which shows that it is this one */
	bool (*read)(struct question *q, const json_t *o);
} forms[] = {
	{ "endings", read_hellaswag },
	{ "answerKey", read_arc },
	{ "query", read_plain },
};

int question_read(struct question *q, const struct document *line, struct err *err)
{
	json_t *o = js_parse(line->bytes, line->len, err);
	bool is_read = false;

	*q = (struct question){ 0 };
	if (!o)
		return err_wrap(err, "%s:%" PRIu64, line->path, line->number + 1);
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]) && !is_read; i++)
		if (json_object_get(o, forms[i].key)) {
			is_read = forms[i].read(q, o);
			break;
		}
	json_decref(o);
	if (is_read)
		return 0;
	question_fini(q);
	return err_set(err, ERR_USAGE,
		       "%s:%" PRIu64 ": is no question: allowed are " QUESTION_FORMS, line->path,
		       line->number + 1);
}

void question_fini(struct question *q)
{
	free(q->context);
	for (size_t i = 0; i < q->choices; i++)
		free(q->choice[i]);
	*q = (struct question){ 0 };
}
