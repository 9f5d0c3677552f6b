/* SPDX-License-Identifier: MIT */
/* version.c - lbctl version: of lbctl, and of the lbd that answers. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/json.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"

/* Which lbctl this is can be told without lbd; people ask when something does not work. */
int version_run(struct ctl *ctl, struct err *err)
{
	struct err why = { 0 };
	json_t *lbd = client_ask(&ctl->client, VERB_VERSION, NULL, &why);

	(void)err;
	if (ctl->options.json) {
		print_json(json_pack("{s:s, s:o}", "lbctl", LB_VERSION, "lbd",
				     lbd ? json_incref(lbd) : json_null()));
	} else {
		printf("lbctl %s\n", LB_VERSION);
		if (lbd) {
			char *version = clean_copy(js_str(lbd, "version", NULL), &ctl->out);
			char *home = clean_copy(js_str(lbd, "home", NULL), &ctl->out);

			printf("lbd   %s (process %lld, %s)\n", version,
			       (long long)js_int(lbd, "pid", 0), home);
			free(version);
			free(home);
		}
	}
	json_decref(lbd);
	if (why.code != ERR_NONE)
		complain(ctl, why.text);
	return 0;
}
