/* SPDX-License-Identifier: GPL-2.0-or-later */
/* field_words.c - words of sbatch's options become the constants of this libslurm. */
#include "slurm/helper/field_words.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/base/json.h"
#include "common/base/mem.h"

struct word {
	const char *name;
	uint64_t bits;
};

static const struct word flag_words[] = {
	{ "spread", SPREAD_JOB },
	{ "use-min-nodes", USE_MIN_NODES },
	{ "gres-disable-binding", GRES_DISABLE_BIND },
	{ "gres-enforce-binding", GRES_ENFORCE_BIND },
#if SLURM_SINCE(23, 11)
	{ "gres-multiple-tasks-per-sharing", GRES_MULT_TASKS_PER_SHARING },
	{ "gres-one-task-per-sharing", GRES_ONE_TASK_PER_SHARING },
#endif
	{ "kill-invalid-dep", KILL_INV_DEP },
	{ "no-kill-invalid-dep", NO_KILL_INV_DEP },
	{ NULL, 0 },
};

/* clang-format off */
static const struct word mail_words[] = {
	{"ARRAY_TASKS", MAIL_ARRAY_TASKS}, {"BEGIN", MAIL_JOB_BEGIN}, {"END", MAIL_JOB_END},
	{"FAIL", MAIL_JOB_FAIL}, {"INVALID_DEPEND", MAIL_INVALID_DEPEND},
	{"REQUEUE", MAIL_JOB_REQUEUE}, {"STAGE_OUT", MAIL_JOB_STAGE_OUT},
	{"TIME_LIMIT", MAIL_JOB_TIME100}, {"TIME_LIMIT_90", MAIL_JOB_TIME90},
	{"TIME_LIMIT_80", MAIL_JOB_TIME80}, {"TIME_LIMIT_50", MAIL_JOB_TIME50},
	{"ALL", MAIL_INVALID_DEPEND | MAIL_JOB_BEGIN | MAIL_JOB_END | MAIL_JOB_FAIL |
		MAIL_JOB_REQUEUE | MAIL_JOB_STAGE_OUT},
	{NULL, 0},
};
/* clang-format on */

static const struct word warn_words[] = {
	{ "batch", KILL_JOB_BATCH },
	{ "reservation", KILL_JOB_RESV },
	{ NULL, 0 },
};

static const struct word *find(const json_t *item, const struct word *words)
{
	const char *name = json_string_value(item);

	for (const struct word *w = words; w->name; w++) {
		if (name && strcmp(name, w->name) == 0)
			return w;
	}
	return NULL;
}

static uint64_t bits_of(const json_t *list, const struct word *words)
{
	uint64_t bits = 0;
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const struct word *w = find(item, words);

		bits |= w ? w->bits : 0;
	}
	return bits;
}

/* What this release lacks is no word to leave out: of all flags only those of --gres-flags are
 * newer. */
static int check_flags(const json_t *list, struct err *err)
{
	static const char head[] = "gres-";
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		const char *name = json_string_value(item);

		if (name && strncmp(name, head, sizeof(head) - 1) == 0 && !find(item, flag_words))
			return err_set(err, ERR_USAGE,
				       "--gres-flags=%.40s: Slurm %d.%02d does not know it",
				       name + sizeof(head) - 1,
				       SLURM_VERSION_MAJOR(SLURM_VERSION_NUMBER),
				       SLURM_VERSION_MINOR(SLURM_VERSION_NUMBER));
	}
	return 0;
}

static uint32_t profile_of(const char *text)
{
	static const struct word words[] = {
		{ "energy", ACCT_GATHER_PROFILE_ENERGY },
		{ "task", ACCT_GATHER_PROFILE_TASK },
		{ "lustre", ACCT_GATHER_PROFILE_LUSTRE },
		{ "network", ACCT_GATHER_PROFILE_NETWORK },
		{ NULL, 0 },
	};
	uint32_t profile = ACCT_GATHER_PROFILE_NOT_SET;

	if (strcasestr(text, "none"))
		return ACCT_GATHER_PROFILE_NONE;
	if (strcasestr(text, "all"))
		return ACCT_GATHER_PROFILE_ALL;
	for (const struct word *w = words; w->name; w++) {
		if (strcasestr(text, w->name))
			profile |= (uint32_t)w->bits;
	}
	return profile;
}

/* --- distribution ----------------------------------------------------------------------------- */

