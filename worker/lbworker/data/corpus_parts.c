/* SPDX-License-Identifier: MIT */
/* corpus_parts.c - parts are completed in order, the training's file last: where it lies, the
 * part is done. */
#include "worker/lbworker/data/corpus_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/data/shard.h"

enum { MODE = 0755, MAX_TOKENIZER = 128 << 20, NAMED_FILES = 100 };
static const char *const splits[2] = { "train", "validation" };

static char *part_path(const struct corpus_parts *p, int split, uint64_t part)
{
	return path_join("%s/%s/%05" PRIu64 ".tokens", p->options->out, splits[split], part);
}

/* --- what the content depends on
 * --------------------------------------------------------------- */

static void add_text(XXH3_state_t *state, const char *text)
{
	XXH3_128bits_update(state, text ? text : "-", text ? strlen(text) + 1 : 1);
}

static int name_settings(struct corpus_parts *p, struct err *err)
{
	const struct corpus_options *o = p->options;
	XXH128_canonical_t digest;
	XXH3_state_t state;

	XXH3_128bits_reset(&state);
	add_text(&state, tokenizer_digest(o->tokenizer));
	add_text(&state, o->rules.field);
	add_text(&state, o->rules.separator);
	char *numbers = xasprintf("%.17g %" PRId64 " %" PRId64 " %d %" PRIu64, o->validation,
				  o->begin, o->end, o->specials, o->part_bytes);
	add_text(&state, numbers);
	free(numbers);
	for (size_t i = 0; i < o->count; i++) {
		struct stat st;
		if (stat(o->files[i], &st) != 0)
			return err_errno(err, "%s", o->files[i]);
		char *file = xasprintf("%s %lld %lld", o->files[i], (long long)st.st_size,
				       (long long)st.st_mtime);
		add_text(&state, file);
		free(file);
	}
	XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state));
	for (size_t i = 0; i < sizeof(digest.digest); i++)
		snprintf(p->settings + 2 * i, 3, "%02x", digest.digest[i]);
	return 0;
}

/* --- parts that are there
 * ---------------------------------------------------------------------- */

static int take_notes(struct corpus_parts *p, const struct shard *s, struct err *err)
{
	json_t *o = s->notes ? js_parse(s->notes, s->notes_bytes, err) : json_object();
	int rc = 0;

	if (!o)
		return err_wrap(err, "%s: notes", s->path);
	if (strcmp(js_str(o, "settings", ""), p->settings) != 0)
		rc = err_set(err, ERR_REFUSED,
			     "%s: was made of other texts, by another tokenizer or other options: "
			     "name another folder, or remove this one",
			     s->path);
	p->next.file = (size_t)js_int(o, "next_file", 0);
	p->next.document = (uint64_t)js_int(o, "next_document", 0);
	p->is_complete = js_bool(o, "is_last", false);
	p->counts.documents = (uint64_t)js_int(o, "documents", 0);
	p->counts.tokens = (uint64_t)js_int(o, "tokens", 0);
	p->counts.bytes = (uint64_t)js_int(o, "text_bytes", 0);
	p->counts.validation_documents = (uint64_t)js_int(o, "validation_documents", 0);
	p->counts.validation_tokens = (uint64_t)js_int(o, "validation_tokens", 0);
	json_decref(o);
	return rc;
}

/* The parts in a row that are done. */
static int find_parts(struct corpus_parts *p, struct err *err)
{
	for (int rc = 0; !p->is_complete; p->counts.parts++) {
		struct shard s = { .path = part_path(p, 0, p->counts.parts) };
		bool is_there = file_exists(s.path);
		if (is_there)
			rc = shard_open(&s, UINT64_MAX, false, err) || take_notes(p, &s, err) ? -1
											      : 0;
		shard_close(&s);
		if (!is_there || rc)
			return rc;
		p->counts.parts_before++;
	}
	return 0;
}

/* --- the tokenizer goes along
 * -------------------------------------------------------------------- */

static const char *usual_name(const char *text, size_t len)
{
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", text[at]) && text[at])
		at++;
	return at < len && text[at] == '{' ? "tokenizer.json" : "tokenizer.model";
}

static int copy_tokenizer(const struct corpus_parts *p, struct err *err)
{
	size_t len;
	char *text = file_read(tokenizer_path(p->options->tokenizer), MAX_TOKENIZER, &len, err);

	if (!text)
		return -1;
	char *path = path_join("%s/%s", p->options->out, usual_name(text, len));
	int rc = file_write_atomic(path, text, len, 0644, err);
	free(path);
	free(text);
	return rc;
}

int corpus_parts_open(struct corpus_parts *p, const struct corpus_options *o, struct err *err)
{
	*p = (struct corpus_parts){ .options = o };
	for (int i = 0; i < 2; i++) {
		char *folder = path_join("%s/%s", o->out, splits[i]);
		int rc = i == 1 && o->validation <= 0 ? 0 : folder_make(folder, MODE, err);
		free(folder);
		if (rc)
			return rc;
	}
	return name_settings(p, err) || find_parts(p, err) || copy_tokenizer(p, err) ? -1 : 0;
}

