/* SPDX-License-Identifier: MIT */
/* checkpoint_files.c - are a checkpoint's files whole, each by itself and beside those of the one
 * before? */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/checkpoint/checkpoint_parts.h"
#include "common/checkpoint/entry_names.h"
#include "common/checkpoint/layouts.h"
#include "common/checkpoint/whole.h"

enum { INDEX_MAX_BYTES = 64 * 1024 * 1024, NEWEST_SLACK_BYTES = 4096, PAGE_BYTES = 4096 };

/* Files that say something by being there may be empty. */
static bool checkpoint_is_mark(const char *name)
{
	static const char *const words[] = {
		"done", "complete",  "success", "finished", "ok",     "ready",  "lock",
		"keep", "committed", "init",    "log",      "stderr", "stdout",
	};
	const char *base = path_base(name);

	if (name_is_data(base))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasestr(base, words[i]))
			return true;
	}
	return false;
}

/* "STABLE", "_COMMIT": empty, what is called so is a mark, too. */
static bool is_in_capitals(const char *name)
{
	bool has_letter = false;

	for (; *name; name++) {
		if (*name == '.' || islower((unsigned char)*name))
			return false;
		has_letter |= isupper((unsigned char)*name) != 0;
	}
	return has_letter;
}

/* What the file at `path` (`name`, for people) names must be beside it, and hold something. */
static int check_named(const char *path, const char *name, const char *shard, struct err *err)
{
	char *at = path_join("%.*s/%s", (int)(strrchr(path, '/') - path), path, shard);
	struct stat st;
	int rc = 0;

	if (stat(at, &st) < 0)
		rc = err_set(err, ERR_NOT_FOUND, "%s: names %.120s, which is missing", name, shard);
	else if (st.st_size == 0)
		rc = err_set(err, ERR_IO, "%s: names %.120s, which is empty", name, shard);
	free(at);
	return rc;
}

/* "weight_map": {tensor: file} */
static int check_index(const char *path, const char *name, struct err *err)
{
	const char *tensor;
	json_t *index = js_load(path, INDEX_MAX_BYTES, err), *file;
	int rc = index ? 0 : -1;

	json_object_foreach(json_object_get(index, "weight_map"), tensor, file) {
		const char *shard = json_string_value(file);

		if (!shard || shard[0] == '/' || strstr(shard, ".."))
			continue;
		rc = check_named(path, name, shard, err);
		if (rc < 0)
			break;
	}
	json_decref(index);
	return rc;
}

/* torch.distributed.checkpoint's is a pickle, in which names of files stand as they are, behind
 * their length, which is no character of a name. Those that lie elsewhere are not looked for. */
static int check_metadata(const char *path, const char *name, struct err *err)
{
	static const char end[] = ".distcp";
	size_t len = 0, end_len = sizeof(end) - 1;
	char *text = file_read(path, INDEX_MAX_BYTES, &len, NULL);
	int rc = 0;

	for (char *at = text; at && rc == 0; at += end_len) {
		const char *begin;
		char *shard;

		at = memmem(at, len - (size_t)(at - text), end, end_len);
		if (!at)
			break;
		begin = at;
		while (begin > text && isgraph((unsigned char)begin[-1]))
			begin--;
		shard = xstrndup(begin, (size_t)(at - begin) + end_len);
		if (layout_name_matches("__#_#.distcp", shard, NULL))
			rc = check_named(path, name, shard, err);
		free(shard);
	}
	free(text);
	return rc;
}

static int check_part(const char *base, const struct checkpoint_part *p, struct look *look,
		      struct err *err)
{
	char *path = path_join("%s/%s", base, p->name);
	bool is_proven = false;
	struct err why = { 0 };
	int rc = 0;

	if (file_is_whole(path, look, &is_proven, &why) < 0) {
		rc = err_set(err, why.code, "%s %s", p->name, why.text);
		if (err)
			err->sys = why.sys;
	} else if (text_ends_with(p->name, ".index.json")) {
		rc = check_index(path, p->name, err);
	} else if (look->is_deep && strcmp(path_base(p->name), ".metadata") == 0) {
		/* not of a part that waits on a node for those of the others, nor at any price */
		rc = check_metadata(path, p->name, err);
	}
	free(path);
	return rc;
}

