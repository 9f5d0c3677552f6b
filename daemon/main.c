/* SPDX-License-Identifier: MIT */
/* main.c - lbd: options, the parts put together in order, the loop, and the way down. */
#include <fcntl.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/clock.h"
#include "common/base/failpoint.h"
#include "common/base/files.h"
#include "common/base/guarded.h"
#include "common/run/home.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "daemon/notify/alerts.h"
#include "daemon/notify/heartbeat.h"
#include "daemon/process/background.h"
#include "daemon/recover/backup.h"
#include "daemon/control/control.h"
#include "daemon/cron/cron.h"
#include "daemon/notify/exporter.h"
#include "daemon/handlers.h"
#include "daemon/process/in_slurm.h"
#include "daemon/process/lock.h"
#include "daemon/notify/log_keeper.h"
#include "daemon/job/network.h"
#include "daemon/process/systemd.h"
#include "daemon/recover/record.h"
#include "daemon/recover/recover.h"
#include "daemon/runs/probe.h"
#include "daemon/runs/remover.h"
#include "daemon/runs/switchboard.h"
#include "daemon/runs/world.h"
#include "slurm/backends.h"
#include "slurm/pipe/helper_choice.h"

enum {
	RENEWALS = 6, /* of the lease, in its length */
};

static const char usage_text[] =
	"usage: lbd [--home DIR] [--foreground] [--ready-fd N] [--until TIME] [--check-config] [-v]\n"
	"       lbd [--home DIR] --print-job\n"
	"       lbd [--home DIR] --recover\n"
	"\n"
	"The controller of your training runs: submits them, follows them, brings them back.\n"
	"\n"
	"  --home DIR       the folder of runs and ledger ($LB_HOME, else ~/.local/state/lb)\n"
	"  --foreground     stay in the terminal and log to stderr\n"
	"  --ready-fd N     write a newline to descriptor N once commands are served\n"
	"  --until TIME     end at this time (seconds since 1970), for the next lbd to take over\n"
	"  --print-job      print a batch script that runs lbd in a job of its own, and end\n"
	"  --check-config   read DIR/lbd.toml, say what is in force, and end\n"
	"  --print-keys     list the keys of a run, and end\n"
	"  --recover        make a lost or damaged ledger anew from the folders of the runs, and end\n"
	"  -v, --verbose    log every decision\n"
	"  --failpoints     list the points at which tests crash these programs, and end\n"
	"  --version, --help\n";

struct options {
	char *home; /* NULL: as path_lb_home says */
	bool foreground, check_config, print_job, recover, verbose;
	int ready_fd;
	int64_t until_ms; /* wall clock; 0 = never */
};

/* Everything that the loop drives; `lbd` is what the handlers see of it. */
struct daemon {
	struct lbd lbd;
	uv_loop_t loop;
	uv_timer_t turn, watchdog, lease, hand_over;
	uv_signal_t sigterm, sigint;
	bool stopping, failed, is_superseded;
	const char *why; /* it ends; NULL: it serves */
};

/* --- options ---------------------------------------------------------------------------------- */

static void print_keys(void)
{
	for (size_t i = 0; i < run_spec_key_count; i++)
		printf("%s.%s\n", run_spec_keys[i].section, run_spec_keys[i].name);
}

static void parse_options(int argc, char **argv, struct options *o)
{
	static const struct option table[] = {
		{ "home", required_argument, NULL, 'H' },
		{ "foreground", no_argument, NULL, 'f' },
		{ "ready-fd", required_argument, NULL, 'r' },
		{ "until", required_argument, NULL, 'u' },
		{ "print-job", no_argument, NULL, 'j' },
		{ "check-config", no_argument, NULL, 'n' },
		{ "print-keys", no_argument, NULL, 'k' },
		{ "recover", no_argument, NULL, 'R' },
		{ "verbose", no_argument, NULL, 'v' },
		{ "failpoints", no_argument, NULL, 'F' },
		{ "version", no_argument, NULL, 'V' },
		{ "help", no_argument, NULL, 'h' },
		{ 0 },
	};
	int c;

	opterr = 0; /* one line of our own says it */
	while ((c = getopt_long(argc, argv, "vh", table, NULL)) != -1) {
		switch (c) {
		case 'H':
			o->home = xstrdup(optarg);
			break;
		case 'f':
			o->foreground = true;
			break;
		case 'r':
			o->ready_fd = (int)strtol(optarg, NULL, 10);
			break;
		case 'u':
			o->until_ms = strtoll(optarg, NULL, 10) * 1000;
			break;
		case 'j':
			o->print_job = true;
			break;
		case 'n':
			o->check_config = true;
			break;
		case 'k':
			print_keys();
			exit(0);
		case 'R':
			o->recover = true;
			break;
		case 'v':
			o->verbose = true;
			break;
		case 'F':
			failpoint_list(stdout);
			exit(0);
		case 'V':
			printf("lbd %s\n", LB_VERSION);
			exit(0);
		case 'h':
			fputs(usage_text, stdout);
			exit(0);
		default:
			fprintf(stderr,
				"lbd: %s: no such option, or its value is missing; try: "
				"lbd --help\n",
				argv[optind - 1]);
			exit(err_exit_status(ERR_USAGE));
		}
	}
	if (optind < argc) {
		fprintf(stderr, "lbd: \"%s\": lbd takes options only; try: lbd --help\n",
			argv[optind]);
		exit(err_exit_status(ERR_USAGE));
	}
}

