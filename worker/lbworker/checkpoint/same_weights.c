/* SPDX-License-Identifier: MIT */
/* same_weights.c - names, sizes, and bytes from all over each file: of weights of another training
 * hardly any are the same. */
#include "worker/lbworker/checkpoint/same_weights.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/fnv.h"
#include "common/base/paths.h"
#include "common/base/text.h"

enum { SAMPLES = 64, SAMPLE_BYTES = 4096 };

static int add_file(const char *path, uint64_t *digest, struct err *err)
{
	unsigned char bytes[SAMPLE_BYTES];
	struct stat st;
	ssize_t got = 0;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) != 0)
		got = -1;
	for (int i = 0; got >= 0 && i < SAMPLES; i++) {
		got = pread(fd, bytes, sizeof(bytes), st.st_size / SAMPLES * i);
		for (ssize_t k = 0; k < got; k++)
			*digest = fnv_add(*digest, bytes[k]);
	}
	if (got >= 0)
		*digest = fnv_add(*digest, (uint64_t)st.st_size);
	int rc = got < 0 ? err_errno(err, "%s", path) : 0;
	if (fd >= 0)
		close(fd);
	return rc;
}

/* As programs name files of weights; what else lies there may differ. */
static int is_weights(const struct dirent *entry)
{
	static const char *const ends[] = { ".safetensors", ".bin", ".pt", ".pth", ".distcp" };

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (text_ends_with(entry->d_name, ends[i]))
			return 1;
	return 0;
}

static int add_folder(const char *path, uint64_t *digest, struct err *err)
{
	struct dirent **entry;
	int count = scandir(path, &entry, is_weights, alphasort), rc = 0;

	if (count < 0)
		return err_errno(err, "%s", path);
	for (int i = 0; i < count; i++) {
		char *file = path_join("%s/%s", path, entry[i]->d_name);
		*digest = fnv_add_text(*digest, entry[i]->d_name);
		if (rc == 0)
			rc = add_file(file, digest, err);
		free(file);
		free(entry[i]);
	}
	free(entry);
	return rc;
}

int same_weights(struct ranks *ranks, const char *path, struct err *err)
{
	struct ranks_facts facts = { 0 };
	uint64_t digest = FNV_START;
	struct stat st;

	if (ranks->size == 1)
		return 0;
	bool is_folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	if (is_folder ? add_folder(path, &digest, err) : add_file(path, &digest, err))
		return -1;
	snprintf(facts.weights, sizeof(facts.weights), "%016" PRIx64, digest);
	gethostname(facts.host, sizeof(facts.host) - 1);
	return ranks_compare(ranks, &facts, err) ? err_wrap(err, "%s", path) : 0;
}
