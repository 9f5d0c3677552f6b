/* SPDX-License-Identifier: MIT */
/* documents.h - the documents in files of text, JSON lines, and both compressed. */
#ifndef LBWORKER_DOCUMENTS_H
#define LBWORKER_DOCUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/base/err.h"
#include "common/base/mem.h"

struct documents_rules {
	const char *field; /* of JSON lines; NULL: "text" in *.jsonl, *.ndjson, none in others */
	const char *separator; /* between the documents of a file of text; NULL: it is one */
};

/* One document as it lies in its file: a text, or a line of JSON. */
struct document {
	const char *bytes;
	size_t len;
	const char *path;
	uint64_t number;   /* in its file, from 0; of JSON lines: the line */
	const char *field; /* NULL: a text */
};

/* A file's first bytes, unpacked, at most `room`; how many. What cannot be read has none. */
size_t documents_begin(const char *path, char *bytes, size_t room);

/* What bytes are, from the first of a file's on, unpacked, that are no text: "a PDF file"; NULL:
 * nothing that is known. And how people are told: of a path. */
const char *documents_alien(const char *bytes, size_t count);
#define DOCUMENTS_ALIEN "%s: is %s, which is not read: text, JSON lines, .gz and .zst are"

/* Hands each document of the file, from number `from` on, to `each`, which ends it by returning
 * non-zero. *.gz and *.zst are read as what they hold. -1 with err; else what `each` returned
 * last, or 0. */
int documents_read(const char *path, const struct documents_rules *rules, uint64_t from,
		   int (*each)(const struct document *document, void *arg), void *arg,
		   struct err *err);

/* The text of a document: borrowed from it, or taken out of its JSON into `room`. -1 with
 * "PATH:LINE: …". */
int document_text(const struct document *document, struct buf *room, const char **text, size_t *len,
		  struct err *err);

#endif
