/* SPDX-License-Identifier: MIT */
/* fuzz_team.c - a colleague's export, as `lbctl ls --team` and `kill OWNER/RUN` read it: it counts,
 * or why it does not is told; whatever is taken of it may be printed, and leads nowhere but where
 * it says. */
#include "tests/fuzz/fuzz.h"

#include <stdio.h>
#include <unistd.h>

#include "common/base/accounts.h"
#include "common/base/json.h"
#include "common/run/run_state.h"
#include "common/team/team.h"

static const int64_t now_ms = 1800000000000;

static void on_refused(const char *file, const char *why, void *arg)
{
	fuzz_check(file[0] && why[0]);
	++*(int *)arg;
}

static bool is_printable(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < 0x20 || *text == 0x7f)
			return false;
	return true;
}

static void check_run(json_t *run)
{
	const char *key;
	json_t *value;

	fuzz_check(name_check(js_str(run, "name", ""), NULL) == 0);
	fuzz_check(run_state_from_name(js_str(run, "state", "")) != RUN_STATE_COUNT);
	json_object_foreach(run, key, value) {
		fuzz_check(!json_is_object(value) && !json_is_array(value));
		fuzz_check(!json_is_string(value) || is_printable(json_string_value(value)));
	}
}

static void check_export(const struct team_export *export)
{
	json_t *run;
	size_t i;

	fuzz_check(export->uid == geteuid());
	fuzz_check(export->written_ms >= 0 && export->written_ms <= now_ms);
	fuzz_check(!export->switches ||
		   (export->switches[0] == '/' && is_printable(export->switches)));
	fuzz_check(json_array_size(export->runs) <= TEAM_RUNS_MAX);
	json_array_foreach(export->runs, i, run)
		check_run(run);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static char file[TEAM_USER_BYTES + 16];
	struct err err = { 0 };
	struct team team;
	int refused = 0;

	if (file[0] == '\0') {
		struct account me;

		fuzz_check(account_of(geteuid(), &me));
		snprintf(file, sizeof(file), "team/%s.json", me.name);
		account_clear(&me);
	}
	fuzz_file(file, data, size);
	fuzz_check(team_read(fuzz_path("team"), now_ms, &team, on_refused, &refused, &err) == 0);
	fuzz_check(team.count + (size_t)refused == 1);
	if (team.count == 1)
		check_export(&team.exports[0]);
	team_clear(&team);
	return 0;
}