/* A folder somewhere inside that torch.distributed.checkpoint wrote has its .metadata last. */
static int check_distributed(const struct checkpoint *c, struct err *err)
{
	for (size_t i = 0; i < c->part_count; i++) {
		const char *name = c->parts[i].name, *slash = strrchr(name, '/');
		bool found = false;
		char *mark;

		if (!text_ends_with(name, ".distcp"))
			continue;
		mark = path_join("%.*s.metadata", slash ? (int)(slash - name) + 1 : 0, name);
		for (size_t k = 0; k < c->part_count && !found; k++)
			found = strcmp(c->parts[k].name, mark) == 0 ||
				text_ends_with(c->parts[k].name, "metadata.json");
		if (!found)
			err_set(err, ERR_NOT_FOUND, "it is not complete: no %s", mark);
		free(mark);
		return found ? 0 : -1;
	}
	return 0;
}

int checkpoint_check_parts(struct checkpoint *c, bool may_be_empty, struct look *look,
			   struct err *err)
{
	char *base = checkpoint_base(c);
	int rc = 0;

	if (c->part_count == 0)
		rc = err_set(err, ERR_NOT_FOUND, "holds no file");
	for (size_t i = 0; i < c->part_count && rc == 0; i++)
		if (c->parts[i].bytes > 0 ||
		    !(may_be_empty || checkpoint_is_mark(c->parts[i].name) ||
		      is_in_capitals(path_base(c->parts[i].name))))
			rc = check_part(base, &c->parts[i], look, err);
	if (rc == 0 && !may_be_empty)
		rc = check_distributed(c, err);
	free(base);
	return rc;
}

/* --- beside the one before -------------------------------------------------------------------- */

/* A name with all numbers made alike, so that model_20.pt is model_10.pt's sister. */
static void shape_of(const char *name, char out[256])
{
	size_t len = 0;

	while (*name && len < 255) {
		size_t run = text_digits(name);

		out[len++] = run > 0 ? '#' : *name;
		name += run > 0 ? run : 1;
	}
	out[len] = '\0';
}

static const struct checkpoint_part *sister(const struct checkpoint *c,
					    const struct checkpoint_part *p)
{
	char want[256], have[256];

	shape_of(p->name, want);
	for (size_t i = 0; i < c->part_count; i++) {
		shape_of(c->parts[i].name, have);
		if (strcmp(want, have) == 0)
			return &c->parts[i];
	}
	return NULL;
}

bool checkpoint_is_called_like(const char *name, const char *other)
{
	char mine[256], theirs[256];

	shape_of(name, mine);
	shape_of(other, theirs);
	return strcmp(mine, theirs) == 0;
}

bool checkpoint_is_sister(const struct checkpoint *c, const struct checkpoint *older)
{
	if (!c->is_file)
		return checkpoint_is_called_like(path_base(c->path), path_base(older->path));
	for (size_t i = 0; i < c->part_count; i++)
		if (sister(older, &c->parts[i]))
			return true;
	return false;
}

/* How many are called like it: ranks have a file each. */
static size_t count_alike(const struct checkpoint *c, const struct checkpoint_part *p)
{
	char want[256], have[256];
	size_t count = 0;

	shape_of(p->name, want);
	for (size_t i = 0; i < c->part_count; i++) {
		shape_of(c->parts[i].name, have);
		count += strcmp(want, have) == 0;
	}
	return count;
}

/* What a file of that size may be smaller than it was. The newest may have been cut short anywhere;
 * of older ones it is known that the trainer went on. */
static int64_t slack_of(int64_t bytes, bool is_newest)
{
	int64_t slack = bytes / (is_newest ? 256 : 8);

	return is_newest && slack > NEWEST_SLACK_BYTES ? NEWEST_SLACK_BYTES : slack;
}

/* Whoever is killed while he writes leaves whole pages. */
static bool ends_with_a_page(int64_t bytes)
{
	return bytes % PAGE_BYTES == 0;
}

