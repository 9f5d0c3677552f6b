/* SPDX-License-Identifier: MIT */
/* ending.c - signals, exit codes and what was seen before, as rules; the first that applies names
 * the cause. */
#include "worker/lbrun/end/ending.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "common/base/text.h"
#include "worker/lbrun/complaints/complaints.h"
#include "worker/lbrun/trainer/output_parser.h"

/* sigabbrev_np is too new for the systems that clusters run. */
const char *signal_word(int signo)
{
	static const char *const words[] = {
		[SIGHUP] = "HUP",   [SIGINT] = "INT",   [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
		[SIGTRAP] = "TRAP", [SIGABRT] = "ABRT", [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
		[SIGKILL] = "KILL", [SIGUSR1] = "USR1", [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
		[SIGPIPE] = "PIPE", [SIGALRM] = "ALRM", [SIGTERM] = "TERM", [SIGXCPU] = "XCPU",
		[SIGXFSZ] = "XFSZ", [SIGSYS] = "SYS",
	};

	if (signo < 0 || (size_t)signo >= sizeof(words) / sizeof(words[0]) || !words[signo])
		return "?";
	return words[signo];
}

static bool is_crash_signal(int signo)
{
	return signo == SIGSEGV || signo == SIGBUS || signo == SIGFPE || signo == SIGILL ||
	       signo == SIGABRT || signo == SIGSYS;
}

/* What nobody ends with of its own accord. */
static bool is_violent(int signo)
{
	return signo == SIGKILL || is_crash_signal(signo);
}

/* Also where a shell stood around it, which adds 128, or a program in Python (pdm run): its status
 * is that of -9. What else such a program ends with may be its own. */
static int signal_behind(int signo, int exit_code)
{
	if (signo || exit_code <= 128)
		return signo;
	return is_violent(256 - exit_code) ? 256 - exit_code : exit_code - 128;
}

/* "exit status 137 (SIGKILL)" */
static void describe_status(int exit_code, char *out, size_t size)
{
	int signo = signal_behind(0, exit_code);
	int len = snprintf(out, size, "exit status %d", exit_code);

	if (is_violent(signo))
		snprintf(out + len, size - (size_t)len, " (SIG%s)", signal_word(signo));
}

static void describe(int wait_status, char *out, size_t size)
{
	if (WIFSIGNALED(wait_status))
		snprintf(out, size, "killed by signal %d (SIG%s)%s", WTERMSIG(wait_status),
			 signal_word(WTERMSIG(wait_status)),
			 WCOREDUMP(wait_status) ? ", core dumped" : "");
	else
		describe_status(WEXITSTATUS(wait_status), out, size);
}

/* "rank 3 on n2: " */
static void describe_rank(int64_t rank, const char *node, char *out, size_t size)
{
	out[0] = '\0';
	if (rank >= 0)
		snprintf(out, size, "rank %lld%s%s: ", (long long)rank, node[0] ? " on " : "",
			 node);
}

/* torchrun ends with 1, srun with the highest of all, mpirun with whatever: how the first rank
 * ended is what counts. */
static void take_rank_end(const struct rank_end *end, struct ending *out, char *how, size_t size)
{
	char who[100], status[40];

	snprintf(who, sizeof(who), "%s", end->is_local ? "local " : "");
	describe_rank(end->rank, end->node, who + strlen(who), sizeof(who) - strlen(who));
	out->signal = end->signal;
	out->exit_code = end->signal ? -1 : end->exit_code;
	describe_status(end->exit_code, status, sizeof(status));
	if (end->signal)
		snprintf(how, size, "%skilled by signal %d (SIG%s)", who, end->signal,
			 signal_word(end->signal));
	else
		snprintf(how, size, "%s%s", who, status);
}

/* Does it begin with this rank already? Of a prefix no node may be known. */
static bool is_of_rank(const char *text, int64_t rank)
{
	char who[40];
	int len = snprintf(who, sizeof(who), "rank %lld", (long long)rank);

	return strncmp(text, who, (size_t)len) == 0 && strchr(": ", text[len]);
}

/* Its own words, and what to do about them; a plain sentence of ours comes first. The last line of
 * one that is killed is not about that. */
static void add_complaint(const struct complaint *c, struct ending *out)
{
	size_t len = strlen(out->text);
	char who[100];

	if (!c ||
	    (c->weight == WEIGHT_LAST && signal_behind(out->signal, out->exit_code) == SIGKILL))
		return;
	describe_rank(c->rank, c->node, who, sizeof(who));
	snprintf(out->text + len, sizeof(out->text) - len, "; %s%s%s%s%s",
		 is_of_rank(out->text, c->rank) ? "" : who, c->text, c->advice ? " (" : "",
		 c->advice ? c->advice : "", c->advice ? ")" : "");
}

/* Some sites have no control groups: slurmd looks at the sizes of processes now and then, and
 * kills. A process that had grown to within a twentieth of the limit died of that. */
static bool was_at_limit(const struct launch_facts *f)
{
	return f->limit_mb > 0 && f->peak_mb >= f->limit_mb - f->limit_mb / 20;
}

/* Where each rank has a control group of its own, on its own node. */
static bool is_ranks_oom(const struct launch_facts *f)
{
	return f->rank_end && f->rank_end->is_known && f->rank_end->oom;
}

/* The kernel took a process that it had started: DataLoaders, pools and datasets say only that one
 * is gone, or that what led to it is closed, and the trainer fails by itself. */
static bool is_helpers_oom(const struct launch_facts *f, const struct ending *end)
{
	const struct complaint *c = f->complaint;

	return f->oom && end->exit_code > 0 && c &&
	       (c->weight == WEIGHT_FOLLOWS || strstr(c->text, "EOFError") ||
		strstr(c->text, "killed by signal: Killed") || strstr(c->text, "abruptly"));
}

static int signal_of_rank(const struct rank_end *end)
{
	return signal_behind(end->signal, end->exit_code);
}

/* A script may end a rank itself, or all of a step: what is not the trainer's, mostly. */
static bool is_bad_end(const struct launch_facts *f)
{
	int signo = signal_of_rank(f->rank_end);

	return f->rank_end->is_ordered ? f->has_steps_left : signo != SIGTERM && signo != SIGINT;
}

/* What a script has beside its trainer, a server or a monitor, ends as it may when that is done:
 * killed, mostly. */
static bool is_trainers_end(const struct launch_facts *f)
{
	return !f->is_doubtful || f->has_raised || f->oom ||
	       is_crash_signal(signal_of_rank(f->rank_end));
}

/* The launcher says so, or an exception does that nothing came behind: of a script that has steps
 * left, or that submits itself again. */
static bool has_failed_inside(const struct launch_facts *f)
{
	return (f->end_is_last && is_bad_end(f) && is_trainers_end(f)) || f->has_broken_off ||
	       f->has_lost_node || (f->submitted_itself && f->has_raised);
}

/* A script that submits itself again, mostly before it does anything else, goes on in another job
 * as long as there is something to do: what is over at once with status 0 has found nothing, where
 * no steps are left. One that fails is judged as any other. */
static bool is_link_of_chain(const struct launch_facts *f, const struct ending *end)
{
	enum { AT_ONCE_MS = 60 * 1000 };
	bool has_more = f->has_steps_left && f->has_come_further && !has_failed_inside(f);

	return f->submitted_itself &&
	       (f->warned || (end->exit_code == 0 && (f->lasted_ms >= AT_ONCE_MS || has_more)));
}

/* Where commands follow the trainer, or it writes into tee, the status is theirs: 0, though it
 * failed. What brings itself back, or was warned of the limit, may end as it likes. */
static bool is_hidden(const struct launch_facts *f, const struct ending *end)
{
	return end->exit_code == 0 && !f->warned && !f->requeue_asked &&
	       !is_link_of_chain(f, end) && !f->said_stopped && has_failed_inside(f);
}

/* A script that heard of the limit and ends, without having completed; or a rank that took no care
 * of the signal that Slurm sends to those, of which lbrun hears nothing. */
static bool is_limit(const struct launch_facts *f, const struct ending *end)
{
	int signo = signal_behind(end->signal, end->exit_code);

	return signo == SIGUSR1 || signo == SIGUSR2 ||
	       (f->warned && (end->signal || end->exit_code > 0) && !is_crash_signal(signo));
}

static enum cause natural_cause(const struct launch_facts *f, const struct ending *end)
{
	int signo = signal_behind(end->signal, end->exit_code);

	if (is_helpers_oom(f, end))
		return CAUSE_OOM;
	if ((f->oom || is_ranks_oom(f) || was_at_limit(f)) && signo == SIGKILL)
		return CAUSE_OOM;
	if (is_limit(f, end))
		return CAUSE_TIMEOUT;
	if (end->signal || is_violent(signo))
		return CAUSE_CRASH;
	if (is_hidden(f, end))
		return f->oom ? CAUSE_OOM : CAUSE_ERROR;
	return end->exit_code == 0 ? CAUSE_COMPLETED : CAUSE_ERROR;
}

/* Whatever a trainer does after it was asked to end, it did not complete: it may have cut its
 * work short and still exit 0. */
static enum cause cause_when_stopped(const struct launch_facts *f, const struct ending *end)
{
	switch (f->stop) {
	case STOP_ORDERED:
		return f->goes_on ? CAUSE_PREEMPTED : CAUSE_KILLED;
	case STOP_HUNG:
		return CAUSE_HANG;
	case STOP_NODE:
		return CAUSE_NODE_FAIL;
	case STOP_WARNED:
		return is_crash_signal(signal_behind(end->signal, end->exit_code)) ? CAUSE_CRASH
										   : CAUSE_TIMEOUT;
	case STOP_NOT:
	case STOP_LEFT_OVER:
	case STOP_REQUEUED:
	case STOP_SIGNALLED:
	case STOP_FENCED:
	case STOP_WHY_COUNT:
		break;
	}
	return CAUSE_LOST;
}

static void describe_memory(const struct launch_facts *f, enum cause cause, char *out, size_t size)
{
	if (cause != CAUSE_OOM)
		out[0] = '\0';
	else if (is_ranks_oom(f))
		snprintf(out, size, "%s", OUTPUT_PARSER_RANK_OOM);
	else if (f->oom)
		snprintf(out, size, "; the kernel ran out of memory for this job");
	else
		snprintf(out, size, "; it had taken %lld of the job's %lld MB",
			 (long long)f->peak_mb, (long long)f->limit_mb);
}

/* What others said because a signal ended this one explains nothing. */
static bool is_mere_follower(const struct launch_facts *f, const struct ending *out)
{
	return f->complaint && f->complaint->weight == WEIGHT_FOLLOWS && out->signal &&
	       f->rank_end && f->rank_end->is_known && f->complaint->rank != f->rank_end->rank;
}

/* At the signal before its limit a trainer saves, and ends as if all were well. */
static bool is_cut_short(const struct launch_facts *f, const struct ending *end)
{
	return f->warned && end->exit_code == 0 && f->has_steps_left && f->has_come_further;
}

/* A port that is taken, a module that is not there: any checkpoint would have met the same. A line
 * that is merely everyday may have been survived. */
static bool is_outside(const struct complaint *c, enum cause cause)
{
	return cause == CAUSE_ERROR && c && c->is_outside && c->weight >= WEIGHT_EXCEPTION;
}

static const char *though(const struct launch_facts *f)
{
	return f->has_lost_node ? ", though its launcher ended with status 0"
				: ", though its script ended with status 0 (set -e -o pipefail)";
}

void ending_decide(const struct launch_facts *f, struct ending *out)
{
	const char *said = f->complaint ? f->complaint->text : "";
	bool is_unreached = text_begins_with(said, COMPLAINT_NOT_LAUNCHED);
	bool is_natural = f->stop <= STOP_REQUEUED;
	bool hides;
	char how[200], why[80];

	*out = (struct ending){ .exit_code = -1 };
	if (WIFSIGNALED(f->wait_status))
		out->signal = WTERMSIG(f->wait_status);
	else
		out->exit_code = WEXITSTATUS(f->wait_status);
	describe(f->wait_status, how, sizeof(how));
	hides = is_natural && is_hidden(f, out);
	if (hides)
		snprintf(how, sizeof(how), "it broke off");
	if (is_natural && (out->exit_code > 0 || f->stop == STOP_LEFT_OVER || hides) &&
	    f->rank_end && f->rank_end->is_known && (!f->rank_end->is_ordered || hides) &&
	    !is_unreached)
		take_rank_end(f->rank_end, out, how, sizeof(how));

	if (!is_natural) {
		out->cause = cause_when_stopped(f, out);
		snprintf(out->text, sizeof(out->text), "%s; trainer: %s", f->stop_text, how);
	} else if (f->requeue_asked || is_link_of_chain(f, out)) {
		out->cause = f->warned ? CAUSE_TIMEOUT : CAUSE_PREEMPTED;
		snprintf(out->text, sizeof(out->text), "it %s, and goes on in another job; %s",
			 f->requeue_asked ? "asked for a requeue" : "submitted itself again", how);
	} else if (f->preempted) {
		out->cause = CAUSE_PREEMPTED;
		snprintf(out->text, sizeof(out->text), "it ended as its job was preempted; %s",
			 how);
	} else if (is_cut_short(f, out)) {
		out->cause = CAUSE_TIMEOUT;
		snprintf(out->text, sizeof(out->text),
			 "it ended with steps left as its time limit was near; %s", how);
	} else if (f->said_stopped && out->exit_code == 0) {
		/* It stopped early without our asking: somebody else asked it. */
		out->cause = CAUSE_LOST;
		snprintf(out->text, sizeof(out->text),
			 "the trainer said that it was stopped; lbrun did not ask it to");
	} else {
		out->cause = natural_cause(f, out);
		if (out->cause == CAUSE_COMPLETED && f->stop == STOP_LEFT_OVER)
			out->cause = CAUSE_CRASH; /* srun ended it, whatever its ranks did then */
		describe_memory(f, out->cause, why, sizeof(why));
		snprintf(out->text, sizeof(out->text), "%s%s%s%s", how, why, hides ? though(f) : "",
			 out->cause == CAUSE_TIMEOUT ? ", warned of its time limit" : "");
		if (out->cause != CAUSE_COMPLETED && !is_mere_follower(f, out))
			add_complaint(f->complaint, out);
		out->is_early = is_unreached || strstr(said, COMPLAINT_NOT_BEGUN) ||
				is_outside(f->complaint, out->cause);
	}
	text_clean(out->text);
}

void ending_without_trainer(enum stop_why stop, bool goes_on, const char *stop_text,
			    struct ending *out)
{
	struct launch_facts f = { .stop = stop, .goes_on = goes_on };

	*out = (struct ending){ .exit_code = -1 };
	out->cause = cause_when_stopped(&f, out);
	snprintf(out->text, sizeof(out->text), "%s; the trainer was not running", stop_text);
	text_clean(out->text);
}

bool ending_may_relaunch(const struct ending *ending, const struct attempt_params *params,
			 int64_t failures, bool made_progress)
{
	int64_t of_run = failures + (made_progress ? 0 : params->without_progress);

	bool rolls_back = ending->cause == CAUSE_DIVERGED && params->rollback > 0 &&
			  !ending->is_final;

	if (ending->cause != CAUSE_ERROR && ending->cause != CAUSE_CRASH &&
	    ending->cause != CAUSE_OOM && ending->cause != CAUSE_HANG &&
	    ending->cause != CAUSE_NODE_FAIL && !rolls_back)
		return false;
	if (params->never_on_cause[ending->cause])
		return false;
	for (int64_t i = 0; i < params->never_count; i++) {
		if (ending->exit_code >= 0 && params->never_on_exit_codes[i] == ending->exit_code)
			return false;
	}
	/* the run fails now: that is lbd's to say */
	if (params->max_without_progress >= 0 && of_run >= params->max_without_progress)
		return false;
	return params->in_place > 0 && failures <= params->in_place;
}

int ending_exit_status(const struct ending *ending)
{
	if (ending->cause == CAUSE_COMPLETED)
		return 0;
	if (ending->signal)
		return 128 + ending->signal;
	if (ending->exit_code > 0)
		return ending->exit_code;
	return 128 + SIGTERM;
}
