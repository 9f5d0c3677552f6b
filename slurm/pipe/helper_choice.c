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

enum site {
	SITE_NONE,  /* no Slurm here */
	SITE_FILE,  /* its slurm.conf can be read */
	SITE_UNREAD /* only its commands know where they have theirs from */
};

/* The file that its controller names in "SLURM_CONF  = /opt/slurm/etc/slurm.conf", where this
 * machine has it, too: for us and all that we start. */
static enum site take_named_file(const char *config)
{
	static const char name[] = "\nSLURM_CONF";
	const char *at = strstr(config, name);
	enum site site = SITE_UNREAD;
	char *path;

	if (at == NULL)
		return SITE_UNREAD;
	at += sizeof(name) - 1;
	at += strspn(at, " =");
	path = xstrndup(at, strcspn(at, " \n"));
	if (access(path, R_OK) == 0) {
		setenv("SLURM_CONF", path, 1);
		site = SITE_FILE;
	}
	free(path);
	return site;
}

/* Nobody was asked for a configuration: what could not be fetched from a server that is named is
 * another matter. */
static bool is_none(const struct said *said)
{
	return strstr(said->errors, "configuration source") && !getenv("SLURM_CONF_SERVER") &&
	       !strstr(said->errors, "remote configs");
}

/* No file at the usual places: Slurm may have been built for another one (/opt/slurm/etc), or ask a
 * server for its configuration (SLURM_CONF_SERVER, DNS). Its commands know. */
static enum site ask_commands(void)
{
	static const char *const words[] = { "timeout", "10", "scontrol", "show", "config", NULL };
	enum { NO_SUCH_PROGRAM = 127 };
	enum site site = SITE_UNREAD;
	struct said said;

	command_ask(words, &said);
	if (said.status == 0)
		site = take_named_file(said.out);
	else if (said.status == NO_SUCH_PROGRAM || said.status == COMMAND_NOT_STARTED ||
		 is_none(&said))
		site = SITE_NONE;
	said_clear(&said);
	return site;
}

static enum site find_site(struct err *err)
{
	const char *told;
	enum site site;

	if (path_slurm_conf(&told))
		return SITE_FILE;
	if (told) {
		err_set(err, ERR_SCHEDULER, "SLURM_CONF: %.300s cannot be read", told);
		return SITE_NONE;
	}
	site = ask_commands();
	if (site == SITE_NONE)
		err_set(err, ERR_SCHEDULER, "there is no Slurm configuration");
	return site;
}

/* The last one counts: "lbd-slurm 0.1.0 (Slurm 24.11.5)", "slurm 24.11.5" → 2411; 0: none is
 * named. */
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

/* Where even their configuration has to be fetched none of them runs while that server does not
 * answer. */
static int take_commands(struct slurm_helper *out, enum site site, struct err *err)
{
	static const char *const needed[] = { "squeue", "sbatch", "scancel", "scontrol" };

	out->by_commands = true;
	out->path = path_sibling("lbd-slurm-commands", NULL);
	if (out->path == NULL)
		return err_set(err, ERR_SCHEDULER, "there is no lbd-slurm-commands beside lbd");
	for (size_t i = 0; site == SITE_FILE && i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (release_of(needed[i], err) < 0)
			return -1;
	}
	return 0;
}

int helper_choose(enum slurm_through through, char *const *unfit, struct slurm_helper *out,
		  struct err *err)
{
	struct err why = { 0 };
	enum site site;

	*out = (struct slurm_helper){ 0 };
	site = find_site(err);
	if (site == SITE_NONE)
		return -1;
	if (site == SITE_UNREAD)
		err_set(&why, ERR_SCHEDULER, "this machine has no slurm.conf for lbd-slurm");
	if (through != SLURM_THROUGH_COMMANDS) {
		if (site == SITE_FILE && take_library(unfit, out, &why) == 0)
			return 0;
		helper_choice_clear(out);
		if (through == SLURM_THROUGH_LIBRARY)
			return err_set(err, ERR_SCHEDULER, "%s", why.text);
		log_info("%s: Slurm's commands serve", why.text);
	}
	if (take_commands(out, site, err) == 0) {
		if (why.code != ERR_NONE && through == SLURM_THROUGH_AUTO)
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
