/* SPDX-License-Identifier: MIT */
/* test_backup.c - whose copy of the ledger takes the place of the one before. */
#include "tests/unit/ledger_home.h"

#include "common/run/lease.h"
#include "daemon/process/lock.h"
#include "daemon/recover/backup.h"

static void be_taken_over(const char *home)
{
	struct lease other = { .generation = 9, .pid = 1, .since_ms = 1, .lease_ms = 60000 };
	char text[LEASE_BYTES], path[96];
	struct err err = { 0 };

	token_draw(other.nonce);
	lease_set_here(&other);
	lease_print(&other, text);
	snprintf(path, sizeof(path), "%s/lbd.lease", home);
	ok(file_write_atomic(path, text, sizeof(text), 0640, &err), &err);
}

static void close_timers(struct lbd *lbd)
{
	backup_stop(lbd->backup);
	assert_int_equal(uv_run(lbd->loop, UV_RUN_DEFAULT), 0);
}

/* The other's ledger is newer, and so is the backup that it makes. */
static void test_taken_over(void **state)
{
	uv_loop_t loop;
	struct lbd lbd = { .loop = &loop, .ledger = open_ledger() };
	struct err err = { 0 };
	char placed[128];

	(void)state;
	snprintf(placed, sizeof(placed), "%s.bak", file);
	lbd.config.ledger_path = file;
	uv_loop_init(&loop);
	lbd.lock = lock_take(folder, 60000, NULL, &err);
	assert_non_null(lbd.lock);
	lbd.backup = backup_open(&lbd);
	close_timers(&lbd);
	backup_close(lbd.backup, true);
	assert_true(file_exists(placed));
	unlink(placed);
	lbd.backup = backup_open(&lbd);
	close_timers(&lbd);
	be_taken_over(folder);
	backup_close(lbd.backup, true);
	assert_false(file_exists(placed));
	lock_release(lbd.lock, "");
	ledger_close(lbd.ledger);
	uv_loop_close(&loop);
}

int main(void)
{
	const struct CMUnitTest tests[] = { TEST(test_taken_over) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
