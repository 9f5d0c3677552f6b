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
#include "common/config/run_spec.h"
#include "daemon/base/event_kinds.h"

#define FIELD(name) offsetof(struct config, name)
enum {
	SECOND_MS = 1000,
	MINUTE_MS = 60 * SECOND_MS,
	HOUR_MS = 3600 * SECOND_MS,
	WEEK_MS = 7 * 24 * HOUR_MS,
};

const struct key config_keys[] = {
	{ "team", "group", KEY_STRING, FIELD(team_group), 0, 0, NULL, NULL,
	  "Unix group whose members may look at and stop these runs" },
	{ "team", "may_submit", KEY_BOOL, FIELD(may_submit), 0, 0, NULL, "false",
	  "let the team's members submit and restart: their commands run with the owner's rights" },
	{ "team", "folder", KEY_STRING, FIELD(team_folder), 0, 0, NULL, NULL,
	  "folder of the team's group where this lbd tells of its runs, for lbctl ls --team" },
	{ "ledger", "path", KEY_STRING, FIELD(ledger_path), 0, 0, NULL, NULL,
	  "the SQLite file; a local disk is best" },
	{ "runs", "folder", KEY_STRING, FIELD(runs_folder), 0, 0, NULL, NULL,
	  "folder of the runs; the compute nodes must see it" },
	{ "runs", "lbrun", KEY_STRING, FIELD(lbrun), 0, 0, NULL, NULL,
	  "path of lbrun as the compute nodes see it; default: beside lbd" },
	{ "runs", "compress_logs", KEY_DURATION, FIELD(compress_logs_ms), 0, 0, NULL, "7d",
	  "output of a run is compressed so long after it ended; 0: never" },
	{ "runs", "retain_logs", KEY_DURATION, FIELD(retain_logs_ms), 0, 0, NULL, "0",
	  "and removed so long after it ended; 0: never" },
	{ "poll", "interval", KEY_DURATION, FIELD(poll_ms), 100, HOUR_MS, NULL, "1s",
	  "how often the scheduler is asked while jobs are about to change" },
	{ "poll", "idle_interval", KEY_DURATION, FIELD(idle_poll_ms), 100, HOUR_MS, NULL, "15s",
	  "how often it is asked at rest" },
	{ "poll", "spool_interval", KEY_DURATION, FIELD(spool_ms), 50, HOUR_MS, NULL, "500ms",
	  "how often progress is read when nobody announces it" },
	{ "poll", "deadline", KEY_DURATION, FIELD(deadline_ms), SECOND_MS, HOUR_MS, NULL, "30s",
	  "a call to Slurm that takes longer is given up" },
	{ "daemon", "lease", KEY_DURATION, FIELD(lease_ms), SECOND_MS, HOUR_MS, NULL, "30s",
	  "an lbd on another machine that has been silent for so long is taken to be gone" },
	{ "daemon", "partition", KEY_STRING, FIELD(in_slurm.partition), 0, 0, NULL, NULL,
	  "partition of lbd's own job (lbctl daemon start --in-slurm)" },
	{ "daemon", "account", KEY_STRING, FIELD(in_slurm.account), 0, 0, NULL, NULL,
	  "account of lbd's own job" },
	{ "daemon", "qos", KEY_STRING, FIELD(in_slurm.qos), 0, 0, NULL, NULL,
	  "quality of service of lbd's own job" },
	{ "daemon", "mem", KEY_STRING, FIELD(in_slurm.mem), 0, 0, NULL, "256M",
	  "memory of lbd's own job" },
	{ "daemon", "time", KEY_DURATION, FIELD(in_slurm.time_ms), MINUTE_MS, 52.0 * WEEK_MS, NULL,
	  "1d", "time limit of each of lbd's own jobs; the next one waits in the queue" },
	{ "daemon", "hand_over", KEY_DURATION, FIELD(in_slurm.hand_over_ms), SECOND_MS, HOUR_MS,
	  NULL, "2m", "so long before that limit lbd ends, and the next job takes over" },
	{ "nodes", "half_life", KEY_DURATION, FIELD(nodes.half_life_ms), MINUTE_MS, WEEK_MS, NULL,
	  "24h", "how fast bad memories of a node fade" },
	{ "nodes", "threshold", KEY_REAL, FIELD(nodes.threshold), 0.1, 100, NULL, "0.75",
	  "score from which on new jobs keep away from a node; one failure of the node is 1" },
	{ "nodes", "max_excluded", KEY_INT, FIELD(nodes.max_excluded), 0, 1000, NULL, "4",
	  "new jobs keep away from so many nodes at most, the worst ones; 0: from none" },
	{ "nodes", "patience", KEY_DURATION, FIELD(nodes.patience_ms), 0, WEEK_MS, NULL, "2m",
	  "a job waits so long while nodes that it keeps away from are idle" },
	{ "slurm", "account", KEY_STRING, FIELD(slurm_account), 0, 0, NULL, NULL,
	  "account of jobs that name none" },
	{ "slurm", "partition", KEY_STRING, FIELD(slurm_partition), 0, 0, NULL, NULL,
	  "partition of jobs that name none" },
	{ "slurm", "network", KEY_STRING, FIELD(slurm_network), 0, 0, NULL, NULL,
	  "network of runs that name none; not of batch scripts" },
	{ "slurm", "through", KEY_ENUM, FIELD(slurm_through), 0, 0, "auto|library|commands", "auto",
	  "how lbd speaks to Slurm: by libslurm, or by Slurm's commands; auto: by libslurm where it fits" },
	{ "slurm", "submit_with", KEY_ENUM, FIELD(submit_with), 0, 0, "libslurm|sbatch", "libslurm",
	  "what submits: sbatch where the site filters what that is given" },
	{ "local", "gpus", KEY_INT, FIELD(local_gpus), -1, 64, NULL, "-1",
	  "GPUs of this machine that jobs may have; -1: all that are found" },
	{ "local", "gpu_ids", KEY_INTS, FIELD(local_gpu_ids), 0, 63, NULL, NULL,
	  "which GPUs these are, by their numbers on the bus (nvidia-smi shows them)" },
	{ "local", "cpus", KEY_INT, FIELD(local_cpus), 0, 1024, NULL, "0",
	  "CPUs that jobs may have for themselves; 0: all" },
	{ "local", "mem", KEY_STRING, FIELD(local_mem), 0, 0, NULL, NULL,
	  "memory that jobs may have, like \"200G\"; all of it if not given" },
	{ "local", "jobs", KEY_INT, FIELD(local_jobs), 0, 100000, NULL, "0",
	  "jobs that may run at once on this machine; 0: any number" },
	{ "cron", "folder", KEY_STRING, FIELD(cron.folder), 0, 0, NULL, NULL,
	  "folder of the periodic jobs: crontab, cron.hourly, cron.daily, …" },
	{ "cron", "time_zone", KEY_STRING, FIELD(cron.time_zone), 0, 0, NULL, NULL,
	  "as in Europe/Berlin; the machine's own when unset" },
	{ "cron", "hourly", KEY_STRING, FIELD(cron.when[CRON_HOURLY]), 0, 0, NULL, "17 * * * *",
	  "when the jobs in cron.hourly are due, as in a crontab" },
	{ "cron", "daily", KEY_STRING, FIELD(cron.when[CRON_DAILY]), 0, 0, NULL, "25 6 * * *",
	  "when those in cron.daily are" },
	{ "cron", "weekly", KEY_STRING, FIELD(cron.when[CRON_WEEKLY]), 0, 0, NULL, "47 6 * * 7",
	  "when those in cron.weekly are" },
	{ "cron", "monthly", KEY_STRING, FIELD(cron.when[CRON_MONTHLY]), 0, 0, NULL, "52 6 1 * *",
	  "when those in cron.monthly are" },
	{ "cron", "catch_up", KEY_ENUM, FIELD(cron.settings.catch_up), 0, 0, "none|one|all", "one",
	  "which of the times missed while lbd was down are made up for" },
	{ "cron", "overlap", KEY_ENUM, FIELD(cron.settings.overlap), 0, 0, "skip|queue|replace",
	  "skip", "what happens when the one before still runs" },
	{ "cron", "timeout", KEY_DURATION, FIELD(cron.settings.timeout_ms), 0, 0, NULL, "0",
	  "a job that runs longer is ended; 0: never" },
	{ "cron", "jitter", KEY_DURATION, FIELD(cron.settings.jitter_ms), 0, HOUR_MS, NULL, "0",
	  "jobs start at a moment of their own within so long after they are due" },
	{ "notify", "hook", KEY_STRINGS, FIELD(notify_hook), 0, 0, NULL, NULL,
	  "program and arguments that get each piece of news as JSON on standard input" },
	{ "notify", "webhook", KEY_STRING, FIELD(notify_webhook), 0, 0, NULL, NULL,
	  "address that gets each piece of news as a POST of JSON" },
	{ "notify", "on", KEY_STRINGS, FIELD(notify_on), 0, 0, NULL, NULL,
	  "kinds of events that are news, as lbctl events shows them" },
	{ "notify", "not_running_after", KEY_DURATION, FIELD(not_running_ms), 0, WEEK_MS, NULL,
	  "6h", "an event says so when a run should run and does not for so long; 0: never" },
	{ "notify", "deadman_file", KEY_STRING, FIELD(deadman_file), 0, 0, NULL, NULL,
	  "file that is written as long as lbd sees the scheduler" },
	{ "notify", "deadman_url", KEY_STRING, FIELD(deadman_url), 0, 0, NULL, NULL,
	  "address that is asked for (GET) as long as lbd sees the scheduler" },
	{ "notify", "deadman_interval", KEY_DURATION, FIELD(deadman_interval_ms), 100, HOUR_MS,
	  NULL, "60s", "how often" },
};
const size_t config_key_count = sizeof(config_keys) / sizeof(config_keys[0]);

