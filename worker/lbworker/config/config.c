/* SPDX-License-Identifier: MIT */
/* config.c - the table of keys, and what a file of them becomes. */
#include "worker/lbworker/config/config.h"

#include <stdlib.h>
#include <string.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "common/config/keys.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/config/toml.h"
#include "worker/lbworker/config/checks.h"
#include "worker/lbworker/config/compat.h"
#include "worker/lbworker/config/differences.h"
#include "worker/lbworker/config/json_document.h"
#include "worker/lbworker/config/shape.h"

#define KEYS_OF struct config
/* in the order of enum model_family */
#define MODEL_NAMES "llama|neox|gpt2|mistral|qwen3|olmo2|gemma2|gemma3|qwen3_moe|dots1"

/* Every key here works; one that is not here is an error. */
static const struct key keys[] = {
	KEY_TEXT("job", "description", description, "\"\"", "free text"),
	KEY_TEXT("job", "dump_folder", dump_folder, "\"outputs\"",
		 "where relative folders of this file start"),
	KEY_CHOICE("model", "name", model_name, MODEL_NAMES, "\"llama\"",
		   "family of the model; left out: that of initial_load_path"),
	KEY_TEXT("model", "flavor", flavor, "\"debugmodel\"",
		 "its size: debugmodel, 124M, 8B ...; lbworker help lists those of each family"),
	KEY_INT("model", "dim", dim, 0, 1 << 17, "0",
		"width; this and all sizes below: 0 is what the flavor, or initial_load_path, has. "
		"Without those it is needed, and n_layers, n_heads, vocab_size"),
	KEY_INT("model", "n_layers", n_layers, 0, 1 << 10, "0", "layers"),
	KEY_INT("model", "n_heads", n_heads, 0, 1 << 16, "0", "heads of attention"),
	KEY_INT("model", "n_kv_heads", n_kv_heads, 0, 1 << 16, "0",
		"heads of keys and values, a divisor of n_heads; usually as many"),
	KEY_INT("model", "head_dim", head_dim, 0, 1 << 16, "0",
		"width of a head, even; usually dim / n_heads; another one not in neox and gpt2"),
	KEY_INT("model", "ffn_dim", ffn_dim, 0, 1 << 19, "0",
		"width of the feed-forward; usually 4 dim, with gates 8/3 dim up to a multiple_of"),
	KEY_INT("model", "multiple_of", multiple_of, 0, 1 << 16, "0",
		"what llama's usual ffn_dim is rounded up to; usually 256"),
	KEY_REAL("model", "ffn_dim_multiplier", ffn_dim_multiplier, 0, 1e3, "0",
		 "times llama's usual ffn_dim, before it is rounded"),
	KEY_INT("model", "vocab_size", vocab_size, 0, 1 << 24, "0", "every token's id is below it"),
	KEY_INT("model", "max_seq_len", max_seq_len, 0, 1 << 28, "0",
		"positions that gpt2 learns; usually 1024; rotary ones have no limit"),
	KEY_REAL("model", "norm_eps", norm_eps, 0, 1, "0", "of the norms; usually 1e-5"),
	KEY_REAL("model", "rope_theta", rope_theta, 0, 1e12, "0",
		 "base of the rotary frequencies; usually 10000"),
	KEY_REAL("model", "rope_scaling_factor", rope_factor, 0, 1e6, "0",
		 "how many times slower Llama 3's long waves turn; 1: none does; usually the "
		 "flavor's"),
	KEY_INT("model", "sliding_window", window, -1, 1 << 28, "0",
		"keys that a query sees, the last ones; -1: all; not in llama, neox, gpt2, olmo2"),
	KEY_INT("model", "full_attention_every", full_every, -1, 1 << 10, "0",
		"each so-manieth layer has no window; -1: all have it"),
	KEY_REAL("model", "rope_local_theta", local_theta, -1, 1e12, "0",
		 "rope_theta of layers with a window; -1: the same"),
	KEY_REAL("model", "query_scalar", query_scalar, -1, 1e6, "0",
		 "scores of attention are divided by its root; -1: head_dim"),
	KEY_REAL("model", "score_softcap", score_softcap, -1, 1e6, "0",
		 "scores of attention become cap tanh(score/cap); -1: they stay"),
	KEY_REAL("model", "logit_softcap", logit_softcap, -1, 1e6, "0", "the same of logits"),
	KEY_INT("model", "num_experts", num_experts, 0, EXPERTS_MAX, "0",
		"feed-forwards of a layer, of which a token meets some; in qwen3_moe and dots1"),
	KEY_INT("model", "top_k", top_k, 0, EXPERTS_MAX, "0", "experts that a token goes to"),
	KEY_INT("model", "moe_inter_dim", moe_inter_dim, 0, 1 << 19, "0", "width of an expert"),
	KEY_INT("model", "num_shared_experts", num_shared_experts, 0, EXPERTS_MAX, "0",
		"experts that see every token, in dots1"),
	KEY_INT("model", "n_dense_layers", n_dense_layers, -1, 1 << 10, "0",
		"layers at the beginning without experts; -1: none"),
	KEY_FLAG("model", "route_norm", route_norm, "false",
		 "the weights of a token's experts add up to 1; left out: as the flavor has it"),
	KEY_REAL("model", "route_scale", route_scale, 0, 1e6, "0", "times these weights"),
	KEY_REAL("model", "rotary_pct", rotary_pct, 0, 1, "0",
		 "share of a head that turns; usually 1, in neox 0.25"),
	KEY_FLAG("model", "tie_word_embeddings", tied, "false",
		 "the head is the embedding; left out: as the flavor has it, gpt2 true"),
	KEY_TEXT("model", "init_std", init_std_text, "\"0.02\"",
		 "of the first weights: a number, or a rule of the width h like \"sqrt(2/(5h))\""),
	KEY_FLAG("u_mup", "enable", umup.enable, "false",
		 "unit-scaled maximal update parametrization: settings hold for all widths; llama "
		 "only"),
	KEY_REAL("u_mup", "attention", umup.attention, 1e-6, 1e6, "1",
		 "multiplier of attention's scores"),
	KEY_REAL("u_mup", "activation", umup.activation, 1e-6, 1e6, "1",
		 "multiplier within the sigmoid of SwiGLU"),
	KEY_REAL("u_mup", "residual", umup.residual, 1e-6, 1e6, "1",
		 "what all layers add to the stream, against the embedding"),
	KEY_REAL("u_mup", "residual_attention_ratio", umup.ratio, 1e-6, 1e6, "1",
		 "what attention adds, against the feed-forward"),
	KEY_REAL("u_mup", "loss", umup.loss, 1e-6, 1e6, "1", "multiplier of the logits"),
	KEY_CHOICE(
		"optimizer", "name", optimizer_name, "AdamW|AdamW8bit|Muon", "\"AdamW\"",
		"AdamW8bit: AdamW with moments \"8bit\"; Muon: of the layers' matrices, AdamW of "
		"the rest"),
	KEY_REAL("optimizer", "lr", lr, 0, 100, "8e-4", "peak learning rate"),
	KEY_REAL("optimizer", "beta1", beta1, 0, 0.999999, "0.9", "decay of the first moment"),
	KEY_REAL("optimizer", "beta2", beta2, 0, 0.999999, "0.95", "decay of the second moment"),
	KEY_REAL("optimizer", "eps", eps, 1e-30, 1, "1e-8",
		 "added to the root of the second moment"),
	KEY_REAL("optimizer", "weight_decay", weight_decay, 0, 100, "0.1",
		 "decoupled from the gradient"),
	KEY_CHOICE("optimizer", "weight_decay_of", decayed, "matrices|all", "\"matrices\"",
		   "what decays; all: norms and biases, too, as torchtitan has it"),
	KEY_CHOICE(
		"optimizer", "gradients", gradients, "float32|bfloat16", "\"float32\"",
		"what gradients of the layers' matrices are kept in on a GPU, where a step is one "
		"micro-batch and nothing is added to them"),
	KEY_CHOICE("optimizer", "moments", moments, "float32|bfloat16|8bit", "\"float32\"",
		   "what both moments are kept in; bfloat16 is rounded by chance and halves them; "
		   "8bit: codes of torchao's map, a scale for 256, on a CPU"),
	KEY_FLAG("optimizer", "bf16_stochastic_round", bf16_stochastic_round, "false",
		 "weights of training.dtype = \"bfloat16\" are rounded by chance"),
	KEY_FLAG(
		"optimizer", "kahan_sum", kahan_sum, "false",
		"what rounding such weights loses is kept, in bfloat16, and comes back in the next "
		"step"),
	KEY_REAL("optimizer", "momentum", momentum, 0, 0.999999, "0.95", "Muon's"),
	KEY_FLAG("optimizer", "nesterov", nesterov, "true", "Muon's momentum looks ahead"),
	KEY_INT("optimizer", "ns_steps", ns_steps, 1, 99, "5",
		"of Muon's iteration (Newton and Schulz)"),
	KEY_CHOICE("optimizer", "adjust_lr_fn", adjust_lr, "match_rms_adamw|original",
		   "\"match_rms_adamw\"",
		   "Muon's rate of a matrix: lr serves AdamW and Muon; or Jordan's"),
	KEY_REAL(
		"optimizer", "ema_decay", ema_decay, 0, 0.9999999, "0",
		"checkpoints hold a mean of the weights, too: after each step this share of it and the "
		"rest of the new ones; 0.999 is usual, 0: none"),
	KEY_INT("lora", "rank", lora_rank, 0, 1 << 14, "0",
		"only adapters of that rank are trained, beside the weights of initial_load_path; 0: all "
		"weights are"),
	KEY_REAL("lora", "alpha", lora_alpha, 1e-6, 1e6, "16",
		 "what adapters add is multiplied by alpha / rank"),
	KEY_LIST(
		"lora", "target_modules", lora_targets, "[\"q_proj\", \"v_proj\"]",
		"matrices that have them, as Hugging Face names them; [\"all-linear\"]: all of the "
		"layers"),
	KEY_INT("lr_scheduler", "warmup_steps", warmup_steps, 0, 1e12, "200",
		"steps from 0 to the peak"),
	KEY_INT("lr_scheduler", "total_steps", schedule_steps, -1, 1e12, "-1",
		"steps that the schedule spans; -1: training.steps"),
	KEY_REAL("lr_scheduler", "decay_ratio", decay_ratio, -1, 1, "-1",
		 "share of all steps that decay; -1: all after warm-up"),
	KEY_CHOICE("lr_scheduler", "decay_type", decay_type, "linear|cosine|sqrt", "\"linear\"",
		   "shape of the decay"),
	KEY_REAL("lr_scheduler", "min_lr_factor", min_lr_factor, 0, 1, "0",
		 "of the peak, at the end of the decay"),
	KEY_INT("training", "local_batch_size", local_batch_size, 1, MAX_COUNT, "8",
		"sequences in one pass"),
	KEY_INT("training", "global_batch_size", global_batch_size, -1, MAX_COUNT, "-1",
		"sequences in one step, a multiple of local_batch_size; -1: one pass of each rank"),
	KEY_NUMBERS(
		"training", "batch_ramp", batch_ramp, 1, 1e12, "[]",
		"[start, increment, samples]: global batch grows from start over so many samples"),
	KEY_INT("training", "seq_len", seq_len, 1, MAX_COUNT, "256", "tokens in a sequence"),
	KEY_INT("training", "steps", steps, 1, 1e12, "10000", "optimizer steps in all"),
	KEY_REAL("training", "max_norm", max_norm, 0, 1e12, "1.0",
		 "gradient norm is clipped to it; 0: not at all"),
	KEY_INT("training", "max_skipped_steps", spike_rules.max_skips, 0, 1e12, "0",
		"steps without a finite loss and gradient are left out; more in a row: diverged"),
	KEY_REAL("training", "spike_factor", spike_rules.spike_factor, 0, 1e12, "0",
		 "a gradient norm above so many times the usual is left out, too; 0: none is"),
	KEY_INT("training", "document_end", document_end, -1, 1 << 24, "-1",
		"token that ends a document: attention does not reach back across it; -1: it does"),
	KEY_REAL("training", "label_smoothing", label_smoothing, 0, 0.999, "0",
		 "share of the target's probability that is spread over all tokens"),
	KEY_REAL("training", "z_loss", z_loss, 0, 1, "0",
		 "times log^2 of the softmax's sum is added to the loss; 1e-4 is usual, 0 none"),
	KEY_REAL(
		"training", "router_aux_loss_coef", expert_loss, 0, 1e3, "1e-3",
		"of the loss that evens out experts, where nothing else does: in qwen3_moe; 0: none"),
	KEY_REAL("training", "load_balance_coeff", balance_rate, 0, 1, "1e-3",
		 "how far the bias of an expert's choice moves in a step, in dots1; 0: not at all"),
	KEY_INT("training", "seed", seed, 0, 9e15, "0", "of weights and sample order"),
	KEY_CHOICE(
		"training", "mixed_precision_param", compute_choice, "float32|bfloat16|auto",
		"\"auto\"",
		"what activations are stored and multiplied in; auto: bfloat16 on a GPU, float32 "
		"on a CPU, which emulates bfloat16: the same rounding, and no faster"),
	KEY_CHOICE(
		"training", "dtype", weights_dtype, "float32|bfloat16", "\"float32\"",
		"what weights are kept in; bfloat16: there is no copy of more bits, and each update "
		"is rounded; on a CPU"),
	KEY_CHOICE("device", "name", device, "auto|cpu|cuda", "\"auto\"",
		   "what computes; auto: the GPU if there is one; cuda: an error if there is none"),
	KEY_FLAG("device", "deterministic", deterministic, "false",
		 "the same bits every time on a GPU too, where that costs time"),
	KEY_INT("device", "index", device_index, -1, 1023, "-1",
		"which GPU of those that are visible; -1: number $LOCAL_RANK where there are "
		"several, else the first"),
	KEY_TEXT("device", "cache", device_cache, "\"cache\"",
		 "folder below dump_folder for what was measured on a GPU; \"\": measured every "
		 "time"),
	KEY_INT("training", "threads", threads, 0, 1024, "0",
		"threads on the CPU; 0: one for each core we may run on"),
	KEY_TEXT("training", "dataset_path", dataset_path, NULL,
		 "a file of tokens, a folder of *.tokens, or a pattern"),
	KEY_LIST("training", "dataset_mix", dataset_mix, NULL,
		 "instead of one path several, as \"WEIGHT PATH\""),
	KEY_FLAG("training", "dataset_verify", dataset_verify, "true",
		 "read all data at the start: digests, tokens outside the vocabulary"),
	KEY_FLAG("checkpoint", "enable", checkpoint_enable, "true",
		 "false: none is written, and none is looked for; what is trained ends with the "
		 "process"),
	KEY_TEXT("checkpoint", "folder", checkpoint_folder, "\"checkpoints\"",
		 "below dump_folder unless absolute"),
	KEY_CHOICE(
		"checkpoint", "async_mode", async_mode, "disabled|async|async_with_pinned_mem",
		"\"async\"",
		"written while training goes on, from a copy in memory; disabled: training waits"),
	KEY_TEXT(
		"checkpoint", "initial_load_path", initial_load_path, "\"\"",
		"a model of Hugging Face, a checkpoint, or a Llama of Meta, LitGPT or torchtitan, whose "
		"weights a new training starts with"),
	KEY_FLAG("checkpoint", "initial_load_model_only", initial_load_model_only, "true",
		 "false, with a checkpoint of torchtitan: moments and step are taken over, too"),
	KEY_CHOICE("checkpoint", "export_dtype", export_dtype, "float32|bfloat16|float16",
		   "\"float32\"",
		   "other than float32: at the end the weights are written in it once more, as a "
		   "model of Hugging Face, to export-DTYPE in checkpoint.folder"),
	KEY_INT("checkpoint", "interval", checkpoint_interval, 0, 9e15, "500",
		"steps between checkpoints; 0: only at the end; \"auto\": interval_auto"),
	KEY_FLAG("checkpoint", "interval_auto", interval_auto, "false",
		 "as often as loses least, by what a save costs here and how often trouble comes"),
	KEY_INT("checkpoint", "keep_latest_k", keep_latest_k, 0, 1e12, "10",
		"newest ones kept, at least 2; 0: all"),
	KEY_INT("checkpoint", "keep_every", keep_every, 0, 1e12, "0",
		"those at multiples of it are kept for good; 0: none"),
	KEY_TEXT(
		"checkpoint", "max_bytes", max_bytes, NULL,
		"what all of them may take, like \"500G\": lbrun removes the oldest, not the newest two"),
	KEY_TEXT("checkpoint", "stage", stage, NULL,
		 "a folder of the node that they are first written to: lbrun's to copy from"),
	KEY_TEXT("checkpoint", "stage_rate", stage_rate, NULL,
		 "bytes a second that lbrun copies at most"),
	KEY_TEXT("checkpoint", "save_every", save_every, NULL,
		 "lbrun asks for a checkpoint so often, beside the interval"),
	KEY_TEXT("quantize", "recipe", recipe, "\"none\"",
		 "which operands of products are of few bits: a name (`lbworker recipes`), or a "
		 "file NAME.toml"),
	KEY_LIST("quantize", "filter_fqns", filter_fqns, "[\"output\"]",
		 "modules left out: parts of their names in torchtitan or Hugging Face"),
	KEY_INT("quantize", "first_layers", first_layers, 0, MAX_COUNT, "0",
		"so many layers at the beginning are left out"),
	KEY_INT("quantize", "last_layers", last_layers, 0, MAX_COUNT, "0",
		"so many layers at the end are left out"),
	KEY_FLAG(
		"quantize", "only_faster", only_faster, "false",
		"on a GPU, products that FP8 does not make faster stay as they are: measured once"),
	KEY_LIST("quantize", "rules", recipe_rules, NULL,
		 "other recipes by step, layer, module and product: \"steps=900- products=forward "
		 "recipe=none\"; the last that fits counts"),
	KEY_CHOICE(
		"activation_checkpoint", "mode", recompute, "none|selective|full|auto", "\"auto\"",
		"what backward computes again to save memory; auto: as little as fits; results are "
		"the same"),
	KEY_TEXT("activation_checkpoint", "selective_ac_option", recompute_option, "\"op\"",
		 "\"op\": norms and activations; \"2\": one layer of two, whole"),
	KEY_INT("metrics", "log_freq", log_freq, 1, 1e12, "10",
		"steps between lines on the terminal (reports go out every step)"),
	KEY_FLAG("metrics", "noise_scale", noise_scale, "false",
		 "the gradient noise scale is told: the batch, in tokens, above which larger ones "
		 "stop to pay; needs several micro-batches a step"),
	KEY_FLAG("metrics", "enable_tensorboard", enable_tensorboard, "false",
		 "event files for TensorBoard"),
	KEY_TEXT("metrics", "save_tb_folder", save_tb_folder, "\"tb\"",
		 "where they go, below dump_folder"),
	KEY_REAL("metrics", "peak_tflops", peak_tflops, 0, 1e9, "0",
		 "what MFU is a share of; 0: measured at the start"),
	KEY_INT("parallelism", "local_ranks", local_ranks, 1, 1024, "1",
		"processes that train together on this machine, started by lbworker itself; 1: those "
		"that srun or mpiexec starts"),
	KEY_INT("parallelism", "data_parallel_replicate_degree", replicate_degree, -1, 4096, "1",
		"copies of the model among the ranks; -1: what the other degree leaves"),
	KEY_INT("parallelism", "data_parallel_shard_degree", shard_degree, -1, 4096, "-1",
		"ranks that share one copy; -1: what the other degree leaves"),
	KEY_INT("parallelism", "tensor_parallel_degree", tensor_degree, 1, 1024, "1",
		"ranks that hold one model together, each a slice of its heads, feed-forward and "
		"vocabulary; they share samples"),
	KEY_FLAG("parallelism", "enable_sequence_parallel", sequence_parallel, "true",
		 "of those each keeps some rows of what lies between the slices, too"),
	KEY_INT("parallelism", "context_parallel_degree", context_degree, 1, 1024, "1",
		"ranks that share each sequence"),
	KEY_INT("parallelism", "pipeline_parallel_degree", pipeline_degree, 1, MODEL_STAGES_MAX,
		"1", "ranks that have some of the layers each, one stage behind the other"),
	KEY_TEXT("parallelism", "pipeline_parallel_schedule", pipeline_schedule, "\"1F1B\"",
		 "in which order stages go forward and backward: \"1F1B\""),
	KEY_INT("parallelism", "pipeline_parallel_microbatch_size", pipeline_microbatch, 1,
		MAX_COUNT, "1",
		"with stages: sequences of a pass; it divides training.local_batch_size"),
	KEY_INT("parallelism", "pipeline_parallel_layers_per_stage", layers_per_stage, -1,
		MAX_COUNT, "-1",
		"layers of a stage, tables and head counted as below; -1: as the degree says"),
	KEY_INT("parallelism", "pipeline_parallel_first_stage_less_layers", first_stage_less, 0,
		1024, "1", "so many layers the tables count for when layers are shared out"),
	KEY_INT("parallelism", "pipeline_parallel_last_stage_less_layers", last_stage_less, 0, 1024,
		"1", "and so many the head"),
	KEY_CHOICE("parallelism", "fsdp_reshard_after_forward", reshard, "default|always|never",
		   "\"default\"",
		   "never: weights stay whole between forward and backward (ZeRO-2); else each "
		   "layer's are gathered when it is due (ZeRO-3)"),
	KEY_INT("parallelism", "zero_stage", zero_stage, -1, 3, "-1",
		"what ranks that share a copy hold a part of only: 1 moments, 2 gradients too, 3 "
		"weights too; -1: as the keys above say"),
	KEY_INT("parallelism", "reduction_width", reduction_width, 0, 4096, "0",
		"passes whose gradients are added up as a tree, a power of two: with the same "
		"number, any number of ranks gives the same bits; 0: that of the ranks, rounded up"),
	KEY_CHOICE(
		"parallelism", "reduction", reduction, "exact|fast", "\"exact\"",
		"fast: each rank adds up its own passes, one reduction a step; other bits for each "
		"number of ranks"),
	KEY_DURATION("comm", "init_timeout_seconds", init_timeout_ms, 100, 86400000, "300",
		     "when ranks of a launcher do not all begin within so long, all end"),
	KEY_DURATION("comm", "train_timeout_seconds", timeout_ms, 100, 86400000, "100",
		     "when a rank is not heard of for so long, all end"),
	KEY_FLAG("validation", "enable", validation_enable, "false",
		 "the loss on other data, now and then"),
	KEY_TEXT("validation", "dataset_path", validation_path, "\"\"",
		 "that data, as training.dataset_path"),
	KEY_INT("validation", "local_batch_size", validation_batch, -1, MAX_COUNT, "-1",
		"-1, or that of training"),
	KEY_INT("validation", "seq_len", validation_seq_len, -1, MAX_COUNT, "-1",
		"-1, or that of training"),
	KEY_INT("validation", "freq", validation_freq, 1, 1e12, "10", "steps between validations"),
	KEY_INT("validation", "steps", validation_steps, -1, 1e12, "-1",
		"passes in each, always over the same samples; -1: all of the data"),
	KEY_FLAG("profiling", "enable_profiling", enable_profiling, "false",
		 "Chrome traces of single steps"),
	KEY_INT("profiling", "profile_freq", profile_freq, 1, 1e12, "10", "steps between traces"),
	KEY_TEXT("profiling", "save_traces_folder", save_traces_folder, "\"profile_traces\"",
		 "where they go, below dump_folder"),
	KEY_FLAG("profiling", "enable_memory_snapshot", enable_memory_snapshot, "false",
		 "a timeline of memory by class, one sample a step"),
	KEY_TEXT("profiling", "save_memory_snapshot_folder", save_memory_snapshot_folder,
		 "\"memory_snapshot\"", "where it goes, below dump_folder"),
};
enum { KEYS = sizeof(keys) / sizeof(keys[0]) };

