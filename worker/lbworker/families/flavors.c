/* SPDX-License-Identifier: MIT */
/* flavors.c - named model shapes, one row each.
 *
 * Sizes are those of the config.json that each model was published with; vocabularies of GPT-2 are
 * padded from 50257 to 50304, as llm.c does, to a multiple of 128. The largest (405B, 175B) are for
 * planning. */
#include "worker/lbworker/families/shape.h"

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
/* C: width of a head */
#define QWEN3(V, D, L, H, G, C, F, TIED) \
	{ .family = MODEL_QWEN3, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (G), .head_dim = (C), .ffn = (F), .tied = (TIED), .norm_eps = 1e-6f, \
	  .rope_theta = 1000000 }
#define MISTRAL(V, D, L, H, G, F, EPS, ...) \
	{ .family = MODEL_MISTRAL, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (G), .ffn = (F), .norm_eps = (EPS), __VA_ARGS__ }
#define OLMO2(V, D, L, H, G, F) \
	{ .family = MODEL_OLMO2, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (G), .ffn = (F), .norm_eps = 1e-6f, .rope_theta = 500000 }
#define GEMMA2(V, D, L, H, G, C, F, SCALAR, WINDOW) \
	{ .family = MODEL_GEMMA2, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (G), .head_dim = (C), .ffn = (F), .tied = true, .norm_eps = 1e-6f, \
	  .rope_theta = 10000, .window = (WINDOW), .full_every = 2, .query_scalar = (SCALAR), \
	  .score_softcap = 50, .logit_softcap = 30 }
#define GEMMA3(V, D, L, H, G, C, F, SCALAR, WINDOW, SLOWER) \
	{ .family = MODEL_GEMMA3, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (G), .head_dim = (C), .ffn = (F), .tied = true, .norm_eps = 1e-6f, \
	  .rope_theta = 1000000, .local_theta = 10000, .window = (WINDOW), .full_every = 6, \
	  .query_scalar = (SCALAR), .scaling = { .factor = (SLOWER) } }
/* W: width of an expert; SHARED: of those that all tokens see; DENSE: layers without; FACTOR: of weights */
#define QWEN3_MOE(V, D, L, H, G, C, F, EXPERTS, TOP, W) \
	{ .family = MODEL_QWEN3_MOE, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (G), .head_dim = (C), .ffn = (F), .norm_eps = 1e-6f, .rope_theta = 1000000, \
	  .experts = { .count = (EXPERTS), .top = (TOP), .ffn = (W), .normed = true, .scale = 1 } }
