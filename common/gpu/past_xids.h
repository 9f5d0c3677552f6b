/* SPDX-License-Identifier: MIT */
/* past_xids.h - XIDs that NVIDIA's driver told before anybody listened: the kernel's log has them.
 * It is the administrator's to say who may read that; nothing of NVML keeps them. */
#ifndef COMMON_GPU_PAST_XIDS_H
#define COMMON_GPU_PAST_XIDS_H

#include <stddef.h>
#include <stdint.h>

enum { PAST_XIDS_MAX = 32, PAST_SOURCE_BYTES = 64, PAST_WHY_BYTES = 192 };

struct past_xid {
	char pci[20]; /* "0000:3b:00" */
	int64_t xid;
	double age_s; /* -1: the log does not tell, it may be of an earlier start of the machine */
};

struct past_xids {
	struct past_xid xid[PAST_XIDS_MAX]; /* of a GPU and number the newest; oldest first */
	size_t count;
	char source[PAST_SOURCE_BYTES]; /* "/dev/kmsg", ...; "": none could be read */
	double reach_s;                 /* of its first line; -1: it does not tell */
	char why[PAST_WHY_BYTES];       /* what each that could not be read said */
};

/* Of `file`, a log as the kernel, syslog or journalctl writes it; or, where it is NULL, of the
 * first of these that can be read: /dev/kmsg, the journal since the machine was started,
 * /var/log/kern.log, messages and syslog. What a file has of earlier starts of the machine is left
 * out. */
void past_xids_read(struct past_xids *out, const char *file);

#endif
