/* SPDX-License-Identifier: MIT */
/* doctor.c - lbctl doctor: looks at what lbd depends on, and says of each thing that is not right
 * how to put it right. */
#include "ctl/doctor/doctor.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/json.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "ctl/base/print.h"
#include "ctl/base/program.h"

enum { COMMAND_MS = 20 * 1000, STATUS_FINDINGS = 1 };

static const char *const verdict_names[] = { "fine", "skipped", "finding" };

/* --- the patient ------------------------------------------------------------------------------ */

static void read_config(struct patient *p)
{
	char *lbd = path_sibling("lbd", NULL), *text;
	struct err err = { 0 };

	if (lbd) {
		const char *const argv[] = { lbd, "--home", p->home, "--check-config", NULL };
		int status = program_output(argv, COMMAND_MS, &text, &err);

		if (status == 0)
			p->config = text;
		else
			p->config_trouble = xstrdup(status > 0 ? text : err.text);
		if (status != 0)
			free(text);
	}
	free(lbd);
}

static void ask_slurm(struct patient *p)
{
	static const char *const argv[] = { "scontrol", "show", "config", NULL };
	struct err err = { 0 };
	const char *told;
	char *text;
	int status;

	if (path_slurm_conf(&told) == NULL && told) { /* scontrol would wait a minute for it */
		p->conf_trouble = told;
		return;
	}
	status = program_output(argv, COMMAND_MS, &text, &err);
	p->has_slurm = status >= 0 ? getenv("SLURM_CONF_SERVER") ||
					     !strstr(text, "configuration source")
				   : err.code != ERR_NOT_FOUND;
	if (status == 0)
		p->slurm = text;
	else
		free(text);
}

static void examine(struct patient *p, struct ctl *ctl)
{
	struct err err = { 0 };

	*p = (struct patient){ .ctl = ctl, .home = ctl->client.home };
	p->version = client_ask(&ctl->client, VERB_VERSION, NULL, &err);
	read_config(p);
	ask_slurm(p);
}

static void discharge(struct patient *p)
{
	json_decref(p->version);
	free(p->config);
	free(p->config_trouble);
	free(p->slurm);
}

/* --- what is said ----------------------------------------------------------------------------- */

static void print_finding(const struct ctl *ctl, const char *name, const struct finding *f)
{
	static const struct {
		const char *word;
		enum color color;
	} shown[] = { { "ok", COLOR_GOOD }, { "-", COLOR_DIM }, { "CHECK", COLOR_BAD } };
	char *text = clean_copy(f->text, &ctl->out), *meant = with_home(ctl, f->fix);
	char *fix = clean_copy(meant, &ctl->out);

	printf("%s%-6s%s %-12s %s\n", color_code(&ctl->out, shown[f->verdict].color),
	       shown[f->verdict].word, color_code(&ctl->out, COLOR_NONE), name, text);
	if (f->fix[0])
		printf("%20sto do: %s\n", "", fix);
	free(fix);
	free(meant);
	free(text);
}

static json_t *to_json(const char *name, const struct finding *f)
{
	json_t *o = json_object();

	js_set_str(o, "check", name);
	js_set_str(o, "verdict", verdict_names[f->verdict]);
	js_set_str(o, "text", f->text);
	js_set_str(o, "fix", f->fix[0] ? f->fix : NULL);
	return o;
}

int doctor_run(struct ctl *ctl, struct err *err)
{
	const struct check *const tables[] = { machine_checks, login_checks, slurm_checks };
	json_t *list = json_array();
	struct patient p;
	bool is_well = true;

	(void)err;
	examine(&p, ctl);
	for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
		for (const struct check *c = tables[t]; c->name; c++) {
			struct finding f = { 0 };

			c->look(&p, &f);
			is_well = is_well && f.verdict != VERDICT_FINDING;
			if (ctl->options.json)
				json_array_append_new(list, to_json(c->name, &f));
			else
				print_finding(ctl, c->name, &f);
		}
	}
	discharge(&p);
	if (ctl->options.json)
		print_json(list);
	else
		json_decref(list);
	return is_well ? 0 : STATUS_FINDINGS;
}
