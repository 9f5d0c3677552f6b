/* SPDX-License-Identifier: MIT */
/* batch_env.c - the environment that sbatch would have made for a script. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/strv.h"
#include "daemon/job/batch_job.h"

/* Does the list of --export name this variable alone, "NAME"? */
static bool is_named(const char *list, const char *entry)
{
	size_t len = strcspn(entry, "=");

	while (*list) {
		size_t n = strcspn(list, ",");

		if ((n == len && strncmp(list, entry, n) == 0) ||
		    (n == 3 && strncasecmp(list, "ALL", 3) == 0))
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

static void keep_exported(struct strv *env, const char *list)
{
	bool none = strcasecmp(list, "NONE") == 0;
	size_t kept = 0;

	for (size_t i = 0; i < env->count; i++) {
		char *entry = env->items[i];

		if (strncmp(entry, "SLURM", 5) == 0 || (!none && is_named(list, entry))) {
			env->items[kept++] = entry;
		} else {
			explicit_bzero(entry, strlen(entry));
			free(entry);
		}
	}
	env->count = kept;
	if (env->items)
		env->items[kept] = NULL;
	for (const char *at = list; !none && *at;) { /* "NAME=value" */
		size_t n = strcspn(at, ",");

		if (memchr(at, '=', n))
			strv_set(env, xstrndup(at, n));
		at += n + (at[n] == ',');
	}
	strv_set(env, xstrdup("SLURM_GET_USER_ENV=1"));
	strv_set(env, xasprintf("SLURM_EXPORT_ENV=%s", list));
}

/* What sbatch tells the steps of the job by environment, from its options. */
static void add_told(const json_t *fields, struct strv *env)
{
	/* clang-format off */
	static const struct { const char *field, *variable; } told[] = {
		{"name", "SLURM_JOB_NAME"}, {"cpus_per_task", "SLURM_CPUS_PER_TASK"},
		{"num_tasks", "SLURM_NPROCS"}, {"num_tasks", "SLURM_NTASKS"},
		{"ntasks_per_core", "SLURM_NTASKS_PER_CORE"},
		{"ntasks_per_gpu", "SLURM_NTASKS_PER_GPU"},
		{"ntasks_per_tres", "SLURM_NTASKS_PER_TRES"},
		{"ntasks_per_node", "SLURM_NTASKS_PER_NODE"},
		{"ntasks_per_socket", "SLURM_NTASKS_PER_SOCKET"},
		{"plane_size", "SLURM_DIST_PLANESIZE"}, {"threads_per_core", "SLURM_THREADS_PER_CORE"},
		{"distribution", "SLURM_DISTRIBUTION"}, {"dependency", "SLURM_JOB_DEPENDENCY"},
		{"profile", "SLURM_PROFILE"}, {"acctg_freq", "SLURM_ACCTG_FREQ"},
		{"container", "SLURM_CONTAINER"}, {"hint", "SLURM_HINT"},
		{"cpus_per_gpu", "SLURM_CPUS_PER_GPU"}, {"gpus", "SLURM_GPUS"},
		{"gpu_bind", "SLURM_GPU_BIND"}, {"gpu_freq", "SLURM_GPU_FREQ"},
		{"gpus_per_node", "SLURM_GPUS_PER_NODE"}, {"gpus_per_socket", "SLURM_GPUS_PER_SOCKET"},
		{"gpus_per_task", "SLURM_GPUS_PER_TASK"}, {"mem_per_gpu", "SLURM_MEM_PER_GPU"},
	};
	/* clang-format on */

	for (size_t i = 0; i < sizeof(told) / sizeof(told[0]); i++) {
		const json_t *value = json_object_get(fields, told[i].field);
		char *text = json_is_integer(value)
				     ? xasprintf("%lld", (long long)json_integer_value(value))
				     : js_bytes_take(value);

		if (text)
			strv_set(env, xasprintf("%s=%s", told[i].variable, text));
		free(text);
	}
}

/* --- limits ----------------------------------------------------------------------------------- */

/* --propagate: Slurm insists on the limits named (U), and sets none of the others. */
static bool is_propagated(const char *list, const char *name)
{
	if (strcasecmp(list, "ALL") == 0)
		return true;
	while (*list) {
		size_t n = strcspn(list, ",");
		size_t skip = strncasecmp(list, "RLIMIT_", 7) == 0 ? 7 : 0;

		if (n - skip == strlen(name) && strncasecmp(list + skip, name, n - skip) == 0)
			return true;
		list += n + (list[n] == ',');
	}
	return false;
}

static void propagate(const char *list, struct strv *env)
{
	static const char limit[] = "SLURM_RLIMIT_";
	size_t kept = 0, len = sizeof(limit) - 1;

	for (size_t i = 0; i < env->count; i++) {
		char *entry = env->items[i], *value = strchr(entry, '=');
		char *name = xstrndup(entry, (size_t)(value - entry));
		bool is_limit = strncmp(entry, limit, len) == 0;

		if (is_limit && is_propagated(list, name + len))
			env->items[kept++] = xasprintf("%s=U%s", name, value + 1);
		else if (!is_limit)
			env->items[kept++] = entry;
		if (is_limit)
			free(entry);
		free(name);
	}
	env->count = kept;
	if (env->items)
		env->items[kept] = NULL;
}

/* --- memory binding, frequencies -------------------------------------------------------------- */

/* sbatch spells the words its own way, and in its own order. */
static const struct {
	const char *words[2], *shown;
	bool is_type;
} bind_words[] = {
	{ { "v", "verbose" }, "verbose,", false },
	{ { "p", "prefer" }, "prefer,", false },
	{ { "sort" }, "sort,", false },
	{ { "no", "none" }, "none", true },
	{ { "rank" }, "rank", true },
	{ { "local" }, "local", true },
	{ { "map_mem" }, "map_mem:", true },
	{ { "mask_mem" }, "mask_mem:", true },
};
enum { BIND_VERBOSE = 0, BIND_SORT = 2, BIND_MASK = 7, BIND_WORDS = 8 };

static bool is_bind_word(size_t row, const char *text, size_t len)
{
	for (int w = 0; w < 2 && bind_words[row].words[w]; w++)
		if (strlen(bind_words[row].words[w]) == len &&
		    strncasecmp(text, bind_words[row].words[w], len) == 0)
			return true;
	return false;
}

/* Of the types the last counts. */
static void find_bind_words(const char *text, bool given[BIND_WORDS])
{
	for (const char *at = text; *at;) {
		size_t len = strcspn(at, ",:=");

		for (size_t i = 0; i < BIND_WORDS; i++) {
			if (!is_bind_word(i, at, len))
				continue;
			for (size_t k = 0; bind_words[i].is_type && k < BIND_WORDS; k++)
				given[k] = given[k] && !bind_words[k].is_type;
			given[i] = true;
		}
		at += len + (at[len] != '\0');
	}
}

/* The list behind map_mem and mask_mem. */
static void add_bind_list(struct buf *out, const char *list, bool are_masks)
{
	for (; *list; list++) { /* masks lose their "0x" */
		if (are_masks && strncmp(list, "0x", 2) == 0)
			list += 2;
		buf_add(out, list, 1);
	}
}

static void add_mem_bind(const char *text, struct strv *env)
{
	bool given[BIND_WORDS] = { false };
	const char *list = strpbrk(text, ":=");
	struct buf out;

	find_bind_words(text, given);
	buf_init(&out, strlen(text) + 64);
	for (size_t i = 0; i < BIND_WORDS; i++) {
		if (given[i])
			buf_add(&out, bind_words[i].shown, strlen(bind_words[i].shown));
	}
	if (out.len > 0 && out.data[out.len - 1] == ':' && list)
		add_bind_list(&out, list + 1, given[BIND_MASK]);
	if (out.len > 0 && out.data[out.len - 1] == ',')
		out.data[out.len - 1] = '\0';
	if (out.len > 0) {
		strv_set(env, xasprintf("SLURM_MEM_BIND=%s", out.data));
		strv_set(env, xasprintf("SLURM_MEM_BIND_VERBOSE=%s",
					given[BIND_VERBOSE] ? "verbose" : "quiet"));
	}
	if (given[BIND_SORT])
		strv_set(env, xstrdup("SLURM_MEM_BIND_SORT=sort"));
	buf_fini(&out);
}

static void add_cpu_freq(const char *text, struct strv *env)
{
	static const char *const shown[] = {
		"Low",      "Medium",      "Highm1",    "High",      "Conservative",
		"OnDemand", "Performance", "PowerSave", "SchedUtil", "UserSpace",
	};
	struct buf out;

	buf_init(&out, strlen(text) + 64);
	while (*text) {
		size_t len = strcspn(text, "-:");
		const char *word = text;

		for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++) {
			if (strlen(shown[i]) == len && strncasecmp(text, shown[i], len) == 0)
				word = shown[i];
		}
		buf_add(&out, word, len);
		buf_add(&out, text + len, text[len] != '\0');
		text += len + (text[len] != '\0');
	}
	if (out.len > 0)
		strv_set(env, xasprintf("SLURM_CPU_FREQ_REQ=%s", out.data));
	buf_fini(&out);
}

void batch_job_env(const json_t *fields, struct strv *env)
{
	const char *export = js_str(fields, "export", NULL);
	const char *mode = js_str(fields, "open_mode", NULL);
	const char *limits = js_str(fields, "propagate", NULL);
	const char *bind = js_str(fields, "mem_bind", NULL);
	const char *freq = js_str(fields, "cpu_freq", NULL);

	if (export && strcasecmp(export, "ALL") != 0)
		keep_exported(env, export);
	if (js_int(fields, "get_user_env", 0))
		strv_set(env, xstrdup("SLURM_GET_USER_ENV=1"));
	if (mode)
		strv_set(env, xasprintf("SLURM_OPEN_MODE=%c", mode[0]));
	if (limits)
		propagate(limits, env);
	if (bind)
		add_mem_bind(bind, env);
	if (freq)
		add_cpu_freq(freq, env);
	add_told(fields, env);
}
