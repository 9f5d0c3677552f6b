/* SPDX-License-Identifier: MIT */
/* token_formats.c - files are told apart by their first bytes, never by their names alone. */
#include "worker/lbworker/data/token_formats.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"

/* --- what is not tokens ----------------------------------------------------------------------- */

static const struct magic {
	const char *bytes;
	size_t at, count;
	const char *what;
} magics[] = {
	{ "\x1f\x8b", 0, 2, "is compressed (gzip): unpack it first" },
	{ "\x28\xb5\x2f\xfd", 0, 4, "is compressed (zstd): unpack it first" },
	{ "\xfd"
	  "7zXZ",
	  0, 5, "is compressed (xz): unpack it first" },
	{ "PK\x03\x04", 0, 4,
	  "is an archive (zip, .npz or torch.save): numpy.save writes tokens "
	  "that are read" },
	{ "PAR1", 0, 4, "is a Parquet file: its texts have to become tokens first" },
	{ "ARROW1", 0, 6, "is an Arrow file: its texts have to become tokens first" },
	{ "\x89HDF", 0, 4, "is an HDF5 file: numpy.save writes tokens that are read" },
	{ "SQLite format 3", 0, 15, "is a SQLite database" },
	{ "ustar", 257, 5, "is a tar archive: unpack it first" },
	{ "MMIDIDX", 0, 7, "is Megatron's index: the tokens are in the .bin beside it" },
};

/* Printable, in UTF-8. A sequence that the end cuts off counts. */
static bool is_text(const unsigned char *at, size_t count)
{
	size_t follow = 0;

	for (size_t i = 0; i < count; i++) {
		unsigned char c = at[i];
		if (follow > 0) {
			if ((c & 0xc0) != 0x80)
				return false;
			follow--;
		} else if (c >= 0xc2 && c < 0xf5) {
			follow = c < 0xe0 ? 1 : c < 0xf0 ? 2 : 3;
		} else if (c >= 0x7f || (c < 0x20 && !strchr("\t\n\r\f", c)) || c == 0) {
			return false;
		}
	}
	return count > 0;
}

static const char *text_kind(const unsigned char *at, size_t count)
{
	size_t blank = 0;

	while (blank < count && strchr(" \t\r\n", at[blank]))
		blank++;
	if (blank < count && at[blank] == '{')
		return "is JSON, or JSON lines: their texts have to become tokens first (lbworker "
		       "prepare makes one of each byte)";
	if (blank < count && at[blank] == '[')
		return "is JSON: its numbers have to become tokens first (numpy.save writes some)";
	return "is text: lbworker prepare makes tokens of it, one of each byte";
}

/* A header of 8 bytes that says how long the JSON behind it is. */
static bool is_safetensors(const unsigned char *at, uint64_t bytes)
{
	uint64_t header;

	memcpy(&header, at, sizeof(header));
	return header < bytes && at[8] == '{' && (at[9] == '"' || at[9] == '}');
}

/* Count, then where each item starts: the first behind the table itself, the last the end. */
static bool is_litdata(const unsigned char *at, uint64_t bytes)
{
	uint32_t items, first, last;

	memcpy(&items, at, sizeof(items));
	uint64_t table = 4 * ((uint64_t)items + 2);
	if (items == 0 || table > bytes)
		return false;
	memcpy(&first, at + 4, sizeof(first));
	memcpy(&last, at + table - 4, sizeof(last));
	return first == table && last == bytes;
}

static const char *other_kind(const unsigned char *at, uint64_t bytes)
{
	size_t looked = bytes < 4096 ? (size_t)bytes : 4096;

	for (size_t i = 0; i < sizeof(magics) / sizeof(magics[0]); i++)
		if (magics[i].at + magics[i].count <= bytes &&
		    memcmp(at + magics[i].at, magics[i].bytes, magics[i].count) == 0)
			return magics[i].what;
	if (is_text(at, looked))
		return text_kind(at, looked);
	if (bytes >= 16 && is_safetensors(at, bytes))
		return "is a file of tensors (safetensors), a model perhaps";
	if (bytes >= 16 && is_litdata(at, bytes))
		return "is a chunk of LitData, tokens among offsets: numpy.save of its items, one "
		       "after the other, is read";
	return NULL;
}

/* --- what is ---------------------------------------------------------------------------------- */

static int of_width(struct token_layout *out, const char *path, const char *format,
		    const char *type, uint32_t token_bytes, struct err *err)
{
	out->token_bytes = token_bytes;
	if (token_bytes > 0)
		return 1;
	return err_set(err, ERR_USAGE,
		       "%s: is %s of type %s, must be uint8, uint16, uint32, int32 or int64", path,
		       format, type);
}

