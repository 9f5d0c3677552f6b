/* SPDX-License-Identifier: MIT */
/* config.c - the keys of lbd.toml, and what must hold of their values. */
#include "daemon/base/config.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/files.h"
#include "common/base/guarded.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/config/amounts.h"
#include "common/config/run_spec.h"
#include "daemon/base/event_kinds.h"
#include "slurm/batch/directives.h"

#define KEYS_OF struct config

enum {
	SECOND_MS = 1000,
	MINUTE_MS = 60 * SECOND_MS,
	HOUR_MS = 3600 * SECOND_MS,
	WEEK_MS = 7 * 24 * HOUR_MS,
};

const struct key config_keys[] = {
	KEY_TEXT("team", "group", team_group, NULL,
		 "Unix group whose members may look at and stop these runs"),
	KEY_FLAG("team", "may_submit", may_submit, "false",
		 "let the team's members submit and restart: their commands run with the owner's "
		 "rights"),
	KEY_TEXT("team", "folder", team_folder, NULL,
		 "folder of the team's group where this lbd tells of its runs, for lbctl ls "
		 "--team"),
	KEY_TEXT("ledger", "path", ledger_path, NULL, "the SQLite file; a local disk is best"),
	KEY_TEXT("runs", "folder", runs_folder, NULL,
		 "folder of the runs; the compute nodes must see it"),
	KEY_TEXT("runs", "lbrun", lbrun, NULL,
		 "path of lbrun as the compute nodes see it; default: beside lbd"),
	KEY_SPAN("runs", "compress_logs", compress_logs_ms, "7d",
		 "output of a run is compressed so long after it ended; 0: never"),
	KEY_SPAN("runs", "retain_logs", retain_logs_ms, "0",
		 "and removed so long after it ended; 0: never"),
	KEY_DURATION("poll", "interval", poll_ms, 100, HOUR_MS, "1s",
		     "how often the scheduler is asked while jobs are about to change"),
	KEY_DURATION("poll", "idle_interval", idle_poll_ms, 100, HOUR_MS, "15s",
		     "how often it is asked at rest"),
	KEY_DURATION("poll", "spool_interval", spool_ms, 50, HOUR_MS, "500ms",
		     "how often progress is read when nobody announces it"),
	KEY_DURATION("poll", "deadline", deadline_ms, SECOND_MS, HOUR_MS, "30s",
		     "a call to Slurm that takes longer is given up"),
	KEY_DURATION("daemon", "lease", lease_ms, SECOND_MS, HOUR_MS, "30s",
		     "an lbd on another machine that has been silent for so long is taken to be "
		     "gone"),
	KEY_TEXT("daemon", "partition", in_slurm.partition, NULL,
		 "partition of lbd's own job (lbctl daemon start --in-slurm)"),
	KEY_TEXT("daemon", "account", in_slurm.account, NULL, "account of lbd's own job"),
	KEY_TEXT("daemon", "qos", in_slurm.qos, NULL, "quality of service of lbd's own job"),
	KEY_TEXT("daemon", "mem", in_slurm.mem, "256M", "memory of lbd's own job"),
	KEY_DURATION("daemon", "time", in_slurm.time_ms, MINUTE_MS, 52.0 * WEEK_MS, "1d",
		     "time limit of each of lbd's own jobs; the next one waits in the queue"),
	KEY_DURATION("daemon", "hand_over", in_slurm.hand_over_ms, SECOND_MS, HOUR_MS, "2m",
		     "so long before that limit lbd ends, and the next job takes over"),
	KEY_DURATION("nodes", "half_life", nodes.half_life_ms, MINUTE_MS, WEEK_MS, "24h",
		     "how fast bad memories of a node fade"),
	KEY_DURATION(
		"nodes", "repeat_half_life", nodes.repeat_half_life_ms, 0, 52.0 * WEEK_MS, "30d",
		"how fast the record of a node fades that fails again and again; 0: nobody keeps "
		"one"),
	KEY_REAL("nodes", "max_share", nodes.max_share, 0, 1, "0.25",
		 "new jobs keep away from no more than this share of the nodes that are known, but "
		 "from one; 0: only max_excluded counts"),
	KEY_REAL("nodes", "threshold", nodes.threshold, 0.1, 100, "0.75",
		 "score from which on new jobs keep away from a node; one failure of the node is "
		 "1"),
	KEY_INT("nodes", "max_excluded", nodes.max_excluded, 0, 1000, "4",
		"new jobs keep away from so many nodes at most, the worst ones; 0: from none"),
	KEY_DURATION("nodes", "patience", nodes.patience_ms, 0, WEEK_MS, "2m",
		     "a job waits so long while nodes that it keeps away from are idle"),
	KEY_TEXT("cache", "folder", cache_folder, NULL,
		 "a folder of each node's own disk, in which compiled code of runs that name none "
		 "is kept between starts"),
	KEY_TEXT("slurm", "account", slurm_account, NULL, "account of jobs that name none"),
	KEY_TEXT("slurm", "partition", slurm_partition, NULL, "partition of jobs that name none"),
	KEY_TEXT("slurm", "network", slurm_network, NULL,
		 "network of runs that name none; not of batch scripts"),
	KEY_CHOICE(
		"slurm", "through", slurm_through, "auto|library|commands", "auto",
		"how lbd speaks to Slurm: by libslurm, or by Slurm's commands; auto: by libslurm "
		"where it fits"),
	KEY_CHOICE("slurm", "submit_with", submit_with, "libslurm|sbatch", "libslurm",
		   "what submits: sbatch where the site filters what that is given"),
	KEY_LIST("slurm", "plugin_options", plugin_options, NULL,
		 "options that the site's plugins give to sbatch, [\"image=\", \"fast\"]: = has a "
		 "value"),
	KEY_INT("local", "gpus", local_gpus, -1, 64, "-1",
		"GPUs of this machine that jobs may have; -1: all that are found"),
	KEY_NUMBERS("local", "gpu_ids", local_gpu_ids, 0, 63, NULL,
		    "which GPUs these are, by their numbers on the bus (nvidia-smi shows them)"),
	KEY_INT("local", "cpus", local_cpus, 0, 1024, "0",
		"CPUs that jobs may have for themselves; 0: all"),
	KEY_TEXT("local", "mem", local_mem, NULL,
		 "memory that jobs may have, like \"200G\"; all of it if not given"),
	KEY_INT("local", "jobs", local_jobs, 0, 100000, "0",
		"jobs that may run at once on this machine; 0: any number"),
	KEY_TEXT("cron", "folder", cron.folder, NULL,
		 "folder of the periodic jobs: crontab, cron.hourly, cron.daily, …"),
	KEY_TEXT("cron", "time_zone", cron.time_zone, NULL,
		 "as in Europe/Berlin; the machine's own when unset"),
	KEY_TEXT("cron", "hourly", cron.when[CRON_HOURLY], "17 * * * *",
		 "when the jobs in cron.hourly are due, as in a crontab"),
	KEY_TEXT("cron", "daily", cron.when[CRON_DAILY], "25 6 * * *",
		 "when those in cron.daily are"),
	KEY_TEXT("cron", "weekly", cron.when[CRON_WEEKLY], "47 6 * * 7",
		 "when those in cron.weekly are"),
	KEY_TEXT("cron", "monthly", cron.when[CRON_MONTHLY], "52 6 1 * *",
		 "when those in cron.monthly are"),
	KEY_CHOICE("cron", "catch_up", cron.settings.catch_up, "none|one|all", "one",
		   "which of the times missed while lbd was down are made up for"),
	KEY_CHOICE("cron", "overlap", cron.settings.overlap, "skip|queue|replace", "skip",
		   "what happens when the one before still runs"),
	KEY_SPAN("cron", "timeout", cron.settings.timeout_ms, "0",
		 "a job that runs longer is ended; 0: never"),
	KEY_DURATION("cron", "jitter", cron.settings.jitter_ms, 0, HOUR_MS, "0",
		     "jobs start at a moment of their own within so long after they are due"),
	KEY_LIST("notify", "hook", notify_hook, NULL,
		 "program and arguments that get each piece of news as JSON on standard input"),
	KEY_TEXT("notify", "webhook", notify_webhook, NULL,
		 "address that gets each piece of news as a POST of JSON"),
	KEY_LIST("notify", "on", notify_on, NULL,
		 "kinds of events that are news, as lbctl events shows them"),
	KEY_DURATION("notify", "not_running_after", not_running_ms, 0, WEEK_MS, "6h",
		     "an event says so when a run should run and does not for so long; 0: never"),
	KEY_TEXT("notify", "deadman_file", heartbeat_file, NULL,
		 "file that is written as long as lbd sees the scheduler"),
	KEY_TEXT("notify", "deadman_url", heartbeat_url, NULL,
		 "address that is asked for (GET) as long as lbd sees the scheduler"),
	KEY_DURATION("notify", "deadman_interval", heartbeat_interval_ms, 100, HOUR_MS, "60s",
		     "how often"),
	KEY_LIST("sync", "to", sync_to, NULL,
		 "trackers that get the curves of all runs, as lbctl sync --to has them"),
	KEY_TEXT("sync", "project", sync_project, NULL,
		 "project or experiment; the run's group, else lowbits"),
	KEY_TEXT("sync", "python", sync_python, NULL,
		 "the Python that has the trackers' clients; python3"),
	KEY_DURATION("sync", "every", sync_every_ms, 100, WEEK_MS, "10m", "how often"),
};
const size_t config_key_count = sizeof(config_keys) / sizeof(config_keys[0]);