/* Sections of the run spec that lbd and lbrun read from the same file. */
static const char *const foreign_sections[] = { "run",     "slurm", "torchrun", "nsys", "preflight",
						"restart", "watch", "notify",   NULL };

static void work_out_path(struct config *c)
{
	const char *given = getenv("LB_CHECKPOINT_DIR");

	if (given && given[0] != '\0')
		c->checkpoint_path = xstrdup(given);
	else if (c->checkpoint_folder[0] == '/')
		c->checkpoint_path = xstrdup(c->checkpoint_folder);
	else
		c->checkpoint_path = path_join("%s/%s", c->dump_folder, c->checkpoint_folder);
}

static void work_out_digest(struct config *c)
{
	char *text = NULL;
	size_t bytes = 0;
	FILE *to = open_memstream(&text, &bytes);

	/* how many ranks there are changes nothing that a step computes */
	struct config same = *c;
	same.local_ranks = same.replicate_degree = 1;
	same.shard_degree = same.zero_stage = -1;
	same.reshard = RESHARD_DEFAULT;
	same.timeout_ms = 0;
	same.stage = same.stage_rate = same.save_every = NULL; /* nor where it is saved first */
	if (c->pipeline_degree > 1)
		config_cut_batches(&same);
	same.pipeline_degree = same.pipeline_microbatch = 1;
	same.layers_per_stage = -1;
	same.first_stage_less = same.last_stage_less = 1;

	if (!to)
		return;
	config_print(&same, to);
	if (fclose(to) == 0) {
		XXH128_hash_t hash = XXH3_128bits(text, bytes);
		snprintf(c->digest, sizeof(c->digest), "%016llx%016llx",
			 (unsigned long long)hash.high64, (unsigned long long)hash.low64);
	}
	free(text);
}

