/* SPDX-License-Identifier: MIT */
/* switchboard.c - reads the switch files, and tells the engine what they order.
 *
 * The folder is read in pieces, between which lbd does its work. Until a reading is through, the
 * table of the one before holds, and beside it what the new one has found; orders by name are
 * looked up whenever somebody asks. A small folder is one piece. */
#include "daemon/runs/switchboard.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/fnv.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "daemon/base/lbd.h"
#include "daemon/runs/requests.h"

enum {
	LOOK_MS = 1000,
	SETTLE_LOOK_MS = 20, /* many changes at once are one */
	PIECE_MS = 10,
	FIRST_MS = 2000, /* before anything is started, as long as it takes, within reason */
	PART = 50,       /* one part in so many of the time is for reading */
	TOLD_BITS = 1 << 16,
	TOLD_SINGLY = 16, /* files that do not count, in TOLD_MS; then all others in one line */
	TOLD_MS = 10 * 60 * 1000,
};

/* What does not count is told once. Of the owner's files and of all others' apart: nobody hides a
 * slip of the owner's behind thousands of his own. */
struct refusals {
	uint8_t told[TOLD_BITS / 8]; /* by hash: each is told once, or never */
	int64_t since_ms;            /* monotonic; so many since then: */
	size_t singly, more;
	char last[SWITCH_FILE_BYTES + 8], last_by[65]; /* of those that were not told singly */
};

struct switchboard {
	struct lbd *lbd;
	char *folder;
	struct switch_rules rules;
	struct switches switches; /* of the last reading that was through */
	bool is_known, is_unsaved;
	char trouble[ERR_TEXT_BYTES]; /* what is wrong with the folder; "" = nothing */
	uint64_t seen;                /* stands for all that counts; 0 = look at it anew */
	int dir; /* open for a look; while the folder is large, until the next one */
	struct switch_reading *reading; /* under way; NULL = none */
	bool is_large;            /* a look does not show all of it: orders by name are looked up */
	int64_t woken_ms;         /* monotonic; when the engine was to look them up last */
	struct switch_file named; /* what a look by name has found */
	int64_t next_ms;          /* monotonic; no new reading is begun before */
	struct refusals refusals[2]; /* others', the owner's */
	uid_t *crowders;             /* who was told to have left too many */
	size_t crowder_count;
	bool has_told;
	uv_timer_t timer, soon;
	uv_fs_event_t changes;
	int open_handles;
};

static const char readme[] =
	"A file in this folder is an order to training runs. Its name says which runs and what:\n"
	"\n"
	"    touch first.kill              end the run \"first\" for good\n"
	"    touch first.stop              the same, with a checkpoint\n"
	"    touch first.hold              with a checkpoint; it goes on once the file is gone\n"
	"    touch first.save              ask for a checkpoint; the run goes on, the file goes away\n"
	"\n"
	"    touch 'sweep-*.kill'          every run whose name matches ('*' any text, '?' one character)\n"
	"    touch sweep-3@group.kill      every run of the group sweep-3 (run.group)\n"
	"    touch ada@user.kill           every run that ada submitted\n"
	"    touch ALL.kill                every run\n"
	"\n"
	"    echo 'wrong data' >first.kill the reason; it is kept with your name\n"
	"\n"
	"It works with lbd dead, too: each job looks by itself, every second. While a switch is there,\n"
	"nothing that it means is started; take it away before: lbctl restart first\n"
	"\n"
	"Only ordinary files of the owner and of members of the team count, no links.\n";

/* --- the folder ------------------------------------------------------------------------------- */

static int write_readme(const struct switchboard *b, struct err *err)
{
	char *path = path_join("%s/README", b->folder);
	int rc = file_exists(path) ? 0 : file_write_once(path, readme, strlen(readme), 0644, err);

	free(path);
	return rc;
}

static int make_folder(const struct switchboard *b, struct err *err)
{
	return file_exists(b->folder) ? 0 : folder_make(b->folder, 0700, err);
}

