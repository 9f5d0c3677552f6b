/* SPDX-License-Identifier: MIT */
#include "daemon/switchboard.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/clock.h"
#include "common/files.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/paths.h"
#include "daemon/lbd.h"
#include "daemon/wishes.h"

enum {
	LOOK_MS = 1000,
	SETTLE_LOOK_MS = 20,		/* many changes at once are one */
	TOLD_BITS = 1 << 16,
};

struct switchboard {
	struct lbd *lbd;
	char *folder;
	struct switch_rules rules;
	struct switches switches;
	bool is_known, is_unsaved;
	char trouble[ERR_TEXT_BYTES];	/* what is wrong with the folder; "" = nothing */
	uint64_t seen;			/* stands for all that counts; 0 = look at it anew */
	uint8_t told[TOLD_BITS / 8];	/* refused files by hash: each is told once, or never */
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
	const struct group *group = team ? getgrnam(team) : NULL;
	mode_t mode = team ? 03770 : 0700;
	struct stat st;

	if (lstat(b->folder, &st) < 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & S_IWOTH))
		return 0;	/* the look says what is wrong */
	if ((st.st_mode & 07777) == mode && (!group || st.st_gid == group->gr_gid))
		return 0;
	if ((group && chown(b->folder, (uid_t)-1, group->gr_gid) < 0) || chmod(b->folder, mode) < 0)
		return err_errno(err, "%s: cannot give it to the team", b->folder);
	return 0;
}

/* --- a look ----------------------------------------------------------------------------------- */

static uint64_t add_hash(uint64_t h, const void *data, size_t len)
{
	for (size_t i = 0; i < len; i++)
		h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
	return h;
}

static uint64_t hash_of(const struct switches *s)
{
	uint64_t h = 14695981039346656037u;

	for (size_t i = 0; i < s->count; i++) {
		const struct switch_file *f = &s->items[i];

		h = add_hash(h, f->file, strlen(f->file) + 1);
		h = add_hash(h, &f->inode, sizeof(f->inode));
		h = add_hash(h, &f->changed_ns, sizeof(f->changed_ns));
	}
	return h;
}

static void tell(struct switchboard *b, const char *kind, const char *by, const char *text)
{
	struct ledger_event e = {
		.time_ms = clock_wall_ms(), .kind = kind, .actor = by, .text = text,
	};

	log_warn("%s: %s", kind, text);
	if (ledger_event_put(b->lbd->ledger, &e, NULL) == 0)
		ledger_commit(b->lbd->ledger, NULL);
}

static void on_refused(const char *file, const char *by, const char *why, void *arg)
{
	struct switchboard *b = arg;
	char *text = xasprintf("%s does not count: %s", file, why);
	uint64_t h = add_hash(14695981039346656037u, text, strlen(text));
	uint8_t *byte = &b->told[(h ^ h >> 32) % TOLD_BITS / 8];
	uint8_t bit = (uint8_t)(1u << ((h ^ h >> 32) % 8));

	if (!(*byte & bit))
		tell(b, "switch_refused", by, text);
	*byte |= bit;
	free(text);
}

/* A wish is done once, and then taken away: the folder is ours. What could not be written down is tried
 * again at the next look. */
static void take_saves(struct switchboard *b)
{
	bool was_unsaved = b->is_unsaved;

	b->is_unsaved = false;
	for (size_t i = 0; i < b->switches.count; i++) {
		const struct switch_file *s = &b->switches.items[i];
		struct err err = { 0 };
		char *path;

		if (s->level != SWITCH_SAVE)
			continue;
		if (wish_save_by_switch(b->lbd, s, &err) < 0) {
			if (!was_unsaved)
				log_warn("%s: %s", s->file, err.text);
			b->is_unsaved = true;
			continue;
		}
		path = path_join("%s/%s", b->folder, s->file);
		if (unlink(path) < 0)
			log_warn("%s: cannot take it away: %s", path, strerror(errno));
		free(path);
	}
}

static void look(struct switchboard *b)
{
	struct switches fresh;
	struct err err = { 0 };
	bool is_known = switches_read(b->folder, &b->rules, &fresh, on_refused, b, &err) == 0;
	uint64_t seen = hash_of(&fresh);
	bool is_news = seen != b->seen || is_known != b->is_known;

	switches_clear(&b->switches);
	b->switches = fresh;
	b->seen = seen;
	b->is_known = is_known;
	if (!is_known && strcmp(err.text, b->trouble) != 0)
		tell(b, "switches_refused", "lbd", err.text);
	snprintf(b->trouble, sizeof(b->trouble), "%s", is_known ? "" : err.text);
	if (!is_news)
		return;
	take_saves(b);
	if (b->is_unsaved)
		b->seen = 0;
	engine_on_switches(b->lbd->engine);
}

static void on_timer(uv_timer_t *timer)
{
	look(timer->data);
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

const struct switch_file *switchboard_find(const struct switchboard *board, const char *name,
					   const char *group, const char *owner)
{
	return board ? switches_find(&board->switches, name, group, owner) : NULL;
}

int switchboard_allows(struct switchboard *board, const char *name, const char *group,
		       const char *owner, enum switch_level least, struct err *err)
{
	/* the look may use the ledger, which may own these */
	char *of_group = xstrdup(group ? group : ""), *of_owner = xstrdup(owner);
	const struct switch_file *s = NULL;

	if (board) {
		look(board);
		s = switchboard_find(board, name, of_group, of_owner);
	}
	free(of_group);
	free(of_owner);
	if (s == NULL || s->level < least)
		return 0;
	return err_set(err, ERR_LOCKED, "%s: the switch %s stands against it, left by %s%s%s; take it "
		       "away first: rm '%s/%s'", name, s->file, s->by, s->text[0] ? ": " : "", s->text,
		       board->folder, s->file);
}

/* --- life ------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
	struct switchboard *b = handle->data;

	if (--b->open_handles > 0)
		return;
	switches_clear(&b->switches);
	free(b->folder);
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
	b->folder = path_join("%s/switches", lbd->config.home);
	b->rules = (struct switch_rules){ .owner = geteuid(), .team = lbd->config.team_group };
	if (make_folder(b, &err) < 0 || give_to_team(b, &err) < 0 || write_readme(b, &err) < 0)
		log_warn("%s", err.text);
	uv_timer_init(lbd->loop, &b->timer);
	uv_timer_init(lbd->loop, &b->soon);
	uv_fs_event_init(lbd->loop, &b->changes);
	b->open_handles = 3;
	b->timer.data = b->soon.data = b->changes.data = b;
	look(b);
	uv_timer_start(&b->timer, on_timer, LOOK_MS, LOOK_MS);
	if (uv_fs_event_start(&b->changes, on_change, b->folder, 0) < 0)
		log_info("%s: is looked at every second only", b->folder);
	return b;
}
