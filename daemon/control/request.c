/* SPDX-License-Identifier: MIT */
/* request.c - what requests of many verbs have in common. */
#include "daemon/control/control.h"

#include "common/base/json.h"
#include "common/base/names.h"

int request_run(struct request *r, struct ledger_run *out, struct err *err)
{
	const char *name = js_str(r->args, "run", NULL);

	if (name == NULL)
		return err_set(err, ERR_USAGE, "which run?");
	if (name_check(name, err) < 0)
		return -1;
	return ledger_run_find(r->lbd->ledger, name, out, err);
}