/* "loss: 0.25" may follow "loss: 0.123456". */
enum { NOTE_SLACK_BYTES = 64 };

/* A file that nothing proves whole, and that is smaller than it was. */
static bool is_smaller(const struct checkpoint *c, const struct checkpoint_part *p,
		       const struct checkpoint_part *before, bool is_newest)
{
	char *base, *path;
	bool is_packed, is_note, is_proven = false;
	struct look look = { 0 };

	if (checkpoint_is_mark(p->name) || p->bytes >= before->bytes)
		return false;
	base = checkpoint_base(c);
	path = path_join("%s/%s", base, p->name);
	is_packed = file_is_packed(path);
	is_note = before->bytes - p->bytes <= NOTE_SLACK_BYTES && file_is_note(path);
	file_is_whole(path, &look, &is_proven, NULL);
	free(path);
	free(base);
	if (is_proven || is_note)
		return false;
	return p->bytes < before->bytes - slack_of(before->bytes, is_newest && !is_packed) ||
	       (is_newest && ends_with_a_page(p->bytes));
}

/* "d/4a3da44d9d263a840cf9b21357c560e1", as TensorStore calls its data: each time another one. */
static bool is_random(const char *name)
{
	enum { DIGITS_LEAST = 16 };
	const char *base = path_base(name);
	size_t len = strspn(base, "0123456789abcdef");

	return base[len] == '\0' && len >= DIGITS_LEAST && strpbrk(base, "abcdef");
}

static bool is_metadata(const char *name)
{
	return name[0] == '.' && strstr(name, "metadata");
}

/* Hidden files are nobody's, but for some that are written last: ".snapshot_metadata". What somebody
 * puts into one checkpoint, a README, results, is not needed in the next. */
static bool may_come_and_go(const char *name)
{
	const char *base = path_base(name);

	return name_is_temporary(is_metadata(base) ? base + 1 : base) || is_random(name) ||
	       name_is_other_file(name);
}

static int compare_part(const struct checkpoint *c, const struct checkpoint *older,
			const struct checkpoint_part *p, bool is_newest, struct err *err)
{
	const struct checkpoint_part *mine = sister(c, p);

	if (!mine && checkpoint_is_copy(path_base(p->name)))
		return 0;
	if (!mine)
		return err_set(err, ERR_NOT_FOUND,
			       "it is not complete: nothing like %s, which %s has", p->name,
			       path_base(older->path));
	if (count_alike(c, p) < count_alike(older, p))
		return err_set(err, ERR_NOT_FOUND,
			       "it is not complete: %zu files like %s, %s has %zu",
			       count_alike(c, p), mine->name, path_base(older->path),
			       count_alike(older, p));
	/* of fewer shards it tells less */
	if (!is_metadata(path_base(p->name)) && is_smaller(c, mine, p, is_newest))
		return err_set(err, ERR_IO, "%s has %lld bytes, %s of %s has %lld", mine->name,
			       (long long)mine->bytes, path_base(p->name), path_base(older->path),
			       (long long)p->bytes);
	return 0;
}

int checkpoint_compare(const struct checkpoint *c, const struct checkpoint *older, bool is_newest,
		       struct err *err)
{
	int rc = 0;

	for (size_t i = 0; older->bytes > 0 && i < older->part_count && rc == 0; i++) {
		const struct checkpoint_part *p = &older->parts[i];

		if (!may_come_and_go(p->name))
			rc = compare_part(c, older, p, is_newest, err);
	}
	return rc;
}

int checkpoint_compare_commit(struct checkpoint *c, const struct checkpoint *older, struct err *err)
{
	for (size_t i = 0; i < older->part_count; i++) {
		const char *name = older->parts[i].name;

		if (!text_begins_with(path_base(name), "commit_success") ||
		    sister(c, &older->parts[i]))
			continue;
		c->is_unfinished = true;
		return err_set(err, ERR_NOT_FOUND,
			       "it is not complete: nothing like %s, which %s has", name,
			       path_base(older->path));
	}
	return 0;
}
