/* SPDX-License-Identifier: MIT */
/* data.c - from the number of a sample to a source, a file and a place. */
#include "worker/lbworker/data/data.h"

#include <dirent.h>
#include <errno.h>
#include <glob.h>
#include <inttypes.h>
#include <math.h>
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
#include "worker/lbworker/base/rng.h"
#include "worker/lbworker/data/shard.h"
#include "worker/lbworker/text/tokenizer.h"

static const char SHARD_SUFFIX[] = ".tokens";
enum { SOURCE_SHIFT = 54 }; /* above any seed that a config may hold */

struct source {
	struct shard *shard;
	uint64_t *first; /* first sample of each shard, [shards + 1] */
	size_t shards;
	double weight;
	uint64_t quota, before; /* of a block: samples of ours, and of the sources before us */
};

struct data {
	struct source *source;
	size_t sources;
	uint64_t tokens, samples, vocab, seed;
	size_t seq;
	size_t short_files;     /* without one sample */
	const char *unfinished; /* of tokenize, or NULL */
	char digest[2 * SHARD_DIGEST_BYTES + 1];
	char *tokenizer; /* or NULL */
};

/* --- the files of a source ------------------------------------------------------------------ */

static void add_shard(struct source *s, char *path)
{
	s->shard = xrealloc(s->shard, (s->shards + 1) * sizeof(*s->shard));
	s->shard[s->shards++] = (struct shard){ .path = path };
}

static bool has_suffix(const char *name)
{
	size_t length = strlen(name), suffix = sizeof(SHARD_SUFFIX) - 1;
	return length > suffix && strcmp(name + length - suffix, SHARD_SUFFIX) == 0;
}

static int by_path(const void *a, const void *b)
{
	const struct shard *x = a, *y = b;
	return strcmp(x->path, y->path);
}

static int list_folder(struct source *s, const char *folder, struct err *err);

/* `lbworker tokenize` puts what is for training in a folder of its own. */
static int list_train(struct source *s, const char *folder, struct err *err)
{
	char *train = path_join("%s/train", folder);
	struct stat st;
	int rc = stat(train, &st) == 0 && S_ISDIR(st.st_mode) ? list_folder(s, train, err) : 0;

	free(train);
	return rc;
}

static int list_folder(struct source *s, const char *folder, struct err *err)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	if (!dir)
		return err_errno(err, "%s", folder);
	errno = 0;
	while ((entry = readdir(dir)) != NULL) {
		if (has_suffix(entry->d_name))
			add_shard(s, path_join("%s/%s", folder, entry->d_name));
		errno = 0;
	}
	/* a listing that broke off is not all of the data */
	int rc = errno != 0 ? err_errno(err, "%s", folder) : 0;
	closedir(dir);
	if (rc || (!s->shard && list_train(s, folder, err)))
		return -1;
	if (!s->shard)
		return err_set(err, ERR_NOT_FOUND,
			       "%s: holds no file *%s (other files need a pattern: %s/*.bin)",
			       folder, SHARD_SUFFIX, folder);
	qsort(s->shard, s->shards, sizeof(*s->shard), by_path);
	return 0;
}

static int list_pattern(struct source *s, const char *pattern, struct err *err)
{
	glob_t found = { 0 };
	int rc = glob(pattern, 0, NULL, &found);

	for (size_t i = 0; rc == 0 && i < found.gl_pathc; i++)
		add_shard(s, xstrdup(found.gl_pathv[i]));
	globfree(&found);
	if (!s->shard)
		return err_set(err, ERR_NOT_FOUND, "%s: no file matches", pattern);
	qsort(s->shard, s->shards, sizeof(*s->shard), by_path);
	return 0;
}

static int list_shards(struct source *s, const char *path, struct err *err)
{
	struct stat st;

	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		return list_folder(s, path, err);
	if (stat(path, &st) != 0 && strpbrk(path, "*?["))
		return list_pattern(s, path, err);
	add_shard(s, xstrdup(path));
	return 0;
}

/* Whether tokenize, which names its parts so, was to write another one that is not there. */
static bool is_unfinished(const struct shard *s)
{
	json_t *notes = s->notes ? js_parse(s->notes, s->notes_bytes, NULL) : NULL;
	const uint64_t part = (uint64_t)js_int(notes, "part", 0);
	const char *base = path_base(s->path);
	char *name = xasprintf("%05" PRIu64 ".tokens", part),
	     *next = xasprintf("%.*s%05" PRIu64 ".tokens", (int)(base - s->path), s->path,
			       part + 1);
	bool is_open = strcmp(js_str(notes, "split", ""), "train") == 0 &&
		       !js_bool(notes, "is_last", true) && strcmp(base, name) == 0 &&
		       !file_exists(next);

	json_decref(notes);
	free(name);
	free(next);
	return is_open;
}

