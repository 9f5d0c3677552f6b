/* SPDX-License-Identifier: MIT */
/* torch_write.c - a dictionary of tensors as torch.save writes it: a zip archive of entries that
 * are not packed, each on a boundary of 64 bytes, with 64-bit sizes. */
#include "worker/lbworker/torch/torch_file.h"

#include <endian.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/torch/pickle_write.h"

enum {
	ALIGN = 64,
	LOCAL_BYTES = 30,
	WIDE_BYTES = 20, /* the extra field with two 64-bit sizes */
	CRC_AT = 14,     /* in a local header */
	VERSION = 45,    /* of a reader that knows 64-bit sizes */
	WIDE_ID = 1,
	PAD_ID = 0x4246, /* as PyTorch names its padding */
	DOS_DATE = 33,   /* 1 January 1980 */
	PICKLE_MAX = 1 << 30,
};

static const char ROOT[] = "archive";

struct member {
	char *name;
	uint64_t at, bytes; /* of the local header; of the data */
	uint32_t crc;
};

struct torch_writer {
	FILE *out;
	char *path;
	uint64_t base;                 /* where the archive begins */
	bool is_one;                   /* a tensor alone, not a dictionary */
	struct member *member;         /* all entries in order */
	size_t members, tensors, next; /* next: the tensor whose data comes */
	uint64_t *bytes;               /* of each tensor */
	uint64_t left;                 /* of the present one */
};

static void put(unsigned char **to, uint64_t value, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		*(*to)++ = (unsigned char)(value >> 8 * i);
}

static int write_bytes(struct torch_writer *w, const void *data, size_t bytes, struct err *err)
{
	if (fwrite(data, 1, bytes, w->out) == bytes)
		return 0;
	return err_errno(err, "%s", w->path);
}

static int where(struct torch_writer *w, uint64_t *at, struct err *err)
{
	off_t now = ftello(w->out);

	*at = (uint64_t)now - w->base;
	return now < 0 ? err_errno(err, "%s", w->path) : 0;
}

/* The fields that both headers of an entry share, from the version to read it on. */
static void put_common(unsigned char **to, const struct member *m, size_t extra)
{
	put(to, VERSION, 2);
	put(to, 0, 2); /* flags */
	put(to, 0, 2); /* stored */
	put(to, 0, 2);
	put(to, DOS_DATE, 2);
	put(to, m->crc, 4);
	put(to, UINT32_MAX, 4); /* both sizes are in the extra field */
	put(to, UINT32_MAX, 4);
	put(to, strlen(m->name), 2);
	put(to, extra, 2);
}

/* The local header of an entry of so many bytes; its checksum is put in behind. */
static int begin_entry(struct torch_writer *w, char *name, uint64_t bytes, struct err *err)
{
	unsigned char head[LOCAL_BYTES + WIDE_BYTES + 4 + ALIGN] = { 0 }, *to = head, *rest;
	struct member *m = &w->member[w->members++];

	*m = (struct member){ .name = name, .bytes = bytes, .crc = (uint32_t)crc32(0, NULL, 0) };
	if (where(w, &m->at, err))
		return -1;
	size_t fixed = LOCAL_BYTES + strlen(name) + WIDE_BYTES + 4;
	size_t pad = (ALIGN - (m->at + fixed) % ALIGN) % ALIGN;
	put(&to, 0x04034b50, 4);
	put_common(&to, m, WIDE_BYTES + 4 + pad);
	if (write_bytes(w, head, LOCAL_BYTES, err) || write_bytes(w, name, strlen(name), err))
		return -1;
	rest = to;
	put(&to, WIDE_ID, 2);
	put(&to, 16, 2);
	put(&to, bytes, 8);
	put(&to, bytes, 8);
	put(&to, PAD_ID, 2);
	put(&to, pad, 2);
	return write_bytes(w, rest, WIDE_BYTES + 4 + pad, err);
}

static int add_to_entry(struct torch_writer *w, const void *data, size_t bytes, struct err *err)
{
	struct member *m = &w->member[w->members - 1];

	m->crc = (uint32_t)crc32_z(m->crc, data, bytes);
	return write_bytes(w, data, bytes, err);
}

static int end_entry(struct torch_writer *w, struct err *err)
{
	const struct member *m = &w->member[w->members - 1];
	uint32_t crc = htole32(m->crc);

	if (fseeko(w->out, (off_t)(w->base + m->at) + CRC_AT, SEEK_SET) ||
	    fwrite(&crc, sizeof(crc), 1, w->out) != 1 || fseeko(w->out, 0, SEEK_END))
		return err_errno(err, "%s", w->path);
	return 0;
}

static int small_entry(struct torch_writer *w, const char *name, const void *data, size_t bytes,
		       struct err *err)
{
	return begin_entry(w, xasprintf("%s/%s", ROOT, name), bytes, err) ||
			       add_to_entry(w, data, bytes, err) || end_entry(w, err)
		       ? -1
		       : 0;
}

