/* SPDX-License-Identifier: MIT */
/* logs.c - lbctl logs: lbd says where the files are, lbctl reads them itself: output may be large,
 * and must be readable while lbd is away.
 *
 * To a file or pipe the bytes go as they are; to a terminal, cleaned, as every text is. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/run/attempt_folders.h"
#include "common/run/attempt_logs.h"
#include "common/base/bytes.h"
#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/run/run_state.h"
#include "common/base/zst.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/look/log_lines.h"
#include "ctl/team/ask.h"

enum { POLL_MS = 1000, CHUNK = 64 * 1024, LINES_MAX = 10 * 1000 * 1000 };

/* which file lies at a path: a number is given away again, so when it was made counts, too */
struct file_id {
	dev_t device;
	ino_t inode;     /* 0: it was not opened yet */
	int64_t born_ns; /* 0: this file system does not know */
};

/* one file: an attempt's, or that of a task of an array */
struct place {
	int64_t attempt, task, offset;
	struct file_id file;
};

struct logs {
	struct ctl *ctl;
	const char *run;
	json_t *list;         /* [{"attempt","path"}], by number; owned */
	struct place *places; /* of what was read; owned */
	size_t place_count;
	struct place *at;       /* at hand */
	struct place shown;     /* of what was printed last */
	int64_t offset;         /* of the next byte to read in the file at hand */
	struct log_lines lines; /* for a terminal, or where lines are chosen */
	bool is_filtered;       /* by --grep, --err or -n */
	bool is_drawn;          /* an unfinished line stands on the terminal */
	bool any;               /* something was printed */
	bool is_discarded;      /* some file is /dev/null */
	char *gone;             /* a file of the job's that is not there, or not here; owned */
	bool away;              /* lbd cannot be reached; it was said */
	bool final;
};

static int by_number(const void *a, const void *b)
{
	int64_t left = js_int(*(json_t *const *)a, "attempt", 0);
	int64_t right = js_int(*(json_t *const *)b, "attempt", 0);

	if (left == right) {
		left = js_int(*(json_t *const *)a, "task", -1);
		right = js_int(*(json_t *const *)b, "task", -1);
	}
	return (left > right) - (left < right);
}

/* What lbd would have said, from the folders below $LB_HOME. NULL: there is no such run there. */
static json_t *list_folder(const struct ctl *ctl, const char *run)
{
	const char *slash = strchr(run, '/');
	char *dir = path_join("%s/runs/%s", ctl->client.home, slash ? slash + 1 : run);
	size_t count;
	int64_t *numbers = attempt_folders(dir, &count);
	json_t *list = numbers ? json_array() : NULL;

	for (size_t i = 0; numbers && i < count; i++) {
		char *attempt = path_join("%s/attempts/%lld", dir, (long long)numbers[i]);

		attempt_logs(attempt, numbers[i], list);
		free(attempt);
	}
	free(numbers);
	free(dir);
	return list ? js_sorted(list, by_number) : NULL;
}

static void say_away(const struct ctl *ctl, const struct err *why)
{
	char *text = xasprintf("lbd %s; this is what lies in its folder",
			       why->code == ERR_TIMEOUT ? "does not answer" : "is not running");

	complain(ctl, text);
	free(text);
}

/* The list as lbd tells it, or as it can be seen without lbd. */
static int refresh(struct logs *l, struct err *err)
{
	json_t *list = ask_about(l->ctl, VERB_LOGS, l->run, NULL, err);

	if (list) {
		list = js_sorted(list, by_number);
		l->away = false;
	} else if (err->code == ERR_DAEMON || err->code == ERR_TIMEOUT) {
		list = list_folder(l->ctl, l->run);
		if (list && !l->away)
			say_away(l->ctl, err);
		l->away = true;
	}
	if (!list)
		return -1;
	err_clear(err);
	json_decref(l->list);
	l->list = list;
	return 0;
}

/* --- printing -------------------------------------------------------------------------------- */
static void show_line(void *arg, const char *text, size_t len)
{
	struct logs *l = arg;

	if (l->is_drawn)
		fputs("\r\x1b[K", stdout);
	l->is_drawn = false;
	if (l->ctl->out.width > 0) {
		char *shown = xstrndup(text, len);

		clean(shown, CLEAN_KEEP_TABS | (l->ctl->out.utf8 ? 0 : CLEAN_ASCII));
		fputs(shown, stdout);
		free(shown);
	} else {
		fwrite(text, 1, len, stdout);
	}
	putchar('\n');
}

/* A bar that is being drawn, on a terminal whose reader waits for more. */
static void draw_unfinished(struct logs *l)
{
	char *shown;

	if (l->ctl->out.width < 2 || l->lines.line.len == 0 || l->lines.last || l->is_filtered)
		return;
	shown = clean_copy(l->lines.line.data, &l->ctl->out);
	shown[bytes_within(shown, l->ctl->out.width - 1)] = '\0';
	printf("\r%s\x1b[K", shown);
	fflush(stdout);
	l->is_drawn = true;
	free(shown);
}