static int read_document(struct toml *toml, const char *path, struct err *err)
{
	return file_exists(path) ? toml_load_guarded(toml, path, err)
				 : toml_parse(toml, "", 0, path, err);
}

/* --- what must hold of a value: said with its line ------------------------------------------- */
static int wrap_where(const struct toml *toml, const char *key, struct err *err)
{
	char where[TOML_WHERE_BYTES];

	return err_wrap(err, "%s", toml_where(toml, key, where));
}

static int check_absolute(const char *path, const char *key, const struct toml *toml,
			  struct err *err)
{
	if (path == NULL || path[0] == '/')
		return 0;
	err_set(err, ERR_USAGE, "\"%s\" must be an absolute path", path);
	return wrap_where(toml, key, err);
}

static int check_cron(const struct cron_config *cron, const struct toml *toml, struct err *err)
{
	static const char *const keys[] = { "cron.hourly", "cron.daily", "cron.weekly",
					    "cron.monthly" };
	struct cron_expr expr;
	struct zone zone;

	for (int p = 0; p < CRON_PERIODS; p++)
		if (cron_expr_parse(cron->when[p], &expr, err) < 0)
			return wrap_where(toml, keys[p], err);
	if (zone_load(&zone, cron->time_zone, 0, 0, err) < 0)
		return wrap_where(toml, "cron.time_zone", err);
	zone_clear(&zone);
	return check_absolute(cron->folder, "cron.folder", toml, err);
}