static int read_file(struct config *out, const char *path, struct err *err)
{
	struct toml toml = { 0 };
	int rc = -1;

	if (toml_load_guarded(&toml, path, err) == 0 &&
	    keys_unknown(config_keys, config_key_count, &toml, NULL, err) == 0 &&
	    keys_read(config_keys, config_key_count, &toml, out, err) == 0)
		rc = 0;
	toml_clear(&toml);
	return rc;
}

static int read_defaults(struct config *out, struct err *err)
{
	struct toml toml = { 0 };
	int rc;

	if (toml_parse(&toml, "", 0, "lbd.toml", err) < 0)
		return -1;
	rc = keys_read(config_keys, config_key_count, &toml, out, err);
	toml_clear(&toml);
	return rc;
}

static int check_absolute(const char *path, const char *key, const char *file, struct err *err)
{
	if (path == NULL || path[0] == '/')
		return 0;
	return err_set(err, ERR_USAGE, "%s: %s: \"%s\" must be an absolute path", file, key, path);
}

static int check_cron(const struct cron_config *cron, const char *file, struct err *err)
{
	static const char *const names[] = { "hourly", "daily", "weekly", "monthly" };
	struct cron_expr expr;
	struct zone zone;

	for (int p = 0; p < CRON_PERIODS; p++)
		if (cron_expr_parse(cron->when[p], &expr, err) < 0)
			return err_wrap(err, "%s: cron.%s", file, names[p]);
	if (zone_load(&zone, cron->time_zone, 0, 0, err) < 0)
		return err_wrap(err, "%s: cron.time_zone", file);
	zone_clear(&zone);
	return check_absolute(cron->folder, "cron.folder", file, err);
}

