/* SPDX-License-Identifier: MIT */
/* part.c - the folder of a node, and its part of a checkpoint. */
#include "worker/lbrun/checkpoint/part.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/names.h"
#include "common/base/paths.h"
#include "common/base/procs.h"
#include "common/checkpoint/checkpoints.h"
#include "common/manifest/manifest.h"
#include "worker/lbrun/checkpoint/copy.h"
#include "worker/lbrun/checkpoint/pruning.h"

enum {
	SMALL_BYTES = 64 * 1024,
	RESULT_BYTES = 16 * 1024 * 1024,
	WAIT_STEP_MS = 20,
	MARK_WAIT_MS = 60 * 1000, /* for the first rank of the node */
	LOCK_WAIT_MS = 20 * 1000, /* for one that was broken off */
	QUIET_MS = 2000,          /* unchanged for so long: nobody writes it any more */
	QUIET_WAIT_MS = 60 * 1000,
};

static const char word_name[] = ".lb-launch", lock_name[] = ".lb-lock";

/* --- the folder of a node --------------------------------------------------------------------- */

char *part_folder(const char *stage, const char *node)
{
	const char *at = strstr(stage, "%n");
	char *rest, *out;

	if (!at)
		return xstrdup(stage);
	rest = part_folder(at + 2, node);
	out = path_join("%.*s%s%s", (int)(at - stage), stage, node, rest);
	free(rest);
	return out;
}

int part_make_folder(const char *folder, struct err *err)
{
	char *parent = xstrndup(folder, (size_t)(path_base(folder) - folder) - 1);
	int rc = folder_make_ours(parent, err) < 0 ? -1 : folder_make_ours(folder, err);

	free(parent);
	return rc;
}

char *part_word(const char *folder)
{
	char *path = path_join("%s/%s", folder, word_name);
	char *word = file_read(path, SMALL_BYTES, NULL, NULL);

	free(path);
	return word;
}

static bool has_word(const char *folder, const char *word)
{
	char *is = part_word(folder);
	bool has = is && strcmp(is, word) == 0;

	free(is);
	return has;
}

/* But for the lock, which somebody may hold. */
static void empty(const char *folder)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;

	while (dir && (entry = readdir(dir)) != NULL) {
		const char *name = entry->d_name;
		char *path = path_join("%s/%s", folder, name);

		if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0 &&
		    strcmp(name, lock_name) != 0)
			folder_remove(path, NULL);
		free(path);
	}
	if (dir)
		closedir(dir);
}

char *part_draw_word(int64_t attempt, int64_t nodes)
{
	return path_join("%" PRId64 "-%" PRId64 "-%016" PRIx64, attempt, nodes, random_u64());
}

int part_begin(const char *folder, const char *word, struct err *err)
{
	char *path;
	int rc;

	if (part_make_folder(folder, err) < 0)
		return -1;
	if (has_word(folder, word))
		return 0;
	empty(folder);
	path = path_join("%s/%s", folder, word_name);
	rc = file_write_visible(path, word, strlen(word), 0600, err);
	free(path);
	return rc;
}

static int await_word(const char *folder, const char *word, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + MARK_WAIT_MS;

	while (!has_word(folder, word)) {
		if (clock_mono_ms() > until_ms)
			return err_set(err, ERR_NOT_FOUND,
				       "%s: the first rank of the node has not made it", folder);
		poll(NULL, 0, WAIT_STEP_MS);
	}
	return 0;
}

int part_enter(const char *node, bool is_first, struct err *err)
{
	const char *asked = getenv(PART_VARIABLE), *colon = asked ? strchr(asked, ':') : NULL;
	char *word, *folder;
	int rc;

	if (!colon)
		return 0;
	word = xstrndup(asked, (size_t)(colon - asked));
	folder = part_folder(colon + 1, node);
	rc = is_first ? part_begin(folder, word, err) : await_word(folder, word, err);
	setenv("LB_CHECKPOINT_DIR", folder, 1);
	unsetenv(PART_VARIABLE); /* torchrun's ranks need not ask again */
	free(folder);
	free(word);
	return rc < 0 ? err_wrap(err, "checkpoint.stage") : 0;
}

