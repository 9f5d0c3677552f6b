/* SPDX-License-Identifier: MIT */
/* prepare.c - lbworker prepare: texts, or token files of any format, to one shard. */
#include "worker/lbworker/commands/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "worker/lbworker/data/data.h"
#include "worker/lbworker/data/input_files.h"
#include "worker/lbworker/data/shard.h"

struct arguments {
	const char *out;
	bool joins;
	int64_t document_start; /* -1: each file is a document */
	char **inputs;          /* borrowed words: files and folders */
	size_t count;
};

static int take_token(int64_t *out, const char *text, struct err *err)
{
	char *end;

	errno = 0;
	*out = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || *out < 0 || *out > UINT32_MAX)
		return err_set(err, ERR_USAGE, "--document-start %s: must be the number of a token",
			       text);
	return 0;
}

static int parse(struct arguments *a, int argc, char **argv, struct err *err)
{
	for (int i = 1; i < argc; i++) {
		const char *word = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
		bool is_out = strcmp(word, "--out") == 0;
		if (strcmp(word, "--join") == 0) {
			a->joins = true;
		} else if (is_out || strcmp(word, "--document-start") == 0) {
			if (!value)
				return err_set(err, ERR_USAGE, "%s needs a value", word);
			if (is_out)
				a->out = value;
			else if (take_token(&a->document_start, value, err))
				return -1;
			i++;
		} else if (word[0] == '-') {
			return err_set(err, ERR_USAGE,
				       "%s: there is no such option; --out FILE.tokens, --join, "
				       "--document-start ID",
				       word);
		} else {
			a->inputs[a->count++] = argv[i];
		}
	}
	if (!a->out)
		return err_set(err, ERR_USAGE,
			       "prepare needs --out FILE.tokens, the file to write");
	if (a->count == 0)
		return err_set(err, ERR_USAGE, "prepare needs at least one %s",
			       a->joins ? "token file" : "text file, or folder of texts");
	if (a->document_start >= 0 && !a->joins)
		return err_set(err, ERR_USAGE, "--document-start goes with --join");
	return 0;
}

/* What lies at --out is written over only if it is tokens, too: `--out *.txt` must not eat the
 * first text. */
static int check_out(const char *out, struct err *err)
{
	struct shard there = { .path = xstrdup(out) };
	const char *slash = strrchr(out, '/');
	char *folder = slash && slash > out ? xstrndup(out, (size_t)(slash - out)) : xstrdup("/");
	struct stat st;
	int rc = 0;

	if (slash && !file_exists(folder))
		rc = err_set(err, ERR_NOT_FOUND, "--out %s: there is no folder %s", out, folder);
	else if (stat(out, &st) == 0 && S_ISDIR(st.st_mode))
		rc = err_set(err, ERR_USAGE,
			     "--out %s: is a folder; name a file in it, like %s/text.tokens", out,
			     out);
	else if (file_exists(out) && shard_open(&there, UINT64_MAX, false, NULL))
		rc = err_set(err, ERR_USAGE,
			     "--out %s: is there already, and no file of tokens; --out names the "
			     "file to write",
			     out);
	shard_close(&there);
	free(folder);
	return rc;
}

static int prepare(const struct arguments *a, struct err *err)
{
	struct strv files = { 0 };
	uint64_t tokens = 0, documents = 0;
	int rc = check_out(a->out, err) || input_files(&files, a->inputs, a->count, err) ? -1 : 0;

	documents = files.count;
	if (rc == 0 && a->joins)
		rc = data_join(a->out, files.items, files.count, a->document_start, &tokens,
			       &documents, err);
	else if (rc == 0)
		rc = data_prepare(a->out, files.items, files.count, &tokens, err);
	if (rc == 0)
		printf("%s: %" PRIu64 " tokens in %" PRIu64 " document%s\n", a->out, tokens,
		       documents, documents == 1 ? "" : "s");
	strv_free(files.items);
	return rc;
}

int command_prepare(int argc, char **argv)
{
	struct arguments a = { .document_start = -1,
			       .inputs = xcalloc((size_t)argc, sizeof(char *)) };
	struct err err = { 0 };
	int rc = parse(&a, argc, argv, &err);

	if (rc == 0 && a.out)
		rc = prepare(&a, &err);
	free(a.inputs);
	return rc ? command_failed(&err) : EXIT_DONE;
}
