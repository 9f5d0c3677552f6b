/* SPDX-License-Identifier: MIT */
/* gemm_choices.c - the algorithms chosen for products, kept as text: in the checkpoint, so that a
 * run goes on with the same bits, and in a cache file, so that the next one need not measure. */
#include "kernels/cuda/lib/gemm.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ALGO_WORDS = 8, LINE_BYTES = 512 };

/* --- kinds -------------------------------------------------------------------------------- */

struct product *gemm_find(struct gemm_state *s, const struct kind *kind)
{
	for (size_t i = 0; i < s->products; i++)
		if (memcmp(&s->product[i].kind, kind, sizeof(*kind)) == 0)
			return &s->product[i];
	return NULL;
}

struct product *gemm_add(struct gemm_state *s, const struct kind *kind)
{
	if (s->products == s->room) {
		size_t room = s->room ? 2 * s->room : 32;
		struct product *grown = realloc(s->product, room * sizeof(*grown));
		if (!grown)
			return NULL;
		s->product = grown;
		s->room = room;
	}
	struct product *p = &s->product[s->products++];
	*p = (struct product){ .kind = *kind };
	return p;
}

/* --- choices as text ---------------------------------------------------------------------- */

/* Algorithms mean something to one library on one GPU. */
static void header(const struct device *dev, char out[LINE_BYTES])
{
	snprintf(out, LINE_BYTES, "gemm 2 cuBLASLt %zu %s", cublasLtGetVersion(), dev->name);
}

static void write_choices(const struct device *dev, FILE *to)
{
	const struct gemm_state *s = dev->gemms;
	char first[LINE_BYTES];

	header(dev, first);
	fprintf(to, "%s\n", first);
	for (size_t i = 0; i < s->products; i++) {
		const struct kind *k = &s->product[i].kind;
		fprintf(to,
			"%" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64
			" %" PRIu32 " %" PRIu32,
			k->m, k->n, k->k, k->lda, k->ldb, k->ldc, k->flags, k->align);
		for (size_t w = 0; !s->product[i].is_refused && w < ALGO_WORDS; w++)
			fprintf(to, " %" PRIx64, s->product[i].algo.data[w]);
		fputs(s->product[i].is_refused ? " refused\n" : "\n", to);
	}
}

char *cuda_choices(struct device *dev)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	if (!to)
		return NULL;
	write_choices(dev, to);
	if (fclose(to) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

static bool read_choice(const char *line, struct product *out)
{
	uint64_t number[8];
	char *end;

	for (size_t i = 0; i < 8; i++, line = end) {
		number[i] = strtoull(line, &end, 10);
		if (end == line)
			return false;
	}
	*out = (struct product){ .kind = { number[0], number[1], number[2], number[3], number[4],
					   number[5], (uint32_t)number[6], (uint32_t)number[7] },
				 .is_refused = strncmp(line, " refused\n", 9) == 0,
				 .is_compared = true };
	for (size_t w = 0; !out->is_refused && w < ALGO_WORDS; w++, line = end) {
		out->algo.data[w] = strtoull(line, &end, 16);
		if (end == line)
			return false;
	}
	return true;
}

int cuda_choose(struct device *dev, const char *text)
{
	char first[LINE_BYTES];
	size_t length;
	int taken = 0;

	header(dev, first);
	length = strlen(first);
	if (strncmp(text, first, length) != 0 || text[length] != '\n')
		return -1;
	while ((text = strchr(text, '\n')) && *++text) {
		struct product read;
		if (!read_choice(text, &read))
			return -1;
		struct product *p = gemm_find(dev->gemms, &read.kind);
		if (!p)
			p = gemm_add(dev->gemms, &read.kind);
		if (!p)
			return -1;
		if (p->what)
			continue; /* in use already */
		*p = read;
		taken++;
	}
	return taken;
}

/* --- the cache file ----------------------------------------------------------------------- */

static void cache_path(const struct device *dev, char out[LINE_BYTES], const char *behind)
{
	char gpu[64];

	snprintf(gpu, sizeof(gpu), "%s", dev->name);
	for (char *c = gpu; *c; c++)
		if (*c == ' ' || *c == '/')
			*c = '-';
	snprintf(out, LINE_BYTES, "%s/gemm-%s-%zu%s", dev->cache, gpu, cublasLtGetVersion(),
		 behind);
}

void gemm_load_cache(struct device *dev)
{
	char path[LINE_BYTES], *text = NULL;
	size_t room = 0;

	cache_path(dev, path, "");
	FILE *from = dev->cache[0] ? fopen(path, "re") : NULL;
	if (!from)
		return;
	if (getdelim(&text, &room, '\0', from) > 0)
		(void)cuda_choose(dev, text); /* another one's file is measured anew */
	free(text);
	fclose(from);
}

/* By rename: readers see a whole file or none, and ranks of one folder end at the same time. What
 * cannot be kept is measured again next time. */
void gemm_save_cache(struct device *dev)
{
	char path[LINE_BYTES], fresh[LINE_BYTES], behind[32];

	if (!dev->cache[0] || !dev->gemms->is_new)
		return;
	cache_path(dev, path, "");
	snprintf(behind, sizeof(behind), ".new-%ld", (long)getpid());
	cache_path(dev, fresh, behind);
	FILE *to = fopen(fresh, "wxe");
	if (!to)
		return;
	write_choices(dev, to);
	bool good = !ferror(to);
	good = fclose(to) == 0 && good;
	if (!good || rename(fresh, path) != 0)
		remove(fresh);
}