/* --- on each node: its part ------------------------------------------------------------------- */

struct part {
	json_t *request, *files; /* what was copied, for the one who asked */
	const char *node;
	char *folder;
	struct checkpoint_rules *rules;
	struct checkpoint_list list; /* of the one that is wanted */
};

static const char *text_of(const struct part *p, const char *key)
{
	return js_str(p->request, key, NULL);
}

static int take_lock(const struct part *p, struct err *err)
{
	char *path = path_join("%s/%s", p->folder, lock_name);
	int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	int64_t until_ms = clock_mono_ms() + LOCK_WAIT_MS;
	int rc = fd < 0 ? err_errno(err, "%s", path) : 0;

	while (rc == 0 && flock(fd, LOCK_EX | LOCK_NB) < 0) {
		if (clock_mono_ms() > until_ms)
			rc = err_set(err, ERR_LOCKED, "%s: another one drains it", p->folder);
		poll(NULL, 0, WAIT_STEP_MS);
	}
	free(path);
	return rc;
}

/* Those that count elsewhere by now. */
static void drop_sealed(const struct part *p)
{
	int64_t sealed = js_int(p->request, "sealed_step", -1);
	struct checkpoint_list list;
	struct look look = { 0 };

	if (sealed < 0 || checkpoints_find(p->rules, p->folder, &list, NULL) < 0)
		return;
	for (size_t i = 0; i < list.count; i++) {
		if (list.items[i].step < 0 || list.items[i].step > sealed)
			continue;
		checkpoint_check(p->rules, &list, i, &look);
		pruning_remove(&list.items[i], NULL);
	}
	checkpoint_list_clear(&list);
}

/* Files of one step are one checkpoint, whatever the first of them is called here. */
static int find_files(struct part *p, const char *path)
{
	int64_t step = js_int(p->request, "step", -1);
	struct checkpoint_list list;
	struct look look = { 0 };
	int rc = -1;

	if (checkpoints_find(p->rules, p->folder, &list, NULL) < 0)
		return -1;
	for (size_t i = 0; i < list.count && rc < 0; i++) {
		const struct checkpoint *c = &list.items[i];
		size_t len = (size_t)(path_base(path) - path);

		if (!c->is_file || c->step != step || strncmp(c->path, path, len) != 0 ||
		    strchr(c->path + len, '/'))
			continue;
		checkpoint_check(p->rules, &list, i, &look);
		rc = checkpoint_again(p->rules, c, &look, &p->list);
	}
	checkpoint_list_clear(&list);
	return rc;
}

/* 1; 0 = this node has nothing of it. Whether it is whole only all parts together can show. */
static int find(struct part *p)
{
	char *path = path_join("%s/%s", p->folder, text_of(p, "relative"));
	struct look look = { 0 };
	int rc = js_bool(p->request, "is_file", false)
			 ? find_files(p, path)
			 : checkpoint_at(p->rules, path, &look, &p->list, NULL);

	free(path);
	return rc == 0 && p->list.items[0].part_count > 0;
}

static bool is_same(const struct part *p)
{
	struct checkpoint_list again;
	struct look look = { 0 };
	bool is;

	if (checkpoint_again(p->rules, p->list.items, &look, &again) < 0)
		return false;
	is = again.items[0].stamp == p->list.items[0].stamp;
	checkpoint_list_clear(&again);
	return is;
}

static int await_quiet(struct part *p, struct err *err)
{
	int64_t until_ms = clock_mono_ms() + QUIET_WAIT_MS;

	while (!js_bool(p->request, "is_marked", false) &&
	       clock_wall_ms() - p->list.items[0].time_ms <= QUIET_MS) {
		if (clock_mono_ms() > until_ms)
			return err_set(err, ERR_LOCKED, "it is still being written");
		poll(NULL, 0, QUIET_MS / 4);
		checkpoint_list_clear(&p->list);
		if (!find(p))
			return err_set(err, ERR_NOT_FOUND, "it was removed");
	}
	return 0;
}