/* Each key by itself, so that one that cannot be read does not hide the next; it counts as not
 * given. */
static void read_keys(struct config *out, const struct toml *toml, struct refusals *r)
{
	struct err err = { 0 };

	for (size_t i = 0; i < KEYS; i++) {
		int rc = keys_read(&keys[i], 1, toml, out, &err);
		if (refusals_add(r, rc, &err) == 0)
			continue;
		if (strcmp(keys[i].section, "model") == 0)
			r->misread_model = true;
		const struct toml nothing = { .root = NULL };
		(void)keys_read(&keys[i], 1, &nothing, out, &err);
	}
}

static int load_document(struct toml *toml, const struct config_order *o, struct err *err)
{
	if (json_document_is(o->path) ? json_document_load(toml, o->path, err)
				      : toml_load(toml, o->path, err))
		return -1;
	toml->option = "--";
	for (size_t i = 0; i < o->count; i++)
		if (toml_set(toml, o->assignments[i], err))
			return -1;
	return 0;
}

/* auto: what only the CPU has. */
static void work_out_device(struct config *c, const struct toml *toml, FILE *notes)
{
	const char *key = few_bits_key(c);

	if (c->device != DEVICE_AUTO || !key)
		return;
	c->device = DEVICE_CPU;
	config_note(toml, key, notes, "is emulated on the CPU: device.name is \"cpu\"");
}

