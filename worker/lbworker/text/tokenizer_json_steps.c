/* SPDX-License-Identifier: MIT */
/* tokenizer_json_steps.c - what a tokenizer.json does to a text besides its model: before it is
 * split, where it is split, and when tokens are read as text again. */
#include "worker/lbworker/text/tokenizer_json.h"

#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/unicode/split_regex.h"
#include "worker/lbworker/unicode/unicode.h"

int reading_refuse(struct reading *r, const char *key, const char *what)
{
	return err_set(r->err, ERR_USAGE, "%s: %.80s is not supported", key, what);
}

/* --- what happens before --------------------------------------------------------------------- */

static bool is_type(const json_t *object, const char *type)
{
	return strcmp(js_str(object, "type", ""), type) == 0;
}

static const char *string_in(const json_t *object, const char *key, const char *inner)
{
	return js_str(json_object_get(object, key), inner, "");
}

static const char META[] = "\xE2\x96\x81";

static struct split_regex *add_regex(struct reading *r, const char *pattern, const char *key)
{
	struct tokenizer *t = r->t;
	struct split_regex *regex = split_regex_create(pattern, r->err);

	if (regex)
		t->regex[t->regexes++] = regex;
	else
		err_wrap(r->err, "%s", key);
	return regex;
}

static const char *add_text(struct tokenizer *t, const char *text)
{
	return t->text[t->texts++] = xstrdup(text);
}

/* {"String": …} or {"Regex": …} into *split. There is room for what it borrows. */
static int read_pattern(struct reading *r, const json_t *p, const char *key, struct split *split)
{
	const char *regex = string_in(p, "pattern", "Regex");
	const char *text = string_in(p, "pattern", "String");

	split->kind = regex[0] ? SPLIT_REGEX : SPLIT_TEXT;
	if (regex[0] == '\0' && text[0] == '\0')
		return reading_refuse(r, key, "an empty pattern");
	if (regex[0] == '\0') {
		split->text = add_text(r->t, text);
		return 0;
	}
	split->regex = add_regex(r, regex, key);
	return split->regex ? 0 : -1;
}

static int read_normal_step(struct reading *r, const json_t *n)
{
	struct tokenizer *t = r->t;
	struct normal_step step = { .what.behavior = SPLIT_REMOVED };

	if (t->steps == STEPS_MAX)
		return reading_refuse(r, "normalizer", "so long a sequence");
	if (is_type(n, "NFC")) {
		step.kind = NORMAL_NFC;
	} else if (is_type(n, "Replace")) {
		step.kind = NORMAL_REPLACE;
		if (read_pattern(r, n, "normalizer", &step.what))
			return -1;
		step.text = js_str(n, "content", "");
	} else if (is_type(n, "Prepend")) {
		step.kind = NORMAL_PREPEND;
		step.text = js_str(n, "prepend", "");
	} else if (is_type(n, "Strip")) {
		step.kind = NORMAL_STRIP;
		step.left = js_bool(n, "strip_left", true);
		step.right = js_bool(n, "strip_right", true);
	} else {
		return reading_refuse(r, "normalizer", js_str(n, "type", "one without a type"));
	}
	if (step.text)
		step.text = add_text(t, step.text);
	t->step[t->steps++] = step;
	return 0;
}

int reading_normalizer(struct reading *r, const json_t *n)
{
	const json_t *list = json_object_get(n, "normalizers");

	if (!n || json_is_null(n))
		return 0;
	if (!is_type(n, "Sequence"))
		return read_normal_step(r, n);
	for (size_t i = 0; i < json_array_size(list); i++)
		if (reading_normalizer(r, json_array_get(list, i)))
			return -1;
	return 0;
}

static bool prepends_meta(const struct normal_step *s)
{
	return s->kind == NORMAL_PREPEND && strcmp(s->text, META) == 0;
}

static bool replaces_blanks(const struct normal_step *s)
{
	return s->kind == NORMAL_REPLACE && s->what.kind == SPLIT_TEXT &&
	       strcmp(s->what.text, " ") == 0 && strcmp(s->text, META) == 0;
}

/* The last steps of Llama 2's and Gemma's, in either order, are done at once. */
static void find_blanks(struct tokenizer *t)
{
	const struct normal_step *last = &t->step[t->steps ? t->steps - 1 : 0];
	bool two = t->steps > 1 && ((prepends_meta(last) && replaces_blanks(last - 1)) ||
				    (replaces_blanks(last) && prepends_meta(last - 1)));

	if (!two && !(t->steps > 0 && replaces_blanks(last)))
		return;
	t->meta = true;
	t->meta_doubles = two;
	t->meta_prefix = two ? META_ALWAYS : META_NEVER;
	t->steps -= two ? 2 : 1;
}

