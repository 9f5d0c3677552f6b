/* SPDX-License-Identifier: MIT */
/* whole.c - one function per format, told apart by name or first bytes. */
#include "common/checkpoint/whole.h"

#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/text.h"

enum {
	HEAD_BYTES = 560,               /* JLD2's block is at its end */
	HEADER_MAX = 100 * 1000 * 1000, /* of safetensors, as its own library has it */
	PICKLE_READ = 4 * 1024 * 1024,
	TAIL_BYTES = 64,
	NOTE_BYTES = 4096,
	OBJECTS_MAX = 100000, /* of msgpack, looked at */
};

struct file {
	int fd;
	const char *path;
	int64_t bytes;
	unsigned char head[HEAD_BYTES];
	size_t head_len;
};

/* What a look finds where nothing is wrong: a file that was cut anywhere would have been found out,
 * or one that could be cut somewhere all the same. Else -1 with err. */
enum { PROVEN, LIKELY };

static bool has_suffix(const struct file *f, const char *suffix)
{
	size_t len = strlen(f->path), n = strlen(suffix);

	return len > n && strcmp(f->path + len - n, suffix) == 0;
}

static bool begins(const struct file *f, const void *magic, size_t len)
{
	return f->head_len >= len && memcmp(f->head, magic, len) == 0;
}

static int read_part(const struct file *f, void *out, size_t len, int64_t at, struct err *err)
{
	ssize_t n;

	do
		n = pread(f->fd, out, len, at);
	while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_errno(err, "cannot be read");
	return (size_t)n == len ? 0 : err_set(err, ERR_IO, "was cut short");
}

/* --- zip: torch.save, numpy.savez, Keras ------------------------------------------------------ */

static bool is_zip(const struct file *f)
{
	size_t len = f->head_len < 4 ? f->head_len : 4;

	return begins(f, "PK\3\4", len) || has_suffix(f, ".npz") || has_suffix(f, ".keras");
}

static int check_zip(const struct file *f, struct look *look, struct err *err)
{
	return zip_check(f->fd, f->bytes, look, err);
}

/* --- safetensors: u64 header bytes, a JSON header, raw data ----------------------------------- */

static bool is_safetensors(const struct file *f)
{
	return has_suffix(f, ".safetensors");
}

static int end_of_data(json_t *header, int64_t *end, struct err *err)
{
	const char *name;
	json_t *tensor;

	*end = 0;
	json_object_foreach(header, name, tensor) {
		const json_t *offsets = json_object_get(tensor, "data_offsets");
		int64_t last = json_integer_value(json_array_get(offsets, 1));

		if (strcmp(name, "__metadata__") == 0)
			continue;
		if (!json_is_array(offsets) || last < 0)
			return err_set(err, ERR_IO, "its header is damaged at %.80s", name);
		if (last > *end)
			*end = last;
	}
	return 0;
}

static int check_sizes(const struct file *f, json_t *header, int64_t header_bytes, struct err *err)
{
	int64_t end = 0, is = f->bytes - 8 - header_bytes;

	if (end_of_data(header, &end, err) < 0)
		return -1;
	if (end != is)
		return err_set(err, ERR_IO, "%lld bytes of data, its header says %lld",
			       (long long)is, (long long)end);
	return 0;
}

static int check_safetensors(const struct file *f, struct look *look, struct err *err)
{
	uint64_t header_bytes = 0;
	json_t *header = NULL;
	char *text;
	int rc = -1;

	(void)look;
	if (f->head_len < 8)
		return err_set(err, ERR_IO, "was cut short");
	memcpy(&header_bytes, f->head, 8);
	header_bytes = le64toh(header_bytes);
	if (header_bytes > (uint64_t)f->bytes - 8)
		return err_set(err, ERR_IO, "was cut short: its header alone is longer");
	if (header_bytes > HEADER_MAX)
		return err_set(err, ERR_IO, "a header of more than %d MB", HEADER_MAX / 1000000);
	text = xmalloc((size_t)header_bytes + 1);
	if (read_part(f, text, (size_t)header_bytes, 8, err) == 0)
		header = js_parse(text, (size_t)header_bytes, err);
	free(text);
	if (header)
		rc = check_sizes(f, header, (int64_t)header_bytes, err);
	json_decref(header);
	return rc;
}