static int open_source(struct data *d, struct source *s, const char *path, bool verify,
		       struct err *err)
{
	uint64_t tokens = 0;

	if (list_shards(s, path, err))
		return -1;
	s->first = xcalloc(s->shards + 1, sizeof(*s->first));
	for (size_t i = 0; i < s->shards; i++) {
		if (shard_open(&s->shard[i], d->vocab, verify, err))
			return -1;
		uint64_t count = s->shard[i].token_count;
		tokens += count;
		d->short_files += count <= d->seq;
		if (is_unfinished(&s->shard[i]))
			d->unfinished = s->shard[i].path;
		s->first[i + 1] = s->first[i] + (count == 0 ? 0 : (count - 1) / d->seq);
	}
	if (s->first[s->shards] == 0)
		return err_set(err, ERR_USAGE,
			       "%s: %" PRIu64 " tokens are not one sample of %zu + 1", path, tokens,
			       d->seq);
	d->tokens += tokens;
	d->samples += s->first[s->shards];
	return 0;
}

/* --- mixing --------------------------------------------------------------------------------- */

static int parse_mix(const char *text, double *weight, const char **path, struct err *err)
{
	char *end;

	*weight = strtod(text, &end);
	if (end == text || *end != ' ' || !isfinite(*weight) || *weight <= 0)
		return err_set(err, ERR_USAGE,
			       "\"%.100s\": must be a weight above 0, a space, and a path", text);
	*path = end + strspn(end, " ");
	return 0;
}

/* Cumulative shares, each rounded: together they are a block exactly. */
static int share_out(struct data *d, struct err *err)
{
	double all = 0, so_far = 0;
	uint64_t before = 0;

	for (size_t i = 0; i < d->sources; i++)
		all += d->source[i].weight;
	for (size_t i = 0; i < d->sources; i++) {
		struct source *s = &d->source[i];
		so_far += s->weight;
		uint64_t end = (uint64_t)llround(so_far / all * MIX_BLOCK);
		s->before = before;
		s->quota = end - before;
		before = end;
		if (s->quota == 0)
			return err_set(err, ERR_USAGE,
				       "weight %g of %g is less than one sample in %d", s->weight,
				       all, MIX_BLOCK);
	}
	return 0;
}

static void name_data(struct data *d)
{
	XXH3_state_t state;
	XXH128_canonical_t digest;

	XXH3_128bits_reset(&state);
	for (size_t k = 0; k < d->sources; k++) {
		const struct source *s = &d->source[k];
		if (d->sources > 1)
			XXH3_128bits_update(&state, &s->quota, sizeof(s->quota));
		for (size_t i = 0; i < s->shards; i++)
			XXH3_128bits_update(&state, s->shard[i].digest, SHARD_DIGEST_BYTES);
	}
	XXH128_canonicalFromHash(&digest, XXH3_128bits_digest(&state));
	for (size_t i = 0; i < SHARD_DIGEST_BYTES; i++)
		snprintf(d->digest + 2 * i, 3, "%02x", digest.digest[i]);
}

/* --- the tokenizer that goes along --------------------------------------------------------- */

/* Whether the tokens of this file were made with it. */
static bool is_made_with(const struct shard *s, const char *tokenizer)
{
	json_t *notes = s->notes ? js_parse(s->notes, s->notes_bytes, NULL) : NULL;
	char digest[2 * SHARD_DIGEST_BYTES + 1];
	bool is_same = notes && tokenizer_file_digest(tokenizer, digest, NULL) == 0 &&
		       strcmp(js_str(notes, "tokenizer_digest", ""), digest) == 0;

	json_decref(notes);
	return is_same;
}

/* Beside a file of tokens, or beside its folder. */
static void find_tokenizer(struct data *d)
{
	for (size_t i = 0; i < d->sources && !d->tokenizer; i++) {
		const struct shard *s = &d->source[i].shard[0];
		char *folder = xstrdup(s->path);
		for (int up = 0; up < 2 && !d->tokenizer; up++) {
			char *slash = strrchr(folder, '/');
			if (slash)
				*slash = '\0';
			d->tokenizer = tokenizer_file_in(slash ? folder : ".");
			if (d->tokenizer && !is_made_with(s, d->tokenizer)) {
				free(d->tokenizer);
				d->tokenizer = NULL;
			}
			if (!slash)
				break;
		}
		free(folder);
	}
}

