/* SPDX-License-Identifier: MIT */
/* drain.c - copies, syncs, seals. */
#include "worker/lbrun/checkpoint/drain.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/checkpoint/manifest.h"
#include "worker/lbrun/checkpoint/place.h"

enum { CHUNK_BYTES = 4 * 1024 * 1024, FOLDER_MODE = 0750, SMALL_MODE = 0640 };

struct drain {
	const struct drain_request *request;
	const struct checkpoint *c;
	struct drained *out;
	struct strv files; /* below the stage, and below the part */
	json_t *order;     /* of the renames */
	char *part;
	char *mine, *theirs; /* a chunk of each */
	int64_t begun_ms;
};

/* --- bytes ------------------------------------------------------------------------------------ */

static ssize_t read_chunk(int fd, char *to, off_t at)
{
	size_t len = 0;
	ssize_t n = 0;

	while (len < CHUNK_BYTES &&
	       ((n = pread(fd, to + len, CHUNK_BYTES - len, at + (off_t)len)) > 0 ||
		(n < 0 && errno == EINTR)))
		len += n > 0 ? (size_t)n : 0;
	return n < 0 ? -1 : (ssize_t)len;
}

static int write_chunk(int fd, const char *from, size_t len, off_t at)
{
	while (len > 0) {
		ssize_t n = pwrite(fd, from, len, at);

		if (n < 0 && errno != EINTR)
			return -1;
		n = n < 0 ? 0 : n;
		from += n;
		len -= (size_t)n;
		at += n;
	}
	return 0;
}

/* So that what was written until now took as long as the rate says. */
static void keep_to_rate(const struct drain *d)
{
	int64_t due_ms, ms;

	if (d->request->rate <= 0)
		return;
	due_ms = d->begun_ms + (int64_t)((double)d->out->written / (double)d->request->rate * 1000);
	while ((ms = due_ms - clock_mono_ms()) > 0)
		poll(NULL, 0, ms < 1000 ? (int)ms : 1000);
}

static int copy_open(struct drain *d, int from, int to, const char *name, struct err *err)
{
	ssize_t len, was;

	for (off_t at = 0;; at += len) {
		if (failpoint(FP_STAGE_CHUNK, err) < 0)
			return -1;
		len = read_chunk(from, d->mine, at);
		if (len < 0)
			return err_errno(err, "%s", name);
		if (len == 0)
			return ftruncate(to, at) < 0 ? err_errno(err, "%s", name) : 0;
		was = read_chunk(to, d->theirs, at);
		if (was >= len && memcmp(d->mine, d->theirs, (size_t)len) == 0)
			continue;
		if (write_chunk(to, d->mine, (size_t)len, at) < 0)
			return err_errno(err, "%s", name);
		d->out->written += len;
		keep_to_rate(d);
	}
}

static int make_holder(const char *path, struct err *err)
{
	char *holder = xstrndup(path, (size_t)(path_base(path) - path));
	int rc = folder_make(holder, FOLDER_MODE, err);

	free(holder);
	return rc;
}

/* With its times: so the copy is known to be one of this very file. */
static int copy_file(struct drain *d, const char *name, struct err *err)
{
	char *source = path_join("%s/%s", d->request->stage, name);
	char *path = path_join("%s/%s", d->part, name);
	struct stat st = { 0 };
	int from = open(source, O_RDONLY | O_CLOEXEC), to = -1, rc = 0;

	if (from < 0 || fstat(from, &st) < 0)
		rc = err_errno(err, "%s", source);
	if (rc == 0)
		rc = make_holder(path, err);
	if (rc == 0 && (to = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
				  (st.st_mode & 0777) | 0600)) < 0)
		rc = err_errno(err, "%s", path);
	if (rc == 0)
		rc = copy_open(d, from, to, path, err);
	if (rc == 0 && futimens(to, (struct timespec[]){ st.st_mtim, st.st_mtim }) < 0)
		rc = err_errno(err, "%s", path);
	if (from >= 0)
		close(from);
	if (to >= 0)
		close(to);
	free(path);
	free(source);
	return rc;
}

/* --- what belongs to it ----------------------------------------------------------------------- */

static void add_order(struct drain *d, const char *relative)
{
	json_array_append_new(d->order, js_bytes(relative));
}

/* Names below the stage. A folder is renamed as a whole; of files the mark comes last. */
static void list_files(struct drain *d)
{
	const struct checkpoint *c = d->c;
	char *base = checkpoint_base(c), *mark = checkpoint_mark_beside(d->request->rules, c);
	const char *below = base + strlen(d->request->stage);

	below += *below == '/';
	for (size_t i = 0; i < c->part_count; i++) {
		strv_add(&d->files,
			 path_join("%s%s%s", below, *below ? "/" : "", c->parts[i].name));
		if (c->is_file)
			add_order(d, d->files.items[d->files.count - 1]);
	}
	if (!c->is_file)
		add_order(d, below);
	if (mark) {
		strv_add(&d->files, path_join("%s%s%s", below, *below ? "/" : "", mark));
		add_order(d, d->files.items[d->files.count - 1]);
	}
	free(mark);
	free(base);
}

