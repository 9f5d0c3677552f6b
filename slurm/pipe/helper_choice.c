/* SPDX-License-Identifier: MIT */
/* helper_choice.c - a helper is chosen by trying it: whether its library can be loaded the loader
 * knows best. */
#include "slurm/pipe/helper_choice.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "common/base/strv.h"
#include "slurm/pipe/command.h"

static const char *configuration(void)
{
	/* The second one is a site's whose controller hands out its configuration. */
	static const char *const places[] = { "/etc/slurm/slurm.conf",
					      "/run/slurm/conf/slurm.conf" };
	const char *told = getenv("SLURM_CONF");

	if (told && told[0])
		return access(told, R_OK) == 0 ? told : NULL;
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
		if (access(places[i], R_OK) == 0)
			return places[i];
	}
	return NULL;
}

/* The last one counts: "lbd-slurm 0.1.0 (Slurm 24.11.5)", "slurm 24.11.5" → 2411; 0: none is named. */
static int release_in(const char *text)
{
	int release = 0;
	char *end;

	while (text && (text = strchr(text, ' '))) {
		long year = strtol(++text, &end, 10);

		if (end > text && *end == '.')
			release = (int)(100 * year + strtol(end + 1, NULL, 10));
	}
	return release;
}

/* What `program --version` names; -1: it does not run, and *why says so. */
static int release_of(const char *program, struct err *why)
{
	const char *const words[] = { program, "--version", NULL };
	struct said said;
	int release = -1;

	command_ask(words, &said);
	if (said.status == 0)
		release = release_in(said.out);
	else if (said.status == COMMAND_NOT_STARTED)
		err_set(why, ERR_SCHEDULER, "there is no %s", program);
	else
		err_set(why, ERR_SCHEDULER, "%s does not run: %.300s", program, said.errors);
	said_clear(&said);
	return release;
}

/* The less, the better. */
static int distance(int release, int site)
{
	enum { NEWER = 10000 };

	if (site == 0)
		return NEWER - release; /* the newest */
	return release <= site ? site - release : NEWER + release - site;
}

static bool is_among(char *const *list, const char *path)
{
	for (; list && *list; list++) {
		if (strcmp(*list, path) == 0)
			return true;
	}
	return false;
}

static char *note_if_strange(const char *path, int release, int site)
{
	if (site == 0 || release == 0 || release == site)
		return NULL;
	return xasprintf("there is no helper for Slurm %d.%02d here: that for %d.%02d serves (%s)",
			 site / 100, site % 100, release / 100, release % 100, path);
}

static int take_library(char *const *unfit, struct slurm_helper *out, struct err *err)
{
	struct strv all = path_slurm_helpers();
	struct err why = { 0 };
	int site = release_of("scontrol", &why), best = 0;

	why = (struct err){ 0 };
	for (size_t i = 0; i < all.count; i++) {
		int release = is_among(unfit, all.items[i]) ? -1 : release_of(all.items[i], &why);

		if (release < 0 || (out->path && distance(release, site) >= distance(best, site)))
			continue;
		free(out->path);
		out->path = xstrdup(all.items[i]);
		best = release;
	}
	strv_free(all.items);
	if (out->path == NULL)
		return err_set(err, ERR_SCHEDULER, "%s",
			       why.text[0] ? why.text : "there is no lbd-slurm beside lbd");
	out->note = note_if_strange(out->path, best, site);
	if (out->note)
		log_warn("%s", out->note);
	return 0;
}

static int take_commands(struct slurm_helper *out, struct err *err)
{
	static const char *const needed[] = { "squeue", "sbatch", "scancel", "scontrol" };

	out->by_commands = true;
	out->path = path_sibling("lbd-slurm-commands", NULL);
	if (out->path == NULL)
		return err_set(err, ERR_SCHEDULER, "there is no lbd-slurm-commands beside lbd");
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (release_of(needed[i], err) < 0)
			return -1;
	}
	return 0;
}

int helper_choose(enum slurm_through through, char *const *unfit, struct slurm_helper *out,
		  struct err *err)
{
	struct err why = { 0 };

	*out = (struct slurm_helper){ 0 };
	if (configuration() == NULL)
		return err_set(err, ERR_SCHEDULER, "there is no Slurm configuration");
	if (through != SLURM_THROUGH_COMMANDS) {
		if (take_library(unfit, out, &why) == 0)
			return 0;
		helper_choice_clear(out);
		if (through == SLURM_THROUGH_LIBRARY)
			return err_set(err, ERR_SCHEDULER, "%s", why.text);
		log_info("%s: Slurm's commands serve", why.text);
	}
	if (take_commands(out, err) == 0) {
		if (why.code != ERR_NONE)
			out->note = xasprintf("%s: Slurm's commands serve, which take longer",
					      why.text);
		return 0;
	}
	helper_choice_clear(out);
	return -1;
}

void helper_choice_clear(struct slurm_helper *helper)
{
	free(helper->path);
	free(helper->note);
	helper->path = helper->note = NULL;
	helper->by_commands = false;
}
