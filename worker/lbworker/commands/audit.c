/* SPDX-License-Identifier: MIT */
/* audit.c - lbworker audit: what a training saved is computed once more from the checkpoint before
 * it, and must come out the same to the bit.
 *
 * The replay is `lbworker train` in a process of its own, with its own folder; it is ended as soon
 * as the checkpoint in question is there. Where it differs a second replay says whose fault it is:
 * two that agree with each other were computed right, and what was saved was not; two that do not
 * agree are this machine's. */
#include "worker/lbworker/commands/command.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/manifest/manifest.h"
#include "worker/lbworker/checkpoint/retention.h"
#include "worker/lbworker/commands/train_config.h"

enum { LOOK_MS = 20, REPLAYS = 2 };

struct audit {
	char **train; /* words of the replay, from "train" on; NULL ends them */
	int words;
	struct config config;
	const char *folder; /* the checkpoints in question */
	int64_t step;       /* --interval; 0: the newest */
	int64_t from, to;   /* steps of the interval */
	char *scratch;      /* a folder of ours */
	bool is_given;      /* that folder is lbrun's, and stays */
	struct manifest saved, again[REPLAYS];
};

/* --- which interval --------------------------------------------------------------------------- */

static char *checkpoint_path(const char *folder, int64_t step)
{
	return path_join("%s/step-%08" PRId64, folder, step);
}

static int choose_interval(struct audit *a, struct err *err)
{
	size_t count, i = 0;
	int64_t *steps = retention_steps(a->folder, &count); /* newest first */

	while (a->step != 0 && i < count && steps[i] != a->step)
		i++;
	if (i < count)
		a->to = steps[i];
	if (i + 1 < count)
		a->from = steps[i + 1];
	free(steps);
	if (count == 0)
		return err_set(err, ERR_USAGE, "%s: holds no checkpoint", a->folder);
	if (a->to == 0)
		return err_set(err, ERR_USAGE,
			       "--interval %" PRId64 ": %s has no checkpoint of that step", a->step,
			       a->folder);
	if (a->from == 0)
		return err_set(err, ERR_USAGE,
			       "step %" PRId64
			       " is the oldest checkpoint of %s: an audit begins at the "
			       "one before",
			       a->to, a->folder);
	return 0;
}

/* A file that does not hold what its digest says is the disk's fault, not that of who computed
 * it. */
static int read_saved(struct audit *a, struct err *err)
{
	char *from = checkpoint_path(a->folder, a->from), *to = checkpoint_path(a->folder, a->to);
	int rc = manifest_verify(from, MANIFEST_DIGESTS, NULL, err);

	if (rc == 0)
		rc = manifest_verify(to, MANIFEST_DIGESTS, &a->saved, err);
	free(from);
	free(to);
	return rc;
}

/* --- the replay ------------------------------------------------------------------------------- */

/* A checkpoint of another step than the interval's: by an order, or at a time limit. */
static bool is_due(const struct audit *a)
{
	int64_t interval = a->config.checkpoint_interval;

	return a->to >= a->config.steps || (interval > 0 && a->to % interval == 0);
}

static _Noreturn void become_train(const struct audit *a, const char *folder, const char *from)
{
	char interval[64];
	char program[] = "lbworker", **words = xcalloc((size_t)a->words + 3, sizeof(*words));

	words[0] = program;
	memcpy(words + 1, a->train, (size_t)a->words * sizeof(*words));
	snprintf(interval, sizeof(interval), "--checkpoint.interval=%" PRId64, a->to);
	if (!is_due(a))
		words[a->words + 1] = interval;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setenv("LB_CHECKPOINT_DIR", folder, 1);
	setenv("LB_RESUME_FROM", from, 1);
	unsetenv("LB_SHARED_DIR"); /* an export of the replay's is nobody's */
	execv("/proc/self/exe", words);
	fprintf(stderr, "lbworker: audit: %s\n", strerror(errno));
	_exit(EXIT_FAILED);
}

/* Until the checkpoint is there, complete: nothing behind it is of interest. */
static int wait_for_checkpoint(pid_t pid, const char *path, struct manifest *out, struct err *err)
{
	const struct timespec pause = { 0, LOOK_MS * 1000000L };
	char *sealed = path_join("%s/manifest.json", path);
	bool has_ended = false, is_there = false;
	int status = 0;

	while (!is_there && !has_ended) {
		nanosleep(&pause, NULL);
		has_ended = waitpid(pid, &status, WNOHANG) == pid;
		is_there = file_exists(sealed);
	}
	free(sealed);
	if (!has_ended) {
		kill(pid, SIGKILL);
		waitpid(pid, &status, 0);
	}
	if (is_there)
		return manifest_verify(path, MANIFEST_DIGESTS, out, err);
	return err_set(err, ERR_IO, "the replay ended without %s", path);
}

static int replay(struct audit *a, int number, struct err *err)
{
	char *folder = path_join("%s/replay-%d", a->scratch, number + 1);
	char *from = checkpoint_path(a->folder, a->from), *to = checkpoint_path(folder, a->to);

	printf("replay %d: from step %" PRId64 " to step %" PRId64 "\n", number + 1, a->from,
	       a->to);
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		become_train(a, folder, from);
	int rc = pid < 0 ? err_errno(err, "audit: fork")
			 : wait_for_checkpoint(pid, to, &a->again[number], err);
	free(to);
	free(from);
	free(folder);
	return rc;
}

