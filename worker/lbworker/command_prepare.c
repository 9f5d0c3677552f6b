/* SPDX-License-Identifier: MIT */
/* command_prepare.c - lbworker prepare: texts, or token files of any format, to one shard. */
#include "worker/lbworker/command.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "worker/lbworker/data.h"

struct arguments {
	const char *out;
	bool joins;
	int64_t document_start;		/* -1: each file is a document */
	char **files;			/* borrowed words */
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
			return err_set(err, ERR_USAGE, "%s: there is no such option; --out FILE.tokens, "
				       "--join, --document-start ID", word);
		} else {
			a->files[a->count++] = argv[i];
		}
	}
	if (!a->out)
		return err_set(err, ERR_USAGE, "prepare needs --out FILE.tokens");
	if (a->count == 0)
		return err_set(err, ERR_USAGE, "prepare needs at least one %s file",
			       a->joins ? "token" : "text");
	if (a->document_start >= 0 && !a->joins)
		return err_set(err, ERR_USAGE, "--document-start goes with --join");
	return 0;
}

int command_prepare(int argc, char **argv)
{
	struct arguments a = { .document_start = -1,
			       .files = xcalloc((size_t)argc, sizeof(char *)) };
	struct err err = { 0 };
	uint64_t tokens = 0, documents = 0;
	int rc = parse(&a, argc, argv, &err);

	documents = a.count;
	if (rc == 0 && a.joins)
		rc = data_join(a.out, a.files, a.count, a.document_start, &tokens, &documents, &err);
	else if (rc == 0)
		rc = data_prepare(a.out, a.files, a.count, &tokens, &err);
	free(a.files);
	if (rc)
		return command_failed(&err);
	printf("%s: %" PRIu64 " tokens in %" PRIu64 " document%s\n", a.out, tokens, documents,
	       documents == 1 ? "" : "s");
	return EXIT_DONE;
}
