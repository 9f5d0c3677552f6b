/* SPDX-License-Identifier: MIT */
/* corpus.c - one thread reads texts into batches and writes the tokens of those that are done,
 * in order; the others make tokens. */
#include "worker/lbworker/data/corpus.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/base/clock.h"
#include "worker/lbworker/data/corpus_parts.h"

enum { BATCH_BYTES = 1 << 20, BATCHES_PER_THREAD = 4, PROGRESS_MS = 500 };

struct batch_document {
	size_t begin, end; /* in bytes */
	uint64_t number;
	uint64_t text_bytes;
	size_t tokens_end;
	bool validates;
	const char *path, *field;
};

struct batch {
	enum { BATCH_FREE, BATCH_FULL, BATCH_DONE } state;
	struct buf bytes;
	struct batch_document *document;
	size_t count, room;
	struct corpus_place next; /* behind it */
	struct tokens tokens;
	struct err err;
};

struct pipeline {
	const struct corpus_options *options;
	struct corpus_parts parts;
	struct batch *batch; /* a ring */
	size_t batches;
	uint64_t filled, taken, written; /* counts of batches; filled's is being filled */
	size_t file;                     /* that is read */
	bool is_over, has_failed;
	pthread_mutex_t lock;
	pthread_cond_t changed;
	struct encoder *encoder; /* the reader's own, with one thread */
	int64_t started_ms, shown_ms;
	struct err *err;
};

/* --- making tokens
 * ------------------------------------------------------------------------------ */

static bool validates(const struct corpus_options *o, const char *text, size_t len)
{
	return (double)(XXH3_64bits(text, len) >> 11) * 0x1p-53 < o->validation;
}

static int make_tokens(const struct corpus_options *o, struct encoder *e, struct batch *b)
{
	struct buf room;
	int rc = 0;

	buf_init(&room, SIZE_MAX / 2);
	b->tokens.count = 0;
	for (size_t i = 0; i < b->count && rc == 0; i++) {
		struct batch_document *d = &b->document[i];
		const struct document from = { b->bytes.data + d->begin, d->end - d->begin, d->path,
					       d->number, d->field };
		const char *text;
		size_t len;
		rc = document_text(&from, &room, &text, &len, &b->err);
		if (rc)
			break;
		if (o->begin >= 0)
			tokens_add(&b->tokens, (uint32_t)o->begin);
		rc = encoder_encode(e, text, len, o->specials, &b->tokens, &b->err);
		if (o->end >= 0)
			tokens_add(&b->tokens, (uint32_t)o->end);
		d->tokens_end = b->tokens.count;
		d->text_bytes = len;
		d->validates = validates(o, text, len);
	}
	buf_fini(&room);
	return rc;
}

static void *work(void *arg)
{
	struct pipeline *p = arg;
	struct encoder *e = encoder_create(p->options->tokenizer);

	pthread_mutex_lock(&p->lock);
	for (;;) {
		while (!p->is_over && p->taken == p->filled)
			pthread_cond_wait(&p->changed, &p->lock);
		if (p->taken == p->filled || p->has_failed)
			break;
		struct batch *b = &p->batch[p->taken++ % p->batches];
		pthread_mutex_unlock(&p->lock);
		make_tokens(p->options, e, b);
		pthread_mutex_lock(&p->lock);
		b->state = BATCH_DONE;
		pthread_cond_broadcast(&p->changed);
	}
	pthread_mutex_unlock(&p->lock);
	encoder_destroy(e);
	return NULL;
}

/* --- writing
 * ------------------------------------------------------------------------------------ */

static void show_progress(struct pipeline *p, bool at_end)
{
	int64_t now = clock_mono_ms();

	if (!p->options->shows_progress || (!at_end && now - p->shown_ms < PROGRESS_MS))
		return;
	const struct corpus_counts *c = &p->parts.counts;
	double seconds = (double)(now - p->started_ms + 1) / 1e3;
	p->shown_ms = now;
	fprintf(stderr, "\r%zu of %zu files, %.1f MB, %.1f M tokens, %.1f MB/s %s", p->file,
		p->options->count, (double)c->bytes / 1e6, (double)c->tokens / 1e6,
		(double)c->bytes / 1e6 / seconds, at_end ? "\n" : "");
}

static int write_batch(struct pipeline *p, struct batch *b)
{
	size_t begin = 0;
	int rc = 0;

	if (b->err.code != ERR_NONE)
		return err_set(p->err, b->err.code, "%s", b->err.text);
	for (size_t i = 0; i < b->count && rc == 0; i++) {
		const struct batch_document *d = &b->document[i];
		rc = corpus_parts_put(&p->parts, d->validates, b->tokens.id + begin,
				      d->tokens_end - begin, d->text_bytes, p->err);
		begin = d->tokens_end;
	}
	if (rc == 0)
		rc = corpus_parts_advance(&p->parts, b->next, false, p->err);
	b->bytes.len = 0;
	b->count = 0;
	show_progress(p, false);
	return rc;
}