/* What comes next is from another file: to a person that is said. */
static void begin(struct logs *l, const struct place *p)
{
	if (l->shown.attempt == p->attempt && l->shown.task == p->task)
		return;
	log_lines_end(&l->lines);
	l->shown = *p;
	if (l->ctl->out.width == 0 || json_array_size(l->list) < 2 || l->is_filtered)
		return;
	printf("%s--- attempt %lld", color_code(&l->ctl->out, COLOR_DIM), (long long)p->attempt);
	if (p->task >= 0)
		printf(", task %lld", (long long)p->task);
	printf(" ---%s\n", color_code(&l->ctl->out, COLOR_NONE));
}

static void print_bytes(struct logs *l, const char *data, size_t len)
{
	l->any = true;
	begin(l, l->at);
	if (l->ctl->out.width > 0 || l->is_filtered)
		log_lines_add(&l->lines, data, len);
	else
		fwrite(data, 1, len, stdout);
}

static int print_piece(const char *data, size_t len, void *arg)
{
	print_bytes(arg, data, len);
	return interrupted();
}

/* Output of a run that ended long ago; it does not grow any more. */
static int print_compressed(struct logs *l, const char *path, struct err *err)
{
	char *compressed = path_join("%s.zst", path);
	int rc = 0;

	if (l->offset == 0 && file_exists(compressed)) {
		l->offset = 1;
		rc = zst_read(compressed, print_piece, l, err);
	}
	free(compressed);
	return rc;
}

static struct file_id file_id_of(int fd, const struct stat *st)
{
	struct file_id id = { .device = st->st_dev, .inode = st->st_ino };
	struct statx more;

	if (statx(fd, "", AT_EMPTY_PATH, STATX_BTIME, &more) == 0 && (more.stx_mask & STATX_BTIME))
		id.born_ns = more.stx_btime.tv_sec * 1000000000 + more.stx_btime.tv_nsec;
	return id;
}

static bool is_same(const struct file_id *a, const struct file_id *b)
{
	return a->inode == b->inode && a->device == b->device && a->born_ns == b->born_ns;
}

/* A script may name one file for the output of all its attempts. */
static bool is_read_already(const struct logs *l, const struct file_id *file)
{
	for (const struct place *p = l->places; p < l->at; p++)
		if (is_same(&p->file, file))
			return true;
	return false;
}

/* What was emptied, or removed and made anew, for the next attempt perhaps, is read from its
 * beginning. */
static void note_file(struct logs *l, const struct file_id *file, int64_t size)
{
	if (size < l->offset || (l->at->file.inode && !is_same(&l->at->file, file)))
		l->offset = 0;
	l->at->file = *file;
}

/* A script may name it as its output. */
static bool is_null(const struct stat *st)
{
	struct stat null;

	return S_ISCHR(st->st_mode) && stat("/dev/null", &null) == 0 && null.st_rdev == st->st_rdev;
}

/* Where a script names its output, there is a link to that. */
static void note_gone(struct logs *l, const char *path)
{
	char target[4096];
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	if (n <= 0)
		return;
	free(l->gone);
	l->gone = xstrndup(target, (size_t)n);
}

/* Of all lines the last ones begin near the end of a large file. */
static int64_t start_of_last(const struct logs *l, int fd, int64_t size)
{
	int64_t at = size;

	if (!l->lines.last || l->lines.has_grep || l->lines.only_errors ||
	    l->lines.keep > size / CHUNK)
		return 0;
	for (int64_t i = 0; i < l->lines.keep && at > 0; i++)
		at = file_line_start(fd, at - 1);
	return at > 0 ? at : 0;
}

/* Everything from l->offset to the present end of the file. A file that is not there yet is an
 * empty one. */
static int print_new(struct logs *l, const char *path, struct err *err)
{
	static char chunk[CHUNK];
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat st = { 0 };
	struct file_id file;
	ssize_t n = 0;
	int rc = 0;

	if (fd < 0 && errno != ENOENT)
		return err_errno(err, "%s", path);
	if (fd < 0) {
		note_gone(l, path);
		return print_compressed(l, path, err);
	}
	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode)) {
		close(fd);
		l->is_discarded |= is_null(&st);
		return is_null(&st) ? 0 : err_set(err, ERR_IO, "%s: not a regular file", path);
	}
	file = file_id_of(fd, &st);
	if (is_read_already(l, &file)) {
		close(fd);
		return 0;
	}
	note_file(l, &file, st.st_size);
	if (l->offset == 0)
		l->offset = start_of_last(l, fd, st.st_size);
	while (!interrupted()) {
		l->offset = file_next_data(fd, l->offset);
		n = pread(fd, chunk, sizeof(chunk), l->offset);
		if (n <= 0)
			break;
		print_bytes(l, chunk, (size_t)n);
		l->offset += n;
	}
	if (n < 0 && errno != EINTR)
		rc = err_errno(err, "%s", path);
	close(fd);
	fflush(stdout);
	return rc;
}

/* Where reading goes on in the file of this row. */
static struct place *place_of(struct logs *l, const json_t *row)
{
	int64_t attempt = js_int(row, "attempt", 0), task = js_int(row, "task", -1);

