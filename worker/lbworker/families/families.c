/* SPDX-License-Identifier: MIT */
/* families.c - the table of families, and what can be asked of a row. */
#include "worker/lbworker/families/family.h"

static const struct family *const families[MODEL_FAMILY_COUNT] = {
	[MODEL_LLAMA] = &family_llama,         [MODEL_NEOX] = &family_neox,
	[MODEL_GPT2] = &family_gpt2,           [MODEL_MISTRAL] = &family_mistral,
	[MODEL_QWEN3] = &family_qwen3,         [MODEL_OLMO2] = &family_olmo2,
	[MODEL_GEMMA2] = &family_gemma2,       [MODEL_GEMMA3] = &family_gemma3,
	[MODEL_QWEN3_MOE] = &family_qwen3_moe, [MODEL_DOTS1] = &family_dots1,
};

const struct family *family_of(enum model_family family)
{
	return families[family];
}

const char *model_family_name(enum model_family family)
{
	return families[family]->name;
}

bool model_is_gated(enum model_family family)
{
	return families[family]->gated;
}

bool model_is_parallel(enum model_family family)
{
	return families[family]->parallel;
}

bool model_is_rotary(enum model_family family)
{
	return !families[family]->learned_positions;
}

static const struct family_tensor *tensor_in(const struct family_tensor *row, enum param param)
{
	while (row->name && row->param != param)
		row++;
	return row;
}

static const struct family_tensor *tensor_of(const struct family *f, enum param param)
{
	return tensor_in(f->layer, param);
}

const char *family_table(const struct family *f)
{
	return tensor_in(f->first, PARAM_EMBEDDING)->name;
}

const char *family_head(const struct family *f)
{
	return tensor_in(f->last, PARAM_HEAD)->name;
}

bool family_norms_whole(const struct family *f)
{
	return tensor_of(f, PARAM_QUERY_NORM)->rows == EXTENT_QUERY;
}

bool model_has_own_heads(enum model_family family)
{
	return tensor_of(families[family], PARAM_QKV)->rows == EXTENT_QUERY;
}

bool model_can_be_split(enum model_family family)
{
	const struct family *f = families[family];

	return !tensor_of(f, PARAM_QUERY_NORM)->name && !tensor_of(f, PARAM_POST1)->name &&
	       !f->sparse;
}

bool model_has_windows(enum model_family family)
{
	return families[family]->windows;
}

bool model_has_softcaps(enum model_family family)
{
	return families[family]->softcaps;
}

bool model_has_experts(enum model_family family)
{
	return families[family]->sparse;
}

bool model_has_shared_experts(enum model_family family)
{
	const struct family_tensor *sparse = families[family]->sparse;

	return sparse && tensor_in(sparse, PARAM_UP)->name;
}

bool model_has_balance(enum model_family family)
{
	const struct family_tensor *sparse = families[family]->sparse;

	return sparse && tensor_in(sparse, PARAM_BALANCE)->name;
}
