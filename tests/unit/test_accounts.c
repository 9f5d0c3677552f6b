/* SPDX-License-Identifier: MIT */
/* test_accounts.c - users and groups: an answer stays as it is while others are asked for, which
 * libc's own do not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/accounts.h"

enum { NOBODY = 65534, NO_SUCH = 3999999 };

static void an_answer_stays(void **state)
{
	struct account root, nobody;

	(void)state;
	assert_true(account_of(0, &root));
	assert_true(account_of(NOBODY, &nobody));
	assert_string_equal(root.name, "root");
	assert_string_equal(root.home, "/root");
	assert_int_equal(root.uid, 0);
	assert_string_equal(nobody.name, "nobody");
	account_clear(&root);
	account_clear(&nobody);
}

static void nobody_at_all(void **state)
{
	struct account account;
	gid_t gid;

	(void)state;
	assert_false(account_of(NO_SUCH, &account));
	assert_null(account.name);
	account_clear(&account);
	assert_false(group_id("no-such-group", &gid));
	assert_false(group_id(NULL, &gid));
	assert_null(group_name(NO_SUCH));
}

static void groups_by_name_and_number(void **state)
{
	char *root = group_name(0), *daemon = group_name(1);
	gid_t gid = NO_SUCH;

	(void)state;
	assert_string_equal(root, "root");
	assert_string_equal(daemon, "daemon");
	assert_true(group_id(daemon, &gid));
	assert_int_equal(gid, 1);
	free(root);
	free(daemon);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_answer_stays),
		cmocka_unit_test(nobody_at_all),
		cmocka_unit_test(groups_by_name_and_number),
	};

	return cmocka_run_group_tests_name("accounts", tests, NULL, NULL);
}