static int check_url(const char *url, const char *key, const struct toml *toml, struct err *err)
{
	if (url == NULL || strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0)
		return 0;
	return keys_refuse(toml, key, "must begin with https:// or http://", err);
}

/* One that is found by PATH is as its owner's shell would find it. */
int config_check_hook(const struct config *config, struct err *err)
{
	const char *program = config->notify_hook.count > 0 ? config->notify_hook.items[0] : "";
	char *path = program[0] == '/' ? xstrdup(program)
				       : path_join("%s/%s", config->home, program);
	struct err why = { 0 };
	int fd = strchr(program, '/') ? guarded_open(path, O_PATH, geteuid(), &why) : -1;

	if (fd >= 0)
		close(fd);
	free(path);
	return why.code == ERR_REFUSED ? err_set(err, why.code, "%s", why.text) : 0;
}

static int check_notify(const struct config *config, const struct toml *toml, struct err *err)
{
	if (config->notify_hook.count > 0 && config->notify_hook.items[0][0] == '\0')
		return keys_refuse(toml, "notify.hook", "must name a program", err);
	for (size_t i = 0; i < config->notify_on.count; i++) {
		if (event_kind_check(config->notify_on.items[i], err) < 0)
			return wrap_where(toml, "notify.on", err);
	}
	if (config_check_hook(config, err) < 0)
		return wrap_where(toml, "notify.hook", err);
	if (check_url(config->notify_webhook, "notify.webhook", toml, err) < 0 ||
	    check_url(config->heartbeat_url, "notify.deadman_url", toml, err) < 0 ||
	    check_absolute(config->heartbeat_file, "notify.deadman_file", toml, err) < 0)
		return -1;
	return 0;
}

static int check_team(const struct config *config, const struct toml *toml, struct err *err)
{
	gid_t group;

	if (config->team_group && !group_id(config->team_group, &group)) {
		err_set(err, ERR_USAGE, "there is no group \"%s\"", config->team_group);
		return wrap_where(toml, "team.group", err);
	}
	if (config->team_folder && config->team_group == NULL)
		return keys_refuse(toml, "team.folder", "needs team.group, too: who is to be told",
				   err);
	return check_absolute(config->team_folder, "team.folder", toml, err);
}

static int check_memory(const char *text, const char *key, const struct toml *toml, struct err *err)
{
	if (text == NULL || mem_parse_mb(text, err) >= 0)
		return 0;
	return wrap_where(toml, key, err);
}

