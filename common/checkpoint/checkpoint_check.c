/* SPDX-License-Identifier: MIT */
/* checkpoint_check.c - is a checkpoint whole? Its layout's own marks first, then file by file, then
 * beside the one before. */
#include "common/checkpoint/checkpoint_parts.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/checkpoint/manifest.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/checkpoint/whole.h"

enum {
	DEPTH_MAX = 6,
	PARTS_MAX = 65536,
	INDEX_MAX_BYTES = 64 * 1024 * 1024,
	POINTER_MAX_BYTES = 4096,
	LOOKED_AT = 64, /* newest ones; older than these no launch is started from */
};

/* --- its files -------------------------------------------------------------------------------- */

static void read_tree(struct checkpoint *c, const char *path, const char *below, int depth)
{
	DIR *dir = depth <= DEPTH_MAX ? opendir(path) : NULL;
	const struct dirent *entry;

	while (dir && c->part_count < PARTS_MAX && (entry = readdir(dir))) {
		bool is_gone, is_link;
		char *deeper, *name;
		struct stat st;

		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		deeper = path_join("%s/%s", path, entry->d_name);
		name = below[0] ? path_join("%s/%s", below, entry->d_name) : xstrdup(entry->d_name);
		is_gone = lstat(deeper, &st) < 0;
		is_link = !is_gone && S_ISLNK(st.st_mode);
		if (is_link)
			is_gone = stat(deeper, &st) < 0;
		if (!is_gone && !is_link && S_ISDIR(st.st_mode))
			read_tree(c, deeper, name, depth + 1);
		else if (is_gone || S_ISREG(st.st_mode)) /* what is gone, the look will tell */
			checkpoint_add_part(c, name);
		free(name);
		free(deeper);
	}
	if (dir)
		closedir(dir);
}

static uint64_t mix(uint64_t h, uint64_t v)
{
	return (h ^ v) * 0x100000001b3u;
}

static int by_name(const void *a, const void *b)
{
	const struct checkpoint_part *x = a, *y = b;

	return strcmp(x->name, y->name);
}

static void measure(struct checkpoint *c, const char *base)
{
	uint64_t h = 0xcbf29ce484222325u;

	c->bytes = c->time_ms = 0;
	if (c->part_count > 1)
		qsort(c->parts, c->part_count, sizeof(c->parts[0]), by_name);
	for (size_t i = 0; i < c->part_count; i++) {
		struct checkpoint_part *p = &c->parts[i];
		char *path = path_join("%s/%s", base, p->name);
		struct stat st = { 0 };

		if (stat(path, &st) == 0 && S_ISREG(st.st_mode)) {
			p->bytes = st.st_size;
			p->changed_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 +
					st.st_mtim.tv_nsec;
		}
		c->bytes += p->bytes;
		if (p->changed_ns / 1000000 > c->time_ms)
			c->time_ms = p->changed_ns / 1000000;
		for (const char *s = p->name; *s; s++)
			h = mix(h, (unsigned char)*s);
		h = mix(mix(h, (uint64_t)p->bytes), (uint64_t)p->changed_ns);
		free(path);
	}
	c->stamp = h;
}

static void list_parts(struct checkpoint *c)
{
	char *base = checkpoint_base(c);

	if (!c->is_listed && !c->is_file)
		read_tree(c, c->path, "", 0);
	c->is_listed = true;
	measure(c, base);
	free(base);
}

/* The part that a pattern of the table names; NULL = none. */
static const struct checkpoint_part *find_part(const struct checkpoint *c, const char *pattern)
{
	for (size_t i = 0; i < c->part_count; i++) {
		if (layout_name_matches(pattern, c->parts[i].name, NULL))
			return &c->parts[i];
	}
	return NULL;
}

/* --- which row -------------------------------------------------------------------------------- */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool has_mark(const struct layout *row, const struct checkpoint *c)
{
	for (size_t i = 0; row->marks[i]; i++) {
		if (find_part(c, row->marks[i]))
			return true;
	}
	return !row->marks[0];
}

/* A row that only some folders use as it says is left out where nothing beside it does so: files
 * called model_20.bin are llm.c's when there is a DONE_ of any step. */
static bool beside_is_used(const struct layout *row, const struct checkpoint *c)
{
	const struct dirent *entry;
	bool found = false;
	char *base;
	DIR *dir;

	if (row->kind != LAYOUT_FILE || !row->last)
		return true;
	base = checkpoint_base(c);
	dir = opendir(base);
	while (dir && !found && (entry = readdir(dir)))
		found = layout_name_matches(row->last, entry->d_name, NULL);
	if (dir)
		closedir(dir);
	free(base);
	return found;
}

