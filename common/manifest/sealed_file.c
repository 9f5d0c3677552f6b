/* SPDX-License-Identifier: MIT */
/* sealed_file.c - the digest is renamed into place before the file that it is of. */
#include "common/manifest/sealed_file.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/manifest/manifest.h"

enum {
	LINE = 33, /* a digest and its line end */
	KEPT = 3,  /* of the files before */
};

static char *read_seal(const char *path, struct err *err)
{
	char *seal = path_join("%s.xxh3", path);
	char *text = file_read(seal, (KEPT + 1) * LINE, NULL, err);

	free(seal);
	return text;
}

int sealed_file_place(const char *made, const char *path, struct err *err)
{
	char digest[33], *seal, *before, *text;
	struct err none = { 0 };
	int rc;

	if (manifest_digest_file(made, digest, NULL, err) < 0)
		return -1;
	seal = path_join("%s.xxh3", path);
	before = read_seal(path, &none);
	text = xasprintf("%s\n%.*s", digest, KEPT * LINE, before ? before : "");
	rc = file_write_atomic(seal, text, strlen(text), 0640, err);
	if (rc == 0 && rename(made, path) < 0)
		rc = err_errno(err, "%s", path);
	if (rc == 0)
		rc = file_sync_name(path, err);
	free(text);
	free(before);
	free(seal);
	return rc;
}

enum seal sealed_file_check(const char *path, struct err *err)
{
	struct err why = { 0 };
	char digest[33], *text = read_seal(path, &why);
	bool holds;

	if (!text && why.code == ERR_NOT_FOUND)
		return SEAL_MISSING;
	if (!text || manifest_digest_file(path, digest, NULL, &why) < 0) {
		free(text);
		err_set(err, ERR_IO, "%s", why.text);
		return SEAL_BROKEN;
	}
	holds = strstr(text, digest) != NULL;
	free(text);
	if (holds)
		return SEAL_HOLDS;
	err_set(err, ERR_IO,
		"%s: some byte has changed since it was written (its digest is not in %s.xxh3)",
		path, path);
	return SEAL_BROKEN;
}
