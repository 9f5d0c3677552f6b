/* SPDX-License-Identifier: MIT */
/* finding.c - what the checks of doctor share: the three ways in which one ends, and a setting of
 * lbd's. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "ctl/doctor/doctor.h"

void finding_fine(struct finding *f, const char *fmt, ...)
{
	va_list ap;

	f->verdict = VERDICT_FINE;
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

void finding_skip(struct finding *f, const char *why)
{
	f->verdict = VERDICT_SKIPPED;
	snprintf(f->text, sizeof(f->text), "%s", why);
}

void finding_bad(struct finding *f, const char *fix, const char *fmt, ...)
{
	va_list ap;

	f->verdict = VERDICT_FINDING;
	snprintf(f->fix, sizeof(f->fix), "%s", fix);
	va_start(ap, fmt);
	vsnprintf(f->text, sizeof(f->text), fmt, ap);
	va_end(ap);
}

char *patient_setting(const struct patient *p, const char *section, const char *key)
{
	char *head = xasprintf("[%s]\n", section), *name = xasprintf("\n%s = ", key), *value = NULL;
	char *at = p->config ? strstr(p->config, head) : NULL;
	char *next = at ? strstr(at, "\n[") : NULL;

	at = at ? strstr(at, name) : NULL;
	if (at && (!next || at < next)) {
		at += strlen(name);
		at += *at == '"';
		value = xstrndup(at, strcspn(at, "\"\n"));
	}
	free(name);
	free(head);
	return value;
}