/* --- .npy: a header as Python writes it, raw data; Equinox writes one behind the other -------- */

static const char npy[] = "\x93NUMPY";

static bool is_npy(const struct file *f)
{
	return begins(f, npy, 6) || has_suffix(f, ".npy");
}

/* "'descr': '<f4'" → 4; 0 = another kind of type, whose size is not judged. */
static int64_t item_bytes(const char *header)
{
	const char *at = strstr(header, "'descr': '");

	if (!at || strlen(at) < 13 || at[11] == '\0' || !strchr("fiuc?bSV", at[11]))
		return 0;
	return strtoll(at + 12, NULL, 10);
}

static int64_t item_count(const char *header)
{
	const char *at = strstr(header, "'shape': (");
	int64_t count = 1;

	if (!at)
		return -1;
	for (at += 10; *at && *at != ')';) {
		char *end;
		long long n = strtoll(at, &end, 10);

		if (end == at || n < 0 || (n > 0 && count > INT64_MAX / 16 / n))
			return -1;
		count *= n;
		at = end + strspn(end, ", ");
	}
	return count;
}

/* *bytes: of the array that begins there; 0 = its header does not say. */
static int measure_npy(const struct file *f, int64_t at, int64_t *bytes, struct err *err)
{
	int64_t left = f->bytes - at, begin, items, size;
	size_t len = left < HEAD_BYTES ? (size_t)left : HEAD_BYTES;
	unsigned char head[HEAD_BYTES + 1] = { 0 };

	*bytes = 0;
	if (read_part(f, head, len, at, err) < 0)
		return -1;
	if (memcmp(head, npy, len < 6 ? len : 6) != 0)
		return at > 0 ? 0 : err_set(err, ERR_IO, "does not begin as a .npy file does");
	begin = head[6] == 1 ? 10 + head[8] + 256 * head[9]
			     : 12 + (int64_t)(head[8] | head[9] << 8 | head[10] << 16);
	if (len < 12 || left < begin)
		return err_set(err, ERR_IO, "was cut short");
	items = item_count((char *)head + 10);
	size = item_bytes((char *)head + 10);
	if (items < 0 || size <= 0 || size >= INT32_MAX || items >= INT64_MAX / size - begin)
		return 0;
	if (left - begin < items * size)
		return err_set(err, ERR_IO, "%lld bytes of data, its header says %lld",
			       (long long)(left - begin), (long long)(items * size));
	*bytes = begin + items * size;
	return 0;
}

/* Between two arrays it can be cut, and nothing shows it. */
static int check_npy(const struct file *f, struct look *look, struct err *err)
{
	int64_t at = 0, bytes;
	int count = 0;

	(void)look;
	do {
		if (measure_npy(f, at, &bytes, err) < 0)
			return -1;
		at += bytes;
		count++;
	} while (bytes > 0 && at < f->bytes);
	return count == 1 && at == f->bytes && has_suffix(f, ".npy") ? PROVEN : LIKELY;
}

/* --- pickle: begins with 0x80, and ends with a dot -------------------------------------------- */

/* What torch.save wrote before archives begins with a pickle, too: of this number. */
static bool is_old_torch(const struct file *f)
{
	static const unsigned char number[] = { 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
						0x20, 0x6a, 0xa8, 0x50, 0x19 };

	return memmem(f->head, f->head_len < 32 ? f->head_len : 32, number, sizeof(number));
}

/* By joblib, Paddle, torch.distributed.checkpoint: as the protocols since 3 begin, which have
 * frames since 4. */
static bool is_pickle(const struct file *f)
{
	return has_suffix(f, ".pkl") || has_suffix(f, ".pickle") || begins(f, "\x80\3", 2) ||
	       begins(f, "\x80\4\x95", 3) || begins(f, "\x80\5\x95", 3);
}

static int check_pickle(const struct file *f, struct look *look, struct err *err)
{
	char last = 0;

	(void)look;
	if (read_part(f, &last, 1, f->bytes - 1, err) < 0)
		return -1;
	/* Packed ones, as joblib can write, begin otherwise. */
	if (f->head[0] == 0x80 && last != '.' && !is_old_torch(f))
		return err_set(err, ERR_IO, "was cut short: a pickle ends with a dot");
	return LIKELY;
}

/* --- JSON, and XGBoost's of bytes ------------------------------------------------------------- */

