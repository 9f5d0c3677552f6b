/* SPDX-License-Identifier: MIT */
/* layouts.c - the table of layouts, and which of its patterns a name fits. */
#include "common/checkpoint/layouts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"
#include "common/checkpoint/steps.h"
#include "common/manifest/manifest.h"

static int verify_manifest(const char *path, bool is_deep, struct err *err)
{
	struct manifest m;
	int64_t step;

	if (manifest_verify(path, is_deep ? MANIFEST_DIGESTS : MANIFEST_SIZES, &m, err) < 0)
		return -1;
	step = m.step;
	manifest_clear(&m);
	if (step != step_in_name(path_base(path)))
		return err_set(err, ERR_USAGE, "its manifest is of step %lld", (long long)step);
	return 0;
}

/* The first row that fits is taken: the more special ones come first. */
/* clang-format off */
const struct layout layouts[] = {
	{ .name = "lbworker", .by = "lbworker", .kind = LAYOUT_FOLDER, .names = { "step-#" },
	  .marks = { "manifest.json" }, .last = "manifest.json", .verify = verify_manifest },
	{ .name = "deepspeed", .by = "DeepSpeed", .kind = LAYOUT_FOLDER,
	  .names = { "global_step#" },
	  .pointer = "latest" },
	{ .name = "megatron", .by = "Megatron-LM", .kind = LAYOUT_FOLDER,
	  .names = { "iter_#" },
	  .pointer = "latest_checkpointed_iteration.txt" },
	{ .name = "verl", .by = "verl", .kind = LAYOUT_FOLDER,
	  .names = { "global_step_#" },
	  .marks = { "actor/*", "critic/*", "data.pt", "model_world_size_#_rank_#.pt" },
	  .pointer = "latest_checkpointed_iteration.txt" },
	{ .name = "transformers", .by = "Hugging Face Trainer", .kind = LAYOUT_FOLDER,
	  .names = { "checkpoint-#" },
	  .marks = { "trainer_state.json", "training_args.bin", "optimizer.pt", "scheduler.pt",
		     "rng_state*.pth" },
	  .last = "trainer_state.json" },
	{ .name = "accelerate", .by = "Accelerate's save_state", .kind = LAYOUT_FOLDER,
	  .names = { "checkpoint_#", "step_#", "epoch_#", "*#" },
	  .marks = { "random_states_#.pkl", "optimizer.bin", "scheduler.bin", "sampler.bin" },
	  .last = "random_states_0.pkl", .may_have_more = true },
	{ .name = "nemo", .by = "NeMo", .kind = LAYOUT_FOLDER,
	  .names = { "*-step=#*", "*-consumed_samples=#*", "*-last" },
	  .marks = { "weights/*", "context/*" },
	  .unfinished = "-unfinished" },
	{ .name = "lightning-fsdp", .by = "Lightning with FSDP", .kind = LAYOUT_FOLDER,
	  .names = { "*.ckpt" }, .marks = { "meta.pt", ".metadata", "__#_#.distcp" },
	  .last = "meta.pt" },
	{ .name = "lightning-deepspeed", .by = "Lightning with DeepSpeed", .kind = LAYOUT_FOLDER,
	  .names = { "*.ckpt" }, .marks = { "checkpoint/*", "zero_to_fp32.py" }, .last = "latest" },
	{ .name = "dcp", .by = "torchtitan, torch.distributed.checkpoint", .kind = LAYOUT_FOLDER,
	  .names = { "step-#", "*#", "last", "latest" }, .marks = { ".metadata", "__#_#.distcp" },
	  .last = ".metadata" },
	{ .name = "litgpt", .by = "LitGPT", .kind = LAYOUT_FOLDER,
	  .names = { "step-#", "iter-#*", "final" },
	  .marks = { "lit_model.pth" }, .last = "model_config.yaml" },
	{ .name = "orbax", .by = "Orbax (JAX)", .kind = LAYOUT_FOLDER, .names = { "#", "*_#" },
	  .marks = { "_CHECKPOINT_METADATA", "_METADATA" }, .last = "_CHECKPOINT_METADATA" },
	{ .name = "folder", .by = "any script: a folder with a number", .kind = LAYOUT_FOLDER,
	  .names = { "step#-unsharded", "*-step#-state", "ep*-ba#", "*#", "*#-state", "*#-unsharded", "last", "latest",
		     "current", "final", "checkpoint", "ckpt", "state" } },

	{ .name = "llm.c", .by = "llm.c", .kind = LAYOUT_FILE,
	  .names = { "model_#.bin", "state_#_#.bin" },
	  .last = "DONE_#" },
	{ .name = "lightning", .by = "Lightning, NeMo", .kind = LAYOUT_FILE,
	  .names = { "*.ckpt", "*.nemo" },
	  .has_step_inside = true, .unfinished = "-unfinished" },
	{ .name = "nanogpt", .by = "nanoGPT", .kind = LAYOUT_FILE, .names = { "ckpt.pt" },
	  .has_step_inside = true },
	{ .name = "torch", .by = "torch.save", .kind = LAYOUT_FILE, .names = { "*.pt", "*.pth" } },
	{ .name = "safetensors", .by = "safetensors", .kind = LAYOUT_FILE,
	  .names = { "*.safetensors" } },
	{ .name = "numpy", .by = "numpy.save, numpy.savez", .kind = LAYOUT_FILE,
	  .names = { "*.npz", "*.npy" } },
	{ .name = "file", .by = "any script: a file with a number", .kind = LAYOUT_FILE,
	  .names = { "*" } },
};
/* clang-format on */

const size_t layout_count = sizeof(layouts) / sizeof(layouts[0]);

const struct layout *layout_find(const char *name)
{
	for (size_t i = 0; i < layout_count; i++) {
		if (strcmp(layouts[i].name, name) == 0)
			return &layouts[i];
	}
	return NULL;
}

char *layout_names(void)
{
	struct buf out;

	buf_init(&out, 1024);
	buf_addf(&out, "auto, own");
	for (size_t i = 0; i < layout_count; i++)
		buf_addf(&out, ", %s", layouts[i].name);
	return buf_take(&out);
}

/* '#' takes all digits in a row, never some of them. */
static bool match(const char *pattern, const char *name, const char *begin, int64_t *step)
{
	for (; *pattern; pattern++) {
		size_t len = text_digits(name);
		int64_t inner = -1;

		if (*pattern == '*') {
			for (;; name++) {
				inner = -1;
				if (match(pattern + 1, name, begin, &inner)) {
					*step = *step < 0 ? inner : *step;
					return true;
				}
				if (*name == '\0')
					return false;
			}
		}
		if (*pattern == '#') {
			if (len == 0 || len > STEP_DIGITS_MAX ||
			    (name > begin && isdigit((unsigned char)name[-1])))
				return false;
			*step = *step < 0 ? strtoll(name, NULL, 10) : *step;
			name += len;
		} else if (*pattern != *name++) {
			return false;
		}
	}
	return *name == '\0';
}

bool layout_name_matches(const char *pattern, const char *name, int64_t *step)
{
	int64_t found = -1;
	bool matches = match(pattern, name, name, &found);

	if (step)
		*step = matches ? found : -1;
	return matches;
}

bool layout_matches(const struct layout *row, const char *name, int64_t *step)
{
	for (size_t i = 0; row->names[i]; i++) {
		if (layout_name_matches(row->names[i], name, step))
			return true;
	}
	return false;
}
