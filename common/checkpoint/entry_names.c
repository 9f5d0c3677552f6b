/* SPDX-License-Identifier: MIT */
/* entry_names.c - what the name of a file or folder says of what is in it. */
#include "common/checkpoint/entry_names.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

#include "common/base/text.h"
#include "common/checkpoint/layouts.h"
#include "common/checkpoint/steps.h"

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* A word with no letter on either side. */
static bool has_token(const char *name, const char *word)
{
	size_t len = strlen(word);

	for (const char *at = name; (at = strcasestr(at, word)) != NULL; at++) {
		if ((at == name || !isalnum((unsigned char)at[-1])) &&
		    !isalpha((unsigned char)at[len]))
			return true;
	}
	return false;
}

bool name_is_temporary(const char *name)
{
	static const char *const words[] = {
		"tmp",        "temp", "part", "partial", "incomplete", "unfinished",
		"inprogress", "lock", "bad",  "old",     "bak",        "corrupt",
	};

	if (name[0] == '.' || strncmp(name, "set-aside-", 10) == 0 || name[strlen(name) - 1] == '~')
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (has_token(name, words[i]))
			return true;
	}
	return false;
}

static bool ends_in_one_of(const char *name, const char *const *endings, size_t count)
{
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < count; i++) {
		if (strcasecmp(dot, endings[i]) == 0)
			return true;
	}
	return false;
}

bool name_is_data(const char *name)
{
	static const char *const endings[] = {
		".pt",     ".pth",      ".ckpt",   ".nemo",  ".npz",   ".npy",     ".safetensors",
		".bin",    ".pkl",      ".pickle", ".h5",    ".hdf5",  ".keras",   ".msgpack",
		".eqx",    ".tar",      ".distcp", ".model", ".state", ".weights", ".joblib",
		".params", ".pdparams", ".pdopt",  ".onnx",  ".gguf",  ".zarr",    ".ubj",
		".bkp",    ".mpk",      ".jld2",   ".bson",
	};

	/* AudioCraft's "checkpoint_10.th"; AllenNLP's "model_state_e1_b0.th" tells two numbers */
	return ends_in_one_of(name, endings, sizeof(endings) / sizeof(endings[0])) ||
	       (name_has_checkpoint(name) && text_ends_with(name, ".th"));
}

bool name_is_for_people(const char *name)
{
	static const char *const endings[] = {
		".png", ".jpg", ".jpeg", ".gif",   ".webp",    ".svg", ".pdf",
		".mp4", ".wav", ".mp3",  ".log",   ".out",     ".err", ".csv",
		".tsv", ".md",  ".html", ".jsonl", ".parquet",
	};

	return ends_in_one_of(name, endings, sizeof(endings) / sizeof(endings[0]));
}

bool name_is_of_settings(const char *name)
{
	static const char *const endings[] = { ".yaml", ".yml", ".json", ".toml",
					       ".cfg",  ".ini", ".txt" };
	static const char *const words[] = { "config",    "conf",    "cfg",         "args",
					     "hparams",   "options", "settings",    "metadata",
					     "overrides", "command", "requirements" };

	if (strstr(name, "tfevents"))
		return true;
	if (!ends_in_one_of(name, endings, sizeof(endings) / sizeof(endings[0])))
		return false;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (has_token(name, words[i]))
			return true;
	}
	return false;
}

static const char *const other_work[] = {
	"sample",      "samples",     "image",           "images",
	"eval",        "evals",       "evaluation",      "generation",
	"generated",   "generations", "prediction",      "predictions",
	"preds",       "metrics",     "trace",           "traces",
	"profile",     "profiles",    "profiler",        "tensorboard",
	"plots",       "figures",     "memory_snapshot", "profile_traces",
	"ft-replicat", /* torchtitan's: what each replica has read, by the same steps */
};

bool name_is_of_other_work(const char *name)
{
	for (size_t i = 0; i < sizeof(other_work) / sizeof(other_work[0]); i++) {
		if (has_token(name, other_work[i]))
			return true;
	}
	return false;
}

bool name_is_for_other_work(const char *name)
{
	for (size_t i = 0; i < sizeof(other_work) / sizeof(other_work[0]); i++) {
		size_t len = strlen(other_work[i]);
		const char *rest = name + len;

		if (strncasecmp(name, other_work[i], len) == 0 &&
		    (rest[strcspn(rest, letters)] == '\0' ||
		     (!isalpha((unsigned char)rest[0]) && name_tells_step(name))))
			return true;
	}
	return false;
}