/* --- where it is split ----------------------------------------------------------------------- */

static int add_split(struct reading *r, struct split split)
{
	if (r->t->splits == SPLITS_MAX)
		return reading_refuse(r, "pre_tokenizer", "so long a sequence");
	split.mapped = r->t->by_bytes; /* of those that stand behind ByteLevel */
	r->t->split[r->t->splits++] = split;
	return 0;
}

static int read_behavior(struct reading *r, const json_t *p, const char *usual,
			 enum split_behavior *out)
{
	static const char *const names[] = { "Isolated", "Removed", "MergedWithPrevious",
					     "MergedWithNext", "Contiguous" };
	const char *name = js_str(p, "behavior", usual);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0) {
			*out = (enum split_behavior)i;
			return 0;
		}
	return reading_refuse(r, "pre_tokenizer.behavior", name);
}

static int read_split(struct reading *r, const json_t *p)
{
	const char *regex = string_in(p, "pattern", "Regex");
	const char *text = string_in(p, "pattern", "String");
	struct split split = { .inverts = js_bool(p, "invert", false) };
	bool is_known = split_known(&split, regex);

	if (read_behavior(r, p, "", &split.behavior))
		return -1;
	split.inverts = js_bool(p, "invert", false);
	if (is_known)
		return add_split(r, split);
	/* Gemma's has no blanks left. */
	if (regex[0] == '\0' && strcmp(text, " ") == 0 && r->t->meta && !r->t->meta_is_late)
		return 0;
	if (r->t->splits == SPLITS_MAX)
		return reading_refuse(r, "pre_tokenizer", "so long a sequence");
	if (read_pattern(r, p, "pre_tokenizer", &split))
		return -1;
	r->has_own_pattern |= split.kind == SPLIT_REGEX;
	return add_split(r, split);
}

static int read_metaspace(struct reading *r, const json_t *p)
{
	static const char *const schemes[] = { "never", "first", "always" };
	struct tokenizer *t = r->t;
	const char *scheme = js_str(p, "prepend_scheme",
				    js_bool(p, "add_prefix_space", true) ? "always" : "never");

	if (strcmp(js_str(p, "replacement", META), META) != 0)
		return reading_refuse(r, "pre_tokenizer.replacement", js_str(p, "replacement", ""));
	if (t->splits > 0 || t->by_bytes || t->meta)
		return reading_refuse(r, "pre_tokenizer",
				      "Metaspace behind another, or beside a Replace,");
	t->meta = true;
	t->meta_is_late = true;
	for (int i = 0; i <= META_ALWAYS; i++)
		if (strcmp(scheme, schemes[i]) == 0)
			t->meta_prefix = (enum meta_prefix)i;
	return js_bool(p, "split", true) ? add_split(r, (struct split){ .kind = SPLIT_META }) : 0;
}

static int read_byte_level(struct reading *r, const json_t *p)
{
	struct tokenizer *t = r->t;
	bool is_split = js_bool(p, "use_regex", true);

	if (t->by_bytes || t->meta)
		return reading_refuse(r, "pre_tokenizer",
				      "ByteLevel behind another, or beside a Replace,");
	if (js_bool(p, "add_prefix_space", true)) {
		if (t->splits > 0)
			return reading_refuse(r, "pre_tokenizer",
					      "add_prefix_space behind another");
		t->prefix_blank = true;
	}
	if (is_split && add_split(r, (struct split){ .kind = SPLIT_GPT2 }))
		return -1;
	t->by_bytes = true;
	return 0;
}

/* What is between words of Rust's regular expressions is left out. */
static int add_whitespace(struct reading *r)
{
	static const char words[] = "[" SPLIT_RUST_WORD "]+|[^" SPLIT_RUST_WORD "\\s]+";
	struct split split = { .kind = SPLIT_REGEX, .behavior = SPLIT_REMOVED, .inverts = true };

	if (r->t->splits == SPLITS_MAX)
		return reading_refuse(r, "pre_tokenizer", "so long a sequence");
	split.regex = add_regex(r, words, "pre_tokenizer");
	return split.regex ? add_split(r, split) : -1;
}

static int add_characters(struct reading *r, unsigned kinds, enum split_behavior behavior)
{
	return add_split(r, (struct split){ .kind = SPLIT_CHARACTERS,
					    .kinds = kinds,
					    .behavior = behavior });
}

static int add_delimiter(struct reading *r, const char *delimiter)
{
	if (delimiter[0] == '\0' || r->t->splits == SPLITS_MAX)
		return reading_refuse(r, "pre_tokenizer", "CharDelimiterSplit without a delimiter");
	return add_split(r, (struct split){ .kind = SPLIT_TEXT,
					    .behavior = SPLIT_REMOVED,
					    .text = add_text(r->t, delimiter) });
}