static int add_digest(struct part *p, int to, const char *name, struct err *err)
{
	struct manifest_file file = { .name = xstrdup(name) };
	int rc = manifest_seal_file(to, &file, err);
	json_t *o = json_object();

	js_set_str(o, "name", name);
	js_set_int(o, "bytes", file.bytes);
	js_set_str(o, "xxh3_128", file.digest);
	if (rc == 0)
		json_array_append_new(p->files, o);
	else
		json_decref(o);
	free(file.name);
	return rc;
}

/* Where nodes write files of one name, the one of the node that asks is taken: on a shared file
 * system there would be one as well. */
static int copy_part(struct part *p, struct err *err)
{
	const struct checkpoint *c = p->list.items;
	const char *part = text_of(p, "part");
	const json_t *has = json_object_get(p->request, "has");
	char *base = checkpoint_base(c);
	const char *below = base + strlen(p->folder);
	int to = open(part, O_RDONLY | O_DIRECTORY | O_CLOEXEC), rc = 0;
	struct copy copy;

	below += *below == '/';
	if (to < 0)
		rc = err_errno(err, "%s", part);
	copy_init(&copy, js_int(p->request, "rate", 0));
	for (size_t i = 0; i < c->part_count && rc == 0; i++) {
		char *name = path_join("%s%s%s", below, *below ? "/" : "", c->parts[i].name);
		char *from = path_join("%s/%s", p->folder, name);
		char *path = path_join("%s/%s", part, name);
		bool is_heads = json_object_get(has, name) != NULL;

		if (!is_heads)
			rc = copy_file(&copy, from, path, err);
		if (!is_heads && rc == 0)
			rc = add_digest(p, to, name, err);
		free(path);
		free(from);
		free(name);
	}
	copy_fini(&copy);
	if (to >= 0)
		close(to);
	free(base);
	if (rc == 0 && !is_same(p))
		rc = err_set(err, ERR_NOT_FOUND, "it was written again while it was copied");
	return rc;
}

static int do_part(struct part *p, struct err *err)
{
	if (!has_word(p->folder, js_str(p->request, "word", "")))
		return err_set(err, ERR_NOT_FOUND,
			       "%s is not of the launch that wrote the checkpoint", p->folder);
	if (take_lock(p, err) < 0)
		return -1;
	drop_sealed(p);
	if (!find(p))
		return 0;
	if (await_quiet(p, err) < 0 || copy_part(p, err) < 0)
		return -1;
	return failpoint(FP_STAGE_PART, err);
}

/* No name of it was ever looked for before: no file system has kept in mind that it is missing. */
char *part_result_path(const char *part, const char *id, int64_t rank)
{
	return path_join("%s/.lb-part-%s-%" PRId64 ".json", part, id, rank);
}

static int write_result(const struct part *p, const struct err *why)
{
	const char *rank = getenv("SLURM_PROCID");
	char *path = part_result_path(text_of(p, "part"), text_of(p, "id"),
				      rank ? strtoll(rank, NULL, 10) : 0);
	json_t *o = json_object();
	int rc;

	js_set_str(o, "node", p->node);
	json_object_set(o, "files", p->files);
	js_set_str(o, "error", why->text[0] ? why->text : NULL);
	rc = js_save(path, o, NULL);
	free(path);
	return rc;
}

int parts_main(const char *path)
{
	struct part p = { .node = node_name() };
	struct err why = { 0 };
	int rc = 0;

	p.request = js_load(path, RESULT_BYTES, &why);
	if (!p.request) {
		fprintf(stderr, "%s\n", why.text);
		return 1;
	}
	p.files = json_array();
	p.folder = part_folder(text_of(&p, "stage"), p.node);
	p.rules = checkpoint_rules_create(text_of(&p, "layout"), text_of(&p, "pattern"),
					  text_of(&p, "complete_when"), &why);
	if (strcmp(p.node, text_of(&p, "head")) != 0)
		rc = p.rules ? do_part(&p, &why) : -1;
	if (write_result(&p, &why) < 0)
		rc = -1;
	checkpoint_list_clear(&p.list);
	checkpoint_rules_destroy(p.rules);
	free(p.folder);
	json_decref(p.files);
	json_decref(p.request);
	return rc < 0;
}

int parts_clear_main(const char *stage)
{
	char *folder = part_folder(stage, node_name());
	int rc = folder_remove(folder, NULL);

	free(folder);
	return rc < 0;
}
