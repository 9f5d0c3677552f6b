/* SPDX-License-Identifier: MIT */
/* requests.c - lbctl stacks: what may be asked of a running trainer without ending it. */
#include <stdio.h>
#include <stdlib.h>

#include "common/base/json.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/team/ask.h"

int stacks_run(struct ctl *ctl, struct err *err)
{
	const char *run = ctl->operands.words[0];
	json_t *data = ask_about(ctl, VERB_STACKS, run, NULL, err);
	char *folder;

	if (!data)
		return -1;
	folder = clean_copy(js_str(data, "folder", NULL), &ctl->out);
	printf("the stacks of %s will be in %s/stacks-*.txt\n", run, folder);
	free(folder);
	json_decref(data);
	hint(ctl, "lbctl events %s names the file when it is there", run);
	return 0;
}
