/* SPDX-License-Identifier: MIT */
/* why.c - lbctl why: why a run does not run, what is in its way, and what would start sooner. */
#include <stdlib.h>
#include <string.h>

#include "common/base/clock.h"
#include "common/base/json.h"
#include "common/base/mem.h"
#include "ctl/base/command.h"
#include "ctl/base/print.h"
#include "ctl/team/ask.h"

static void line(const struct ctl *ctl, const char *label, const char *text)
{
	char *shown;

	if (text == NULL || text[0] == '\0')
		return;
	shown = clean_copy(text, &ctl->out);
	printf("  %s%-10s%s  %s\n", color_code(&ctl->out, COLOR_DIM), label,
	       color_code(&ctl->out, COLOR_NONE), shown);
	free(shown);
}

/* Takes `text`. */
static void line_take(const struct ctl *ctl, const char *label, char *text)
{
	line(ctl, label, text);
	free(text);
}

static void show_reason(const struct ctl *ctl, const json_t *why)
{
	const char *reason = js_str(why, "reason", NULL), *text = js_str(why, "text", "");

	if (reason && strcmp(reason, "None") != 0)
		line_take(ctl, "why", xasprintf("%s: %s", reason, text));
	else
		line(ctl, "why", text);
	line(ctl, "scheduler", js_str(why, "scheduler_text", NULL));
}

static void show_ahead(const struct ctl *ctl, const json_t *why)
{
	int64_t ahead = js_int(why, "jobs_ahead", -1);
	const char *partition = js_str(why, "partition", NULL);

	if (ahead >= 0)
		line_take(ctl, "ahead",
			  xasprintf("%lld job%s%s%s", (long long)ahead, ahead == 1 ? "" : "s",
				    partition ? " in partition " : "", partition ? partition : ""));
}

static void show_start(const struct ctl *ctl, const json_t *why)
{
	int64_t start_ms = time_ms(why, "start_estimate"), now_ms = clock_wall_ms();
	char text[CLOCK_TEXT_MAX], left[CLOCK_TEXT_MAX];

	if (start_ms > now_ms)
		line_take(ctl, "expected",
			  xasprintf("%s, in %s", clock_text(start_ms, text),
				    duration_text(start_ms - now_ms, left)));
	else if (js_int(why, "jobs_ahead", -1) >= 0) /* it was asked */
		line(ctl, "expected", "the scheduler has not planned it yet");
}

static void show_texts(const struct ctl *ctl, const char *label, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		line(ctl, i == 0 ? label : "", js_str(item, "text", NULL));
	}
}

static void show_reservations(const struct ctl *ctl, const json_t *list)
{
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		char from[CLOCK_TEXT_MAX], to[CLOCK_TEXT_MAX];

		line_take(ctl, "reserved",
			  xasprintf("%s: %s from %s to %s", js_str(item, "name", "?"),
				    js_str(item, "nodes", "nodes"),
				    clock_text(time_ms(item, "start"), from),
				    clock_text(time_ms(item, "end"), to)));
	}
}

static void show_avoided(const struct ctl *ctl, const json_t *list)
{
	char *names = xstrdup("");
	const json_t *item;
	size_t i;

	json_array_foreach(list, i, item) {
		char *longer = xasprintf("%s%s%s", names, i ? ", " : "", json_string_value(item));

		free(names);
		names = longer;
	}
	if (names[0])
		line_take(ctl, "avoided",
			  xasprintf("%s: lbd keeps away from them after failures; lbctl nodes "
				    "says why",
				    names));
	free(names);
}

static void show_page(const struct ctl *ctl, const json_t *why)
{
	const json_t *sooner = json_object_get(why, "sooner");
	const char *set = js_str(json_array_get(sooner, 0), "set", NULL);
	char *name = clean_copy(js_str(why, "run", NULL), &ctl->out);
	const char *state = js_str(why, "state", "?");

	printf("%s%s%s  %s%s%s\n", color_code(&ctl->out, COLOR_BOLD), name,
	       color_code(&ctl->out, COLOR_NONE), color_code(&ctl->out, state_color(state)), state,
	       color_code(&ctl->out, COLOR_NONE));
	show_reason(ctl, why);
	line(ctl, "account", js_str(why, "account", NULL));
	line(ctl, "qos", js_str(why, "qos", NULL));
	show_ahead(ctl, why);
	show_start(ctl, why);
	show_texts(ctl, "limits", json_object_get(why, "limits"));
	show_reservations(ctl, json_object_get(why, "reservations"));
	show_avoided(ctl, json_object_get(why, "avoided"));
	show_texts(ctl, "sooner", sooner);
	if (set)
		hint(ctl, "next: lbctl hold %s, then lbctl restart %s --set %s", name, name, set);
	free(name);
}

int why_run(struct ctl *ctl, struct err *err)
{
	json_t *why = ask_about(ctl, VERB_WHY, ctl->operands.words[0], NULL, err);

	if (!why)
		return -1;
	if (ctl->options.json) {
		print_json(why);
		return 0;
	}
	show_page(ctl, why);
	json_decref(why);
	return 0;
}
