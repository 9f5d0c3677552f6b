/* SPDX-License-Identifier: MIT */
/* flavors.c - named model shapes, one row each.
 *
 * Sizes are those of the config.json that each model was published with; vocabularies of GPT-2 are
 * padded from 50257 to 50304, as llm.c does, to a multiple of 128. The largest (405B, 175B) are for
 * planning. */
#include "worker/lbworker/model/model.h"

#include <string.h>

/* clang-format off */
#define LLAMA(V, D, L, H, G, F, TIED, ...) \
	{ .family = MODEL_LLAMA, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (G), .ffn = (F), .tied = (TIED), .norm_eps = 1e-5f, __VA_ARGS__ }
#define NEOX(V, D, L, H, ROTARY) \
	{ .family = MODEL_NEOX, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (H), .ffn = 4 * (D), .norm_eps = 1e-5f, .rope_theta = 10000, \
	  .rotary = (ROTARY) }
#define GPT2(V, D, L, H, POSITIONS) \
	{ .family = MODEL_GPT2, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (H), .ffn = 4 * (D), .tied = true, .norm_eps = 1e-5f, \
	  .positions = (POSITIONS) }
#define THETA(N) .rope_theta = (N)
#define SCALED(FACTOR) THETA(500000), \
	.scaling = { .factor = (FACTOR), .low = 1, .high = 4, .original = 8192 }
/* clang-format on */

static const struct model_flavor flavors[] = {
	{ "debugmodel", "0.2 M parameters, bytes, untied; for tests",
	  LLAMA(256, 64, 2, 4, 2, 176, false, THETA(10000)) },
	{ "bytes-4M", "4 M parameters, bytes; the demo",
	  LLAMA(256, 256, 5, 4, 2, 704, true, THETA(10000)) },
	{ "124M", "the size of GPT-2 small, its vocabulary padded to 50304",
	  LLAMA(50304, 768, 12, 12, 12, 2048, true, THETA(10000)) },
	{ "1B", "Llama 3.2", LLAMA(128256, 2048, 16, 32, 8, 8192, true, SCALED(32)) },
	{ "3B", "Llama 3.2", LLAMA(128256, 3072, 28, 24, 8, 8192, true, SCALED(32)) },
	{ "8B", "Llama 3", LLAMA(128256, 4096, 32, 32, 8, 14336, false, THETA(500000)) },
	{ "70B", "Llama 3", LLAMA(128256, 8192, 80, 64, 8, 28672, false, THETA(500000)) },
	{ "405B", "Llama 3.1", LLAMA(128256, 16384, 126, 128, 8, 53248, false, SCALED(8)) },
	{ "2-7B", "Llama 2", LLAMA(32000, 4096, 32, 32, 32, 11008, false, THETA(10000)) },
	{ "2-13B", "Llama 2", LLAMA(32000, 5120, 40, 40, 40, 13824, false, THETA(10000)) },
	{ "2-70B", "Llama 2", LLAMA(32000, 8192, 80, 64, 8, 28672, false, THETA(10000)) },

	{ "debugmodel", "0.2 M parameters, bytes; for tests", NEOX(256, 64, 2, 4, 4) },
	{ "70M", "Pythia", NEOX(50304, 512, 6, 8, 16) },
	{ "160M", "Pythia", NEOX(50304, 768, 12, 12, 16) },
	{ "410M", "Pythia", NEOX(50304, 1024, 24, 16, 16) },
	{ "1B", "Pythia", NEOX(50304, 2048, 16, 8, 64) },
	{ "1.4B", "Pythia", NEOX(50304, 2048, 24, 16, 32) },
	{ "2.8B", "Pythia", NEOX(50304, 2560, 32, 32, 20) },
	{ "6.9B", "Pythia", NEOX(50432, 4096, 32, 32, 32) },

	{ "debugmodel", "0.2 M parameters, bytes; for tests", GPT2(256, 64, 2, 4, 256) },
	{ "124M", "GPT-2 small", GPT2(50304, 768, 12, 12, 1024) },
	{ "355M", "GPT-2 medium", GPT2(50304, 1024, 24, 16, 1024) },
	{ "774M", "GPT-2 large", GPT2(50304, 1280, 36, 20, 1024) },
	{ "1558M", "GPT-2 XL", GPT2(50304, 1600, 48, 25, 1024) },
	{ "175B", "GPT-3 (Brown et al. 2020)", GPT2(50304, 12288, 96, 96, 2048) },
};

static const char *const flavor_names[MODEL_FAMILY_COUNT] = {
	[MODEL_LLAMA] = "debugmodel, bytes-4M, 124M, 1B, 3B, 8B, 70B, 405B, 2-7B, 2-13B, 2-70B",
	[MODEL_NEOX] = "debugmodel, 70M, 160M, 410M, 1B, 1.4B, 2.8B, 6.9B",
	[MODEL_GPT2] = "debugmodel, 124M, 355M, 774M, 1558M, 175B",
};

const struct model_flavor *model_flavor_find(enum model_family family, const char *name,
					     const char **names)
{
	if (names)
		*names = flavor_names[family];
	for (size_t i = 0; name && i < sizeof(flavors) / sizeof(flavors[0]); i++)
		if (flavors[i].shape.family == family && strcmp(flavors[i].name, name) == 0)
			return &flavors[i];
	return NULL;
}
