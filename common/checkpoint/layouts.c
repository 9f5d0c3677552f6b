/* SPDX-License-Identifier: MIT */
/* layouts.c - the table of layouts, and what names tell. */
#include "common/checkpoint/layouts.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/checkpoint/manifest.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/text.h"

enum { STEP_DIGITS_MAX = 18 };

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
	  .names = { "step#-unsharded", "*-step#-state", "*#", "*#-state", "*#-unsharded", "last", "latest",
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

/* --- names ------------------------------------------------------------------------------------ */

static size_t digits(const char *text)
{
	return strspn(text, "0123456789");
}

static int64_t number(const char *text, size_t len)
{
	return len > 0 && len <= STEP_DIGITS_MAX ? strtoll(text, NULL, 10) : -1;
}

/* Of "9500" that, of "10k" and "1.5k" the thousands that they are; -1: too large. */
static int64_t number_in_words(const char *text)
{
	size_t len = digits(text), end = len;
	double thousands;

	if (text[len] == '.' && digits(text + len + 1) > 0)
		end += 1 + digits(text + len + 1);
	if (tolower((unsigned char)text[end]) != 'k' || isalnum((unsigned char)text[end + 1]))
		return number(text, len);
	return end < STEP_DIGITS_MAX - 3 && text_number(text, end, &thousands)
		       ? (int64_t)(1000 * thousands + 0.5)
		       : -1;
}

/* '#' takes all digits in a row, never some of them. */
static bool match(const char *pattern, const char *name, const char *begin, int64_t *step)
{
	for (; *pattern; pattern++) {
		size_t len = digits(name);
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
			*step = *step < 0 ? number(name, len) : *step;
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

static const char separators[] = "=_-. (+";
static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";

/* The number right behind a word, with at most separators in between; the last such word counts. */
static const char *behind(const char *name, const char *word)
{
	const char *found = NULL;

	for (const char *at = name; (at = strcasestr(at, word)) != NULL; at++) {
		const char *from = at + strlen(word);

		from += strspn(from, separators);
		if (digits(from) > 0)
			found = from;
	}
	return found;
}

static bool is_fraction(const char *name, const char *at, size_t len)
{
	return (at - name > 1 && at[-1] == '.' && isdigit((unsigned char)at[-2])) ||
	       (at[len] == '.' && isdigit((unsigned char)at[len + 1]));
}

/* --- times in names --------------------------------------------------------------------------- */

/* Of "2026-11-23" 20261123. */
static int64_t digits_of(const char *text, size_t len)
{
	int64_t all = 0;

	for (size_t i = 0; i < len; i++) {
		if (isdigit((unsigned char)text[i]))
			all = 10 * all + (text[i] - '0');
	}
	return all;
}

static bool is_between(const char *text, size_t len, int64_t least, int64_t most)
{
	return digits_of(text, len) >= least && digits_of(text, len) <= most;
}

/* "101500", "10-15-00": how much of the text it is. */
static size_t length_of_day_time(const char *text)
{
	bool is_apart = digits(text) == 2;
	size_t width = is_apart ? 3 : 2, len = 2 * width + 2;

	if (!is_apart && digits(text) != 6)
		return 0;
	for (size_t at = 2; is_apart && at < len; at += width) {
		if (text[at] == '\0' || !strchr("-_:.", text[at]) || digits(text + at + 1) != 2)
			return 0;
	}
	return is_between(text, 2, 0, 23) && is_between(text + width, 2, 0, 59) &&
			       is_between(text + 2 * width, 2, 0, 60)
		       ? len
		       : 0;
}

/* "20261123", "2026-11-23", with the time of day behind it or not; "1795427999" and its
 * milliseconds: how much of the text it is, 0 = it is no time. */
static size_t length_of_time(const char *text)
{
	enum { FIRST_S = 1400000000, LAST_S = 2100000000 };
	size_t n = digits(text), len = n == 4 ? 10 : 8, width = n == 4 ? 3 : 2;
	size_t day = n == 4 ? 8 : 6, len_of_day;

	if ((n == 10 || n == 13) && is_between(text, 10, FIRST_S, LAST_S))
		return n;
	if (n == 4 && (text[4] == '\0' || !strchr("-_.", text[4]) || digits(text + 5) != 2 ||
		       text[7] != text[4] || digits(text + 8) != 2))
		return 0;
	if ((n != 4 && n != 8 && n != 12 && n != 14) || !is_between(text, 4, 2010, 2099) ||
	    !is_between(text + day - width, 2, 1, 12) || !is_between(text + day, 2, 1, 31))
		return 0;
	if (n > 8)
		return n;
	len_of_day = length_of_day_time(text + len + strspn(text + len, "_-+T "));
	if (len_of_day > 0)
		len += strspn(text + len, "_-+T ") + len_of_day;
	/* SpeechBrain counts those of one second behind it. */
	return len_of_day > 0 && text[len] == '+' && digits(text + len + 1) == 2 ? len + 3 : len;
}

/* Of numbers behind each other: "checkpoint_1_500" is of epoch 1, "checkpoint_500_1" of rank 1, and
 * the step is more than either. When it was saved is no step; NULL = there is nothing else. */
static const char *largest_from(const char *name, const char *first)
{
	const char *at = first, *most = NULL;

	do {
		size_t len = length_of_time(at);

		if (len == 0) {
			len = digits(at);
			if ((at == first || !is_fraction(name, at, len)) &&
			    (!most || number(at, len) > number(most, digits(most))))
				most = at;
		}
		at += len;
	} while ((*at == '_' || *at == '-') && digits(++at) > 0);
	return most;
}

/* The first COUNTING count steps, and nothing else. */
enum { COUNTING = 8 };
static const char *const step_words[] = {
	"step", "steps",      "iter",  "iters", "iteration", "it",   "update", "batch",
	"ckpt", "checkpoint", "chkpt", "cp",    "snapshot",  "save", "epoch",  "ep",
};

/* Words that stand in front of a number, but say nothing of the step: "model_20" is one all the
 * same. */
static const char *const other_words[] = {
	"model", "state",   "weights", "params", "optim", "optimizer",
	"train", "trainer", "net",     "meta",   "rank",
};

/* "ep1-ba100-rank0": whose it is. */
static bool is_of_a_rank(const char *name, const char *at)
{
	while (at > name && strchr(separators, at[-1]))
		at--;
	return at - name >= 4 && strncasecmp(at - 4, "rank", 4) == 0;
}

/* The last number of a name; a fraction ("loss0.25") is none, and a rank only where there is no
 * other. NULL: there are times alone; of the first *time has all digits, as what was saved later
 * has more (-1 = nor a time). */
static const char *last_number(const char *name, int64_t *time)
{
	const char *step = NULL, *rank = NULL;

	*time = -1;
	for (const char *at = name; *at;) {
		size_t len = length_of_time(at);

		if (len > 0 && *time < 0)
			*time = digits_of(at, len);
		else if (len == 0 && (len = digits(at)) > 0 && !is_fraction(name, at, len))
			*(is_of_a_rank(name, at) ? &rank : &step) = at;
		at += len > 0 ? len : 1;
	}
	return step ? step : rank;
}

/* Without its last ending, where that has a letter: "ckpt_20.npz" → "ckpt_20", "snapshot.20" stays.
 */
static char *stem_of(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot && dot > name && !isdigit((unsigned char)dot[1])
		       ? xstrndup(name, (size_t)(dot - name))
		       : xstrdup(name);
}

/* Short words only as a whole: "it" is in "recital_3". */
static const char *behind_step_word(const char *stem, size_t i)
{
	return strlen(step_words[i]) > 2 ? behind(stem, step_words[i]) : NULL;
}

/* Where the step stands; *is_said: behind a word that counts steps and nothing else. */
static const char *find_step(const char *stem, bool *is_said, int64_t *time)
{
	*time = -1;
	for (size_t i = 0; i < sizeof(step_words) / sizeof(step_words[0]); i++) {
		const char *at = behind_step_word(stem, i);

		*is_said = i < COUNTING;
		if (at && !*is_said)
			at = largest_from(stem, at);
		if (at && number(at, digits(at)) >= 0)
			return at;
	}
	*is_said = false;
	return last_number(stem, time);
}

bool name_tells_step(const char *name)
{
	for (size_t i = 0; i < sizeof(step_words) / sizeof(step_words[0]); i++) {
		if (behind_step_word(name, i))
			return true;
	}
	return false;
}

int64_t step_in_name(const char *name)
{
	char *stem = stem_of(name);
	int64_t time;
	bool is_said;
	const char *at = find_step(stem, &is_said, &time);
	int64_t step = at ? number_in_words(at) : time;

	free(stem);
	return step;
}

size_t step_candidates(const char *name, size_t places[STEP_CANDIDATES_MAX])
{
	char *stem = stem_of(name);
	int64_t time;
	bool is_said;
	const char *step = find_step(stem, &is_said, &time), *at = step;
	size_t count = 1;

	while (step && at > stem && (strchr("_-", at[-1]) || isdigit((unsigned char)at[-1])))
		at--;
	while (step && count < STEP_CANDIDATES_MAX && *(at += strspn(at, "_-")) != '\0' &&
	       digits(at) > 0) {
		size_t len = length_of_time(at);

		if (at == step)
			places[0] = (size_t)(at - stem);
		else if (len == 0 && !is_fraction(stem, at, digits(at)) && !is_of_a_rank(stem, at))
			places[count++] = (size_t)(at - stem);
		at += len > 0 ? len : digits(at);
	}
	free(stem);
	return is_said || count == 1 ? 0 : count;
}

bool name_has_word(const char *name)
{
	size_t len = strcspn(name, "0123456789"), end = len;

	if (name[len] == '\0')
		return false;
	if (len == 0)
		return name[digits(name)] == '\0'; /* digits alone */
	while (end > 0 && strchr(separators, name[end - 1]))
		end--;
	for (size_t i = 0; i < sizeof(step_words) / sizeof(step_words[0]); i++) {
		size_t n = strlen(step_words[i]);

		if (end >= n && strncasecmp(name + end - n, step_words[i], n) == 0 &&
		    (end == n || n > 2 || !isalpha((unsigned char)name[end - n - 1])))
			return true;
	}
	for (size_t i = 0; i < sizeof(other_words) / sizeof(other_words[0]); i++) {
		size_t n = strlen(other_words[i]);

		if (end >= n && strncasecmp(name + end - n, other_words[i], n) == 0)
			return true;
	}
	return behind(name, "step") || behind(name, "iter") || behind(name, "epoch");
}

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
		".params", ".pdparams", ".pdopt",  ".onnx",  ".gguf",  ".zarr",
	};

	return ends_in_one_of(name, endings, sizeof(endings) / sizeof(endings[0]));
}

bool name_is_for_people(const char *name)
{
	static const char *const endings[] = {
		".png", ".jpg", ".jpeg", ".gif", ".webp", ".svg",  ".pdf",   ".mp4",     ".wav",
		".mp3", ".log", ".csv",  ".tsv", ".md",   ".html", ".jsonl", ".parquet",
	};

	return ends_in_one_of(name, endings, sizeof(endings) / sizeof(endings[0]));
}

static const char *const other_work[] = {
	"sample",     "samples",     "image",           "images",         "eval",
	"evals",      "evaluation",  "generation",      "generated",      "generations",
	"prediction", "predictions", "preds",           "metrics",        "trace",
	"traces",     "profile",     "profiles",        "profiler",       "tensorboard",
	"plots",      "figures",     "memory_snapshot", "profile_traces",
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
