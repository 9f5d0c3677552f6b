/* SPDX-License-Identifier: MIT */
/* spank_plugin.c - a site's plug-in of Slurm for plugins.t: it gives sbatch the options
 * --image=IMAGE and --fast, and tasks $SITE_IMAGE. */
#include <slurm/spank.h>
#include <stddef.h>

SPANK_PLUGIN(site, 1)

static int take(int value, const char *argument, int remote)
{
	(void)value;
	(void)argument;
	(void)remote;
	return 0;
}

static char image_name[] = "image", image_value[] = "IMAGE", image_use[] = "what the job runs in";
static char fast_name[] = "fast", fast_use[] = "as fast as it can";
static struct spank_option options[] = {
	{ image_name, image_value, image_use, 1, 0, take },
	{ fast_name, NULL, fast_use, 0, 1, take },
};

int slurm_spank_init(spank_t spank, int argc, char **argv)
{
	(void)argc;
	(void)argv;
	spank_option_register(spank, &options[0]);
	return spank_option_register(spank, &options[1]);
}

int slurm_spank_task_init(spank_t spank, int argc, char **argv)
{
	char *image = NULL;

	(void)argc;
	(void)argv;
	if (spank_option_getopt(spank, &options[0], &image) == ESPANK_SUCCESS && image)
		spank_setenv(spank, "SITE_IMAGE", image, 1);
	return 0;
}