#define DOTS1(V, D, L, H, F, EXPERTS, TOP, W, SHARED, DENSE, FACTOR) \
	{ .family = MODEL_DOTS1, .vocab = (V), .dim = (D), .layers = (L), .heads = (H), \
	  .kv_heads = (H), .ffn = (F), .norm_eps = 1e-5f, .rope_theta = 10000000, \
	  .experts = { .count = (EXPERTS), .top = (TOP), .ffn = (W), .shared = (SHARED), \
		       .dense = (DENSE), .normed = true, .scale = (FACTOR) } }
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

	{ "debugmodel", "0.2 M parameters, bytes; for tests",
	  MISTRAL(256, 64, 2, 4, 2, 176, 1e-5f, THETA(10000), .window = 64) },
	{ "7B", "Mistral 0.1",
	  MISTRAL(32000, 4096, 32, 32, 8, 14336, 1e-5f, THETA(10000), .window = 4096) },
	{ "7B-v0.3", "Mistral 0.3", MISTRAL(32768, 4096, 32, 32, 8, 14336, 1e-5f, THETA(1000000)) },
	{ "12B", "Mistral Nemo",
	  MISTRAL(131072, 5120, 40, 32, 8, 14336, 1e-5f, THETA(1000000), .head_dim = 128) },

	{ "debugmodel", "0.2 M parameters, bytes; for tests",
	  QWEN3(256, 64, 2, 4, 2, 24, 176, true) },
	{ "0.6B", "Qwen3", QWEN3(151936, 1024, 28, 16, 8, 128, 3072, true) },
	{ "1.7B", "Qwen3", QWEN3(151936, 2048, 28, 16, 8, 128, 6144, true) },
	{ "4B", "Qwen3", QWEN3(151936, 2560, 36, 32, 8, 128, 9728, true) },
	{ "8B", "Qwen3", QWEN3(151936, 4096, 36, 32, 8, 128, 12288, false) },
	{ "14B", "Qwen3", QWEN3(151936, 5120, 40, 40, 8, 128, 17408, false) },
	{ "32B", "Qwen3", QWEN3(151936, 5120, 64, 64, 8, 128, 25600, false) },

	{ "debugmodel", "0.2 M parameters, bytes; for tests", OLMO2(256, 64, 2, 4, 4, 176) },
	{ "1B", "OLMo 2", OLMO2(100352, 2048, 16, 16, 16, 8192) },
	{ "7B", "OLMo 2", OLMO2(100352, 4096, 32, 32, 32, 11008) },
	{ "13B", "OLMo 2", OLMO2(100352, 5120, 40, 40, 40, 13824) },
	{ "32B", "OLMo 2", OLMO2(100352, 5120, 64, 40, 8, 27648) },

	{ "debugmodel", "0.2 M parameters, bytes; for tests",
	  GEMMA2(256, 64, 2, 4, 2, 24, 176, 24, 64) },
	{ "2B", "Gemma 2", GEMMA2(256000, 2304, 26, 8, 4, 256, 9216, 256, 4096) },
	{ "9B", "Gemma 2", GEMMA2(256000, 3584, 42, 16, 8, 256, 14336, 256, 4096) },
	{ "27B", "Gemma 2", GEMMA2(256000, 4608, 46, 32, 16, 128, 36864, 144, 4096) },

	{ "debugmodel", "0.5 M parameters, bytes; for tests",
	  GEMMA3(256, 64, 6, 4, 2, 24, 176, 24, 64, 0) },
	{ "270M", "Gemma 3", GEMMA3(262144, 640, 18, 4, 1, 256, 2048, 256, 512, 0) },
	{ "1B", "Gemma 3", GEMMA3(262144, 1152, 26, 4, 1, 256, 6912, 256, 512, 0) },
	{ "4B", "Gemma 3, what it does with text",
	  GEMMA3(262208, 2560, 34, 8, 4, 256, 10240, 256, 1024, 8) },
	{ "12B", "Gemma 3, what it does with text",
	  GEMMA3(262208, 3840, 48, 16, 8, 256, 15360, 256, 1024, 8) },
	{ "27B", "Gemma 3, what it does with text",
	  GEMMA3(262208, 5376, 62, 32, 16, 128, 21504, 168, 1024, 8) },

	{ "debugmodel", "0.3 M parameters, bytes; for tests",
	  QWEN3_MOE(256, 64, 2, 4, 2, 24, 176, 8, 2, 48) },
	{ "30B-A3B", "Qwen3", QWEN3_MOE(151936, 2048, 48, 32, 4, 128, 6144, 128, 8, 768) },
	{ "235B-A22B", "Qwen3", QWEN3_MOE(151936, 4096, 94, 64, 4, 128, 12288, 128, 8, 1536) },

	{ "debugmodel", "0.4 M parameters, bytes; for tests",
	  DOTS1(256, 64, 3, 4, 176, 8, 2, 48, 1, 1, 2.5) },
	{ "142B", "dots.llm1, 14 B of them active",
	  DOTS1(152064, 4096, 62, 32, 10944, 128, 6, 1408, 2, 1, 2.5) },
};

static const char *const flavor_names[MODEL_FAMILY_COUNT] = {
	[MODEL_LLAMA] = "debugmodel, bytes-4M, 124M, 1B, 3B, 8B, 70B, 405B, 2-7B, 2-13B, 2-70B",
	[MODEL_NEOX] = "debugmodel, 70M, 160M, 410M, 1B, 1.4B, 2.8B, 6.9B",
	[MODEL_GPT2] = "debugmodel, 124M, 355M, 774M, 1558M, 175B",
	[MODEL_MISTRAL] = "debugmodel, 7B, 7B-v0.3, 12B",
	[MODEL_QWEN3] = "debugmodel, 0.6B, 1.7B, 4B, 8B, 14B, 32B",
	[MODEL_OLMO2] = "debugmodel, 1B, 7B, 13B, 32B",
	[MODEL_GEMMA2] = "debugmodel, 2B, 9B, 27B",
	[MODEL_GEMMA3] = "debugmodel, 270M, 1B, 4B, 12B, 27B",
	[MODEL_QWEN3_MOE] = "debugmodel, 30B-A3B, 235B-A22B",
	[MODEL_DOTS1] = "debugmodel, 142B",
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
