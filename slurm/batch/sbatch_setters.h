/* SPDX-License-Identifier: MIT */
/* sbatch_setters.h - from the value of an option to what it asks for, for the rows of
 * sbatch_options.c.
 *
 * Each is a `set` of struct sbatch_option: -1 with err saying what is wrong with the value. */
#ifndef SLURM_BATCH_SBATCH_SETTERS_H
#define SLURM_BATCH_SBATCH_SETTERS_H

#include "slurm/batch/sbatch_options.h"

#define SBATCH_SETTER(name) \
	int sbatch_##name(struct sbatch_choice *c, const struct sbatch_option *option, \
			  const char *value, struct err *err)

/* "VALUE": must be ALLOWED. -1. */
int sbatch_not_among(const char *value, const char *allowed, struct err *err);
void sbatch_put_text(struct sbatch_choice *c, const char *field, const char *text);

SBATCH_SETTER(set_text);
SBATCH_SETTER(set_text_or_none);
SBATCH_SETTER(set_number);
SBATCH_SETTER(set_flag);
SBATCH_SETTER(set_megabytes);
SBATCH_SETTER(set_minutes);
SBATCH_SETTER(set_seconds);
SBATCH_SETTER(set_moment);
SBATCH_SETTER(set_file);
SBATCH_SETTER(set_nothing);
SBATCH_SETTER(refuse);
SBATCH_SETTER(set_nodes);
SBATCH_SETTER(set_chdir);
SBATCH_SETTER(set_nodelist);
SBATCH_SETTER(set_array);
SBATCH_SETTER(set_extra_node_info);
SBATCH_SETTER(set_exclusive);
SBATCH_SETTER(set_job_flag);
SBATCH_SETTER(set_gres_flags);
SBATCH_SETTER(set_kill_on_invalid_dep);
SBATCH_SETTER(set_no_kill);
SBATCH_SETTER(set_mail_type);
SBATCH_SETTER(set_signal);
SBATCH_SETTER(set_nice);
SBATCH_SETTER(set_open_mode);
SBATCH_SETTER(set_profile);
SBATCH_SETTER(set_distribution);
SBATCH_SETTER(set_switches);
SBATCH_SETTER(set_cpu_freq);
SBATCH_SETTER(set_hint);
SBATCH_SETTER(set_gres);
SBATCH_SETTER(set_core_spec);
SBATCH_SETTER(set_get_user_env);
SBATCH_SETTER(set_export);
SBATCH_SETTER(set_propagate);
SBATCH_SETTER(set_requeue);
SBATCH_SETTER(set_tres_per_task);
SBATCH_SETTER(set_tres_bind);
SBATCH_SETTER(set_mem_update);

#endif