/* A folder that everybody could write to may hold anything: only people can mend that. */
static int give_to_team(const struct switchboard *b, struct err *err)
{
	const char *team = b->rules.team;
	gid_t group = 0;
	bool has_group = group_id(team, &group);
	mode_t mode = team ? 03770 : 0700;
	int fd = open(b->folder, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), rc = 0;
	struct stat st;

	if (fd < 0)
		return 0; /* the look says what is wrong */
	if (fstat(fd, &st) == 0 && st.st_uid == geteuid() && !(st.st_mode & S_IWOTH) &&
	    ((st.st_mode & 07777) != mode || (has_group && st.st_gid != group)) &&
	    ((has_group && fchown(fd, (uid_t)-1, group) < 0) || fchmod(fd, mode) < 0))
		rc = err_errno(err, "%s: cannot give it to the team", b->folder);
	close(fd);
	return rc;
}

/* --- a look ----------------------------------------------------------------------------------- */

static uint64_t hash_of(const struct switches *s)
{
	uint64_t h = FNV_START;

	for (size_t i = 0; i < s->count; i++) {
		const struct switch_file *f = &s->items[i];

		h = fnv_add(fnv_add_text(h, f->file), f->inode);
		h = fnv_add(h, (uint64_t)f->changed_ns);
	}
	return h;
}

static void tell(struct switchboard *b, const char *kind, const char *by, const char *text)
{
	struct ledger_event e = {
		.time_ms = clock_wall_ms(),
		.kind = kind,
		.actor = by,
		.text = text,
	};

	log_warn("%s: %s", kind, text);
	if (ledger_event_put(b->lbd->ledger, &e, NULL) == 0)
		b->has_told = true;
}

static bool is_new(struct refusals *r, const char *text)
{
	uint64_t h = fnv_text(text);
	uint8_t *byte = &r->told[(h ^ h >> 32) % TOLD_BITS / 8];
	uint8_t bit = (uint8_t)(1u << ((h ^ h >> 32) % 8));
	bool was_told = *byte & bit;

	*byte |= bit;
	return !was_told;
}

/* Exact, for it is one line a user: the hashes above may be full of his files. */
static bool is_new_crowder(struct switchboard *b, uid_t uid)
{
	for (size_t i = 0; i < b->crowder_count; i++)
		if (b->crowders[i] == uid)
			return false;
	b->crowders = xrealloc(b->crowders, (b->crowder_count + 1) * sizeof(*b->crowders));
	b->crowders[b->crowder_count++] = uid;
	return true;
}

/* Of a user's orders only so many count; which ones is left to chance. */
static void tell_too_many(struct switchboard *b, uid_t uid, const char *by)
{
	bool is_owner = uid == b->rules.owner || uid == 0;
	char text[200];

	if (!is_new_crowder(b, uid))
		return;
	snprintf(text, sizeof(text),
		 "%s has left more than %d switches: the others do not count, unless "
		 "they name a run, its group, its user or ALL",
		 by, is_owner ? SWITCHES_MAX : SWITCHES_OF_MEMBER);
	tell(b, "switch_refused", by, text);
}

static void on_refused(const char *file, uid_t uid, const char *by, const char *why, void *arg)
{
	struct switchboard *b = arg;
	struct refusals *r = &b->refusals[uid == b->rules.owner || uid == 0];
	char *text;

	if (!file) {
		tell_too_many(b, uid, by);
		return;
	}
	text = xasprintf("%s does not count: %s", file, why);
	if (!is_new(r, text)) {
		/* told already */
	} else if (r->singly < TOLD_SINGLY) {
		r->singly++;
		tell(b, "switch_refused", by, text);
	} else {
		r->more++;
		snprintf(r->last, sizeof(r->last), "%s", file);
		snprintf(r->last_by, sizeof(r->last_by), "%s", by);
	}
	free(text);
}

static void tell_rest(struct switchboard *b, struct refusals *r)
{
	char text[256];

	snprintf(text, sizeof(text), "%zu more files do not count, the last one seen is %s",
		 r->more, r->last);
	tell(b, "switch_refused", r->last_by, text);
	r->more = 0;
}