static bool is_json(const struct file *f)
{
	return has_suffix(f, ".json") || has_suffix(f, ".ubj");
}

/* Only its end is looked at: Python writes NaN into JSON, and that shall not spoil a checkpoint. */
static int check_json(const struct file *f, struct look *look, struct err *err)
{
	size_t len = f->bytes < TAIL_BYTES ? (size_t)f->bytes : TAIL_BYTES, first = 0;
	char tail[TAIL_BYTES];

	(void)look;
	if (read_part(f, tail, len, f->bytes - (int64_t)len, err) < 0)
		return -1;
	while (len > 0 && (isspace((unsigned char)tail[len - 1])))
		len--;
	while (first < f->head_len && isspace(f->head[first]))
		first++;
	if (first < f->head_len && (f->head[first] == '{' || f->head[first] == '[') &&
	    (len == 0 || tail[len - 1] != (f->head[first] == '{' ? '}' : ']')))
		return err_set(err, ERR_IO, "was cut short");
	return has_suffix(f, ".ubj") ? LIKELY : PROVEN;
}

/* --- HDF5: its first block says where it ends, and does so rightly once it was closed ------- */

/* JLD2's block stands behind a text. It is written last, over zeros. */
enum { HDF5_BEHIND = 512, HDF5_BLOCK_BYTES = HEAD_BYTES - HDF5_BEHIND };

static const unsigned char *hdf5_block(const struct file *f)
{
	static const char magic[] = "\x89HDF\r\n\x1a\n";

	if (begins(f, magic, 8))
		return f->head;
	return f->head_len >= HDF5_BEHIND + HDF5_BLOCK_BYTES &&
			       memcmp(f->head + HDF5_BEHIND, magic, 8) == 0
		       ? f->head + HDF5_BEHIND
		       : NULL;
}

static bool is_hdf5(const struct file *f)
{
	return hdf5_block(f) != NULL;
}

static int check_hdf5(const struct file *f, struct look *look, struct err *err)
{
	static const int end_at[] = { 40, 44, 28, 28 }; /* by version of that block */
	const unsigned char *block = hdf5_block(f);
	uint64_t end;
	unsigned version;

	(void)look;
	if (f->head_len < 64)
		return err_set(err, ERR_IO, "was cut short");
	version = block[8];
	/* numbers of other widths than 8 are not read, nor is version 1, which is longer, behind a
	 * text */
	if (version > 3 || block[version < 2 ? 13 : 9] != 8 || (version == 1 && block != f->head))
		return LIKELY;
	memcpy(&end, block + end_at[version], sizeof(end));
	if (le64toh(end) != (uint64_t)f->bytes)
		return err_set(err, ERR_IO, "%lld bytes, its first block says %llu",
			       (long long)f->bytes, (unsigned long long)le64toh(end));
	return 0;
}

/* --- OCDBT of TensorStore: the top of its tree, with its size behind the magic ---------------- */

static const unsigned char ocdbt[] = { 0x0c, 0xdb, 0x3a, 0x2a };

static bool is_ocdbt(const struct file *f)
{
	return begins(f, ocdbt, sizeof(ocdbt)) || has_suffix(f, "manifest.ocdbt");
}

static int check_ocdbt(const struct file *f, struct look *look, struct err *err)
{
	uint64_t bytes = 0;

	(void)look;
	if (!begins(f, ocdbt, sizeof(ocdbt)) || f->head_len < sizeof(ocdbt) + sizeof(bytes))
		return err_set(err, ERR_IO, "does not begin as a manifest of OCDBT does");
	memcpy(&bytes, f->head + sizeof(ocdbt), sizeof(bytes));
	bytes = le64toh(bytes);
	if (bytes != (uint64_t)f->bytes)
		return err_set(err, ERR_IO, "%lld bytes, its header says %llu", (long long)f->bytes,
			       (unsigned long long)bytes);
	return 0;
}

/* --- msgpack, as Flax and Burn write it: one object, each with its length in front --------- */

static bool is_msgpack(const struct file *f)
{
	return has_suffix(f, ".msgpack") || has_suffix(f, ".mpk");
}

