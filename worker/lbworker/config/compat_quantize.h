/* SPDX-License-Identifier: MIT */
/* compat_quantize.h - how torchtitan asks for low bits, in the words of [quantize]. */
#ifndef LBWORKER_COMPAT_QUANTIZE_H
#define LBWORKER_COMPAT_QUANTIZE_H

#include <stdbool.h>
#include <stdio.h>

#include "common/config/toml.h"

/* Changes the document in place: converters float8 and mx (model.converters, or
 * float8.enable_float8_linear of 2024) with their recipe_name and filter_fqns become
 * quantize.recipe and quantize.filter_fqns, unless these are there. A recipe_name that no converter
 * asks for does nothing there, and is told to be left out here. Returns whether anything was
 * found. */
bool compat_quantize(struct toml *toml, FILE *notes);

#endif
