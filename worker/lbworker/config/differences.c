/* SPDX-License-Identifier: MIT */
/* differences.c - a table: a key, when it matters, and what to say. Defaults are those of
 * torchtitan 0.2 (torchtitan/config/job_config.py) and of its Llama 3. */
#include "worker/lbworker/config/differences.h"

#include <inttypes.h>
#include <stdbool.h>
#include <string.h>

static bool is_given(const struct toml *toml, const char *key)
{
	return toml_line(toml, key) != 0;
}

static bool always(const struct config *c)
{
	(void)c;
	return true;
}

static bool decays_matrices(const struct config *c)
{
	return c->decayed == 0 && c->weight_decay > 0;
}

static bool starts_at_random(const struct config *c)
{
	return c->initial_load_path[0] == '\0' && !c->umup.enable;
}

static bool writes_checkpoints(const struct config *c)
{
	return c->checkpoint_enable;
}

/* Their debugmodel is another one. */
static bool is_debugmodel(const struct config *c)
{
	return strcmp(c->flavor, "debugmodel") == 0 && c->shape.family == MODEL_LLAMA &&
	       c->shape.dim == 64;
}

static bool is_one_pass(const struct config *c)
{
	return c->global_batch_size < 0;
}

static const struct {
	const char *key;
	bool told_when_given; /* else the file has settled it */
	bool (*matters)(const struct config *config);
	const char *text;
} differences[] = {
	{ "training.mixed_precision_param", false, always,
	  "there bfloat16; here auto: bfloat16 on a GPU, float32 on the CPU; \"float32\" is the "
	  "same on both" },
	{ "training.seq_len", false, always, "there 2048 when it is not given, here 256" },
	{ "training.global_batch_size", false, is_one_pass,
	  "local_batch_size times all ranks: on one rank that is less than it was made for" },
	{ "optimizer.weight_decay_of", false, decays_matrices,
	  "there norms decay, too; here matrices: \"all\" is theirs" },
	{ "model.init_std", false, starts_at_random,
	  "there the embedding starts with std 1, the head with dim^-0.5, normals are cut at 2 or "
	  "3 std, and what a layer adds has 0.02/sqrt(2(l+1)) in layer l; here 0.02, and "
	  "0.02/sqrt(2 n_layers)" },
	{ "model.flavor", true, is_debugmodel,
	  "there dim 256, 6 layers, 16 heads, a vocabulary of 2048; here dim 64, 2 layers, 4 "
	  "heads, bytes: model.dim = 256, n_layers = 6, n_heads = 16, n_kv_heads = 16, vocab_size "
	  "= 2048, rope_theta = 500000 make it theirs" },
	{ "checkpoint.enable", false, writes_checkpoints,
	  "there false when it is not given; here checkpoints are written" },
	{ "training.seed", false, starts_at_random,
	  "there another one each time when it is not given, here 0" },
};

/* How many of ours are one of their steps: a file made for many ranks trains on less here. */
static void tell_ranks(const struct config *c, const struct toml *toml, FILE *notes)
{
	char where[TOML_WHERE_BYTES];
	static const char key[] = "parallelism.data_parallel_shard_degree";

	if (!is_given(toml, key) || c->global_batch_size >= 0)
		return;
	fprintf(notes,
		"%s: as many as there are ranks left; on one a step is %" PRId64
		" sequence%s of %" PRId64 ", and training.global_batch_size = N x %" PRId64
		" is the step of N\n",
		toml_where(toml, key, where), c->local_batch_size,
		c->local_batch_size == 1 ? "" : "s", c->seq_len, c->local_batch_size);
}

static bool has_coded_head(const struct config *c)
{
	for (size_t i = 0; i < c->filter_fqns.count; i++)
		if (strstr("output lm_head", c->filter_fqns.items[i]))
			return false;
	return true;
}

/* A matrix that has a side which 16 does not divide. */
static bool has_odd_side(const struct config *c)
{
	const struct model_shape *s = &c->shape;
	const size_t head_dim = s->head_dim ? s->head_dim : s->dim / s->heads;
	const size_t sides = s->dim | s->ffn | s->heads * head_dim | s->kv_heads * head_dim;

	return (has_coded_head(c) ? sides | s->vocab : sides) % 16 != 0;
}

