/* SPDX-License-Identifier: MIT */
/* test_guarded.c - what is acted upon as its owner's word: refused when others could change it or
 * put another in its place. */
#include "tests/unit/unit.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/guarded.h"

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static char top[64], middle[80], file[96];

static int set_up(void **state)
{
	(void)state;
	snprintf(top, sizeof(top),
		 "/tmp/test_guarded.XXXXXX"); /* /tmp is everybody's, and sticky */
	assert_non_null(mkdtemp(top));
	snprintf(middle, sizeof(middle), "%s/middle", top);
	snprintf(file, sizeof(file), "%s/file", middle);
	assert_int_equal(mkdir(middle, 0700), 0);
	write_text(file, "words");
	assert_int_equal(chmod(file, 0644), 0);
	return 0;
}

static int tear_down(void **state)
{
	struct err err = { 0 };

	(void)state;
	return folder_remove(top, &err);
}

static void is_read(void)
{
	struct err err = { 0 };
	size_t len = 0;
	char *text = guarded_read(file, 100, &len, &err);

	if (!text)
		fail_msg("%s", err.text);
	assert_string_equal(text, "words");
	assert_int_equal(len, 5);
	free(text);
}

static void is_refused(const char *words, const char *path)
{
	struct err err = { 0 };

	assert_null(guarded_read(file, 100, NULL, &err));
	assert_int_equal(err.code, ERR_REFUSED);
	assert_contains(err.text, words);
	assert_contains(err.text, path);
	assert_null(strchr(err.text, '\n'));
}

static void what_is_ones_own(void **state)
{
	(void)state;
	is_read();
	chmod(middle, 0755);
	is_read();
}

static void a_file_that_others_may_write(void **state)
{
	(void)state;
	chmod(file, 0646);
	is_refused("chmod o-w /", file);
	chmod(file, 0644);
	is_read();
}

static void a_folder_on_the_way(void **state)
{
	(void)state;
	chmod(middle, 0757);
	is_refused("chmod o-w /", middle);
	chmod(middle, 01777);
	is_read();
	chmod(middle, 0700);
	chmod(top, 0703);
	is_refused("chmod o-w /", top);
}

/* Through a link it is the folders of what it leads to that count. */
static void a_link_leads_elsewhere(void **state)
{
	char kept[96];
	struct err err = { 0 };

	(void)state;
	snprintf(kept, sizeof(kept), "%s/kept", top);
	assert_int_equal(rename(file, kept), 0);
	assert_int_equal(symlink(kept, file), 0);
	is_read();
	chmod(kept, 0666);
	is_refused("chmod ", file);
	assert_int_equal(guarded_open(file, O_RDONLY | O_NOFOLLOW, geteuid(), &err), -1);
	assert_contains(err.text, "no link");
}

/* As /tmp is: nobody is told to close it. */
static void a_place_of_everybodys(void **state)
{
	struct err err = { 0 };

	(void)state;
	chmod(middle, 01777);
	is_read();
	assert_int_equal(guarded_open(middle, O_RDONLY | O_DIRECTORY, geteuid(), &err), -1);
	assert_int_equal(err.code, ERR_REFUSED);
	assert_contains(err.text, "use a folder that only you can write to");
}

static void somebody_elses(void **state)
{
	struct err err = { 0 };

	(void)state;
	if (geteuid() != 0)
		return; /* only root gives files away */
	assert_int_equal(chown(middle, 51001, (gid_t)-1), 0);
	is_refused("belongs to somebody else", middle);
	assert_int_equal(chown(middle, 0, 51001), 0);
	chmod(middle, 0770);
	is_refused("chmod g-w /", middle);
	assert_int_equal(guarded_open(file, O_RDONLY, 51002, &err), -1);
	assert_contains(err.text, "use a folder that only you can write to"); /* it is root's */
	assert_int_equal(chown(middle, 0, 0), 0); /* root's own group, with nobody else in it */
	is_read();
}

/* Where the mode of a file has its group's bits, one with an access list has what anybody on that
 * list may do at most: user 51001 may write, though root's group has nobody else in it. */
static void an_access_list(void **state)
{
	static const uint32_t id_none = 0xffffffff;
	const struct {
		uint32_t version;
		struct {
			uint16_t tag, may;
			uint32_t id;
		} entries[5];
	} list = { 2,
		   { { 0x01, 6, id_none },
		     { 0x02, 6, 51001 },
		     { 0x04, 4, id_none },
		     { 0x10, 6, id_none },
		     { 0x20, 4, id_none } } };

	(void)state;
	chmod(file, 0664);
	if (geteuid() != 0 || setxattr(file, "system.posix_acl_access", &list, sizeof(list), 0) < 0)
		return; /* a file system without access lists */
	is_refused("chmod g-w /", file);
	chmod(file, 0644); /* nobody on the list but its owner */
	is_read();
	chmod(file, 0664);
	removexattr(file, "system.posix_acl_access");
	chmod(file, 0664);
	is_read();
}

static void what_is_not_there(void **state)
{
	struct err err = { 0 };

	(void)state;
	unlink(file);
	assert_null(guarded_read(file, 100, NULL, &err));
	assert_int_equal(err.code, ERR_NOT_FOUND);
	assert_int_equal(mkfifo(file, 0600), 0); /* and nobody waits for a writer */
	err_clear(&err);
	assert_null(guarded_read(file, 100, NULL, &err));
	assert_contains(err.text, "not a regular file");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_ones_own),      TEST(a_file_that_others_may_write),
		TEST(a_folder_on_the_way),   TEST(a_link_leads_elsewhere),
		TEST(a_place_of_everybodys), TEST(somebody_elses),
		TEST(an_access_list),        TEST(what_is_not_there),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