/* --- the part at hand
 * ---------------------------------------------------------------------------- */

static uint32_t token_bytes(const struct corpus_parts *p)
{
	return tokenizer_vocab(p->options->tokenizer) <= 1 << 16 ? 2 : 4;
}

static struct shard_out *out_of(struct corpus_parts *p, int split, struct err *err)
{
	if (!p->out[split]) {
		char *path = part_path(p, split, p->counts.parts);
		p->out[split] = shard_out_create(path, token_bytes(p),
						 tokenizer_vocab(p->options->tokenizer), err);
		free(path);
	}
	return p->out[split];
}

static int put_narrow(struct shard_out *out, const uint32_t *token, size_t count, struct err *err)
{
	uint16_t narrow[4096];
	int rc = 0;

	for (size_t at = 0; rc == 0 && at < count;) {
		size_t n = 0;
		for (; n < sizeof(narrow) / sizeof(narrow[0]) && at < count; n++)
			narrow[n] = (uint16_t)token[at++];
		rc = shard_out_put(out, narrow, n, err);
	}
	return rc;
}

int corpus_parts_put(struct corpus_parts *p, bool validates, const uint32_t *token, size_t count,
		     uint64_t text_bytes, struct err *err)
{
	struct shard_out *out = out_of(p, validates, err);

	if (!out)
		return -1;
	shard_out_document(out);
	p->bytes += text_bytes;
	p->counts.bytes += text_bytes;
	p->counts.documents++;
	p->counts.tokens += count;
	p->counts.validation_documents += validates;
	p->counts.validation_tokens += validates ? count : 0;
	return token_bytes(p) == 2 ? put_narrow(out, token, count, err)
				   : shard_out_put(out, token, count, err);
}

static char *notes_of(const struct corpus_parts *p, int split, struct corpus_place next,
		      bool is_last)
{
	const struct corpus_options *o = p->options;
	json_t *notes = json_object(), *files = json_array();

	js_set_str(notes, "made_by", "lbworker " LB_VERSION " tokenize");
	js_set_str(notes, "tokenizer", path_base(tokenizer_path(o->tokenizer)));
	js_set_str(notes, "tokenizer_digest", tokenizer_digest(o->tokenizer));
	js_set_str(notes, "settings", p->settings);
	js_set_str(notes, "split", splits[split]);
	js_set_int(notes, "part", (int64_t)p->counts.parts);
	js_set_bool(notes, "is_last", is_last);
	js_set_str(notes, "field", o->rules.field);
	js_set_str(notes, "separator", o->rules.separator);
	js_set_real(notes, "validation", o->validation);
	js_set_int(notes, "begin", o->begin < 0 ? JS_NONE : o->begin);
	js_set_int(notes, "end", o->end < 0 ? JS_NONE : o->end);
	js_set_bool(notes, "specials", o->specials);
	/* of this part; the counts are of all so far */
	for (size_t i = p->next.file;
	     i < o->count && i <= next.file && i - p->next.file < NAMED_FILES; i++)
		if (i < next.file || next.document > 0)
			json_array_append_new(files, json_string(o->files[i]));
	json_object_set_new(notes, "files", files);
	js_set_int(notes, "first_file", (int64_t)p->next.file);
	js_set_int(notes, "first_document", (int64_t)p->next.document);
	js_set_int(notes, "next_file", (int64_t)next.file);
	js_set_int(notes, "next_document", (int64_t)next.document);
	js_set_int(notes, "documents", (int64_t)p->counts.documents);
	js_set_int(notes, "tokens", (int64_t)p->counts.tokens);
	js_set_int(notes, "text_bytes", (int64_t)p->counts.bytes);
	js_set_int(notes, "validation_documents", (int64_t)p->counts.validation_documents);
	js_set_int(notes, "validation_tokens", (int64_t)p->counts.validation_tokens);
	char *line = js_line(notes);
	json_decref(notes);
	return line;
}

/* Validation first; the training's file, which there always is, says that the part is done. */
static int complete(struct corpus_parts *p, struct corpus_place next, bool is_last, struct err *err)
{
	int rc = out_of(p, 0, err) ? 0 : -1;

	for (int split = 1; rc == 0 && split >= 0; split--) {
		struct shard_out *out = p->out[split];
		char *notes = notes_of(p, split, next, is_last);
		p->out[split] = NULL;
		if (out)
			rc = shard_out_finish(out, notes, err);
		free(notes);
	}
	if (rc)
		return -1;
	p->bytes = 0;
	p->next = next;
	p->is_complete = is_last;
	p->counts.parts++;
	return 0;
}

int corpus_parts_advance(struct corpus_parts *p, struct corpus_place next, bool is_last,
			 struct err *err)
{
	return is_last || p->bytes >= p->options->part_bytes ? complete(p, next, is_last, err) : 0;
}

void corpus_parts_close(struct corpus_parts *p)
{
	for (int i = 0; i < 2; i++)
		shard_out_discard(p->out[i]);
}
