/* SPDX-License-Identifier: MIT */
/* drain.c - copies, gathers, seals. */
#include "worker/lbrun/checkpoint/drain.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "common/base/text.h"
#include "common/checkpoint/layouts.h"
#include "common/manifest/manifest.h"
#include "worker/lbrun/checkpoint/copy.h"
#include "worker/lbrun/checkpoint/place.h"

enum { FOLDER_MODE = 0750, SMALL_MODE = 0640 };

struct drain {
	const struct drain_request *request;
	const struct checkpoint *c;
	struct drained *out;
	struct strv files; /* below the stage, and below the part */
	json_t *order;     /* of the renames */
	char *part;
	char *mark; /* the file beside it that shows that it is complete; NULL = it has none */
	struct copy copy;
	struct manifest manifest; /* of all files, at last */
};

/* --- what belongs to it ----------------------------------------------------------------------- */

static void add_order(struct drain *d, const char *relative)
{
	json_array_append_new(d->order, js_bytes(relative));
}

/* The name of a file of its own below the stage. */
static char *below_stage(const struct drain *d, const char *name)
{
	char *base = checkpoint_base(d->c), *out;
	const char *below = base + strlen(d->request->stage);

	below += *below == '/';
	out = path_join("%s%s%s", below, *below ? "/" : "", name);
	free(base);
	return out;
}

static void list_files(struct drain *d)
{
	const struct checkpoint *c = d->c;

	for (size_t i = 0; i < c->part_count; i++)
		strv_add(&d->files, below_stage(d, c->parts[i].name));
	d->mark = checkpoint_mark_beside(d->request->rules, c);
	if (d->mark)
		strv_add(&d->files, below_stage(d, d->mark));
}

/* A folder is renamed as a whole; of files the mark comes last. */
static void order_files(struct drain *d)
{
	const struct manifest *m = &d->manifest;
	char *mark = d->mark ? below_stage(d, d->mark) : NULL;

	for (int i = 0; d->c->is_file && i < m->file_count; i++)
		if (!mark || strcmp(m->files[i].name, mark) != 0)
			add_order(d, m->files[i].name);
	if (!d->c->is_file)
		add_order(d, d->c->path + strlen(d->request->stage) + 1);
	if (mark)
		add_order(d, mark);
	free(mark);
}

static void list_in_manifest(struct drain *d, const char *name)
{
	struct manifest *m = &d->manifest;

	m->files = xrealloc(m->files, ((size_t)m->file_count + 1) * sizeof(m->files[0]));
	m->files[m->file_count++] = (struct manifest_file){ .name = xstrdup(name) };
}

