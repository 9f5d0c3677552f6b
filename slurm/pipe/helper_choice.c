/* SPDX-License-Identifier: MIT */
/* helper_choice.c - a helper is chosen by trying it: whether its library can be loaded the loader
 * knows best. */
#include "slurm/pipe/helper_choice.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/base/log.h"
#include "common/base/paths.h"
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

/* Does `program --version` run? Else *why says what it said. */
static bool runs(const char *program, struct err *why)
{
	const char *const words[] = { program, "--version", NULL };
	struct said said;
	bool does;

	command_ask(words, &said);
	does = said.status == 0;
	if (said.status == COMMAND_NOT_STARTED)
		err_set(why, ERR_SCHEDULER, "there is no %s", program);
	else if (!does)
		err_set(why, ERR_SCHEDULER, "%s does not run: %.300s", program, said.errors);
	said_clear(&said);
	return does;
}

static int take_library(struct slurm_helper *out, struct err *err)
{
	out->path = path_sibling("lbd-slurm", NULL);
	if (out->path == NULL)
		return err_set(err, ERR_SCHEDULER, "there is no lbd-slurm beside lbd");
	return runs(out->path, err) ? 0 : -1;
}

static int take_commands(struct slurm_helper *out, struct err *err)
{
	static const char *const needed[] = { "squeue", "sbatch", "scancel", "scontrol" };

	out->by_commands = true;
	out->path = path_sibling("lbd-slurm-commands", NULL);
	if (out->path == NULL)
		return err_set(err, ERR_SCHEDULER, "there is no lbd-slurm-commands beside lbd");
	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
		if (!runs(needed[i], err))
			return -1;
	}
	return 0;
}

int helper_choose(enum slurm_through through, struct slurm_helper *out, struct err *err)
{
	struct err why = { 0 };

	*out = (struct slurm_helper){ 0 };
	if (configuration() == NULL)
		return err_set(err, ERR_SCHEDULER, "there is no Slurm configuration");
	if (through != SLURM_THROUGH_COMMANDS) {
		if (take_library(out, &why) == 0)
			return 0;
		helper_choice_clear(out);
		if (through == SLURM_THROUGH_LIBRARY)
			return err_set(err, ERR_SCHEDULER, "%s", why.text);
		log_info("%s: Slurm's commands serve", why.text);
	}
	if (take_commands(out, err) == 0)
		return 0;
	helper_choice_clear(out);
	return -1;
}

void helper_choice_clear(struct slurm_helper *helper)
{
	free(helper->path);
	*helper = (struct slurm_helper){ 0 };
}