/* Those that were too many, in one line, once all have been seen; and everything in one commit. */
static void tell_the_rest(struct switchboard *b)
{
	int64_t now_ms = clock_mono_ms();

	for (size_t i = 0; i < sizeof(b->refusals) / sizeof(b->refusals[0]); i++) {
		struct refusals *r = &b->refusals[i];
		bool is_over = now_ms - r->since_ms >= TOLD_MS;

		if (r->more > 0 && !b->reading && (is_over || r->singly == TOLD_SINGLY)) {
			tell_rest(b, r);
			r->singly++;
		}
		if (is_over) {
			r->since_ms = now_ms;
			r->singly = 0;
		}
	}
	if (b->has_told)
		ledger_commit(b->lbd->ledger, NULL);
	b->has_told = false;
}

/* A request is done once, and then taken away: the folder is ours. What could not be written down
 * is tried again at the next look. */
static void take_saves(struct switchboard *b)
{
	bool was_unsaved = b->is_unsaved;

	b->is_unsaved = false;
	for (size_t i = 0; i < b->switches.count; i++) {
		const struct switch_file *s = &b->switches.items[i];
		struct err err = { 0 };

		if (s->level != SWITCH_SAVE)
			continue;
		if (requests_save_by_switch(b->lbd, s, &err) < 0) {
			if (!was_unsaved)
				log_warn("%s: %s", s->file, err.text);
			b->is_unsaved = true;
			continue;
		}
		if (unlinkat(b->dir, s->file, 0) < 0)
			log_warn("%s/%s: cannot take it away: %s", b->folder, s->file,
				 strerror(errno));
	}
}

static void end_reading(struct switchboard *b, struct switches *found)
{
	int64_t pause_ms = b->reading ? switches_pause_ms(b->reading, PART) : 0;

	b->next_ms = clock_mono_ms() + pause_ms;
	b->is_large = pause_ms > LOOK_MS;
	switches_end(b->reading, found);
	b->reading = NULL;
}

/* The folder cannot be used: nothing in it counts until it can. */
static void lose(struct switchboard *b, const struct err *err)
{
	bool is_news = b->is_known || b->switches.count > 0;

	end_reading(b, NULL);
	switches_clear(&b->switches);
	b->seen = 0;
	b->is_known = false;
	if (strcmp(err->text, b->trouble) != 0)
		tell(b, "switches_refused", "lbd", err->text);
	snprintf(b->trouble, sizeof(b->trouble), "%s", err->text);
	if (is_news)
		engine_on_switches(b->lbd->engine);
}

/* The reading is through: what it has found holds. */
static void take_over(struct switchboard *b)
{
	uint64_t seen = hash_of(switches_so_far(b->reading));
	bool is_news = seen != b->seen || !b->is_known;

	switches_clear(&b->switches);
	end_reading(b, &b->switches);
	b->seen = seen;
	b->is_known = true;
	b->trouble[0] = '\0';
	if (!is_news)
		return;
	take_saves(b);
	if (b->is_unsaved)
		b->seen = 0;
	engine_on_switches(b->lbd->engine);
}

static void on_timer(uv_timer_t *timer);

static void read_on(struct switchboard *b, int64_t budget_ms, struct err *err)
{
	int rc;

	if (!b->reading && clock_mono_ms() >= b->next_ms)
		b->reading = switches_begin(b->dir, &b->rules, NULL, err);
	if (!b->reading)
		return;
	rc = switches_step(b->reading, budget_ms, on_refused, b, err);
	b->is_large |= rc > 0;
	if (rc == 0)
		take_over(b);
	else if (rc > 0)
		uv_timer_start(&b->soon, on_timer, SETTLE_LOOK_MS, 0);
}

/* The engine asks for every run, and finds what is there by name. */
static void look_up_names(struct switchboard *b)
{
	int64_t now_ms = clock_mono_ms();

	if (!b->is_large || now_ms - b->woken_ms < LOOK_MS)
		return;
	b->woken_ms = now_ms;
	engine_on_switches(b->lbd->engine);
}

static void look(struct switchboard *b, int64_t budget_ms)
{
	struct err err = { 0 };

	if (b->dir >= 0)
		close(b->dir);
	b->dir = switches_open(b->folder, &b->rules, &err);
	if (b->dir >= 0)
		read_on(b, budget_ms, &err);
	if (err.code != ERR_NONE)
		lose(b, &err);
	look_up_names(b);
	tell_the_rest(b);
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data, PIECE_MS);
}

