/* SPDX-License-Identifier: MIT */
/* files.h - the few things we do to files, done once and carefully. */
#ifndef COMMON_BASE_FILES_H
#define COMMON_BASE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

#include "common/base/err.h"

/* The whole file, NUL-terminated (*out_len without the NUL, may be NULL); owned by the caller.
 * Larger than max_bytes is an error. NULL with err: ERR_NOT_FOUND if there is none, else ERR_IO. */
char *file_read(const char *path, size_t max_bytes, size_t *out_len, struct err *err);

/* The same of a regular file that is open at its beginning; `path` is for messages. */
char *file_read_fd(int fd, const char *path, size_t max_bytes, size_t *out_len, struct err *err);

/* A file in memory, closed on exec; -1 with errno. */
int file_in_memory(const char *name);

/* The whole of a regular file for reading, as munmap(2) with *out_bytes takes it back; it must not
 * be empty. NULL with err: ERR_NOT_FOUND if there is none, else ERR_IO. */
void *file_map(const char *path, size_t *out_bytes, struct err *err);

/* Writes a temporary file beside `path`, syncs it, renames it over `path`, syncs the folder: the
 * reader sees the old or the new text, never a mixture. */
int file_write_atomic(const char *path, const void *data, size_t len, mode_t mode, struct err *err);

/* The same without the syncs, for what can be made again: a power cut may lose it. */
int file_write_visible(const char *path, const void *data, size_t len, mode_t mode,
		       struct err *err);

/* file_write_atomic for a path that a person named: a link's file is replaced, not the link; a
 * device or pipe is written to and stays what it is; a file that is there keeps its mode. "-" is
 * standard output. */
int file_write_named(const char *path, const void *data, size_t len, mode_t mode, struct err *err);

/* As file_write_atomic, but fails with ERR_LOCKED when `path` exists already (link(2): safe over
 * NFS; where there are no hard links by other means). */
int file_write_once(const char *path, const void *data, size_t len, mode_t mode, struct err *err);

/* write(2) until all of it is written; -1 with errno. */
int file_write_all(int fd, const void *bytes, size_t len);

/* pread(2) until `size` bytes are read, or the file ends; how many, or -1 with errno. */
ssize_t file_read_at(int fd, void *to, size_t size, int64_t offset);

/* Where the line begins that `end` lies in, or behind: offset after the newline before it, 0 when
 * there is none; -1 with errno. */
int64_t file_line_start(int fd, int64_t end);
/* `offset`, or where the hole ends that it lies in: somebody emptied a file whose writer goes on
 * where he was. */
int64_t file_next_data(int fd, int64_t offset);
/* Cuts off what follows the last newline of a file of `size` bytes, half a line of a writer who
 * died or had no room: the next one would be glued to it. The new size, or -1 with errno. */
int64_t file_cut_line(int fd, int64_t size);
/* For whole lines, behind whole lines; NULL with errno. */
FILE *file_append_lines(const char *path);

/* Whoever started us may have closed 0, 1 or 2: /dev/null takes their place, or the next file that
 * we open would be somebody's stdout. For the beginning of main(). */
void file_fill_stdio(void);

/* The process's own; not while other threads make files. */
mode_t file_umask(void);

/* mkdir -p: parents get the same mode; an existing folder is fine. */
int folder_make(const char *path, mode_t mode, struct err *err);
/* The same, but that an existing one, or whatever has its name, is ERR_LOCKED. */
int folder_make_new(const char *path, mode_t mode, struct err *err);
/* mkdir, mode 0700; one that is there must be ours alone (ERR_REFUSED), for anybody may write where
 * it lies. */
int folder_make_ours(const char *path, struct err *err);
int folder_sync(const char *path, struct err *err);
/* For who waits for what another machine puts there: a network file system repeats for up to a
 * minute what it said of a folder, "no such file" for one, until the folder is opened again. */
void folder_look_anew(const char *path);
/* It was looked anew, and there is no such file; false also where nobody can tell. For who looks
 * often: the folder's path is walked once. */
bool folder_lacks(const char *path, const char *name);
/* Can a file with `text` be made there? It is removed again. 0, or the errno that says why not:
 * with root squash access(2) says yes to whom the server will say no, and a quota is known by
 * trying. */
int folder_try_file(const char *path, const char *text);
/* A plain file that was written without: what file_write_visible put there is then safe, too. */
int file_sync(const char *path, struct err *err);
/* The folder that it lies in: what was renamed to that name has it after a power cut, too. */
int file_sync_name(const char *path, struct err *err);
/* rm -r below and including `path`; never follows a link; a missing path is fine. */
int folder_remove(const char *path, struct err *err);

bool file_exists(const char *path);
/* FOLDER/NAME is there. */
bool folder_holds(const char *folder, const char *name);
bool file_is_link(const char *path);
struct dirent;
/* DT_DIR, DT_REG, DT_LNK …: what readdir(3) says of the entry, and of those file systems that leave
 * it open (NFS of large folders, XFS without ftype) what they say when they are asked. DT_UNKNOWN:
 * it has gone. */
int folder_entry_type(int fd, const struct dirent *entry);
/* Both are there, and one and the same, by whatever path. */
bool file_is_same(const char *a, const char *b);

#endif
