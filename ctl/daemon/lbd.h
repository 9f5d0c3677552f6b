/* SPDX-License-Identifier: MIT */
/* lbd.h - lbd as a program beside this one: started, or asked for what it prints. */
#ifndef CTL_DAEMON_LBD_H
#define CTL_DAEMON_LBD_H

#include "ctl/base/command.h"

/* lbd with one option more (NULL: none); its exit status, -1 with err. */
int lbd_run(struct ctl *ctl, const char *option, struct err *err);

/* What it prints with this option; owned. NULL with err, which lbd.toml may be the reason for. */
char *lbd_says(struct ctl *ctl, const char *option, struct err *err);

/* How long somebody waits for it. */
int64_t lbd_patience_ms(const struct ctl *ctl);

#endif