static const struct layout *choose_row(const struct checkpoint_rules *rules,
				       const struct checkpoint *c)
{
	if (rules->row)
		return rules->row;
	for (size_t i = 0; i < layout_count; i++) {
		const struct layout *row = &layouts[i];

		if (row->kind == (c->is_file ? LAYOUT_FILE : LAYOUT_FOLDER) &&
		    layout_matches(row, base_name(c->path), NULL) && has_mark(row, c) &&
		    beside_is_used(row, c))
			return row;
	}
	return layout_find(c->is_file ? "file" : "folder");
}

/* --- marks and pointers ----------------------------------------------------------------------- */

/* The digits of the step as the name has them ("00000010"); owned by the caller. */
static char *step_digits(const struct checkpoint *c)
{
	for (const char *at = base_name(c->path); *at;) {
		size_t len = strspn(at, "0123456789");

		if (len > 0 && strtoll(at, NULL, 10) == c->step)
			return xstrndup(at, len);
		at += len > 0 ? len : 1;
	}
	return xasprintf("%lld", (long long)c->step);
}

static char *with_step(const char *text, const char *word, const struct checkpoint *c)
{
	const char *at = strstr(text, word);
	char *digits, *out;

	if (!at)
		return xstrdup(text);
	digits = step_digits(c);
	out = xasprintf("%.*s%s%s", (int)(at - text), text, digits, at + strlen(word));
	free(digits);
	return out;
}

static int check_mark(struct checkpoint *c, const char *mark, const char *word, struct err *err)
{
	char *base = checkpoint_base(c), *name = with_step(mark, word, c);
	char *path = path_join("%s/%s", base, name);
	int rc = 0;

	c->is_unfinished = !file_exists(path);
	if (c->is_unfinished)
		rc = err_set(err, ERR_NOT_FOUND, "it is not complete: no %s", name);
	free(path);
	free(name);
	free(base);
	return rc;
}

static char *beside(const struct checkpoint *c, const char *name)
{
	const char *slash = strrchr(c->path, '/');

	return path_join("%.*s%s", slash ? (int)(slash - c->path) + 1 : 0, c->path, name);
}

/* What the pointer names is finished, and so is all before it. Without a pointer the files must do.
 */
static int check_pointer(struct checkpoint *c, struct err *err)
{
	char *path = beside(c, c->row->pointer),
	     *text = file_read(path, POINTER_MAX_BYTES, NULL, NULL);
	int64_t newest = -1;
	int rc = 0;

	if (text) {
		text[strcspn(text, "\r\n")] = '\0';
		newest = step_in_name(text);
	}
	c->is_unfinished = text && newest >= 0 && c->step > newest;
	if (c->is_unfinished)
		rc = err_set(err, ERR_NOT_FOUND, "it is not complete: %s still names %.60s",
			     c->row->pointer, text);
	free(text);
	free(path);
	return rc;
}

static int check_unfinished(struct checkpoint *c, struct err *err)
{
	char *path = path_join("%s%s", c->path, c->row->unfinished);
	int rc = 0;

	c->is_unfinished = file_exists(path);
	if (c->is_unfinished)
		rc = err_set(err, ERR_NOT_FOUND, "it is not complete: %s is there",
			     base_name(path));
	free(path);
	return rc;
}

/* --- files ------------------------------------------------------------------------------------ */

/* Files that say something by being there may be empty. */
static bool is_mark(const char *name)
{
	static const char *const words[] = {
		"done", "complete",  "success", "finished", "ok",     "ready",  "lock",
		"keep", "committed", "init",    "log",      "stderr", "stdout",
	};
	const char *base = base_name(name);

	if (name_is_data(base))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strcasestr(base, words[i]))
			return true;
	}
	return false;
}

/* "weight_map": {tensor: file}: each file must be there, and hold something. */
static int check_index(const char *base, const char *name, struct err *err)
{
	char *path = path_join("%s/%s", base, name);
	const char *slash = strrchr(path, '/'), *tensor;
	json_t *index = js_load(path, INDEX_MAX_BYTES, err), *file;
	int rc = index ? 0 : -1;

	json_object_foreach(json_object_get(index, "weight_map"), tensor, file) {
		const char *shard = json_string_value(file);
		struct stat st;
		char *at;

		if (!shard || shard[0] == '/' || strstr(shard, ".."))
			continue;
		at = path_join("%.*s/%s", (int)(slash - path), path, shard);
		if (stat(at, &st) < 0)
			rc = err_set(err, ERR_NOT_FOUND, "%s: names %.120s, which is missing", name,
				     shard);
		else if (st.st_size == 0)
			rc = err_set(err, ERR_IO, "%s: names %.120s, which is empty", name, shard);
		free(at);
		if (rc < 0)
			break;
	}
	json_decref(index);
	free(path);
	return rc;
}

