/* SPDX-License-Identifier: MIT */
/* kill, hold, release and restart: orders to lbd, one line of answer per run. */
#include <stdlib.h>
#include <string.h>

#include "common/json.h"
#include "ctl/command.h"

static void print_state(const struct ctl *ctl, const char *run, const json_t *answer)
{
	char *state = clean_copy(js_str(answer, "state", NULL), &ctl->out);

	printf("%s %s%s%s\n", run, color_code(&ctl->out, state_color(state)), state,
	       color_code(&ctl->out, COLOR_NONE));
	free(state);
}

static int kill_one(struct ctl *ctl, const char *run, struct err *err)
{
	json_t *args = json_pack("{s:[s], s:b}", "runs", run, "now", ctl->options.now ? 1 : 0);
	json_t *data;

	if (ctl->options.reason)
		json_object_set_new(args, "reason", json_string(ctl->options.reason));
	data = client_ask(&ctl->client, VERB_KILL, args, err);
	if (!data) {
		client_suggest(&ctl->client, run, err);
		return -1;
	}
	print_state(ctl, run, json_array_get(data, 0));
	json_decref(data);
	return 0;
}

/* One question per run: one name that does not exist must not keep the others alive. */
static int for_each_run(struct ctl *ctl, int (*one)(struct ctl *ctl, const char *run, struct err *err),
			struct err *err)
{
	json_t *text = ctl->options.reason ? json_string(ctl->options.reason) : json_null();
	int worst = 0;

	if (!text)
		return err_set(err, ERR_USAGE, "--reason: this is not UTF-8");
	json_decref(text);
	for (size_t i = 0; i < ctl->operands.count; i++) {
		struct err why = {0};

		if (one(ctl, ctl->operands.words[i], &why) == 0)
			continue;
		complain(ctl, why.text);
		if (err_exit_status(why.code) > worst)
			worst = err_exit_status(why.code);
		if (why.code == ERR_DAEMON || why.code == ERR_TIMEOUT)
			break;
	}
	return worst;
}

int kill_run(struct ctl *ctl, struct err *err)
{
	return for_each_run(ctl, kill_one, err);
}

static int ask_one(struct ctl *ctl, enum verb verb, const char *run, struct err *err)
{
	json_t *args = json_object(), *data;

	if (ctl->options.reason)
		json_object_set_new(args, "reason", json_string(ctl->options.reason));
	data = ask_about(ctl, verb, run, args, err);
	if (!data)
		return -1;
	print_state(ctl, run, data);
	json_decref(data);
	return 0;
}

static int hold_one(struct ctl *ctl, const char *run, struct err *err)
{
	return ask_one(ctl, VERB_HOLD, run, err);
}

static int release_one(struct ctl *ctl, const char *run, struct err *err)
{
	return ask_one(ctl, VERB_RELEASE, run, err);
}

int hold_run(struct ctl *ctl, struct err *err)
{
	return for_each_run(ctl, hold_one, err);
}

int release_run(struct ctl *ctl, struct err *err)
{
	return for_each_run(ctl, release_one, err);
}

int restart_run(struct ctl *ctl, struct err *err)
{
	const char *run = ctl->operands.words[0];
	json_t *args = json_object(), *data;

	if (add_settings(args, &ctl->options, err) < 0) {
		json_decref(args);
		return -1;
	}
	if (ctl->options.from)
		json_object_set_new(args, "from", json_string(ctl->options.from));
	data = ask_about(ctl, VERB_RESTART, run, args, err);
	if (!data)
		return -1;
	print_state(ctl, run, data);
	json_decref(data);
	hint(ctl, "follow it: lbctl follow %s", run);
	return 0;
}