static int check_url(const char *url, const char *key, const char *file, struct err *err)
{
	if (url == NULL || strncmp(url, "https://", 8) == 0 || strncmp(url, "http://", 7) == 0)
		return 0;
	return err_set(err, ERR_USAGE, "%s: %s: must begin with https:// or http://", file, key);
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

static int check_notify(const struct config *config, const char *file, struct err *err)
{
	if (config->notify_hook.count > 0 && config->notify_hook.items[0][0] == '\0')
		return err_set(err, ERR_USAGE, "%s: notify.hook: must name a program", file);
	for (size_t i = 0; i < config->notify_on.count; i++) {
		if (event_kind_check(config->notify_on.items[i], err) < 0)
			return err_wrap(err, "%s: notify.on", file);
	}
	if (config_check_hook(config, err) < 0)
		return err_wrap(err, "%s: notify.hook", file);
	if (check_url(config->notify_webhook, "notify.webhook", file, err) < 0 ||
	    check_url(config->deadman_url, "notify.deadman_url", file, err) < 0 ||
	    check_absolute(config->deadman_file, "notify.deadman_file", file, err) < 0)
		return -1;
	return 0;
}

static int check_team(const struct config *config, const char *file, struct err *err)
{
	gid_t group;

	if (config->team_group && !group_id(config->team_group, &group))
		return err_set(err, ERR_USAGE, "%s: team.group: there is no group \"%s\"", file,
			       config->team_group);
	if (config->team_folder && config->team_group == NULL)
		return err_set(err, ERR_USAGE,
			       "%s: team.folder: needs team.group, too: who is to be "
			       "told",
			       file);
	return check_absolute(config->team_folder, "team.folder", file, err);
}

static int check_local(const struct config *config, const char *file, struct err *err)
{
	struct err why = { 0 };

	if (config->local_mem && mem_parse_mb(config->local_mem, &why) < 0)
		return err_set(err, ERR_USAGE, "%s: local.mem: %s", file, why.text);
	return 0;
}

/* These words are lines of a job script. */
static int check_in_slurm(const struct config *config, const char *file, struct err *err)
{
	const struct in_slurm *s = &config->in_slurm;
	const char *words[] = { s->partition, s->account, s->qos, s->mem };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (words[i] && (words[i][0] == '\0' || strpbrk(words[i], " \t\n'\"#$`\\")))
			return err_set(err, ERR_USAGE,
				       "%s: daemon: \"%s\": one word without blanks and "
				       "quotes is allowed",
				       file, words[i]);
	if (s->hand_over_ms + MINUTE_MS / 6 > s->time_ms)
		return err_set(err, ERR_USAGE,
			       "%s: daemon.hand_over: must be 10s shorter than "
			       "daemon.time at least",
			       file);
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
			"folder's own: one of them must be at most 118 characters long and hold no blank",
			out->home, out->lbrun);
	free(link);
	return out->interpreter ? 0 : -1;
}

int config_load(struct config *out, const char *home, struct err *err)
{
	char *path = path_join("%s/lbd.toml", home);
	int rc;

	memset(out, 0, sizeof(*out));
	out->home = xstrdup(home);
	rc = file_exists(path) ? read_file(out, path, err) : read_defaults(out, err);
	if (rc == 0 && (check_absolute(out->ledger_path, "ledger.path", path, err) < 0 ||
			check_absolute(out->runs_folder, "runs.folder", path, err) < 0 ||
			check_absolute(out->lbrun, "runs.lbrun", path, err) < 0))
		rc = -1;
	if (rc == 0 && (check_team(out, path, err) < 0 || check_notify(out, path, err) < 0 ||
			check_local(out, path, err) < 0 || check_cron(&out->cron, path, err) < 0 ||
			check_in_slurm(out, path, err) < 0))
		rc = -1;
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