	for (size_t i = 0; i < l->place_count; i++) {
		if (l->places[i].attempt == attempt && l->places[i].task == task)
			return &l->places[i];
	}
	return NULL;
}

static void add_places(struct logs *l)
{
	size_t i;
	const json_t *row;

	l->places = xrealloc(l->places,
			     (l->place_count + json_array_size(l->list) + 1) * sizeof(*l->places));
	json_array_foreach(l->list, i, row) {
		if (!place_of(l, row))
			l->places[l->place_count++] = (struct place){
				.attempt = js_int(row, "attempt", 0),
				.task = js_int(row, "task", -1),
			};
	}
}

/* What is new in each file. */
static int print_all(struct logs *l, struct err *err)
{
	int64_t only = l->ctl->options.attempt;
	const json_t *each;
	size_t i;
	int rc = 0;

	add_places(l);
	json_array_foreach(l->list, i, each) {
		struct place *p = place_of(l, each);
		char *path;

		if (only > 0 && p->attempt != only)
			continue;
		path = js_bytes_take(json_object_get(each, "path"));
		l->at = p;
		l->offset = p->offset;
		if (path)
			rc = print_new(l, path, err);
		p->offset = l->offset;
		free(path);
		if (rc < 0)
			break;
	}
	return rc;
}

/* --- commands -------------------------------------------------------------------------------- */
/* Asked before the files are read, so that "final" means that nothing more is to come. */
static void ask_final(struct logs *l)
{
	struct err quiet = { 0 };
	json_t *data = ask_about(l->ctl, VERB_PROGRESS, l->run, json_pack("{s:i}", "after", -1),
				 &quiet);
	const json_t *run = json_object_get(data, "run");

	l->final = run_state_is_final(run_state_from_name(js_str(run, "state", NULL)));
	json_decref(data);
}

static int follow_files(struct logs *l, struct err *err)
{
	interrupt_catch();
	for (;;) {
		if (!l->away)
			ask_final(l);
		if (refresh(l, err) < 0 || print_all(l, err) < 0)
			return interrupted() ? EXIT_INTERRUPTED : -1;
		if (interrupted())
			return EXIT_INTERRUPTED;
		log_lines_flush(&l->lines);
		if (l->final)
			return 0;
		draw_unfinished(l);
		fflush(stdout);
		nap(POLL_MS);
	}
}

static bool has_attempt(const struct logs *l, int64_t number)
{
	const json_t *each;
	size_t i;

	json_array_foreach(l->list, i, each) {
		if (js_int(each, "attempt", 0) == number)
			return true;
	}
	return false;
}

static int64_t newest_attempt(const struct logs *l)
{
	size_t count = json_array_size(l->list);

	return count ? js_int(json_array_get(l->list, count - 1), "attempt", 0) : 0;
}

/* Where the files are, not what is in them. */
static void print_places(const struct logs *l)
{
	int64_t only = l->ctl->options.attempt;
	json_t *some = json_array(), *each;
	size_t i;

	json_array_foreach(l->list, i, each) {
		if (only <= 0 || js_int(each, "attempt", 0) == only)
			json_array_append(some, each);
	}
	print_json(some);
}

static int show(struct logs *l, struct err *err)
{
	const struct options *o = &l->ctl->options;

	if (refresh(l, err) < 0)
		return -1;
	if (o->attempt > 0 && !has_attempt(l, o->attempt) && !o->follow)
		return err_set(err, ERR_NOT_FOUND, "%s has no attempt %lld; it has %lld", l->run,
			       (long long)o->attempt, (long long)newest_attempt(l));
	if (!o->json)
		return o->follow ? follow_files(l, err) : print_all(l, err);
	print_places(l);
	return 0;
}

static void say_nothing(struct logs *l)
{
	char *gone = l->gone ? xasprintf("no output: %s, where the job writes it, is not here: it "
					 "was moved or removed, or is on a disk of its node",
					 l->gone)
			     : NULL;

	if (!l->away)
		ask_final(l);
	complain(l->ctl, gone              ? gone
			 : l->is_discarded ? "no output: the script sends it to /dev/null"
			 : l->final        ? "no output"
					   : "no output yet");
	free(gone);
}

int logs_run(struct ctl *ctl, struct err *err)
{
	const struct options *o = &ctl->options;
	struct logs l = { .ctl = ctl, .run = ctl->operands.words[0] };
	int status;

	l.lines.on_line = show_line;
	l.lines.arg = &l;
	l.is_filtered = o->grep || o->errors || o->lines > 0;
	if (o->json && (o->follow || l.is_filtered))
		return err_set(
			err, ERR_USAGE,
			"logs: --json says where the files are; --follow, --lines, --grep and "
			"--err are about what is in them");
	if (log_lines_init(&l.lines, o->grep, o->errors,
			   o->lines < LINES_MAX ? o->lines : LINES_MAX, err) < 0)
		return -1;
	status = show(&l, err);
	log_lines_end(&l.lines);
	log_lines_flush(&l.lines);
	if (status == 0 && !l.any && !ctl->options.json)
		say_nothing(&l);
	free(l.gone);
	log_lines_fini(&l.lines);
	json_decref(l.list);
	free(l.places);
	return status;
}