/* --- the loop's callbacks --------------------------------------------------------------------- */

static void stop(struct daemon *d);
static void on_turn(uv_timer_t *timer);

/* Whether we may go on. Another lbd in our place means that nothing of ours is to be written or
 * submitted any more; a look that failed is repeated, the ledger refuses meanwhile. */
static bool is_ours(struct daemon *d, int (*look)(struct lock *lock, struct err *err))
{
	struct err err = { 0 };

	if (look(d->lbd.lock, &err) == 0)
		return true;
	log_error("%s", err.text);
	if (err.code != ERR_LOCKED)
		return true;
	d->is_superseded = d->failed = true;
	d->why = "another lbd took over";
	if (!d->stopping)
		stop(d);
	return false;
}

static int look_only(struct lock *lock, struct err *err)
{
	return lock_check(lock, err);
}

/* Whose file is gone must not wait for the next write to notice. */
static void on_lease(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	if (is_ours(d, lock_renew) && ledger_check_place(d->lbd.ledger, NULL) < 0)
		uv_timer_start(&d->turn, on_turn, 0, 0);
}

static void on_hand_over(uv_timer_t *timer)
{
	struct daemon *d = timer->data;

	log_info("hands over to the next lbd; jobs run on");
	d->why = "handed over to the next one";
	if (!d->stopping)
		stop(d);
}

static void on_turn(uv_timer_t *timer)
{
	struct daemon *d = timer->data;
	struct err err = { 0 };
	int64_t at_ms, wait_ms;

	if (d->stopping || !is_ours(d, look_only))
		return;
	at_ms = engine_turn(d->lbd.engine);
	if (ledger_is_broken(d->lbd.ledger)) {
		if (!is_ours(d, look_only))
			return;
		ledger_check_place(d->lbd.ledger, &err);
		log_error("the ledger cannot be trusted any more: lbd ends, jobs run on%s%s",
			  err.text[0] ? ": " : "", err.text);
		d->failed = true;
		d->why = "its ledger was broken";
		stop(d);
		return;
	}
	if (at_ms == INT64_MAX)
		return;
	wait_ms = at_ms - clock_mono_ms();
	uv_timer_start(timer, on_turn, wait_ms > 0 ? (uint64_t)wait_ms : 0, 0);
}

static void on_news(void *arg)
{
	struct daemon *d = arg;

	if (!d->stopping)
		uv_timer_start(&d->turn, on_turn, 0, 0);
}

/* What `systemctl status` shows, with a word in front that says why it is told. */
static void notify_status(const struct daemon *d, const char *word)
{
	struct engine_health health;
	char text[320];

	engine_health(d->lbd.engine, &health);
	snprintf(text, sizeof(text), "%s\nSTATUS=%lld live runs%s%s", word,
		 (long long)health.live_runs, health.slurm_down_since_ms ? "; Slurm is away: " : "",
		 health.slurm_down_since_ms ? health.slurm_text : "");
	notify_systemd(text);
}

static void on_watchdog(uv_timer_t *timer)
{
	notify_status(timer->data, "WATCHDOG=1");
}

static void on_scheduler_closed(void *arg)
{
	(void)arg;
}

