/* SPDX-License-Identifier: MIT */
/* fuzz.h - what every fuzz target needs. A target is one file fuzz_NAME.c with seeds in
 * corpus/NAME; a finding that was mended becomes a seed. */
#ifndef TESTS_FUZZ_FUZZ_H
#define TESTS_FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A promise; broken, it ends the process, and libFuzzer keeps the input. */
#define fuzz_check(promise) ((promise) ? (void)0 : fuzz_broken(__FILE__, __LINE__, #promise))
void fuzz_broken(const char *file, int line, const char *promise) __attribute__((noreturn));

/* The input as a string, up to its first NUL; owned. */
char *fuzz_text(const uint8_t *data, size_t size);

/* A path below this process's own folder in memory, and a file there with these bytes. The path
 * holds until the next call. */
const char *fuzz_path(const char *name);
void fuzz_file(const char *name, const uint8_t *data, size_t size);

#endif
