/* SPDX-License-Identifier: MIT */
/* lbd.c - lbd as a program beside this one. */
#include "ctl/daemon/lbd.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/paths.h"
#include "common/base/text.h"
#include "ctl/base/program.h"

enum { PATIENCE_MS = 60 * 1000, ANSWER_MS = 30 * 1000 };

int lbd_run(struct ctl *ctl, const char *option, struct err *err)
{
	char *lbd = path_sibling("lbd", err);
	const char *const argv[] = { lbd, "--home", ctl->client.home, option, NULL };
	int status = lbd ? program_run(argv, -1, err) : -1;

	free(lbd);
	return status;
}

char *lbd_says(struct ctl *ctl, const char *option, struct err *err)
{
	static const char prefix[] = "lbd: ";
	char *lbd = path_sibling("lbd", err), *text = NULL;
	int status = -1;

	if (lbd) {
		const char *const argv[] = { lbd, "--home", ctl->client.home, option, NULL };

		status = program_output(argv, ANSWER_MS, &text, err);
	}
	if (status > 0)
		err_set(err, ERR_USAGE, "%s",
			text + (text_begins_with(text, prefix) ? strlen(prefix) : 0));
	free(lbd);
	if (status == 0)
		return text;
	free(text);
	return NULL;
}

int64_t lbd_patience_ms(const struct ctl *ctl)
{
	return ctl->options.timeout_ms >= 0 ? ctl->options.timeout_ms : PATIENCE_MS;
}