/* Closes whatever keeps the loop alive; it then ends by itself. */
static void stop(struct daemon *d)
{
	uv_handle_t *handles[] = {
		(uv_handle_t *)&d->turn,    (uv_handle_t *)&d->watchdog,
		(uv_handle_t *)&d->lease,   (uv_handle_t *)&d->hand_over,
		(uv_handle_t *)&d->sigterm, (uv_handle_t *)&d->sigint,
	};

	notify_systemd("STOPPING=1");
	d->stopping = true;
	backup_stop(d->lbd.backup);
	probes_close(&d->lbd);
	control_close(d->lbd.control);
	cron_close(d->lbd.cron);
	log_keeper_close(d->lbd.log_keeper);
	remover_close(d->lbd.remover);
	switchboard_close(d->lbd.switchboard);
	d->lbd.switchboard = NULL;
	exporter_close(d->lbd.exporter);
	alerts_close(d->lbd.alerts);
	heartbeat_close(d->lbd.heartbeat);
	if (d->lbd.slurm)
		d->lbd.slurm->ops->close(d->lbd.slurm, on_scheduler_closed, NULL);
	d->lbd.local->ops->close(d->lbd.local, on_scheduler_closed, NULL);
	for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++)
		uv_close(handles[i], NULL);
}

static void on_stop(uv_signal_t *handle, int signo)
{
	struct daemon *d = handle->data;

	log_info("ends on signal %d; jobs run on", signo);
	d->why = signo == SIGINT ? "interrupted (SIGINT)" : "stopped (SIGTERM)";
	if (!d->stopping)
		stop(d);
}

/* --- the parts, in order ---------------------------------------------------------------------- */

/* With a team its group may enter, and what is made inside belongs to the group. */
static int open_to_team(int fd, const char *folder, const char *team, struct err *err)
{
	gid_t group;

	if (team &&
	    (!group_id(team, &group) || fchown(fd, (uid_t)-1, group) < 0 || fchmod(fd, 02750) < 0))
		return err_errno(err, "%s: cannot give it to group %s", folder, team);
	return 0;
}

/* Whoever could change what lies there would act as its owner. A missing one is fine. */
static int check_home(const char *home, struct err *err)
{
	struct err why = { 0 };
	int fd = guarded_open(home, O_RDONLY | O_DIRECTORY, geteuid(), &why);

	if (fd >= 0)
		close(fd);
	return why.code == ERR_REFUSED ? err_set(err, why.code, "%s", why.text) : 0;
}

/* Where lbrun's own path fits no first line of a script, this one stands for it. */
static int link_lbrun(const struct config *config, struct err *err)
{
	char *fresh = path_join("%s/lbrun.new", config->home);
	int rc = 0;

	if (strcmp(config->interpreter, config->lbrun) != 0) {
		unlink(fresh);
		if (symlink(config->lbrun, fresh) < 0 || rename(fresh, config->interpreter) < 0)
			rc = err_errno(err, "%s", config->interpreter);
	}
	free(fresh);
	return rc;
}

static int open_home(const struct config *config, struct err *err)
{
	int fd, rc;

	if (folder_make(config->home, 0700, err) < 0 || home_check(config->home, err) < 0)
		return -1;
	fd = guarded_open(config->home, O_RDONLY | O_DIRECTORY, geteuid(), err);
	if (fd < 0)
		return -1;
	rc = open_to_team(fd, config->home, config->team_group, err);
	close(fd);
	return rc < 0 ? rc : network_check(config, err);
}

/* One that lies elsewhere is as its owner made it, below folders that may be a project's; but what
 * it holds, jobs' scripts above all, is for nobody else to change. */
static int open_runs(const struct config *config, struct err *err)
{
	const char *folder = config->runs_folder;
	size_t len = strlen(config->home);
	bool is_inside = strncmp(folder, config->home, len) == 0 && folder[len] == '/';
	int fd, rc = 0;

	if (folder_make(folder, 0750, err) < 0)
		return -1;
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		rc = err_errno(err, "%s", folder);
	else if (is_inside)
		rc = open_to_team(fd, folder, config->team_group, err);
	else
		rc = guarded_check_alone(fd, folder, geteuid(), err);
	if (fd >= 0)
		close(fd);
	return rc;
}

/* NULL: there is no Slurm, or nothing to speak to it with. */
static struct scheduler *open_slurm(struct daemon *d)
{
	const struct config *config = &d->lbd.config;
	struct slurm_helper helper;
	struct scheduler *slurm;
	struct err err = { 0 };

	if (helper_choose((enum slurm_through)config->slurm_through, &helper, &err) < 0) {
		log_info("%s: runs go to the local scheduler", err.text);
		return NULL;
	}
	log_info("Slurm is spoken to through %s", helper.path);
	slurm = scheduler_slurm_create(&d->loop, helper.path, config->deadline_ms,
				       helper.by_commands ||
					       config->submit_with == SUBMIT_WITH_SBATCH);
	helper_choice_clear(&helper);
	return slurm;
}