/* The level's part of the constant: node, socket, core; a star takes the level's default. */
static int level_bits(const char *word, size_t len, int level, uint32_t *bits)
{
	static const struct word words[] = {
		{ "cyclic", 1 }, { "block", 2 }, { "fcyclic", 3 }, { NULL, 0 }
	};
	const char *of_star = level == 0 ? "block" : "cyclic";
	uint32_t before = level == 2 ? (*bits >> 4) & 0xf : 0;

	if (len == 1 && *word == '*') {
		if (level == 2) {
			*bits |= before << 8;
			return 0;
		}
		word = of_star;
		len = strlen(of_star);
	}
	for (const struct word *w = words; w->name; w++) {
		if (strlen(w->name) == len && strncasecmp(word, w->name, len) == 0 &&
		    (level > 0 || w->bits < 3)) {
			*bits |= (uint32_t)w->bits << (4 * level);
			return 0;
		}
	}
	return -1;
}

static bool is_word(const char *at, size_t len, const char *word)
{
	return strlen(word) == len && strncasecmp(at, word, len) == 0;
}

/* A task for each node that was named. */
static void put_named_tasks(job_desc_msg_t *desc)
{
	nodes_t list = slurm_hostlist_create(desc->req_nodes);

	if (!list)
		return;
	desc->num_tasks = (uint32_t)slurm_hostlist_count(list);
	desc->bitflags |= JOB_NTASKS_SET;
	slurm_hostlist_destroy(list);
}

static int put_distribution(const char *text, job_desc_msg_t *desc, struct err *err)
{
	uint32_t bits = 0, flags = 0;
	const char *at = text;
	int level = 0;

	if (strcmp(text, "plane") == 0) {
		desc->task_dist = SLURM_DIST_PLANE;
		return 0;
	}
	while (*at) {
		size_t len = strcspn(at, ":,");

		if (is_word(at, len, "pack"))
			flags |= SLURM_DIST_PACK_NODES;
		else if (is_word(at, len, "nopack"))
			flags |= SLURM_DIST_NO_PACK_NODES;
		else if (is_word(at, len, "arbitrary") || is_word(at, len, "hostfile"))
			bits = SLURM_DIST_ARBITRARY;
		else if (level > 2 || level_bits(at, len, level++, &bits) < 0)
			return err_set(err, ERR_USAGE, "--distribution: \"%.40s\" is not possible",
				       text);
		at += len + (at[len] != '\0');
	}
	if (bits == SLURM_DIST_ARBITRARY && !desc->req_nodes)
		return err_set(err, ERR_USAGE, "--distribution: arbitrary needs --nodelist");
	if (bits == SLURM_DIST_ARBITRARY && desc->num_tasks == NO_VAL)
		put_named_tasks(desc);
	desc->task_dist = (bits ? bits : SLURM_DIST_UNKNOWN) | flags;
	return 0;
}

/* --- processor frequencies -------------------------------------------------------------------- */

static uint32_t governor_of(const char *word)
{
	static const struct word words[] = {
		{ "co", CPU_FREQ_CONSERVATIVE },
		{ "on", CPU_FREQ_ONDEMAND },
		{ "pe", CPU_FREQ_PERFORMANCE },
		{ "po", CPU_FREQ_POWERSAVE },
		{ "sc", CPU_FREQ_SCHEDUTIL },
		{ "us", CPU_FREQ_USERSPACE },
		{ NULL, 0 },
	};

	for (const struct word *w = words; w->name; w++) {
		if (strncasecmp(word, w->name, 2) == 0)
			return (uint32_t)w->bits;
	}
	return 0;
}

static uint32_t frequency_of(const char *word)
{
	if (strncasecmp(word, "lo", 2) == 0)
		return CPU_FREQ_LOW;
	if (strncasecmp(word, "highm1", 6) == 0)
		return CPU_FREQ_HIGHM1;
	if (strncasecmp(word, "hi", 2) == 0)
		return CPU_FREQ_HIGH;
	if (strncasecmp(word, "med", 3) == 0)
		return CPU_FREQ_MEDIUM;
	return (uint32_t)strtoul(word, NULL, 10);
}

