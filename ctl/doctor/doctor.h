/* SPDX-License-Identifier: MIT */
/* doctor/ - lbctl doctor: what is not as it should be, and what to do about it.
 *
 * doctor.h - what is looked at by `lbctl doctor`: a row and a function for each check. */
#ifndef CTL_DOCTOR_DOCTOR_H
#define CTL_DOCTOR_DOCTOR_H

#include "ctl/base/command.h"

enum verdict { VERDICT_FINE, VERDICT_SKIPPED, VERDICT_FINDING };

struct finding {
	enum verdict verdict;
	char text[320]; /* what was seen */
	char fix[320];  /* what to do; "" unless it is a finding */
};

/* What several checks need, asked once. */
struct patient {
	struct ctl *ctl;
	const char *home;
	json_t *version;          /* of the lbd that answers; NULL: none does */
	char *config;             /* as lbd --check-config prints it; NULL when that fails */
	char *config_trouble;     /* why it fails; NULL */
	char *slurm;              /* scontrol show config; NULL: no Slurm, or it does not answer */
	bool has_slurm;           /* its commands are there, and a configuration */
	const char *conf_trouble; /* SLURM_CONF, where that cannot be read; NULL; borrowed */
};

struct check {
	const char *name;
	void (*look)(const struct patient *p, struct finding *f);
};

extern const struct check machine_checks[], login_checks[],
	slurm_checks[]; /* ended by a row without a name */

/* doctor_gpus.c */
void look_at_gpus(const struct patient *p, struct finding *f);

/* The value of such a line "key = value" there, without quotes; owned, NULL = it is not set. */
char *patient_setting(const struct patient *p, const char *section, const char *key);

void finding_fine(struct finding *f, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void finding_skip(struct finding *f, const char *why);
/* `fix` is what to do. */
void finding_bad(struct finding *f, const char *fix, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

#endif