/* Waits for the oldest batch and writes it. */
static int write_oldest(struct pipeline *p)
{
	struct batch *b = &p->batch[p->written % p->batches];

	if (p->encoder)
		make_tokens(p->options, p->encoder, b);
	pthread_mutex_lock(&p->lock);
	while (!p->encoder && b->state != BATCH_DONE)
		pthread_cond_wait(&p->changed, &p->lock);
	b->state = BATCH_FREE;
	pthread_mutex_unlock(&p->lock);
	int rc = write_batch(p, b);
	p->written++;
	return rc;
}

/* --- reading
 * ------------------------------------------------------------------------------------ */

/* The batch at hand goes to the workers; the next one in the ring is made free. */
static int hand_over(struct pipeline *p)
{
	pthread_mutex_lock(&p->lock);
	p->batch[p->filled % p->batches].state = BATCH_FULL;
	p->filled++;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	while (p->filled - p->written >= (p->encoder ? 1 : p->batches))
		if (write_oldest(p))
			return -1;
	return 0;
}

static int take_document(const struct document *from, void *arg)
{
	struct pipeline *p = arg;
	struct batch *b = &p->batch[p->filled % p->batches];
	size_t begin = b->bytes.len;

	if (b->count == b->room) {
		b->room = b->room ? 2 * b->room : 64;
		b->document = xrealloc(b->document, b->room * sizeof(*b->document));
	}
	if (buf_add(&b->bytes, from->bytes, from->len))
		return err_set(p->err, ERR_USAGE, "%s: a document is too large", from->path);
	b->document[b->count++] = (struct batch_document){ .begin = begin,
							   .end = b->bytes.len,
							   .number = from->number,
							   .path = from->path,
							   .field = from->field };
	b->next = (struct corpus_place){ p->file, from->number + 1 };
	return b->bytes.len >= BATCH_BYTES ? hand_over(p) : 0;
}

static int read_files(struct pipeline *p)
{
	const struct corpus_options *o = p->options;
	uint64_t from = p->parts.next.document;

	for (p->file = p->parts.next.file; p->file < o->count; p->file++, from = 0)
		if (documents_read(o->files[p->file], &o->rules, from, take_document, p, p->err))
			return -1;
	if (p->batch[p->filled % p->batches].count > 0 && hand_over(p))
		return -1;
	while (p->written < p->filled)
		if (write_oldest(p))
			return -1;
	return corpus_parts_advance(&p->parts, (struct corpus_place){ o->count, 0 }, true, p->err);
}

/* --- all of it
 * ---------------------------------------------------------------------------------- */

static int run(struct pipeline *p)
{
	unsigned threads = p->options->threads > 1 ? p->options->threads : 0, started = 0;
	pthread_t *thread = xcalloc(threads + 1, sizeof(*thread));
	int rc = 0;

	p->batches = threads ? (size_t)threads * BATCHES_PER_THREAD : 1;
	p->batch = xcalloc(p->batches, sizeof(*p->batch));
	for (size_t i = 0; i < p->batches; i++)
		buf_init(&p->batch[i].bytes, SIZE_MAX / 2);
	if (threads == 0)
		p->encoder = encoder_create(p->options->tokenizer);
	for (; started < threads && rc == 0; started += rc == 0)
		if (pthread_create(&thread[started], NULL, work, p) != 0)
			rc = err_errno(p->err, "a thread");
	if (rc == 0)
		rc = read_files(p);
	pthread_mutex_lock(&p->lock);
	p->is_over = true;
	p->has_failed = rc != 0;
	pthread_cond_broadcast(&p->changed);
	pthread_mutex_unlock(&p->lock);
	for (unsigned i = 0; i < started; i++)
		pthread_join(thread[i], NULL);
	for (size_t i = 0; i < p->batches; i++) {
		buf_fini(&p->batch[i].bytes);
		free(p->batch[i].document);
		tokens_fini(&p->batch[i].tokens);
	}
	free(p->batch);
	free(thread);
	encoder_destroy(p->encoder);
	return rc;
}

int corpus_tokenize(const struct corpus_options *o, struct corpus_counts *counts, struct err *err)
{
	struct pipeline p = { .options = o, .err = err, .started_ms = clock_mono_ms() };

	pthread_mutex_init(&p.lock, NULL);
	pthread_cond_init(&p.changed, NULL);
	int rc = corpus_parts_open(&p.parts, o, err);
	if (rc == 0 && !p.parts.is_complete) {
		rc = run(&p);
		show_progress(&p, true);
	}
	corpus_parts_close(&p.parts);
	*counts = p.parts.counts;
	pthread_cond_destroy(&p.changed);
	pthread_mutex_destroy(&p.lock);
	return rc;
}
