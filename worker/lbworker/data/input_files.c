/* SPDX-License-Identifier: MIT */
/* input_files.c - folders become the files below them, in an order that does not depend on the
 * disk: the same texts give the same tokens everywhere. */
#include "worker/lbworker/data/input_files.h"

#include <fts.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/text.h"
#include "worker/lbworker/text/documents.h"

enum { LOOK_BYTES = 8192 };

/* In a folder lie programs and pictures, too: texts have no zero bytes. */
static bool is_text(const char *path)
{
	char bytes[LOOK_BYTES];
	size_t count = documents_begin(path, bytes, LOOK_BYTES);

	return !documents_alien(bytes, count) && !memchr(bytes, '\0', count);
}

static int check_named(const char *path, struct err *err)
{
	char bytes[LOOK_BYTES];
	const char *what = documents_alien(bytes, documents_begin(path, bytes, LOOK_BYTES));

	return what ? err_set(err, ERR_USAGE, DOCUMENTS_ALIEN, path, what) : 0;
}

static int by_name(const FTSENT **a, const FTSENT **b)
{
	return strcmp((*a)->fts_name, (*b)->fts_name);
}

enum { OTHERS_SHOWN = 3 };

static void log_others(const char *path, size_t number)
{
	if (number <= OTHERS_SHOWN)
		log_warn("%s: is left out: no text, but bytes of another kind", path);
}

static int add_below(struct strv *out, FTS *walk, struct err *err)
{
	FTSENT *entry;
	size_t others = 0;

	while ((entry = fts_read(walk)) != NULL) {
		if (entry->fts_level > FTS_ROOTLEVEL && entry->fts_name[0] == '.')
			fts_set(walk, entry, FTS_SKIP);
		else if (entry->fts_info == FTS_F && !is_text(entry->fts_path))
			log_others(entry->fts_path, ++others);
		else if (entry->fts_info == FTS_F)
			strv_add(out, xstrdup(entry->fts_path));
		else if (entry->fts_errno != 0 && entry->fts_info != FTS_SLNONE)
			return err_set(err, ERR_IO, "%s: %s", entry->fts_path,
				       strerror(entry->fts_errno));
	}
	if (others > OTHERS_SHOWN)
		log_warn("%zu files in all are left out: no texts", others);
	return 0;
}

static int add_folder(struct strv *out, char *folder, struct err *err)
{
	char *const roots[] = { folder, NULL };
	size_t before = out->count;
	FTS *walk = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, by_name);
	int rc = walk ? add_below(out, walk, err) : err_errno(err, "%s", folder);

	if (walk)
		fts_close(walk);
	if (rc == 0 && out->count == before)
		rc = err_set(err, ERR_NOT_FOUND, "%s: holds no file of text", folder);
	return rc;
}

int input_files(struct strv *out, char *const *names, size_t count, struct err *err)
{
	for (size_t i = 0; i < count; i++) {
		struct stat st;
		if (stat(names[i], &st) != 0)
			return err_set(err, ERR_NOT_FOUND, "%s: no such file", names[i]);
		/* what a pipe begins with can be read once only */
		if (S_ISREG(st.st_mode) && check_named(names[i], err))
			return -1;
		if (!S_ISDIR(st.st_mode))
			strv_add(out, xstrdup(names[i]));
		else if (add_folder(out, names[i], err))
			return -1;
	}
	return 0;
}

void input_tell_json(const struct strv *files)
{
	static const char *const ends[] = { ".json", ".json.gz", ".json.zst" };

	for (size_t i = 0; i < files->count; i++) {
		bool is_json = false;
		for (size_t e = 0; e < sizeof(ends) / sizeof(ends[0]); e++)
			is_json = is_json || text_ends_with(files->items[i], ends[e]);
		if (!is_json)
			return;
	}
	log_warn("%s: is JSON, and read as text, as it stands; --field text reads the texts of "
		 "JSON lines",
		 files->items[0]);
}

int input_check_plain(const char *path, const char *bytes, size_t count, const char *who,
		      struct err *err)
{
	bool is_gzip = count >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0;
	bool is_zstd = count >= 4 && memcmp(bytes, "\x28\xb5\x2f\xfd", 4) == 0;
	const char *what = documents_alien(bytes, count);

	if (what)
		return err_set(err, ERR_USAGE, "%s: is %s, %s takes plain text", path, what, who);
	if (!is_gzip && !is_zstd)
		return 0;
	return err_set(err, ERR_USAGE,
		       "%s: is compressed, %s takes plain text: unpack it first (lbworker "
		       "tokenize reads it as it is)",
		       path, who);
}