static int open_all(struct data *d, const struct data_options *o, struct err *err)
{
	if (d->sources > MIX_SOURCES_MAX)
		return err_set(err, ERR_USAGE, "more than %d sources", MIX_SOURCES_MAX);
	for (size_t i = 0; i < d->sources; i++) {
		struct source *s = &d->source[i];
		const char *path = o->path;
		s->weight = 1;
		if (!path && parse_mix(o->mix[i], &s->weight, &path, err))
			return -1;
		if (!path || open_source(d, s, path, o->verify, err))
			return -1;
	}
	if (share_out(d, err))
		return -1;
	name_data(d);
	find_tokenizer(d);
	return 0;
}

const char *data_tokenizer(const struct data *d)
{
	return d->tokenizer;
}

struct data *data_open(const struct data_options *o, struct err *err)
{
	struct data *d = xcalloc(1, sizeof(*d));

	d->seq = o->seq;
	d->vocab = o->vocab;
	d->seed = o->seed;
	d->sources = o->path ? 1 : o->mix_count;
	d->source = xcalloc(d->sources, sizeof(*d->source));
	if (open_all(d, o, err)) {
		data_close(d);
		return NULL;
	}
	return d;
}

void data_close(struct data *d)
{
	if (!d)
		return;
	for (size_t k = 0; k < d->sources; k++) {
		struct source *s = &d->source[k];
		for (size_t i = 0; i < s->shards; i++)
			shard_close(&s->shard[i]);
		free(s->shard);
		free(s->first);
	}
	free(d->source);
	free(d->tokenizer);
	free(d);
}

uint64_t data_tokens(const struct data *d)
{
	return d->tokens;
}

uint64_t data_samples(const struct data *d)
{
	return d->samples;
}

size_t data_short_files(const struct data *d)
{
	return d->short_files;
}

const char *data_unfinished(const struct data *d)
{
	return d->unfinished;
}

const char *data_digest(const struct data *d)
{
	return d->digest;
}

/* --- samples -------------------------------------------------------------------------------- */

/* The source of sample `number`, and in *local how many samples it gave before. */
static size_t find_source(const struct data *d, uint64_t number, uint64_t *local)
{
	uint64_t block = number / MIX_BLOCK;
	const struct rng mix = { .seed = d->seed, .stream = RNG_MIX, .step = (uint32_t)block };
	size_t i = 0;

	*local = number;
	if (d->sources == 1)
		return 0;
	uint64_t place = rng_permute(&mix, number % MIX_BLOCK, MIX_BLOCK);
	while (place >= d->source[i].before + d->source[i].quota)
		i++;
	*local = block * d->source[i].quota + place - d->source[i].before;
	return i;
}

static int copy_sample(const struct data *d, const struct shard *s, uint64_t first, int32_t *tokens,
		       int32_t *targets, struct err *err)
{
	for (size_t i = 0; i <= d->seq; i++) {
		uint64_t token = shard_token(s, first + i);
		if (token >= d->vocab)
			return err_set(err, ERR_USAGE,
				       "%s: token %" PRIu64 " at %" PRIu64
				       " is outside the vocabulary of %" PRIu64,
				       s->path, token, first + i, d->vocab);
		if (i < d->seq)
			tokens[i] = (int32_t)token;
		if (i > 0)
			targets[i - 1] = (int32_t)token;
	}
	return 0;
}

int data_sample(const struct data *d, uint64_t number, int32_t *tokens, int32_t *targets,
		struct err *err)
{
	uint64_t local;
	size_t which = find_source(d, number, &local);
	const struct source *s = &d->source[which];
	uint64_t samples = s->first[s->shards];
	const struct rng order = { .seed = d->seed ^ (uint64_t)which << SOURCE_SHIFT,
				   .stream = RNG_ORDER,
				   .step = (uint32_t)(local / samples) };
	uint64_t sample = rng_permute(&order, local % samples, samples);
	size_t low = 0, high = s->shards;

	while (high - low > 1) { /* the last shard that begins at or before it */
		size_t middle = low + (high - low) / 2;
		if (s->first[middle] <= sample)
			low = middle;
		else
			high = middle;
	}
	return copy_sample(d, &s->shard[low], (sample - s->first[low]) * d->seq, tokens, targets,
			   err);
}