static int write_small(struct drain *d, const char *name, const char *text, struct err *err)
{
	char *path = path_join("%s/%s", d->part, name);
	int rc = make_holder(path, err);

	if (rc == 0)
		rc = file_write_visible(path, text, strlen(text), SMALL_MODE, err);
	free(path);
	strv_add(&d->files, xstrdup(name));
	return rc;
}

/* Renamed last of all: what names the newest comes behind it. */
static int write_pointer(struct drain *d, struct err *err)
{
	char *text, *name;
	const char *pointer = checkpoint_pointer(d->c, &text);
	const char *relative = d->c->path + strlen(d->request->stage) + 1;
	int rc;

	if (!pointer)
		return 0;
	name = path_join("%.*s%s", (int)(path_base(relative) - relative), relative, pointer);
	add_order(d, name);
	rc = write_small(d, name, text, err);
	free(name);
	free(text);
	return rc;
}

static int write_order(struct drain *d, struct err *err)
{
	char *text = js_line(d->order);
	int rc = write_small(d, PLACE_ORDER, text, err);

	free(text);
	return rc;
}

/* --- the steps -------------------------------------------------------------------------------- */

static bool is_same(struct drain *d)
{
	struct checkpoint_list again;
	struct look look = { 0 };
	bool is;

	if (checkpoint_again(d->request->rules, d->c, &look, &again) < 0)
		return false;
	is = again.items[0].stamp == d->request->stamp;
	checkpoint_list_clear(&again);
	return is;
}

static int seal(struct drain *d, const char *sealed, struct err *err)
{
	struct manifest m = { .step = d->c->step, .file_count = (int)d->files.count };
	int rc;

	m.files = xcalloc(d->files.count + 1, sizeof(m.files[0]));
	for (size_t i = 0; i < d->files.count; i++)
		m.files[i].name = xstrdup(d->files.items[i]);
	rc = manifest_publish(d->part, sealed, &m, err);
	manifest_clear(&m);
	return rc;
}

static int copy_all(struct drain *d, struct err *err)
{
	for (size_t i = 0; d->files.items && d->files.items[i]; i++)
		if (copy_file(d, d->files.items[i], err) < 0)
			return -1;
	return 0;
}

static int take_steps(struct drain *d, struct err *err)
{
	const struct drain_request *q = d->request;
	char *sealed = place_folder(q->shared, d->c->path + strlen(q->stage) + 1);
	int rc = place_all(q->shared, err); /* this one, perhaps, as it was before */

	d->part = path_join("%s.%016" PRIx64 ".%s" DRAIN_PART, sealed, q->stamp, q->host);
	place_clear_parts(q->shared, q->host, d->part);
	list_files(d);
	if (rc == 0)
		rc = folder_make(d->part, FOLDER_MODE, err);
	if (rc == 0)
		rc = copy_all(d, err);
	if (rc == 0 && !is_same(d)) {
		d->out->is_gone = true;
		rc = err_set(err, ERR_NOT_FOUND, "%s was written again while it was copied",
			     d->c->path);
	}
	if (rc == 0)
		rc = failpoint(FP_STAGE_COPIED, err);
	if (rc == 0 && (write_pointer(d, err) < 0 || write_order(d, err) < 0))
		rc = -1;
	if (rc == 0 && q->may_go_on && !q->may_go_on(q->arg))
		rc = err_set(err, ERR_REFUSED, "a newer attempt has the run");
	if (rc == 0)
		rc = seal(d, sealed, err);
	failpoint(FP_STAGE_SEALED, NULL);
	if (rc == 0)
		rc = place_sealed(q->shared, sealed, err);
	free(sealed);
	return rc;
}

static const struct checkpoint *find(const struct drain_request *q, struct checkpoint_list *list)
{
	const char *const folders[] = { q->stage, q->shared, NULL };
	struct look look = { 0 };

	if (checkpoints_find_in(q->rules, folders, list, NULL) < 0)
		return NULL;
	for (size_t i = 0; i < list->count; i++) {
		struct checkpoint *c = &list->items[i];

		if (strcmp(c->path, q->path) != 0)
			continue;
		checkpoint_check(q->rules, list, i, &look);
		return c->is_valid && c->stamp == q->stamp ? c : NULL;
	}
	return NULL;
}

void drain_run(const struct drain_request *request, struct drained *out)
{
	struct drain d = { .request = request, .out = out, .begun_ms = clock_mono_ms() };
	struct checkpoint_list list = { 0 };
	struct err why = { 0 };

	*out = (struct drained){ 0 };
	d.c = find(request, &list);
	if (d.c) {
		d.order = json_array();
		d.mine = xmalloc(CHUNK_BYTES);
		d.theirs = xmalloc(CHUNK_BYTES);
		out->bytes = d.c->bytes;
		out->is_done = take_steps(&d, &why) == 0;
		json_decref(d.order);
		free(d.mine);
		free(d.theirs);
		free(d.part);
		strv_free(d.files.items);
	} else {
		out->is_gone = true;
		err_set(&why, ERR_NOT_FOUND, "%s is not what it was", request->path);
	}
	checkpoint_list_clear(&list);
	out->ms = clock_mono_ms() - d.begun_ms;
	snprintf(out->text, sizeof(out->text), "%s", why.text);
}
