/* SPDX-License-Identifier: MIT */
/* gpt2.c - GPT-2: x += Wo attention(Wqkv norm1(x)), x += Wdown gelu(Wup norm2(x)).
 *
 * Positions are learned. The matrices of a layer are stored [in, out], as its first release had
 * them. */
#include "worker/lbworker/families/family.h"

static const struct family_tensor first[] = {
	{ PARAM_EMBEDDING, "transformer.wte.weight", EXTENT_VOCAB, EXTENT_DIM },
	{ PARAM_POSITIONS, "transformer.wpe.weight", EXTENT_POSITIONS, EXTENT_DIM },
	FAMILY_END,
};

static const struct family_tensor layer[] = {
	{ PARAM_NORM1, "ln_1.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_NORM1_BIAS, "ln_1.bias", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_QKV, "attn.c_attn.weight", EXTENT_DIM, EXTENT_QKV },
	{ PARAM_QKV_BIAS, "attn.c_attn.bias", EXTENT_QKV, EXTENT_NONE },
	{ PARAM_OUT, "attn.c_proj.weight", EXTENT_QUERY, EXTENT_DIM },
	{ PARAM_OUT_BIAS, "attn.c_proj.bias", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_NORM2, "ln_2.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_NORM2_BIAS, "ln_2.bias", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_UP, "mlp.c_fc.weight", EXTENT_DIM, EXTENT_FFN },
	{ PARAM_UP_BIAS, "mlp.c_fc.bias", EXTENT_FFN, EXTENT_NONE },
	{ PARAM_DOWN, "mlp.c_proj.weight", EXTENT_FFN, EXTENT_DIM },
	{ PARAM_DOWN_BIAS, "mlp.c_proj.bias", EXTENT_DIM, EXTENT_NONE },
	FAMILY_END,
};

static const struct family_tensor last[] = {
	{ PARAM_FINAL_NORM, "transformer.ln_f.weight", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_FINAL_NORM_BIAS, "transformer.ln_f.bias", EXTENT_DIM, EXTENT_NONE },
	{ PARAM_HEAD, "lm_head.weight", EXTENT_VOCAB, EXTENT_DIM },
	FAMILY_END,
};

const struct family family_gpt2 = {
	.name = "gpt2",
	.layer_norm = true,
	.gelu = GELU_TANH,
	.learned_positions = true,
	.in_out = true,
	.prefix = "transformer.h.%zu.",
	.first = first,
	.layer = layer,
	.last = last,
};