static int read_pre_tokenizer(struct reading *r, const json_t *p)
{
	enum split_behavior behavior = SPLIT_ISOLATED;

	if (!p || json_is_null(p))
		return 0;
	if (is_type(p, "Sequence")) {
		const json_t *list = json_object_get(p, "pretokenizers");
		for (size_t i = 0; i < json_array_size(list); i++)
			if (read_pre_tokenizer(r, json_array_get(list, i)))
				return -1;
		return 0;
	}
	if (is_type(p, "ByteLevel"))
		return read_byte_level(r, p);
	if (is_type(p, "Split"))
		return read_split(r, p);
	if (is_type(p, "Metaspace"))
		return read_metaspace(r, p);
	if (is_type(p, "Digits"))
		return add_characters(r, UNI_NUMBER,
				      js_bool(p, "individual_digits", false) ? SPLIT_ISOLATED
									     : SPLIT_CONTIGUOUS);
	if (is_type(p, "Punctuation"))
		return read_behavior(r, p, "Isolated", &behavior)
			       ? -1
			       : add_characters(r, UNI_PUNCTUATION, behavior);
	if (is_type(p, "WhitespaceSplit"))
		return add_characters(r, UNI_SPACE, SPLIT_REMOVED);
	if (is_type(p, "BertPreTokenizer"))
		return add_characters(r, UNI_SPACE, SPLIT_REMOVED) ||
				       add_characters(r, UNI_PUNCTUATION, SPLIT_ISOLATED)
			       ? -1
			       : 0;
	if (is_type(p, "Whitespace"))
		return add_whitespace(r);
	if (is_type(p, "CharDelimiterSplit"))
		return add_delimiter(r, js_str(p, "delimiter", ""));
	return reading_refuse(r, "pre_tokenizer", js_str(p, "type", "one without a type"));
}

int reading_pre_tokenizer(struct reading *r, const json_t *member)
{
	find_blanks(r->t);
	return read_pre_tokenizer(r, member);
}

/* --- what happens behind ---------------------------------------------------------------------- */

/* Tokens read as bytes, or with blanks for U+2581: a decoder must say that, in whatever words. */
static int read_decoder(struct reading *r, const json_t *d)
{
	struct tokenizer *t = r->t;
	const json_t *list = json_object_get(d, "decoders");
	json_int_t start = js_int(d, "start", 0);

	if (is_type(d, "Sequence")) {
		for (size_t i = 0; i < json_array_size(list); i++)
			if (read_decoder(r, json_array_get(list, i)))
				return -1;
		return 0;
	}
	if (is_type(d, "Fuse") || is_type(d, "ByteFallback") ||
	    (is_type(d, "ByteLevel") && t->by_bytes))
		return 0;
	if (is_type(d, "Replace") && t->meta && strcmp(js_str(d, "content", ""), " ") == 0 &&
	    strcmp(string_in(d, "pattern", "String"), META) == 0)
		return 0;
	if (is_type(d, "Strip") && t->meta && strcmp(js_str(d, "content", ""), " ") == 0 &&
	    (start == 0 || start == 1) && js_int(d, "stop", 0) == 0) {
		t->first_blank = start ? BLANK_DROPPED : t->first_blank;
		return 0;
	}
	if (is_type(d, "Metaspace") && t->meta &&
	    strcmp(js_str(d, "replacement", META), META) == 0) {
		bool keeps = strcmp(js_str(d, "prepend_scheme", ""), "never") == 0 ||
			     !js_bool(d, "add_prefix_space", true);
		t->first_blank = keeps ? BLANK_KEPT : BLANKS_DROPPED;
		return 0;
	}
	return reading_refuse(r, "decoder", js_str(d, "type", "one without a type"));
}

int reading_decoder(struct reading *r, const json_t *member)
{
	if (member && !json_is_null(member))
		return read_decoder(r, member);
	if (r->t->meta && r->t->meta_prefix != META_NEVER)
		r->t->first_blank = BLANK_DROPPED;
	return 0;
}

/* What puts special tokens round a text (--begin, --end), or counts characters: tokens of the text
 * are the same. */
int reading_post_processor(struct reading *r, const json_t *p)
{
	static const char *const known[] = { "TemplateProcessing", "ByteLevel", "BertProcessing",
					     "RobertaProcessing" };
	const json_t *list = json_object_get(p, "processors");

	if (!p || json_is_null(p))
		return 0;
	for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
		if (is_type(p, known[i]))
			return 0;
	if (!is_type(p, "Sequence"))
		return reading_refuse(r, "post_processor", js_str(p, "type", "one without a type"));
	for (size_t i = 0; i < json_array_size(list); i++)
		if (reading_post_processor(r, json_array_get(list, i)))
			return -1;
	return 0;
}