/* What torchtitan's converters leave as it is. */
static void tell_filter(const struct config *c, const struct toml *toml, FILE *notes)
{
	static const char key[] = "quantize.filter_fqns";
	char where[TOML_WHERE_BYTES];

	if (!is_given(toml, "model.converters") || strcmp(c->recipe, "none") == 0)
		return;
	if (!is_given(toml, key) && strncmp(c->recipe, "mx", 2) != 0)
		fprintf(notes,
			"%s: there float8 leaves no module out when it is not given; here "
			"\"output\": [] is theirs\n",
			toml_where(toml, key, where));
	if (has_odd_side(c))
		fprintf(notes,
			"%s: there matrices with a side that 16 does not divide stay as they are; "
			"here those that it names do\n",
			toml_where(toml, key, where));
}

/* What lies behind each other is one matrix here. */
static void tell_scale(const struct config *c, const struct toml *toml, FILE *notes)
{
	static const char key[] = "quantize.recipe";
	char where[TOML_WHERE_BYTES];

	if (is_given(toml, "model.converters") && strcmp(c->recipe, "tensorwise") == 0)
		fprintf(notes,
			"%s: there wq, wk and wv, and w1 and w3, have a scale each; here they "
			"are one matrix, and share one\n",
			toml_where(toml, key, where));
}

/* In TOML files model.attn_mask_type is refused where it is so. */
static void tell_documents(const struct toml *toml, FILE *notes)
{
	static const char key[] = "training.document_end";
	char where[TOML_WHERE_BYTES];

	if (is_given(toml, "model.inner_attention") && !is_given(toml, key))
		fprintf(notes,
			"%s: there attention does not reach back across the end of a document; "
			"here it does, unless this is the token that ends one\n",
			toml_where(toml, key, where));
}

/* Such a file has lost what torchtitan made of its model: the names of classes. */
static void tell_model(const struct config *c, const struct toml *toml, FILE *notes)
{
	static const char key[] = "quantize.recipe";
	char where[TOML_WHERE_BYTES];

	if (is_given(toml, "model_spec.name") && !is_given(toml, "model_converters") &&
	    !is_given(toml, key) && c->lora_rank == 0)
		fprintf(notes,
			"%s: such a file does not tell whether products are of few bits there, or "
			"LoRA's adapters alone are trained; here neither, unless this and lora.rank "
			"say so\n",
			toml_where(toml, key, where));
}

void differences_tell(const struct config *c, const struct toml *toml, FILE *notes)
{
	char where[TOML_WHERE_BYTES];

	if (!notes)
		return;
	for (size_t i = 0; i < sizeof(differences) / sizeof(differences[0]); i++) {
		const char *key = differences[i].key;
		bool ranks_told = strcmp(key, "training.global_batch_size") == 0 &&
				  is_given(toml, "parallelism.data_parallel_shard_degree");
		if (is_given(toml, key) == differences[i].told_when_given &&
		    differences[i].matters(c) && !ranks_told)
			fprintf(notes, "%s: %s\n", toml_where(toml, key, where),
				differences[i].text);
	}
	tell_ranks(c, toml, notes);
	tell_filter(c, toml, notes);
	tell_scale(c, toml, notes);
	tell_documents(toml, notes);
	tell_model(c, toml, notes);
}

void differences_of_loaded(const struct config *c, const struct toml *toml, FILE *notes)
{
	static const char key[] = "checkpoint.initial_load_path";
	char where[TOML_WHERE_BYTES];

	if (notes && c->initial_load_path[0] != '\0' && c->shape.family == MODEL_GPT2)
		fprintf(notes,
			"%s: Hugging Face trains GPT-2 with dropout (resid_pdrop, embd_pdrop, "
			"attn_pdrop: 0.1 unless its config.json says less); here there is none\n",
			toml_where(toml, key, where));
}