static int open_schedulers(struct daemon *d, struct err *err)
{
	char *folder = path_join("%s/local", d->lbd.config.home);
	struct local_limits limits = config_local(&d->lbd.config);
	int rc = -1;

	if (folder_make(folder, 0700, err) == 0 && open_runs(&d->lbd.config, err) == 0) {
		d->lbd.slurm = open_slurm(d);
		d->lbd.local = scheduler_local_create(&d->loop, folder, &limits);
		rc = d->lbd.local ? 0 : err_set(err, ERR_IO, "%s: cannot use it", folder);
	}
	free(folder);
	return rc;
}

static int open_engine(struct daemon *d, struct err *err)
{
	struct poll_times times = {
		.busy_ms = d->lbd.config.poll_ms,
		.idle_ms = d->lbd.config.idle_poll_ms,
		.spool_ms = d->lbd.config.spool_ms,
	};

	world_init(&d->lbd.world, &d->lbd);
	d->lbd.engine = engine_create(d->lbd.ledger, d->lbd.slurm, d->lbd.local, &d->lbd.world,
				      &times);
	engine_remember_nodes(d->lbd.engine, &d->lbd.config.nodes);
	engine_warn_after(d->lbd.engine, d->lbd.config.not_running_ms);
	engine_on_news(d->lbd.engine, on_news, d);
	return engine_load(d->lbd.engine, err);
}

static void open_loop(struct daemon *d)
{
	uv_loop_init(&d->loop);
	d->lbd.loop = &d->loop;
	uv_timer_init(&d->loop, &d->turn);
	uv_timer_init(&d->loop, &d->watchdog);
	uv_timer_init(&d->loop, &d->lease);
	uv_timer_init(&d->loop, &d->hand_over);
	uv_signal_init(&d->loop, &d->sigterm);
	uv_signal_init(&d->loop, &d->sigint);
	d->turn.data = d->watchdog.data = d->sigterm.data = d->sigint.data = d;
	d->lease.data = d->hand_over.data = d;
}

static void start_loop(struct daemon *d, const struct options *o)
{
	int64_t watchdog_ms = notify_watchdog_ms();
	uint64_t lease_ms = (uint64_t)d->lbd.config.lease_ms;
	int64_t left_ms = o->until_ms - clock_wall_ms();

	uv_signal_start(&d->sigterm, on_stop, SIGTERM);
	uv_signal_start(&d->sigint, on_stop, SIGINT);
	uv_timer_start(&d->turn, on_turn, 0, 0);
	d->lbd.backup = backup_open(&d->lbd);
	uv_timer_start(&d->lease, on_lease, lease_ms / RENEWALS, lease_ms / RENEWALS);
	if (o->until_ms > 0)
		uv_timer_start(&d->hand_over, on_hand_over, left_ms > 0 ? (uint64_t)left_ms : 0, 0);
	if (watchdog_ms > 0)
		uv_timer_start(&d->watchdog, on_watchdog, (uint64_t)watchdog_ms,
			       (uint64_t)watchdog_ms);
	notify_status(d, "READY=1");
	notify_ready_fd(o->ready_fd);
}

/* Of stderr, where that is a file; owned, NULL = it is not. */
static char *log_path(void)
{
	struct stat st;

	if (fstat(STDERR_FILENO, &st) < 0 || !S_ISREG(st.st_mode))
		return NULL;
	return realpath("/proc/self/fd/2", NULL);
}

/* What goes into a file that nobody will ever read again, or that another lbd has, is not
 * acknowledged. */
static int may_write(void *arg, struct err *err)
{
	struct daemon *d = arg;

	return ledger_check_place(d->lbd.ledger, err) < 0 ? -1 : lock_check(d->lbd.lock, err);
}

static int open_ledger(struct daemon *d, struct err *err)
{
	const struct config *config = &d->lbd.config;
	char *log = log_path();

	if (open_home(config, err) == 0)
		d->lbd.lock = lock_take(config->home, config->lease_ms, log, err);
	free(log);
	if (d->lbd.lock == NULL || link_lbrun(config, err) < 0 || recover_check(config, err) < 0 ||
	    ledger_open(config->ledger_path, &d->lbd.ledger, err) < 0)
		return -1;
	ledger_guard(d->lbd.ledger, may_write, d);
	return record_keep(d->lbd.ledger, err);
}

static int open_parts(struct daemon *d, struct err *err)
{
	open_loop(d);
	if (open_schedulers(d, err) < 0 || open_engine(d, err) < 0)
		return -1;
	d->lbd.switchboard = switchboard_open(&d->lbd);
	d->lbd.remover = remover_open(&d->lbd);
	if ((d->lbd.cron = cron_open(&d->lbd, err)) == NULL ||
	    (d->lbd.control = control_open(&d->lbd, handle, err)) == NULL)
		return -1;
	d->lbd.alerts = alerts_open(&d->lbd, err);
	if (err->code != ERR_NONE)
		return -1;
	d->lbd.heartbeat = heartbeat_open(&d->lbd);
	d->lbd.log_keeper = log_keeper_open(&d->lbd);
	d->lbd.exporter = exporter_open(&d->lbd);
	return 0;
}