/* --- the verdict ------------------------------------------------------------------------------ */

static const char *digest_of(const struct manifest *m, const char *name)
{
	for (int i = 0; i < m->file_count; i++)
		if (strcmp(m->files[i].name, name) == 0)
			return m->files[i].digest;
	return "";
}

/* Files of x that y has not, or otherwise. *first: one of them. */
static int different(const struct manifest *x, const struct manifest *y, const char **first)
{
	int count = 0;

	for (int i = 0; i < x->file_count; i++) {
		if (strcmp(x->files[i].digest, digest_of(y, x->files[i].name)) == 0)
			continue;
		*first = count++ == 0 ? x->files[i].name : *first;
	}
	return count;
}

static void show_tensors(const struct audit *a)
{
	char command[] = "ckpt", diff[] = "diff", *folder = path_join("%s/replay-1", a->scratch);
	char *saved = checkpoint_path(a->folder, a->to), *again = checkpoint_path(folder, a->to);
	char *words[] = { command, diff, saved, again, NULL };

	fflush(stdout);
	(void)command_ckpt(4, words);
	free(again);
	free(saved);
	free(folder);
}

static int judge(struct audit *a, struct err *err)
{
	const char *name = "";
	int files = different(&a->saved, &a->again[0], &name);

	if (files == 0) {
		printf("audit: step %" PRId64 " to %" PRId64 ": the same bits, %d files\n", a->from,
		       a->to, a->saved.file_count);
		return EXIT_DONE;
	}
	printf("audit: step %" PRId64 " to %" PRId64 ": %d of %d files differ, first %s\n", a->from,
	       a->to, files, a->saved.file_count, name);
	show_tensors(a);
	if (strcmp(a->saved.config_hash, a->again[0].config_hash) != 0 && is_due(a)) {
		printf("audit: the config is not the one that step %" PRId64
		       " was computed with: this says nothing about hardware\n",
		       a->to);
		return EXIT_DIFFERS;
	}
	if (replay(a, 1, err))
		return command_failed(err);
	if (different(&a->again[0], &a->again[1], &name) == 0)
		printf("audit: two replays here agree with each other: step %" PRId64
		       " was not computed so where it was saved, by its hardware, or by another "
		       "program or other instructions (LB_CPU_ISA)\n",
		       a->to);
	else if (different(&a->saved, &a->again[1], &name) == 0)
		printf("audit: the second replay has the saved bits: the first one went wrong, on "
		       "this machine\n");
	else
		printf("audit: two replays here differ from each other: this machine computes "
		       "something else each time\n");
	return EXIT_DIFFERS;
}

/* --- the command ------------------------------------------------------------------------------ */

static int make_scratch(struct audit *a, struct err *err)
{
	const char *given = getenv("LB_CHECKPOINT_DIR");

	a->is_given = given && given[0] != '\0' && strcmp(given, a->folder) != 0;
	if (a->is_given) {
		a->scratch = xstrdup(given);
		return folder_make(a->scratch, 0755, err);
	}
	a->scratch = path_join("%s/lb-audit.XXXXXX", path_tmp());
	return mkdtemp(a->scratch) ? 0 : err_errno(err, "%s", a->scratch);
}

/* Takes FOLDER and --interval out of the words; the rest is train's. */
static int parse(struct audit *a, int argc, char **argv, struct err *err)
{
	static char train[] = "train";
	char *end;

	a->train = xcalloc((size_t)argc + 1, sizeof(*a->train));
	a->train[a->words++] = train;
	for (int i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--of") == 0 && i + 1 < argc) {
			a->folder = argv[++i];
		} else if (strcmp(argv[i], "--interval") == 0 && i + 1 < argc) {
			a->step = strtoll(argv[++i], &end, 10);
			if (*end != '\0' || a->step < 1)
				return err_set(err, ERR_USAGE,
					       "--interval %s: the step of a checkpoint, from 1 on",
					       argv[i]);
		} else {
			a->train[a->words++] = argv[i];
		}
	}
	return 0;
}

static int audit(struct audit *a, struct err *err)
{
	if (!a->folder)
		a->folder = a->config.checkpoint_path;
	if (choose_interval(a, err) || read_saved(a, err) || make_scratch(a, err) ||
	    replay(a, 0, err))
		return command_failed(err);
	return judge(a, err);
}

int command_audit(int argc, char **argv)
{
	struct audit a = { 0 };
	struct err err = { 0 };
	int status = EXIT_DONE;

	if (parse(&a, argc, argv, &err))
		status = command_failed(&err);
	else
		status = train_config(&a.config, a.words, a.train);
	if (status == EXIT_DONE)
		status = audit(&a, &err);
	if (a.scratch && !a.is_given)
		(void)folder_remove(a.scratch, NULL);
	config_clear(&a.config);
	manifest_clear(&a.saved);
	for (int i = 0; i < REPLAYS; i++)
		manifest_clear(&a.again[i]);
	free(a.scratch);
	free(a.train);
	return status;
}
