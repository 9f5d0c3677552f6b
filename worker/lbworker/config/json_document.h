/* SPDX-License-Identifier: MIT */
/* json_document.h - a configuration as torchtitan dumps it (debug.save_config_file, 2026, and
 * job.save_config_file before), in the form of a TOML document. */
#ifndef LBWORKER_JSON_DOCUMENT_H
#define LBWORKER_JSON_DOCUMENT_H

#include <stdbool.h>

#include "common/config/toml.h"

/* By its name: *.json. */
bool json_document_is(const char *path);

/* Null is a key that is not there. What torchtitan's Python says in another form (a model as nested
 * modules, tokens instead of sequences, groups of parameters) is said in that of its TOML files. As
 * toml_load on failure. */
int json_document_load(struct toml *out, const char *path, struct err *err);

#endif