static int run(struct daemon *d, const struct options *o, struct err *err)
{
	if (control_check_room(err) < 0 || open_ledger(d, err) < 0 || open_parts(d, err) < 0) {
		lock_release(d->lbd.lock, err->text);
		return -1;
	}
	log_info("lbd %s serves %s", LB_VERSION, d->lbd.config.home);
	start_loop(d, o);
	background_leave_terminal();
	uv_run(&d->loop, UV_RUN_DEFAULT);
	engine_destroy(d->lbd.engine);
	backup_close(d->lbd.backup, !d->failed);
	ledger_close(d->lbd.ledger);
	uv_loop_close(&d->loop);
	lock_release(d->lbd.lock, d->why);
	if (d->is_superseded)
		return err_set(err, ERR_LOCKED, "another lbd took over; see the log");
	return d->failed ? err_set(err, ERR_IO, "the ledger is broken; see the log") : 0;
}

static int fail(const struct err *err)
{
	char line[sizeof(err->text) + 8];

	snprintf(line, sizeof(line), "lbd: %s", err->text);
	background_say(line);
	return err_exit_status(err->code);
}

static int enter_background(const char *home, struct err *err)
{
	char *log_path = path_join("%s/lbd.log", home);
	int fd = folder_make(home, 0700, err) < 0 ? -1 : background_enter(log_path, err);

	free(log_path);
	return fd;
}

/* Job environments, with their secrets, pass through this process: no core files. (The leak checker
 * of a sanitized build could not look into it either.) */
static void forbid_core(void)
{
#ifndef __SANITIZE_ADDRESS__
	prctl(PR_SET_DUMPABLE, 0);
#endif
}

static int serve(struct daemon *d, struct options *o, struct err *err)
{
	int rc;

	if (!o->foreground && (o->ready_fd = enter_background(o->home, err)) < 0)
		return -1;
	d->lbd.started_ms = clock_wall_ms();
	rc = run(d, o, err);
	return rc;
}

static int recover(struct daemon *d, const struct options *o, struct err *err)
{
	char *text = NULL;
	int rc = -1;

	log_init("lbd", o->verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARN);
	if (open_home(&d->lbd.config, err) == 0)
		d->lbd.lock = lock_take(d->lbd.config.home, d->lbd.config.lease_ms, NULL, err);
	if (d->lbd.lock)
		rc = recover_ledger(&d->lbd, &text, err);
	lock_release(d->lbd.lock, rc == 0 ? "recovered the ledger" : err->text);
	if (text)
		puts(text);
	free(text);
	return rc;
}

/* What is in force; but nobody reads a secret over somebody's shoulder. */
static void print_config(struct config *config)
{
	char **secrets[] = { &config->notify_webhook, &config->heartbeat_url };

	for (size_t i = 0; i < sizeof(secrets) / sizeof(secrets[0]); i++) {
		if (*secrets[i] == NULL)
			continue;
		free(*secrets[i]);
		*secrets[i] = xstrdup("(not shown)");
	}
	keys_print(config_keys, config_key_count, config, stdout);
}

int main(int argc, char **argv)
{
	struct options o = { .ready_fd = -1 };
	static struct daemon d;
	struct err err = { 0 };
	int rc = 0;

	parse_options(argc, argv, &o);
	log_init("lbd", o.verbose ? LOG_LEVEL_DEBUG : LOG_LEVEL_INFO);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* a full quota is an error of write(2), not the end */
	umask(027);
	forbid_core();
	if (o.home == NULL)
		o.home = path_lb_home(&err);
	else if (path_check_home(o.home, &err) < 0)
		rc = -1;
	if (rc < 0 || o.home == NULL || failpoint_init("lbd", &err) < 0 ||
	    check_home(o.home, &err) < 0 || config_load(&d.lbd.config, o.home, &err) < 0)
		rc = -1;
	else if (o.check_config)
		print_config(&d.lbd.config);
	else if (o.print_job)
		rc = in_slurm_print(&d.lbd.config, stdout, &err);
	else if (o.recover)
		rc = recover(&d, &o, &err);
	else
		rc = serve(&d, &o, &err);
	config_clear(&d.lbd.config);
	free(o.home);
	return rc < 0 ? fail(&err) : 0;
}