/* auto: what a CPU need not have, and plans are for what it could be fulfilled on. */
static void work_out_compute(struct config *c)
{
	c->compute = c->compute_choice;
	if (c->compute_choice == COMPUTE_CHOICE_AUTO)
		c->compute = c->device == DEVICE_CPU ? COMPUTE_FP32 : COMPUTE_BF16;
	else if (c->compute_choice == COMPUTE_CHOICE_BF16 && c->device == DEVICE_CPU)
		c->compute = COMPUTE_BF16_WIDE;
}

/* interval = "auto" in the words of the table. */
static void take_auto_interval(struct toml *toml)
{
	const char *name;
	json_t *table = toml_table(toml, "checkpoint.interval", &name);
	const char *text = table ? json_string_value(json_object_get(table, name)) : NULL;

	if (!text || strcmp(text, "auto") != 0)
		return;
	json_object_set_new(table, name, json_integer(0));
	json_object_set_new(table, "interval_auto", json_true());
}

static void take_document(struct config *out, struct toml *toml, const struct config_order *o,
			  struct refusals *r)
{
	const struct compat compat = { keys, KEYS, foreign_sections, o->lenient, o->notes };
	struct err err = { 0 };
	bool is_theirs = compat_apply(&compat, toml, r);

	take_auto_interval(toml);
	refusals_add(r, keys_unknown(keys, KEYS, toml, foreign_sections, &err), &err);
	read_keys(out, toml, r);
	work_out_path(out);
	if (out->optimizer_name == OPTIMIZER_ADAMW8BIT)
		out->moments = MOMENTS_8BIT;
	work_out_device(out, toml, o->notes);
	work_out_compute(out);
	if (out->export_dtype != EXPORT_FP32 && !out->checkpoint_enable)
		config_note(toml, "checkpoint.export_dtype", o->notes,
			    "nothing is exported with checkpoint.enable = false");
	config_check(out, o, toml, r);
	if (r->count == 0 && is_theirs)
		differences_tell(out, toml, o->notes);
	if (r->count == 0)
		differences_of_loaded(out, toml, o->notes);
}

int config_load(struct config *out, const struct config_order *order, struct err *err)
{
	struct refusals refusals = { .first = err, .each = order->refused };
	struct toml toml = { 0 };
	struct err why = { 0 };

	*out = (struct config){ .lenient = order->lenient };
	if (refusals_add(&refusals, load_document(&toml, order, &why), &why) == 0)
		take_document(out, &toml, order, &refusals);
	toml_clear(&toml);
	if (refusals.count > 0) {
		config_clear(out);
		return -1;
	}
	work_out_digest(out);
	return 0;
}

void config_clear(struct config *c)
{
	keys_clear(keys, KEYS, c);
	free(c->checkpoint_path);
	*c = (struct config){ 0 };
}

const char *config_flavor(const struct config *c)
{
	return c->flavor[0] ? c->flavor : "of its own shape";
}

void config_print(const struct config *c, FILE *to)
{
	keys_print(keys, KEYS, c, to);
}
