/* SPDX-License-Identifier: MIT */
/* trainer_files.h - the smallest files of checkpoints, as the libraries write them. */
#ifndef TESTS_UNIT_TRAINER_FILES_H
#define TESTS_UNIT_TRAINER_FILES_H

#include "tests/unit/unit.h"

#include <stdarg.h>
#include <stdint.h>
#include <zlib.h>

#include "common/base/files.h"

/* A path by a format; good until the next one. */
static inline const char *path_of(const char *format, ...)
{
	static char path[120];
	va_list args;

	va_start(args, format);
	vsnprintf(path, sizeof(path), format, args);
	va_end(args);
	return path;
}

static inline char *parent_of(const char *path)
{
	static char parent[256];

	snprintf(parent, sizeof(parent), "%.*s", (int)(strrchr(path, '/') - path), path);
	return parent;
}

static inline void put(const char *path, const void *data, size_t len)
{
	FILE *f;

	assert_int_equal(folder_make(parent_of(path), 0755, NULL), 0);
	f = fopen(path, "w");
	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static inline void put_text(const char *path, const char *text)
{
	put(path, text, strlen(text));
}

static inline size_t le(unsigned char *out, uint64_t value, size_t len)
{
	for (size_t i = 0; i < len; i++, value >>= 8)
		out[i] = (unsigned char)value;
	return len;
}

/* A zip archive with one stored entry. */
static inline size_t zip_make(unsigned char *out, const char *name, const void *data, size_t len)
{
	uint32_t crc = (uint32_t)crc32(crc32(0, NULL, 0), data, (uInt)len);
	size_t name_len = strlen(name), at = 0, directory;

	for (int is_directory = 0; is_directory < 2; is_directory++) {
		directory = at;
		at += le(out + at, is_directory ? 0x02014b50 : 0x04034b50, 4);
		at += le(out + at, 20, is_directory ? 4 : 2);
		at += le(out + at, 0, 8); /* flags, method, time, date */
		at += le(out + at, crc, 4);
		at += le(out + at, len, 4);
		at += le(out + at, len, 4);
		at += le(out + at, name_len, 2);
		at += le(out + at, 0, is_directory ? 16 : 2);
		memcpy(out + at, name, name_len);
		at += name_len;
		if (is_directory)
			break;
		memcpy(out + at, data, len);
		at += len;
	}
	len = at - directory;
	at += le(out + at, 0x06054b50, 4);
	at += le(out + at, 0, 4);
	at += le(out + at, 1, 2);
	at += le(out + at, 1, 2);
	at += le(out + at, len, 4);
	at += le(out + at, directory, 4);
	return at + le(out + at, 0, 2);
}

static inline void put_zip(const char *path)
{
	unsigned char zip[600];
	/* {'iter_num': 300} */
	static const unsigned char data[] = "\x80\x02}X\x08\0\0\0iter_numq\1M\x2c\1s.0123456789";

	put(path, zip, zip_make(zip, "a/data.pkl", data, sizeof(data)));
}

/* As torch.distributed.checkpoint writes its tensors: one archive behind the other. */
static inline void put_zips(const char *path)
{
	unsigned char zips[600];
	size_t at = 0;

	for (int i = 0; i < 3; i++)
		at += zip_make(zips + at, "archive/data.pkl", "0123456789abcdef", (size_t)(10 + i));
	put(path, zips, at);
}

static inline void put_safetensors(const char *path)
{
	static const char header[] =
		"{\"w\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}";
	unsigned char file[200];
	size_t at = le(file, strlen(header), 8);

	memcpy(file + at, header, strlen(header));
	at += strlen(header);
	put(path, file, at + le(file + at, 7, 8));
}

/* Arrays behind each other, as np.save and Equinox write them. */
static inline void put_npys(const char *path, size_t count)
{
	char file[600];
	size_t at = 0;

	for (size_t i = 0; i < count; i++) {
		memcpy(file + at, "\x93NUMPY\1\0\x76\0", 10);
		at += 10 + (size_t)snprintf(
				   file + at + 10, 118 + 1, "%-117s\n",
				   "{'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }");
		memset(file + at, 'x', 48);
		at += 48;
	}
	put(path, file, at);
}

static inline void put_npy(const char *path)
{
	put_npys(path, 1);
}

#endif