static int write_small(struct drain *d, const char *name, const char *text, struct err *err)
{
	char *path = path_join("%s/%s", d->part, name);
	int rc = copy_make_holder(path, err);

	if (rc == 0)
		rc = file_write_visible(path, text, strlen(text), SMALL_MODE, err);
	free(path);
	if (rc == 0)
		list_in_manifest(d, name);
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

static int copy_all(struct drain *d, struct err *err)
{
	const char *relative = d->c->path + strlen(d->request->stage) + 1;
	char *frame = path_join("%s/%s", d->part, relative);
	int rc = d->c->is_file ? 0 : copy_frame(d->c->path, frame, err);

	free(frame);
	for (size_t i = 0; i < d->files.count && rc == 0; i++) {
		char *from = path_join("%s/%s", d->request->stage, d->files.items[i]);
		char *to = path_join("%s/%s", d->part, d->files.items[i]);

		rc = copy_file(&d->copy, from, to, err);
		free(to);
		free(from);
	}
	d->out->written = d->copy.written;
	return rc;
}

/* The parts of other nodes. */
static int gather(struct drain *d, struct err *err)
{
	const struct drain_request *q = d->request;
	struct parts_request parts;

	for (size_t i = 0; i < d->files.count; i++)
		list_in_manifest(d, d->files.items[i]);
	if (!q->parts)
		return 0;
	parts = *q->parts;
	parts.relative = d->c->path + strlen(q->stage) + 1;
	parts.part = d->part;
	parts.step = d->c->step;
	parts.is_file = d->c->is_file;
	parts.is_marked = parts.complete_when || d->c->row->last || d->c->row->pointer;
	parts.rate = q->rate;
	return parts_gather(&parts, &d->manifest, err);
}

/* Of several files any may be the first. */
static bool is_of_step(const struct drain *d, const struct checkpoint *c, const char *path)
{
	return strcmp(c->path, path) == 0 ||
	       (d->c->is_file && c->is_file && c->step == d->c->step &&
		text_begins_with(c->path, d->part));
}

/* One node saw its own part alone: now it stands beside the whole ones of before. */
static int check_whole(struct drain *d, struct err *err)
{
	const struct drain_request *q = d->request;
	const char *const folders[] = { d->part, q->shared, NULL };
	const char *relative = d->c->path + strlen(q->stage) + 1;
	char *path = path_join("%s/%s", d->part, relative);
	struct checkpoint_list list;
	struct look look = { 0 };
	bool is_found = !q->parts;
	int rc = q->parts ? checkpoints_find_in(q->rules, folders, &list, err) : 0;

	for (size_t i = 0; rc == 0 && q->parts && i < list.count; i++) {
		if (!is_of_step(d, &list.items[i], path))
			continue;
		is_found = true;
		checkpoint_check(q->rules, &list, i, &look);
		if (!list.items[i].is_valid)
			rc = err_set(err, ERR_NOT_FOUND, "of all nodes together: %s",
				     list.items[i].why);
	}
	if (q->parts)
		checkpoint_list_clear(&list);
	free(path);
	return rc < 0 || is_found ? rc : err_set(err, ERR_NOT_FOUND, "%s is not there", relative);
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
	if (rc == 0)
		rc = gather(d, err);
	if (rc == 0 && !is_same(d)) {
		d->out->is_gone = true;
		rc = err_set(err, ERR_NOT_FOUND, "%s was written again while it was copied",
			     d->c->path);
	}
	if (rc == 0)
		rc = failpoint(FP_STAGE_COPIED, err);
	if (rc == 0)
		order_files(d);
	if (rc == 0 &&
	    (write_pointer(d, err) < 0 || write_order(d, err) < 0 || check_whole(d, err) < 0))
		rc = -1;
	if (rc == 0 && q->may_go_on && !q->may_go_on(q->arg))
		rc = err_set(err, ERR_REFUSED, "a newer attempt has the run");
	if (rc == 0)
		rc = manifest_publish(d->part, sealed, &d->manifest, err);
	failpoint(FP_STAGE_SEALED, NULL);
	if (rc == 0)
		rc = place_sealed(q->shared, sealed, err);
	free(sealed);
	return rc;
}

static const struct checkpoint *find(const struct drain_request *q, struct checkpoint_list *list)
{
	const char *const folders[] = { q->stage, q->parts ? NULL : q->shared, NULL };
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
	struct drain d = { .request = request, .out = out };
	int64_t begun_ms = clock_mono_ms();
	struct checkpoint_list list = { 0 };
	struct err why = { 0 };

	*out = (struct drained){ 0 };
	d.c = find(request, &list);
	if (d.c) {
		d.order = json_array();
		d.manifest.step = d.c->step;
		copy_init(&d.copy, request->rate);
		out->bytes = d.c->bytes;
		out->is_done = take_steps(&d, &why) == 0;
		json_decref(d.order);
		copy_fini(&d.copy);
		manifest_clear(&d.manifest);
		free(d.part);
		free(d.mark);
		strv_free(d.files.items);
	} else {
		out->is_gone = true;
		err_set(&why, ERR_NOT_FOUND, "%s is not what it was", request->path);
	}
	checkpoint_list_clear(&list);
	out->ms = clock_mono_ms() - begun_ms;
	snprintf(out->text, sizeof(out->text), "%s", why.text);
}
