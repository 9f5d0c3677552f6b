/* SPDX-License-Identifier: MIT */
/* flavors.c - named model shapes, one row each. */
#include "worker/lbworker/model.h"

#include <string.h>

#define LLAMA(V, D, L, H, G, F, TIED) \
	{ .vocab = (V), .dim = (D), .layers = (L), .heads = (H), .kv_heads = (G), .ffn = (F), \
	  .tied = (TIED), .norm_eps = 1e-5f, .rope_theta = 10000.0 }

static const struct model_flavor flavors[] = {
	{ "debugmodel", "0.2 M parameters, bytes, untied; for tests",
	  LLAMA(256, 64, 2, 4, 2, 176, false) },
	{ "bytes-4M", "4 M parameters, bytes; the demo", LLAMA(256, 256, 5, 4, 2, 704, true) },
	{ "124M", "the size of GPT-2 small, its vocabulary padded to 50304",
	  LLAMA(50304, 768, 12, 12, 12, 2048, true) },
};

static const char flavor_names[] = "debugmodel, bytes-4M, 124M";

const struct model_flavor *model_flavor_find(const char *name, const char **names)
{
	if (names)
		*names = flavor_names;
	for (size_t i = 0; name && i < sizeof(flavors) / sizeof(flavors[0]); i++)
		if (strcmp(flavors[i].name, name) == 0)
			return &flavors[i];
	return NULL;
}