/* "P1[-P2][:GOVERNOR]", or a governor alone. */
static int put_cpu_freq(const char *text, job_desc_msg_t *desc, struct err *err)
{
	char first[32] = "", second[32] = "", governor[32] = "";
	bool good;

	sscanf(text, "%31[^-:]-%31[^:]", first, second);
	if (strchr(text, ':'))
		snprintf(governor, sizeof(governor), "%s", strchr(text, ':') + 1);
	if (governor_of(first)) {
		desc->cpu_freq_gov = governor_of(first);
		good = !second[0] && !governor[0];
	} else {
		desc->cpu_freq_max = frequency_of(second[0] ? second : first);
		if (second[0])
			desc->cpu_freq_min = frequency_of(first);
		if (governor[0])
			desc->cpu_freq_gov = governor_of(governor);
		good = desc->cpu_freq_max && desc->cpu_freq_gov && desc->cpu_freq_min &&
		       (!governor[0] || second[0]) &&
		       (!second[0] || desc->cpu_freq_min <= desc->cpu_freq_max);
	}
	return good ? 0
		    : err_set(err, ERR_USAGE, "--cpu-freq: \"%.40s\": must be P1[-P2[:P3]]", text);
}

/* --- memory binding --------------------------------------------------------------------------- */

/* "map_mem:0,1" keeps its commas: one before a digit or an "x" belongs to a list. */
static size_t mem_bind_word(const char *at)
{
	size_t len = 0;

	while (at[len] &&
	       !(at[len] == ',' && !strchr("0123456789", at[len + 1] ? at[len + 1] : 'z')))
		len++;
	return len;
}

static int put_mem_bind(const char *text, job_desc_msg_t *desc, struct kept *kept, struct err *err)
{
	static const struct word words[] = {
		{ "no", MEM_BIND_NONE },
		{ "none", MEM_BIND_NONE },
		{ "rank", MEM_BIND_RANK },
		{ "local", MEM_BIND_LOCAL },
		{ "map_mem", MEM_BIND_MAP },
		{ "mask_mem", MEM_BIND_MASK },
		{ "p", MEM_BIND_PREFER },
		{ "prefer", MEM_BIND_PREFER },
		{ "sort", MEM_BIND_SORT },
		{ "v", MEM_BIND_VERBOSE },
		{ "verbose", MEM_BIND_VERBOSE },
		{ "q", 0 },
		{ "quiet", 0 },
		{ "nosort", 0 },
		{ NULL, 0 },
	};
	static const uint16_t types = MEM_BIND_NONE | MEM_BIND_RANK | MEM_BIND_LOCAL |
				      MEM_BIND_MAP | MEM_BIND_MASK;
	const char *at = text;

	while (*at) {
		size_t all = mem_bind_word(at), len = strcspn(at, ":=,");
		const struct word *w = words;

		if (len > all)
			len = all;
		while (w->name && !is_word(at, len, w->name))
			w++;
		if (!w->name)
			return err_set(err, ERR_USAGE,
				       "--mem-bind: \"%.60s\": must be none, rank, local, "
				       "map_mem:LIST or mask_mem:LIST",
				       text);
		if (w->bits & types)
			desc->mem_bind_type &= (uint16_t)~types;
		desc->mem_bind_type |= (uint16_t)w->bits;
		if (w->bits & (MEM_BIND_MAP | MEM_BIND_MASK))
			desc->mem_bind = keep(kept, xstrndup(at + len + 1,
							     all > len ? all - len - 1 : 0));
		at += all + (at[all] == ',');
	}
	return 0;
}

int field_words_apply(const json_t *fields, job_desc_msg_t *desc, struct kept *kept,
		      struct err *err)
{
	const char *profile = js_str(fields, "profile", NULL);
	const char *distribution = js_str(fields, "distribution", NULL);
	const char *freq = js_str(fields, "cpu_freq", NULL);
	const char *bind = js_str(fields, "mem_bind", NULL);

	if (check_flags(json_object_get(fields, "flags"), err) < 0)
		return -1;
	desc->bitflags |= bits_of(json_object_get(fields, "flags"), flag_words);
	desc->mail_type = (uint16_t)bits_of(json_object_get(fields, "mail_type"), mail_words);
	desc->warn_flags = (uint16_t)bits_of(json_object_get(fields, "warn_flags"), warn_words);
	if (profile)
		desc->profile = profile_of(profile);
	if (distribution && put_distribution(distribution, desc, err) < 0)
		return -1;
	if (freq && put_cpu_freq(freq, desc, err) < 0)
		return -1;
	return bind ? put_mem_bind(bind, desc, kept, err) : 0;
}