static int check_part(const char *base, const struct checkpoint_part *p, struct look *look,
		      struct err *err)
{
	char *path = path_join("%s/%s", base, p->name);
	bool is_proven = false;
	struct err why = { 0 };
	int rc = 0;

	if (file_is_whole(path, look, &is_proven, &why) < 0)
		rc = err_set(err, why.code, "%s %s", p->name, why.text);
	else if (text_ends_with(p->name, ".index.json"))
		rc = check_index(base, p->name, err);
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

/* Of a run that says itself what makes them complete, files may be empty. */
static int check_parts(struct checkpoint *c, bool may_be_empty, struct look *look, struct err *err)
{
	char *base = checkpoint_base(c);
	int rc = 0;

	if (c->part_count == 0)
		rc = err_set(err, ERR_NOT_FOUND, "holds no file");
	for (size_t i = 0; i < c->part_count && rc == 0; i++)
		if (c->parts[i].bytes > 0 || !(may_be_empty || is_mark(c->parts[i].name)))
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
		size_t run = strspn(name, "0123456789");

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

/* A file that nothing proves whole, and that is much smaller than it was. */
static bool is_much_smaller(const struct checkpoint *c, const struct checkpoint_part *p,
			    const struct checkpoint_part *before)
{
	char *base = checkpoint_base(c), *path = path_join("%s/%s", base, p->name);
	struct look look = { 0 };
	bool is_proven = false;

	file_is_whole(path, &look, &is_proven, NULL);
	free(path);
	free(base);
	return !is_proven && !is_mark(p->name) && p->bytes < before->bytes - before->bytes / 8;
}

/* The next older one of the same place and layout; NULL: it is the first. */
static struct checkpoint *before(const struct checkpoint_rules *rules, struct checkpoint_list *list,
				 size_t index)
{
	struct checkpoint *c = &list->items[index];
	size_t folder_len = (size_t)(base_name(c->path) - c->path);

	for (size_t i = index + 1; i < list->count; i++) {
		struct checkpoint *older = &list->items[i];

		if (older->step < 0 || older->step == c->step || older->is_file != c->is_file ||
		    (size_t)(base_name(older->path) - older->path) != folder_len ||
		    strncmp(older->path, c->path, folder_len) != 0)
			continue;
		if (!older->is_listed)
			list_parts(older);
		if (!older->row)
			older->row = choose_row(rules, older);
		if (older->part_count > 0 && older->bytes > 0)
			return older;
	}
	return NULL;
}

/* What has no mark of its own must have what the one before has: a save that was interrupted
 * between two files leaves nothing else to see. */
static int compare(const struct checkpoint *c, const struct checkpoint *older, struct err *err)
{
	for (size_t i = 0; i < older->part_count; i++) {
		const struct checkpoint_part *p = &older->parts[i], *mine = sister(c, p);

		if (older->bytes == 0 || name_is_temporary(base_name(p->name)))
			continue;
		if (!mine)
			return err_set(err, ERR_NOT_FOUND,
				       "it is not complete: no %s, which %s has", p->name,
				       base_name(older->path));
		if (is_much_smaller(c, mine, p))
			return err_set(err, ERR_IO, "%s has %lld bytes, %s of %s has %lld",
				       mine->name, (long long)mine->bytes, base_name(p->name),
				       base_name(older->path), (long long)p->bytes);
	}
	return 0;
}

/* --- all of it -------------------------------------------------------------------------------- */

static int check_by_row(const struct checkpoint_rules *rules, struct checkpoint_list *list,
			size_t index, struct look *look, struct err *err)
{
	struct checkpoint *c = &list->items[index];
	const struct layout *row = c->row;
	const struct checkpoint *older = NULL;

	if (row->last && check_mark(c, row->last, "#", err) < 0)
		return -1;
	if (row->verify)
		return row->verify(c->path, look->is_deep, err);
	if ((row->pointer && check_pointer(c, err) < 0) ||
	    (row->unfinished && check_unfinished(c, err) < 0))
		return -1;
	if (check_parts(c, false, look, err) < 0)
		return -1;
	if ((!row->last || row->may_have_more) && !row->has_step_inside)
		older = before(rules, list, index);
	return older ? compare(c, older, err) : 0;
}

static int check_by_rules(const struct checkpoint_rules *rules, struct checkpoint *c,
			  struct look *look, struct err *err)
{
	if (strcmp(rules->complete_when, "manifest") == 0)
		return manifest_verify(c->path, look->is_deep ? MANIFEST_DIGESTS : MANIFEST_SIZES,
				       NULL, err);
	return check_mark(c, rules->complete_when, "{step}", err) < 0
		       ? -1
		       : check_parts(c, true, look, err);
}

/* Of a single file the path names it already. */
static const char *behind_name(const struct checkpoint *c, const char *text)
{
	const char *name = base_name(c->path);
	size_t len = strlen(name);

	return c->is_file && strncmp(text, name, len) == 0 && text[len] == ' ' ? text + len + 1
									       : text;
}

void checkpoint_check(const struct checkpoint_rules *rules, struct checkpoint_list *list,
		      size_t index, struct look *look)
{
	struct checkpoint *c = &list->items[index];
	struct err why = { 0 };
	bool was_cut = look->is_cut_short;
	int rc;

	look->is_cut_short = false;
	if (!c->is_listed)
		list_parts(c);
	if (!c->row)
		c->row = choose_row(rules, c);
	c->layout = rules->pattern ? "pattern" : c->row->name;
	c->is_unfinished = false;
	rc = rules->complete_when ? check_by_rules(rules, c, look, &why)
				  : check_by_row(rules, list, index, look, &why);
	free(c->why);
	c->why = rc < 0 ? xasprintf("%s: %s", c->path, behind_name(c, why.text)) : NULL;
	c->is_valid = rc == 0;
	c->is_checked = true;
	c->is_unread = look->is_cut_short;
	look->is_cut_short |= was_cut;
}

int checkpoints_list(const struct checkpoint_rules *rules, const char *folder, struct look *look,
		     struct checkpoint_list *out, struct err *err)
{
	if (checkpoints_find(rules, folder, out, err) < 0)
		return -1;
	for (size_t i = 0; i < out->count; i++)
		checkpoint_check(rules, out, i, look);
	return 0;
}

int64_t checkpoints_newest(const struct checkpoint_rules *rules, struct checkpoint_list *list,
			   struct look *look, bool (*is_out)(void *arg, const struct checkpoint *c),
			   void (*on_bad)(void *arg, const struct checkpoint *c), void *arg)
{
	for (size_t i = 0; i < list->count && i < LOOKED_AT; i++) {
		struct checkpoint *c = &list->items[i];

		checkpoint_check(rules, list, i, look);
		if (c->is_valid && (!is_out || !is_out(arg, c)))
			return (int64_t)i;
		if (!c->is_valid && on_bad)
			on_bad(arg, c);
	}
	return -1;
}

/* A pattern may name folders above it, too: the shortest end of the path that fits. */
static int64_t step_by_pattern(const struct checkpoint_rules *rules, const char *path)
{
	int64_t step = -1;
	int depth = 0;

	for (const char *at = path + strlen(path); at >= path && step < 0; at--) {
		if (at > path && at[-1] != '/')
			continue;
		step = *at ? checkpoint_pattern_step(rules, at) : -1;
		if (++depth > rules->pattern_depth + 1)
			break;
	}
	return step;
}

int checkpoint_at(const struct checkpoint_rules *rules, const char *path, struct look *look,
		  struct checkpoint_list *out, struct err *err)
{
	struct checkpoint *c;
	struct stat st;

	*out = (struct checkpoint_list){ 0 };
	if (stat(path, &st) < 0)
		return errno == ENOENT ? err_set(err, ERR_NOT_FOUND, "%s: no such checkpoint", path)
				       : err_errno(err, "%s", path);
	out->items = xcalloc(1, sizeof(*out->items));
	out->count = 1;
	c = out->items;
	*c = (struct checkpoint){ .path = xstrdup(path), .is_file = !S_ISDIR(st.st_mode) };
	c->step = rules->pattern ? step_by_pattern(rules, path) : step_in_name(base_name(path));
	if (c->is_file)
		checkpoint_add_part(c, base_name(path));
	checkpoint_check(rules, out, 0, look);
	return 0;
}

int checkpoint_again(const struct checkpoint_rules *rules, const struct checkpoint *c,
		     struct look *look, struct checkpoint_list *out)
{
	struct checkpoint *again = xcalloc(1, sizeof(*again));

	*out = (struct checkpoint_list){ .items = again, .count = 1 };
	*again = (struct checkpoint){ .path = xstrdup(c->path),
				      .step = c->step,
				      .is_file = c->is_file };
	for (size_t i = 0; c->is_file && i < c->part_count; i++)
		checkpoint_add_part(again, c->parts[i].name);
	checkpoint_check(rules, out, 0, look);
	if (again->time_ms > 0)
		return 0;
	checkpoint_list_clear(out);
	return -1;
}
