/* SPDX-License-Identifier: MIT */
/* attempt_file.c - what the files of an attempt's folder share. */
#include "common/run/attempt_file.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"

enum { FILE_MAX_BYTES = 4 * 1024 * 1024, FILE_MODE = 0640 };

json_t *attempt_file_new(const char *token)
{
	json_t *o = json_object();

	js_set_int(o, "version", ATTEMPT_FILE_VERSION);
	js_set_str(o, "token", token);
	return o;
}

int attempt_file_write(json_t *o, const char *folder, const char *name, attempt_file_writer *write,
		       struct err *err)
{
	char *path = path_join("%s/%s", folder, name);
	char *line = js_line(o);
	char *text = xasprintf("%s\n", line);
	int rc = write(path, text, strlen(text), FILE_MODE, err);

	free(text);
	free(line);
	free(path);
	json_decref(o);
	return rc;
}

static int check_file(const json_t *o, struct err *err)
{
	int64_t version = js_int(o, "version", 0);

	if (version < 1)
		return err_set(err, ERR_USAGE, "\"version\" is missing");
	if (version > ATTEMPT_FILE_VERSION)
		return err_set(err, ERR_USAGE, "version %lld is newer than this program",
			       (long long)version);
	return 0;
}

int attempt_file_text(const json_t *o, const char *key, char *out, size_t size, struct err *err)
{
	const char *text = js_str(o, key, "");

	if (strlen(text) >= size)
		return err_set(err, ERR_USAGE, "\"%s\" is longer than %zu bytes", key, size - 1);
	memcpy(out, text, strlen(text) + 1);
	return 0;
}

int attempt_file_token(const json_t *o, char out[TOKEN_HEX + 1], struct err *err)
{
	if (attempt_file_text(o, "token", out, TOKEN_HEX + 1, err) < 0)
		return -1;
	if (strspn(out, "0123456789abcdef") != TOKEN_HEX)
		return err_set(err, ERR_USAGE, "\"token\" must be %d hex digits", TOKEN_HEX);
	return 0;
}

int attempt_file_read(const char *folder, const char *name, attempt_file_filler *fill, void *out,
		      struct err *err)
{
	char *path;
	json_t *o;
	int rc;

	if (folder_lacks(folder, name))
		return err_set(err, ERR_NOT_FOUND, "%s/%s: no such file", folder, name);
	path = path_join("%s/%s", folder, name);
	o = js_load(path, FILE_MAX_BYTES, err);
	rc = o ? 0 : -1;
	if (o && (check_file(o, err) < 0 || fill(o, out, err) < 0))
		rc = err_wrap(err, "%s", path);
	json_decref(o);
	free(path);
	return rc;
}
