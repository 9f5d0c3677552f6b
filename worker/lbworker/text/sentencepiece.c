/* SPDX-License-Identifier: MIT */
/* sentencepiece.c - SentencePiece's models of the BPE kind (Kudo & Richardson 2018): the part of
 * protocol buffers that they need. Pieces are merged by score, which is the same as by rank. */
#include "worker/lbworker/text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

/* --- protocol buffers ------------------------------------------------------------------------ */

struct message {
	const unsigned char *at, *end;
};

struct field {
	uint64_t number, value; /* value: of a varint, or four bytes as they are */
	struct message inside;  /* of a length-delimited one */
};

static bool read_varint(struct message *m, uint64_t *out)
{
	*out = 0;
	for (unsigned shift = 0; m->at < m->end && shift < 64; shift += 7) {
		*out |= (uint64_t)(*m->at & 0x7F) << shift;
		if (!(*m->at++ & 0x80))
			return true;
	}
	return false;
}

static bool take_bytes(struct message *m, uint64_t count, struct message *out)
{
	if (count > (uint64_t)(m->end - m->at))
		return false;
	*out = (struct message){ m->at, m->at + count };
	m->at += count;
	return true;
}

/* 1 with the next field, 0 at the end, -1 when it is none. */
static int next_field(struct message *m, struct field *f)
{
	uint64_t key, count;

	*f = (struct field){ 0 };
	if (m->at == m->end)
		return 0;
	if (!read_varint(m, &key))
		return -1;
	f->number = key >> 3;
	switch (key & 7) {
	case 0:
		return read_varint(m, &f->value) ? 1 : -1;
	case 1:
		return take_bytes(m, 8, &f->inside) ? 1 : -1;
	case 2:
		return read_varint(m, &count) && take_bytes(m, count, &f->inside) ? 1 : -1;
	case 5:
		if (!take_bytes(m, 4, &f->inside))
			return -1;
		memcpy(&f->value, f->inside.at, 4);
		return 1;
	default:
		return -1;
	}
}

/* --- the model ------------------------------------------------------------------------------- */

enum piece_type {
	PIECE_NORMAL = 1,
	PIECE_UNKNOWN,
	PIECE_CONTROL,
	PIECE_USER,
	PIECE_UNUSED,
	PIECE_BYTE
};

struct piece {
	float score;
	uint32_t token;
	bool is_unused;
};

struct reading {
	struct tokenizer *t;
	struct err *err;
	struct piece *piece; /* those that are merged */
	size_t pieces, tokens;
	uint64_t model_type;
	bool drops_blanks, is_unescaped, maps_characters, has_suffix;
};

static int bad(struct reading *r)
{
	return err_set(r->err, ERR_USAGE, "is cut short, or no model of SentencePiece");
}

static void add_marked(struct reading *r, const struct message *text, bool special)
{
	size_t len = (size_t)(text->end - text->at);
	char *copy = xmalloc(len + 1);
	const struct added_token token = { .text = copy,
					   .len = len,
					   .id = (uint32_t)r->tokens,
					   .special = special,
					   .normalized = !special };

	memcpy(copy, text->at, len);
	added_tokens_add(&r->t->added, &token);
	free(copy);
}

static int keep_piece(struct reading *r, const struct message *text, float score, uint64_t type)
{
	struct tokenizer *t = r->t;
	uint32_t token = (uint32_t)r->tokens;

	if (text->at == text->end || r->tokens >= VOCABULARY_MAX)
		return bad(r);
	if (type == PIECE_CONTROL || type == PIECE_USER)
		add_marked(r, text, type == PIECE_CONTROL);
	if (type == PIECE_UNKNOWN)
		t->unknown = token;
	if (type == PIECE_NORMAL || type == PIECE_UNUSED) {
		if ((r->pieces & (r->pieces - 1)) == 0)
			r->piece = xrealloc(r->piece,
					    (r->pieces ? 2 * r->pieces : 1) * sizeof(*r->piece));
		r->piece[r->pieces++] = (struct piece){ score, token, type == PIECE_UNUSED };
	}
	if (!vocabulary_add(&t->vocabulary, token, (const char *)text->at,
			    (size_t)(text->end - text->at)))
		return bad(r);
	r->tokens++;
	return 0;
}

static int read_piece(struct reading *r, struct message m)
{
	struct message text = { NULL, NULL };
	uint64_t type = PIECE_NORMAL;
	struct field f;
	float score = 0;
	int rc;

	while ((rc = next_field(&m, &f)) > 0) {
		uint32_t bits = (uint32_t)f.value;
		if (f.number == 1)
			text = f.inside;
		else if (f.number == 2)
			memcpy(&score, &bits, sizeof(score));
		else if (f.number == 3)
			type = f.value;
	}
	return rc < 0 || score != score ? bad(r) : keep_piece(r, &text, score, type);
}