/* --- the pickle ----------------------------------------------------------------------------- */

/* _rebuild_tensor_v2(storage, 0, size, stride, False, OrderedDict()) */
static void add_tensor(struct buf *b, const struct st_tensor *t, size_t number, uint64_t count)
{
	static const char *const kinds[ST_TYPE_COUNT] = {
		[ST_F32] = "FloatStorage", [ST_BF16] = "BFloat16Storage", [ST_F16] = "HalfStorage"
	};
	char key[32];
	uint64_t stride = count;

	snprintf(key, sizeof(key), "%zu", number);
	pickle_put(b, "ctorch._utils\n_rebuild_tensor_v2\n((");
	pickle_put_text(b, "storage");
	pickle_put(b, "ctorch\n");
	pickle_put(b, kinds[t->type]);
	pickle_put(b, "\n");
	pickle_put_text(b, key);
	pickle_put_text(b, "cpu");
	pickle_put_size(b, count);
	pickle_put(b, "tQ"); /* the tuple; BINPERSID */
	pickle_put_size(b, 0);
	pickle_put(b, "(");
	for (int i = 0; i < t->dimensions; i++)
		pickle_put_size(b, t->shape[i]);
	pickle_put(b, "t(");
	for (int i = 0; i < t->dimensions; i++) {
		stride /= t->shape[i];
		pickle_put_size(b, stride);
	}
	pickle_put(b, "t\x89"
		      "ccollections\nOrderedDict\n)RtR"); /* NEWFALSE */
}

static int write_pickle(struct torch_writer *w, const struct st_tensor *tensors, size_t count,
			struct err *err)
{
	static const size_t sizes[ST_TYPE_COUNT] = { [ST_F32] = 4, [ST_BF16] = 2, [ST_F16] = 2 };
	struct buf b;

	buf_init(&b, PICKLE_MAX);
	pickle_put(&b, w->is_one ? "\x80\x02" : "\x80\x02}("); /* PROTO 2 */
	for (size_t i = 0; i < count; i++) {
		uint64_t elements = 1;
		for (int d = 0; d < tensors[i].dimensions; d++)
			elements *= tensors[i].shape[d];
		w->bytes[i] = elements * sizes[tensors[i].type];
		if (!w->is_one)
			pickle_put_text(&b, tensors[i].name);
		add_tensor(&b, &tensors[i], i, elements);
	}
	pickle_put(&b, w->is_one ? "." : "u."); /* SETITEMS, STOP */
	int rc = small_entry(w, "data.pkl", b.data, b.len, err);
	buf_fini(&b);
	return rc || small_entry(w, "byteorder", "little", 6, err) ? -1 : 0;
}

/* --- the archive's end ---------------------------------------------------------------------- */

static int write_directory_entry(struct torch_writer *w, const struct member *m, struct err *err)
{
	unsigned char head[64] = { 0 }, wide[4 + 24], *to = head, *extra = wide;

	put(&to, 0x02014b50, 4);
	put(&to, VERSION, 2);
	put_common(&to, m, sizeof(wide));
	put(&to, 0, 2); /* comment */
	put(&to, 0, 2); /* disk */
	put(&to, 0, 2);
	put(&to, 0, 4);
	put(&to, UINT32_MAX, 4); /* its place is in the extra field, too */
	put(&extra, WIDE_ID, 2);
	put(&extra, 24, 2);
	put(&extra, m->bytes, 8);
	put(&extra, m->bytes, 8);
	put(&extra, m->at, 8);
	return write_bytes(w, head, (size_t)(to - head), err) ||
			       write_bytes(w, m->name, strlen(m->name), err) ||
			       write_bytes(w, wide, sizeof(wide), err)
		       ? -1
		       : 0;
}

static int write_directory(struct torch_writer *w, struct err *err)
{
	unsigned char end[128], *to = end;
	uint64_t begin, behind;

	if (where(w, &begin, err))
		return -1;
	for (size_t i = 0; i < w->members; i++)
		if (write_directory_entry(w, &w->member[i], err))
			return -1;
	if (where(w, &behind, err))
		return -1;
	put(&to, 0x06064b50, 4); /* the wide end record, and where it is */
	put(&to, 44, 8);
	put(&to, VERSION, 2);
	put(&to, VERSION, 2);
	put(&to, 0, 8);
	put(&to, w->members, 8);
	put(&to, w->members, 8);
	put(&to, behind - begin, 8);
	put(&to, begin, 8);
	put(&to, 0x07064b50, 4);
	put(&to, 0, 4);
	put(&to, behind, 8);
	put(&to, 1, 4);
	put(&to, 0x06054b50, 4); /* the narrow one: look at the wide one */
	put(&to, 0, 4);
	put(&to, UINT16_MAX, 2);
	put(&to, UINT16_MAX, 2);
	put(&to, UINT32_MAX, 4);
	put(&to, UINT32_MAX, 4);
	put(&to, 0, 2);
	return write_bytes(w, end, (size_t)(to - end), err);
}