/* What begins with `p`: how long it is, and how many objects it holds behind that. */
static void measure_object(const unsigned char p[9], int64_t *bytes, int64_t *holds)
{
	/* from 0xc0 on: bytes behind it, and what the number in them counts */
	static const unsigned char widths[] = { 0, 0, 0, 0, 1, 2, 4, 1, 2,  4, 4, 8, 1, 2, 4, 8,
						1, 2, 4, 8, 2, 3, 5, 9, 17, 1, 2, 4, 2, 4, 2, 4 };
	/* x: bytes behind a type's */
	static const char counts[] = "    bbbxxx               bbbaamm";
	int64_t number = 0;
	char what = ' ';

	*bytes = 1;
	if (p[0] >= 0x80 && p[0] < 0xc0) {
		what = p[0] < 0x90 ? 'm' : p[0] < 0xa0 ? 'a' : 'b';
		number = p[0] & (what == 'b' ? 0x1f : 0x0f);
	} else if (p[0] >= 0xc0 && p[0] < 0xe0) {
		what = counts[p[0] - 0xc0];
		*bytes += widths[p[0] - 0xc0];
		for (int64_t i = 1; what != ' ' && i < *bytes; i++)
			number = number << 8 | p[i];
	}
	*bytes += what == 'x' ? number + 1 : what == 'b' ? number : 0;
	*holds = what == 'm' ? 2 * number : what == 'a' ? number : 0;
}

static int check_msgpack(const struct file *f, struct look *look, struct err *err)
{
	int64_t at = 0, left = 1, bytes, holds;

	(void)look;
	for (int i = 0; left > 0 && at < f->bytes; i++) {
		unsigned char head[9] = { 0 };
		size_t len = f->bytes - at < 9 ? (size_t)(f->bytes - at) : 9;

		if (i == OBJECTS_MAX)
			return LIKELY;
		if (read_part(f, head, len, at, err) < 0)
			return -1;
		measure_object(head, &bytes, &holds);
		left += holds - 1;
		at += bytes;
	}
	if (left > 0 || at > f->bytes)
		return err_set(err, ERR_IO, "was cut short");
	return at == f->bytes ? PROVEN : LIKELY;
}

/* --- all of them ------------------------------------------------------------------------------ */

static const struct format {
	bool (*is)(const struct file *f);
	int (*check)(const struct file *f, struct look *look, struct err *err);
} formats[] = {
	{ is_safetensors, check_safetensors },
	{ is_npy, check_npy },
	{ is_zip, check_zip },
	{ is_hdf5, check_hdf5 },
	{ is_ocdbt, check_ocdbt },
	{ is_msgpack, check_msgpack },
	{ is_pickle, check_pickle },
	{ is_json, check_json },
};

/* A file whose blocks never reached the disk, after a power cut, has its size and reads as zeros.
 */
static bool is_blank(const struct file *f)
{
	static const char *const never[] = { ".pt",     ".pth", ".ckpt", ".pkl",
					     ".distcp", ".h5",  ".jld2" };
	size_t i = 0;

	while (i < f->head_len && f->head[i] == 0)
		i++;
	if (i < f->head_len || f->head_len < 16)
		return false;
	for (i = 0; i < sizeof(never) / sizeof(never[0]); i++) {
		if (has_suffix(f, never[i]))
			return true;
	}
	return false;
}

static int check(struct file *f, struct look *look, bool *is_proven, struct err *err)
{
	f->head_len = f->bytes < HEAD_BYTES ? (size_t)f->bytes : HEAD_BYTES;
	if (read_part(f, f->head, f->head_len, 0, err) < 0)
		return -1;
	if (is_blank(f))
		return err_set(err, ERR_IO, "holds zeros where its first bytes should be");
	for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
		int rc;

		if (!formats[i].is(f))
			continue;
		rc = formats[i].check(f, look, err);
		*is_proven = rc == PROVEN;
		return rc < 0 ? -1 : 0;
	}
	return 0;
}

static int open_regular(const char *path, struct file *f, struct err *err)
{
	struct stat st;

	*f = (struct file){ .path = path,
			    .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) };
	if (f->fd < 0)
		return err_errno(err, "cannot be opened");
	if (fstat(f->fd, &st) == 0 && S_ISREG(st.st_mode)) {
		f->bytes = st.st_size;
		return 0;
	}
	close(f->fd);
	return err_set(err, ERR_IO, "is not a regular file");
}