static int read_trainer(struct reading *r, struct message m)
{
	enum { MODEL_TYPE = 3, SUFFIX = 24, BYTE_FALLBACK = 35 };
	struct field f;
	int rc;

	while ((rc = next_field(&m, &f)) > 0) {
		if (f.number == MODEL_TYPE)
			r->model_type = f.value;
		if (f.number == SUFFIX)
			r->has_suffix = f.value != 0;
		if (f.number == BYTE_FALLBACK)
			r->t->byte_fallback = f.value != 0;
	}
	return rc < 0 ? bad(r) : 0;
}

static int read_normalizer(struct reading *r, struct message m)
{
	enum { CHARACTERS = 2, ADD_PREFIX = 3, DROP_BLANKS = 4, ESCAPE = 5 };
	struct field f;
	int rc;

	r->t->meta_prefix = META_ALWAYS;
	r->drops_blanks = true;
	while ((rc = next_field(&m, &f)) > 0) {
		if (f.number == CHARACTERS)
			r->maps_characters = f.inside.at != f.inside.end;
		if (f.number == ADD_PREFIX)
			r->t->meta_prefix = f.value ? META_ALWAYS : META_NEVER;
		if (f.number == DROP_BLANKS)
			r->drops_blanks = f.value != 0;
		if (f.number == ESCAPE)
			r->is_unescaped = f.value == 0;
	}
	return rc < 0 ? bad(r) : 0;
}

static int read_all(struct reading *r, struct message m)
{
	enum { PIECES = 1, TRAINER = 2, NORMALIZER = 3 };
	struct field f;
	int rc;

	while ((rc = next_field(&m, &f)) > 0)
		if ((f.number == PIECES && read_piece(r, f.inside)) ||
		    (f.number == TRAINER && read_trainer(r, f.inside)) ||
		    (f.number == NORMALIZER && read_normalizer(r, f.inside)))
			return -1;
	return rc < 0 ? bad(r) : 0;
}

static int check(const struct reading *r)
{
	enum { BPE = 2 };
	bool has_suffix = r->has_suffix && r->t->meta_prefix != META_NEVER;

	if (r->model_type != BPE)
		return err_set(
			r->err, ERR_USAGE,
			"a model of SentencePiece that is not of the BPE kind is not supported");
	if (r->maps_characters || r->drops_blanks || r->is_unescaped || has_suffix)
		return err_set(
			r->err, ERR_USAGE,
			"a model of SentencePiece that changes the text (%s) is not supported",
			r->maps_characters ? "NFKC or the like"
			: r->drops_blanks  ? "blanks"
			: has_suffix       ? "a blank behind it"
					   : "no escaped blanks");
	return 0;
}

static int by_score(const void *x, const void *y)
{
	const struct piece *a = x, *b = y;

	return (a->score < b->score) - (a->score > b->score);
}

/* One that is unused is merged like the others there, and taken apart again as it was made. */
static int refuse_unused(const struct reading *r, uint32_t token)
{
	const struct vocabulary *v = &r->t->vocabulary;
	size_t len;
	const char *text = vocabulary_bytes(v, token, &len);

	for (size_t cut = 1; cut < len; cut++)
		if (vocabulary_find(v, text, cut) != NO_TOKEN &&
		    vocabulary_find(v, text + cut, len - cut) != NO_TOKEN)
			return err_set(r->err, ERR_USAGE,
				       "\"%.*s\" is unused, and made of others: a model of "
				       "SentencePiece with such pieces is not supported",
				       len < 40 ? (int)len : 40, text);
	return 0;
}

/* The same score is the same rank: the leftmost of them is merged first. */
static int rank_pieces(struct reading *r)
{
	int rc = 0;
	uint32_t *rank = xcalloc(r->tokens, sizeof(*rank)), next = 0;

	if (r->pieces > 1)
		qsort(r->piece, r->pieces, sizeof(*r->piece), by_score);
	memset(rank, 0xFF, r->tokens * sizeof(*rank));
	for (size_t i = 0; i < r->pieces; i++) {
		next += i > 0 && r->piece[i].score != r->piece[i - 1].score;
		if (!r->piece[i].is_unused)
			rank[r->piece[i].token] = next;
		else if (rc == 0)
			rc = refuse_unused(r, r->piece[i].token);
	}
	tokenizer_pair_all(r->t, rank);
	free(rank);
	return rc;
}

int tokenizer_read_sentencepiece(struct tokenizer *t, const char *text, size_t len, struct err *err)
{
	struct reading r = { .t = t, .err = err };
	const unsigned char *bytes = (const unsigned char *)text;
	int rc = read_all(&r, (struct message){ bytes, bytes + len }) || check(&r) ? -1 : 0;

	if (rc == 0) {
		t->meta = true;
		t->meta_doubles = true;
		t->first_blank = t->meta_prefix == META_NEVER ? BLANK_KEPT : BLANK_DROPPED;
		t->fuse_unknown = true;
		rc = rank_pieces(&r);
		tokenizer_find_bytes(t);
		tokenizer_cut_at_blanks(t);
	}
	free(r.piece);
	return rc;
}
