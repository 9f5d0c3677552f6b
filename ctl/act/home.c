/* SPDX-License-Identifier: MIT */
/* home.c - lbctl home: where lbd's folder is; lbctl home move: elsewhere, with everything that
 * lives in it. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/run/home.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/shell_words.h"
#include "ctl/act/home_carry.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"

/* Owned; without a "/" at its end. */
static char *absolute(const char *path)
{
	char folder[PATH_MAX];
	size_t len = strlen(path);

	while (len > 1 && path[len - 1] == '/')
		len--;
	if (path[0] == '/' || getcwd(folder, sizeof(folder)) == NULL)
		return xstrndup(path, len);
	return path_join("%s/%.*s", folder, (int)len, path);
}

static void say_left(const struct ctl *ctl, int left, const char *to)
{
	char word[SHELL_WORD_BYTES];
	char *later = xasprintf("lbctl home move %s", shell_word(to, word));
	char *meant = with_home(ctl, later);

	printf("%d run%s not over and stay%s on the old file system; later, fetch %s with: %s\n",
	       left, left == 1 ? " is" : "s are", left == 1 ? "s" : "", left == 1 ? "it" : "them",
	       meant);
	free(later);
	free(meant);
}

int home_run(struct ctl *ctl, struct err *err)
{
	const struct operands *o = &ctl->operands;
	char *to, word[SHELL_WORD_BYTES];
	int rc, left = 0;

	if (o->count == 0) {
		puts(ctl->client.home);
		return 0;
	}
	if (o->count != 2 || strcmp(o->words[0], "move") != 0)
		return err_set(err, ERR_USAGE, "home: usage: lbctl home %s", ctl->command->usage);
	to = absolute(o->words[1]);
	rc = home_is_to_be_carried(ctl->client.home, to)
		     ? home_carry(ctl->client.home, to, &left, err)
		     : home_move(ctl->client.home, to, err);
	if (rc == 0 && left > 0)
		say_left(ctl, left, to);
	if (rc == 0)
		hint(ctl,
		     "it is %s now, and a link stands where it was: runs and lbd go on; new "
		     "shells may export LB_HOME=%s. Leave the link: the ledger goes by it",
		     to, shell_word(to, word));
	free(to);
	return rc;
}