int file_is_whole(const char *path, struct look *look, bool *is_proven, struct err *err)
{
	struct file f;
	int rc;

	*is_proven = false;
	if (open_regular(path, &f, err) < 0)
		return -1;
	rc = f.bytes == 0 ? err_set(err, ERR_IO, "is empty (0 bytes)")
			  : check(&f, look, is_proven, err);
	close(f.fd);
	return rc;
}

bool file_is_packed(const char *path)
{
	static const struct {
		const char *bytes;
		size_t len;
	} magics[] = { { "\x1f\x8b", 2 },
		       { "\x28\xb5\x2f\xfd", 4 },
		       { "\xfd"
			 "7zXZ",
			 5 },
		       { "BZh", 3 },
		       { "\x04\x22\x4d\x18", 4 } };
	struct file f;
	bool is = false;

	if (open_regular(path, &f, NULL) < 0)
		return false;
	f.head_len = f.bytes < 8 ? (size_t)f.bytes : 8;
	for (size_t i = 0; read_part(&f, f.head, f.head_len, 0, NULL) == 0 && !is &&
			   i < sizeof(magics) / sizeof(magics[0]);
	     i++)
		is = begins(&f, magics[i].bytes, magics[i].len);
	close(f.fd);
	return is;
}

bool file_is_note(const char *path)
{
	char text[NOTE_BYTES + 1] = "";
	struct file f;
	bool is = open_regular(path, &f, NULL) == 0;
	double number;

	if (!is)
		return false;
	is = f.bytes > 0 && f.bytes < NOTE_BYTES &&
	     read_part(&f, text, (size_t)f.bytes, 0, NULL) == 0;
	close(f.fd);
	for (int64_t i = 0; is && i < f.bytes; i++)
		is = (unsigned char)text[i] >= ' ' || (text[i] && strchr("\t\r\n", text[i]));
	return is && (text[f.bytes - 1] == '\n' ||
		      (strchr(text, '.') && text_number(text, (size_t)f.bytes, &number)));
}

/* --- the step inside -------------------------------------------------------------------------- */

/* A pickled integer right behind a key, with the key's note to memory in between; -1 = none. */
static int64_t pickled_int(const unsigned char *p, size_t len)
{
	size_t at = 0;

	if (len > 1 && p[0] == 'q') /* BINPUT, LONG_BINPUT, MEMOIZE */
		at = 2;
	else if (len > 4 && p[0] == 'r')
		at = 5;
	else if (len > 0 && p[0] == 0x94)
		at = 1;
	p += at;
	len -= at;
	if (len >= 2 && p[0] == 'K')
		return p[1];
	if (len >= 3 && p[0] == 'M')
		return p[1] | p[2] << 8;
	if (len >= 5 && p[0] == 'J' && !(p[4] & 0x80))
		return (int64_t)(p[1] | p[2] << 8 | p[3] << 16) | (int64_t)p[4] << 24;
	return -1;
}

static int64_t find_key(const unsigned char *data, size_t len, const char *key)
{
	size_t key_len = strlen(key);
	const unsigned char *at = data;

	while ((at = memmem(at, len - (size_t)(at - data), key, key_len)) != NULL) {
		const unsigned char *end = at + key_len;
		/* its length stands in front: BINUNICODE with four bytes, SHORT_BINUNICODE with one
		 */
		bool is_long = at - data >= 5 && at[-5] == 'X' && at[-4] == key_len && at[-3] == 0;
		bool is_short = at - data >= 2 && at[-2] == 0x8c && at[-1] == key_len;
		int64_t step = is_long || is_short ? pickled_int(end, len - (size_t)(end - data))
						   : -1;

		if (step >= 0)
			return step;
		at = end;
	}
	return -1;
}

int64_t file_step_inside(const char *path)
{
	static const char *const keys[] = { "iter_num",      "global_step", "iteration", "step",
					    "num_updates",   "iter",        "iters",     "epoch",
					    "current_epoch", "start_epoch" };
	unsigned char *data;
	struct file f;
	int64_t len, step = -1;

	if (open_regular(path, &f, NULL) < 0)
		return -1;
	data = xmalloc(PICKLE_READ);
	len = zip_head(f.fd, f.bytes, "data.pkl", data, PICKLE_READ);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]) && step < 0 && len > 0; i++)
		step = find_key(data, (size_t)len, keys[i]);
	free(data);
	close(f.fd);
	return step;
}
