/* SPDX-License-Identifier: MIT */
/* toml_native.h - the narrow door between toml.cc and the rest of toml.h (whose `struct toml` and
 * the namespace toml of toml++ cannot stand in one file). Only those two include it. */
#ifndef COMMON_CONFIG_TOML_NATIVE_H
#define COMMON_CONFIG_TOML_NATIVE_H

#include <stdbool.h>
#include <stddef.h>
#include <jansson.h>

#ifdef __cplusplus
extern "C" {
#endif

struct toml_fault {
	long long line; /* 0: of no line, our own failure */
	char what[400];
};

/* The document as an object, or NULL with *fault set; line numbers are added to `lines`. */
json_t *toml_native_parse(const char *text, size_t len, json_t *lines, struct toml_fault *fault);

#ifdef __cplusplus
}
#endif
#endif