bool name_is_pointer(const char *name)
{
	const char *dot = strchr(name, '.');

	if (text_ends_with(name, "-LAST"))
		return true;
	return (!dot || strcmp(dot, ".txt") == 0 || layout_name_matches(".rank_#", dot, NULL)) &&
	       (text_begins_with(name, "latest") || text_begins_with(name, "last_") ||
		strcmp(name, "checkpoint") == 0);
}

bool name_is_other_file(const char *name)
{
	return name_is_for_people(name) || (strchr(name, '.') && name_is_pointer(name)) ||
	       strcasestr(name, "memory_snapshot") ||
	       (text_ends_with(name, ".txt") && has_token(name, "log")) ||
	       (!name_is_data(name) && name_is_of_other_work(name));
}

bool name_is_shard(const char *name)
{
	return layout_name_matches("*-#-of-#.*", name, NULL);
}

bool name_is_of_a_rank(const char *name)
{
	return layout_name_matches("rank#", name, NULL) ||
	       layout_name_matches("rank_#", name, NULL) ||
	       layout_name_matches("rank-#", name, NULL);
}

bool name_is_previous(const char *name)
{
	return has_token(name, "prev") || has_token(name, "previous");
}

static bool is_word_of_one(const char *word, size_t len)
{
	static const char *const words[] = { "ckpt",    "checkpoint", "model",    "last",
					     "latest",  "state",      "snapshot", "best",
					     "current", "final",      "training", "train",
					     "trainer", "epoch",      "weights",  "prev",
					     "previous" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		if (strlen(words[i]) == len && strncasecmp(word, words[i], len) == 0)
			return true;
	}
	return false;
}

/* "jepa-latest.pth.tar": of the training, whose name stands in front. */
static bool is_last_of_training(const char *name)
{
	static const char *const words[] = { "last", "latest" };
	static const char *const parts[] = { "optim", "sched", "scaler", "rng", "buffer" };
	size_t end = strcspn(name, ".");
	bool is = false;

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t len = strlen(words[i]);

		is |= end > len && strncmp(name + end - len, words[i], len) == 0 &&
		      strchr("_-", name[end - len - 1]);
	}
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		is = is && !strcasestr(name, parts[i]);
	return is;
}

bool name_is_single(const char *name)
{
	bool has_age = name_is_previous(name);

	if (is_last_of_training(name))
		return true;
	for (;;) {
		size_t len = strcspn(name, "._-"), end = len;

		while (has_age && end > 0 && isdigit((unsigned char)name[end - 1]))
			end--;
		if (!(has_age && end == 0 && len > 0) && !is_word_of_one(name, end))
			return false;
		if (name[len] == '\0' || name[len] == '.')
			return true;
		name += len + 1;
	}
}

bool name_has_checkpoint(const char *name)
{
	return strcasestr(name, "ckpt") || strcasestr(name, "checkpoint") ||
	       strcasestr(name, "snapshot");
}

bool name_tells_state(const char *name)
{
	static const char *const arrays[] = { ".npy", ".npz", ".bin", ".tar" };

	if (!name_is_data(name) || !name_has_number(name) || name_is_shard(name))
		return false;
	return layout_name_matches("model_#.*", name, NULL) ||
	       layout_name_matches("ep*-ba#*", name, NULL) || /* Composer */
	       layout_name_matches("model-#.*", name, NULL) ||
	       (!ends_in_one_of(name, arrays, sizeof(arrays) / sizeof(arrays[0])) &&
		(has_token(name, "state") || has_token(name, "model") ||
		 layout_name_matches("*_ep_#*", name, NULL) || /* rl_games */
		 (name_has_word(name) && name_tells_step(name))));
}

bool name_is_for_checkpoints(const char *name)
{
	return name_has_checkpoint(name) || strcasestr(name, "weights") ||
	       strcasestr(name, "models") || strcasestr(name, "save");
}

bool name_is_downloaded(const char *name)
{
	const char *version = strstr(name, ":v");

	return version && text_is_digits(version + 2);
}

bool name_ends_in_number(const char *name)
{
	const struct layout *row = layout_find("folder");

	for (size_t n = 0; row->names[n]; n++) {
		if (strncmp(row->names[n], "*#", 2) == 0 &&
		    layout_name_matches(row->names[n], name, NULL))
			return true;
	}
	return false;
}