/* These words are lines of a job script. */
static int check_in_slurm(const struct config *config, const struct toml *toml, struct err *err)
{
	static const char hand_over[] = "daemon.hand_over";
	const struct in_slurm *s = &config->in_slurm;
	const struct {
		const char *key, *word;
	} words[] = { { "daemon.partition", s->partition },
		      { "daemon.account", s->account },
		      { "daemon.qos", s->qos } };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i].word &&
		    (words[i].word[0] == '\0' || strpbrk(words[i].word, " \t\n'\"#$`\\")))
			return keys_refuse(toml, words[i].key,
					   "one word without blanks and quotes is allowed", err);
	if (s->hand_over_ms + MINUTE_MS / 6 > s->time_ms)
		return keys_refuse(toml, toml_line(toml, hand_over) > 0 ? hand_over : "daemon.time",
				   "daemon.hand_over must be 10s shorter than daemon.time at least",
				   err);
	return check_memory(s->mem, "daemon.mem", toml, err);
}

static int check_plugin_options(const struct config *config, const struct toml *toml,
				struct err *err)
{
	for (size_t i = 0; i < config->plugin_options.count; i++)
		if (directives_check_plugin_option(config->plugin_options.items[i], err) < 0)
			return wrap_where(toml, "slurm.plugin_options", err);
	return 0;
}

static int check_values(const struct config *config, const struct toml *toml, struct err *err)
{
	if (check_absolute(config->ledger_path, "ledger.path", toml, err) < 0 ||
	    check_absolute(config->cache_folder, "cache.folder", toml, err) < 0 ||
	    check_absolute(config->runs_folder, "runs.folder", toml, err) < 0 ||
	    check_absolute(config->lbrun, "runs.lbrun", toml, err) < 0)
		return -1;
	if (check_team(config, toml, err) < 0 || check_notify(config, toml, err) < 0 ||
	    check_memory(config->local_mem, "local.mem", toml, err) < 0 ||
	    check_cron(&config->cron, toml, err) < 0 || check_in_slurm(config, toml, err) < 0 ||
	    check_plugin_options(config, toml, err) < 0)
		return -1;
	return 0;
}

struct local_limits config_local(const struct config *config)
{
	return (struct local_limits){
		.gpus = config->local_gpus,
		.gpu_ids = config->local_gpu_ids.items,
		.gpu_id_count = config->local_gpu_ids.count,
		.cpus = config->local_cpus,
		.mem_mb = config->local_mem ? mem_parse_mb(config->local_mem, NULL) : 0,
		.jobs = config->local_jobs,
	};
}

/* What the kernel reads of a script's first line, on every Linux that is still around. */
static bool fits_first_line(const char *interpreter)
{
	enum { FIRST_LINE_MAX = 127 };

	return strlen(interpreter) + strlen("#! --job\n") <= FIRST_LINE_MAX &&
	       strpbrk(interpreter, " \t\n") == NULL;
}

/* A shell in between would drop variables whose names are none to it (BASH_FUNC_module%%), and set
 * some of its own. */
static int choose_interpreter(struct config *out, struct err *err)
{
	char *link = path_join("%s/lbrun", out->home);

	if (fits_first_line(out->lbrun))
		out->interpreter = xstrdup(out->lbrun);
	else if (fits_first_line(link))
		out->interpreter = xstrdup(link);
	else
		err_set(err, ERR_USAGE,
			"%.120s: runs.lbrun: no script can begin with \"#!%.120s\" nor with this "
			"folder's own: one of them must be at most 118 characters long and hold "
			"no blank",
			out->home, out->lbrun);
	free(link);
	return out->interpreter ? 0 : -1;
}

int config_load(struct config *out, const char *home, struct err *err)
{
	char *path = path_join("%s/lbd.toml", home);
	struct toml toml = { 0 };
	int rc = -1;

	memset(out, 0, sizeof(*out));
	out->home = xstrdup(home);
	if (read_document(&toml, path, err) == 0 &&
	    keys_unknown(config_keys, config_key_count, &toml, NULL, err) == 0 &&
	    keys_read(config_keys, config_key_count, &toml, out, err) == 0)
		rc = check_values(out, &toml, err);
	toml_clear(&toml);
	if (rc == 0 && out->lbrun == NULL)
		out->lbrun = path_sibling("lbrun", err);
	if (rc == 0 && (out->lbrun == NULL || choose_interpreter(out, err) < 0))
		rc = -1;
	if (rc < 0) {
		config_clear(out);
	} else {
		if (out->ledger_path == NULL)
			out->ledger_path = path_join("%s/ledger.db", home);
		if (out->runs_folder == NULL)
			out->runs_folder = path_join("%s/runs", home);
	}
	free(path);
	return rc;
}

void config_clear(struct config *config)
{
	keys_clear(config_keys, config_key_count, config);
	free(config->home);
	free(config->interpreter);
	config->home = config->interpreter = NULL;
}