/* --- life ----------------------------------------------------------------------------------- */

static void release(struct torch_writer *w)
{
	for (size_t i = 0; i < w->members; i++)
		free(w->member[i].name);
	free(w->member);
	free(w->bytes);
	free(w->path);
	free(w);
}

/* Ends entries that are full, begins the next. */
static int turn_over(struct torch_writer *w, struct err *err)
{
	while (w->left == 0 && w->next < w->tensors) {
		if (w->next > 0 && end_entry(w, err))
			return -1;
		w->left = w->bytes[w->next];
		if (begin_entry(w, xasprintf("%s/data/%zu", ROOT, w->next), w->left, err))
			return -1;
		w->next++;
	}
	return 0;
}

static void give_up(struct torch_writer *w)
{
	if (w->out)
		fclose(w->out);
	release(w);
}

/* The file at byte `base`, and room for so many tensors; NULL with err. */
static struct torch_writer *open_at(const char *path, const char *mode, uint64_t base, size_t count,
				    struct err *err)
{
	struct torch_writer *w = xcalloc(1, sizeof(*w));

	w->path = xstrdup(path);
	w->base = base;
	w->tensors = count;
	w->bytes = xcalloc(count + 1, sizeof(*w->bytes));
	w->member = xcalloc(count + 4, sizeof(*w->member));
	w->out = fopen(path, mode);
	if (w->out && fseeko(w->out, (off_t)base, SEEK_SET) == 0)
		return w;
	err_errno(err, "%s", path);
	give_up(w);
	return NULL;
}

static struct torch_writer *begin(const char *path, const char *mode, uint64_t base,
				  const struct st_tensor *tensors, size_t count, bool is_one,
				  struct err *err)
{
	struct torch_writer *w = open_at(path, mode, base, count, err);

	if (!w)
		return NULL;
	w->is_one = is_one;
	if (write_pickle(w, tensors, count, err) == 0 && turn_over(w, err) == 0)
		return w;
	give_up(w);
	return NULL;
}

struct torch_writer *torch_begin(const char *path, const struct st_tensor *tensors, size_t count,
				 struct err *err)
{
	return begin(path, "w+e", 0, tensors, count, false, err);
}

struct torch_writer *torch_begin_one(const char *path, uint64_t at, const struct st_tensor *tensor,
				     uint64_t *bytes, struct err *err)
{
	struct torch_writer *w = begin(path, at > 0 ? "r+e" : "w+e", at, tensor, 1, true, err);

	*bytes = w ? w->bytes[0] : 0;
	return w;
}

int torch_write_value(const char *path, uint64_t at, const struct buf *opcodes, uint64_t *end,
		      struct err *err)
{
	struct torch_writer *w = open_at(path, at > 0 ? "r+e" : "w+e", at, 0, err);
	struct buf b;

	if (!w)
		return -1;
	buf_init(&b, PICKLE_MAX);
	pickle_put(&b, "\x80\x02");
	(void)buf_add(&b, opcodes->data, opcodes->len);
	pickle_put(&b, ".");
	int rc = small_entry(w, "data.pkl", b.data, b.len, err) ||
				 small_entry(w, "byteorder", "little", 6, err)
			 ? -1
			 : 0;
	buf_fini(&b);
	if (rc == 0)
		return torch_end_at(w, end, err);
	give_up(w);
	return -1;
}

int torch_append(struct torch_writer *w, const void *data, size_t bytes, struct err *err)
{
	const char *at = data;

	while (bytes > 0) {
		if (w->left == 0)
			return err_set(err, ERR_INTERNAL, "%s: more data than tensors", w->path);
		size_t count = bytes < w->left ? bytes : (size_t)w->left;
		if (add_to_entry(w, at, count, err))
			return -1;
		at += count;
		bytes -= count;
		w->left -= count;
		if (turn_over(w, err))
			return -1;
	}
	return 0;
}

int torch_end_at(struct torch_writer *w, uint64_t *end, struct err *err)
{
	int rc = 0;

	if (!w)
		return 0;
	if (w->left > 0 || w->next < w->tensors)
		rc = err_set(err, ERR_INTERNAL, "%s: tensors without data", w->path);
	if (rc == 0 && w->tensors > 0)
		rc = end_entry(w, err);
	if (rc == 0 && (small_entry(w, "version", "3\n", 2, err) || write_directory(w, err)))
		rc = -1;
	if (rc == 0 && end && where(w, end, err))
		rc = -1;
	if (end)
		*end += w->base;
	if (fclose(w->out) != 0 && rc == 0)
		rc = err_errno(err, "%s", w->path);
	release(w);
	return rc;
}

int torch_end(struct torch_writer *w, struct err *err)
{
	return torch_end_at(w, NULL, err);
}
