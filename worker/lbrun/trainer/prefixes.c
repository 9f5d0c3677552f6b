/* SPDX-License-Identifier: MIT */
/* prefixes.c - the table of prefixes, and how one after the other is taken off a line. */
#include "worker/lbrun/trainer/prefixes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/regexp.h"
#include "common/base/text.h"

#define HOST "(?<node>[A-Za-z0-9][\\w.-]{0,63})"
#define DATE "(?:[A-Z][a-z]{2} [A-Z][a-z]{2} [ \\d]\\d \\d\\d:\\d\\d:\\d\\d \\d{4})"

enum { PREFIXES_MAX = 4 };

/* ROW_GUESS: may as well be the beginning of what was printed */
enum row_kind { ROW_SURE, ROW_SHEPHERD, ROW_GUESS };

/* clang-format off */
static const struct {
	const char *pattern;
	enum row_kind kind;
} rows[] = {
	{"^\\[(?<node>[^\\]:\\s]{1,64}):(?<rank>\\d{1,9})\\] ", ROW_SHEPHERD},
	/* Open MPI and UCX, of a process of that number: "[n1:04711] ", "[n1:4711:0:4711] " */
	{"^\\[(?=[^\\]]*[A-Za-z])" HOST ":(?:\\d{5,}|\\d+:\\d+:\\d+)\\] ", ROW_SURE},
	/* MVAPICH: "[n1:mpi_rank_3][error_sighandler] " */
	{"^\\[" HOST ":mpi_rank_(?<rank>\\d{1,9})\\](?:\\[\\w+\\])? ?", ROW_SURE},
	/* Open MPI's --tag-output and --timestamp-output, Horovod: "[1,3]<stderr>:", "[3]<stdout>:" */
	{"^" DATE "?(?:\\[(?:[^\\],]*,)?(?<rank>\\d{1,9})\\])?(?:\\[" HOST "[^\\]]*\\])?"
	 "<std(?:out|err)>: ?", ROW_SURE},
	/* PyTorch, and torchrun by the name of a role: "[rank3]: ", "[default3]:" */
	{"^\\[[a-z]\\w*?(?<rank>\\d{1,9})\\]: ?", ROW_SURE},
	/* Ray: "(RayTrainWorker pid=4711, ip=10.0.0.1) " */
	{"^\\(\\w[\\w.]* (?:rank=(?<rank>\\d{1,9}), )?pid=\\d+(?:, ip=" HOST ")?\\) ", ROW_SURE},
	/* MPICH, Intel MPI: "[3] ", "[3@n1] " */
	{"^\\[(?<rank>\\d{1,7})(?:@" HOST ")?\\](?!:) ?", ROW_GUESS},
	/* srun --label: "03: " */
	{"^ {0,8}(?<rank>\\d{1,7}): ", ROW_GUESS},
};
/* clang-format on */

enum { ROW_COUNT = sizeof(rows) / sizeof(rows[0]) };

struct prefixes {
	struct regexp *rows[ROW_COUNT];
	int64_t most_ranks;
};

struct prefixes *prefixes_create(bool has_shepherds, int64_t most_ranks)
{
	struct prefixes *p = xcalloc(1, sizeof(*p));

	p->most_ranks = most_ranks;
	for (int i = 0; i < ROW_COUNT; i++) {
		if (rows[i].kind != ROW_SHEPHERD || has_shepherds)
			p->rows[i] = regexp_create(rows[i].pattern, false, NULL);
	}
	return p;
}

void prefixes_destroy(struct prefixes *p)
{
	if (!p)
		return;
	for (int i = 0; i < ROW_COUNT; i++)
		regexp_destroy(p->rows[i]);
	free(p);
}

static void take_group(void *arg, const char *name, const char *text, size_t len)
{
	struct prefix *found = arg;
	double number;

	if (strcmp(name, "node") == 0)
		snprintf(found->node, sizeof(found->node), "%.*s", (int)len, text);
	else if (text_number(text, len, &number))
		found->rank = (int64_t)number;
}

/* Whose line it is, is guessed only as long as it is not known. */
static bool is_wanted(enum row_kind kind, const struct prefix *known)
{
	return kind == ROW_SURE || (kind == ROW_SHEPHERD && !known->is_shepherds) ||
	       (kind == ROW_GUESS && known->rank < 0);
}

/* Are there so many ranks? Of "   1: " the blanks are for numbers of four digits. */
static bool is_likely(const struct prefixes *p, const char *text, int64_t rank)
{
	int64_t least = 1;

	for (size_t width = strspn(text, " 0123456789"); text[0] == ' ' && width > 1; width--)
		least *= 10;
	return rank < p->most_ranks && least < p->most_ranks;
}

/* The length of one; 0 = there is none. */
static size_t find(struct prefixes *p, const char *text, const struct prefix *known,
		   struct prefix *found)
{
	if (!text[0] || (!strchr("[( 0123456789", text[0]) && !strstr(text, "<std")))
		return 0;
	for (int i = 0; i < ROW_COUNT; i++) {
		if (!p->rows[i] || !is_wanted(rows[i].kind, known) ||
		    !regexp_match(p->rows[i], text, strlen(text)))
			continue;
		*found = (struct prefix){
			.rank = -1,
			.is_shepherds = rows[i].kind == ROW_SHEPHERD,
			.is_guess = rows[i].kind == ROW_GUESS,
		};
		regexp_each_group(p->rows[i], text, take_group, found);
		if (!found->is_guess || is_likely(p, text, found->rank))
			return regexp_match_end(p->rows[i]);
	}
	return 0;
}

/* What a rank's own shepherd says counts; else the first that says anything. */
static void merge(struct prefix *known, const struct prefix *found)
{
	bool is_better = found->is_shepherds;

	if (known->is_shepherds)
		return;
	if (known->rank < 0 || is_better)
		known->rank = found->rank;
	if (!known->node[0] || is_better)
		memcpy(known->node, found->node, sizeof(known->node));
	known->is_shepherds |= found->is_shepherds;
	known->is_guess |= found->is_guess;
}

static size_t without_blanks(const char *text, size_t len)
{
	while (len > 0 && text[len - 1] == ' ')
		len--;
	return len;
}

static void cut_behind(char *text, const char *prefix, size_t prefix_len)
{
	size_t len = without_blanks(text, strlen(text));

	prefix_len = without_blanks(prefix, prefix_len);
	if (len >= prefix_len && memcmp(text + len - prefix_len, prefix, prefix_len) == 0)
		text[len - prefix_len] = '\0';
}

char *prefixes_skip(struct prefixes *p, char *line, struct prefix *out)
{
	struct prefix found;
	size_t len;

	*out = (struct prefix){ .rank = -1 };
	for (int i = 0; i < PREFIXES_MAX && (len = find(p, line, out, &found)) > 0; i++) {
		merge(out, &found);
		cut_behind(line + len, line, len);
		line += len;
	}
	return line;
}