/* NumPy: 6 bytes, a version, the length of a Python dictionary, that dictionary. */
static int find_numpy(struct token_layout *out, const char *path, const unsigned char *at,
		      uint64_t bytes, struct err *err)
{
	static const struct {
		const char *descr;
		uint32_t token_bytes;
	} types[] = { { "|u1", 1 }, { "<u2", 2 }, { "<u4", 4 }, { "<u8", 8 },
		      { "<i2", 2 }, { "<i4", 4 }, { "<i8", 8 } };
	uint32_t length = 0, token_bytes = 0;
	size_t head = at[6] == 1 ? 10 : 12;

	memcpy(&length, at + 8, head - 8);
	if (bytes < head + (uint64_t)length || length > 1 << 16)
		return err_set(err, ERR_USAGE, "%s: is a NumPy array that is cut short", path);
	char *text = xstrndup((const char *)at + head, length), type[8] = "?";
	const char *descr = strstr(text, "'descr':"), *shape = strstr(text, "'shape':");
	const char *comma = shape ? strchr(shape, ',') : NULL;
	const char *end = shape ? strchr(shape, ')') : NULL;
	bool one = comma && end && comma + 1 == end;
	out->token_count = one ? strtoull(shape + strcspn(shape, "(") + 1, NULL, 10) : 0;
	out->said_by = "its header";
	if (descr)
		(void)sscanf(descr, "'descr': '%7[^']'", type);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (strcmp(types[i].descr, type) == 0)
			token_bytes = types[i].token_bytes;
	free(text);
	if (!one)
		return err_set(err, ERR_USAGE,
			       "%s: is a NumPy array of more than one dimension: its .ravel() is "
			       "read",
			       path);
	out->first = head + length;
	return of_width(out, path, "a NumPy array", type, token_bytes, err);
}

/* As LitGPT's packed files and Megatron's index number them. */
static uint32_t width_of_code(unsigned code, char name[8])
{
	static const uint32_t bytes[] = { 0, 1, 0, 2, 4, 8, 0, 0, 2 };

	snprintf(name, 8, "code %u", code % 100);
	return code < sizeof(bytes) / sizeof(bytes[0]) ? bytes[code] : 0;
}

/* LITPKDS, u64 version, u8 type, u64 tokens in a chunk; one chunk a file. */
static int find_packed(struct token_layout *out, const char *path, const unsigned char *at,
		       struct err *err)
{
	char name[8];

	out->first = 24;
	memcpy(&out->token_count, at + 16, sizeof(out->token_count));
	out->said_by = "its header";
	return of_width(out, path, "a packed file of LitGPT", name, width_of_code(at[15], name),
			err);
}

/* Megatron's index: MMIDIDX, u64 version, u8 type, u64 sequences, u64 documents; the length of each
 * sequence in 4 bytes, then where each begins in 8. The last one ends where the tokens do. */
static bool read_index(struct token_layout *out, FILE *index, char name[8])
{
	unsigned char head[34];
	uint64_t sequences, begin;
	uint32_t length;

	if (fseeko(index, 0, SEEK_SET) || fread(head, sizeof(head), 1, index) != 1)
		return false;
	out->token_bytes = width_of_code(head[17], name);
	out->token_count = 0;
	memcpy(&sequences, head + 18, sizeof(sequences));
	if (sequences == 0 || out->token_bytes == 0)
		return true;
	if (sequences > INT64_MAX / 16 ||
	    fseeko(index, (off_t)(sizeof(head) + 4 * (sequences - 1)), SEEK_SET) ||
	    fread(&length, sizeof(length), 1, index) != 1 ||
	    fseeko(index, (off_t)(sizeof(head) + 12 * sequences - 8), SEEK_SET) ||
	    fread(&begin, sizeof(begin), 1, index) != 1)
		return false;
	out->token_count = begin / out->token_bytes + length;
	return true;
}

/* Megatron's tokens have no header, but an .idx beside them. */
static int find_megatron(struct token_layout *out, const char *path, struct err *err)
{
	size_t length = strlen(path);
	char magic[9], name[8];

	if (length < 5 || strcmp(path + length - 4, ".bin") != 0)
		return 0;
	char *index = xasprintf("%.*s.idx", (int)(length - 4), path);
	FILE *file = fopen(index, "rbe");
	bool is_index = file && fread(magic, sizeof(magic), 1, file) == 1 &&
			memcmp(magic, "MMIDIDX\0\0", sizeof(magic)) == 0;
	bool is_whole = is_index && read_index(out, file, name);
	if (file)
		fclose(file);
	free(index);
	if (!is_index)
		return 0;
	if (!is_whole)
		return err_set(err, ERR_USAGE, "%s: its .idx is cut short", path);
	out->first = 0;
	out->said_by = "its .idx";
	return of_width(out, path, "Megatron's, by its .idx,", name, out->token_bytes, err);
}

int token_layout_find(struct token_layout *out, const char *path, const void *start, uint64_t bytes,
		      struct err *err)
{
	const unsigned char *at = start;

	if (bytes >= 12 && memcmp(at, "\x93NUMPY", 6) == 0)
		return find_numpy(out, path, at, bytes, err);
	if (bytes >= 24 && memcmp(at, "LITPKDS", 7) == 0)
		return find_packed(out, path, at, err);
	int found = find_megatron(out, path, err);
	if (found != 0)
		return found;
	const char *other = other_kind(at, bytes);
	return other ? err_set(err, ERR_USAGE, "%s: %s", path, other) : 0;
}