static void on_change(uv_fs_event_t *handle, const char *file, int events, int status)
{
	struct switchboard *b = handle->data;

	(void)file;
	(void)events;
	(void)status;
	if (!uv_is_active((uv_handle_t *)&b->soon))
		uv_timer_start(&b->soon, on_timer, SETTLE_LOOK_MS, 0);
}

/* --- what others ask -------------------------------------------------------------------------- */

bool switchboard_is_known(const struct switchboard *board)
{
	return board && board->is_known;
}

bool switchboard_has(const struct switchboard *board, const char *file)
{
	return folder_holds(board ? board->folder : "", file);
}

static const struct switch_file *stronger(const struct switch_file *a, const struct switch_file *b)
{
	return !a || (b && b->level > a->level) ? b : a;
}

const struct switch_file *switchboard_find(struct switchboard *b, const char *name,
					   const char *group, const char *owner)
{
	struct switch_run run = { name, group, owner };
	const struct switch_file *best;

	if (b == NULL)
		return NULL;
	best = switches_find(&b->switches, name, group, owner);
	if (b->reading)
		best = stronger(best,
				switches_find(switches_so_far(b->reading), name, group, owner));
	if (b->is_large && b->dir >= 0 && switches_lookup(b->dir, &b->rules, &run, &b->named))
		best = stronger(best, &b->named);
	return best;
}

/* What was read a while ago may have been taken away. */
static bool is_still_there(const struct switchboard *b, const struct switch_file *s)
{
	struct stat st;

	return !b->is_large || fstatat(b->dir, s->file, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

int switchboard_allows(struct switchboard *board, const char *name, const char *group,
		       const char *owner, enum switch_level least, struct err *err)
{
	/* the look may use the ledger, which may own these */
	char *of_group = xstrdup(group ? group : ""), *of_owner = xstrdup(owner), *path;
	char word[SHELL_WORD_BYTES];
	const struct switch_file *s = NULL;

	if (board) {
		if (!board->is_large)
			board->next_ms = 0;
		look(board, PIECE_MS);
		s = switchboard_find(board, name, of_group, of_owner);
	}
	free(of_group);
	free(of_owner);
	if (s == NULL || s->level < least || !is_still_there(board, s))
		return 0;
	path = path_join("%s/%s", board->folder, s->file);
	err_set(err, ERR_LOCKED,
		"%s: the switch %s stands against it, left by %s%s%.100s; take it away first: rm %s",
		name, s->file, s->by, s->text[0] ? ": " : "", s->text, shell_word(path, word));
	free(path);
	return -1;
}

/* --- life ------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
	struct switchboard *b = handle->data;

	if (--b->open_handles > 0)
		return;
	end_reading(b, NULL);
	if (b->dir >= 0)
		close(b->dir);
	switches_clear(&b->switches);
	free(b->folder);
	free(b->crowders);
	free(b);
}

void switchboard_close(struct switchboard *board)
{
	if (board == NULL)
		return;
	uv_close((uv_handle_t *)&board->timer, on_closed);
	uv_close((uv_handle_t *)&board->soon, on_closed);
	uv_close((uv_handle_t *)&board->changes, on_closed);
}

struct switchboard *switchboard_open(struct lbd *lbd)
{
	struct switchboard *b = xcalloc(1, sizeof(*b));
	struct err err = { 0 };

	b->lbd = lbd;
	b->dir = -1;
	b->refusals[0].since_ms = b->refusals[1].since_ms = clock_mono_ms();
	b->folder = path_join("%s/switches", lbd->config.home);
	b->rules = (struct switch_rules){ .owner = geteuid(), .team = lbd->config.team_group };
	if (make_folder(b, &err) < 0 || give_to_team(b, &err) < 0 || write_readme(b, &err) < 0)
		log_warn("%s", err.text);
	uv_timer_init(lbd->loop, &b->timer);
	uv_timer_init(lbd->loop, &b->soon);
	uv_fs_event_init(lbd->loop, &b->changes);
	b->open_handles = 3;
	b->timer.data = b->soon.data = b->changes.data = b;
	look(b, FIRST_MS);
	uv_timer_start(&b->timer, on_timer, LOOK_MS, LOOK_MS);
	if (uv_fs_event_start(&b->changes, on_change, b->folder, 0) < 0)
		log_info("%s: is looked at every second only", b->folder);
	return b;
}
