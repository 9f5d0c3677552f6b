/* SPDX-License-Identifier: MIT */
/* hf_config_rows.h - how each family's config.json spells a shape. Names and defaults are those of
 * transformers' LlamaConfig, GPTNeoXConfig, ... Gemma3TextConfig. */
#ifndef LBWORKER_MODEL_HF_CONFIG_ROWS_H
#define LBWORKER_MODEL_HF_CONFIG_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "worker/lbworker/families/shape.h"

/* HF_CAP: a double above 0, or null, which is 0 here; HF_SCALAR: a double, written without a point
 * where it is whole, and as head_dim where it is 0 */
enum hf_type { HF_SIZE, HF_FLOAT, HF_DOUBLE, HF_BOOL, HF_CAP, HF_SCALAR };

/* one field of the shape */
struct hf_key {
	const char *name;
	enum hf_type type;
	size_t offset;
	double fallback; /* what an absent key means; NAN: it is required */
};

/* what our model always does: text, a flag, nothing at all, or the number 1 */
struct hf_constant {
	const char *name, *text;
	bool flag, none, one; /* an absent key means the same */
};

struct hf_family {
	const char *model_type, *architecture;
	const char *positions;    /* the key of the longest sequence */
	int64_t longest;          /* what an absent one means */
	const char *rotary_share; /* of a head that turns; NULL: all of it */
	double rotary_fallback;
	const struct hf_key *keys;           /* ends with a NULL name */
	const struct hf_constant *constants; /* the same */
	/* Of families that have a sliding window, with what absent keys mean; every: see
	 * model.h. */
	bool has_window;
	int64_t window, every;
	const char *window_flag; /* of Qwen3: false, or absent, and there is no window */
	/* Of others whose config.json may speak of windows that ours do not have: layers from
	 * max_window_layers on have one, where that is absent from this one on; 0: none does. */
	int64_t window_from;
	const char *dense_list; /* of layers without experts; NULL: a key has their number */
	int64_t head_dim;       /* what an absent one means; 0: hidden_size / num_attention_heads */
};

extern const struct hf_family hf_families[MODEL_FAMILY_COUNT];

#endif
