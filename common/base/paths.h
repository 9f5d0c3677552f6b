/* SPDX-License-Identifier: MIT */
/* paths.h - where things lie below $LB_HOME (lbd(8) draws the tree). */
#ifndef COMMON_BASE_PATHS_H
#define COMMON_BASE_PATHS_H

#include <limits.h>
#include <stdbool.h>

#include "common/base/err.h"
#include "common/base/mem.h"
#include "common/base/strv.h"

/* $LB_HOME, else $XDG_STATE_HOME/lb, else ~/.local/state/lb; absolute, no trailing slash; owned by
 * the caller. NULL with err when none can be told. */
char *path_lb_home(struct err *err);
/* What lies below it must fit into messages, and the ledger into the 512 bytes of a path that
 * SQLite takes. ERR_USAGE where it would not. */
enum { PATH_HOME_MAX = 480 };
int path_check_home(const char *home, struct err *err);

/* $TMPDIR, or /tmp where we may write nothing there: an environment often comes from another
 * machine, or from a job that is over. Borrowed. */
const char *path_tmp(void);

/* Where the running program is, or, after an upgrade, where its file was: what stands there now is
 * to be started then. -1 with err. */
int path_own_program(char out[PATH_MAX], struct err *err);

/* Paths are built with this and nothing else: path_join("%s/x", a); owned by the caller. */
#define path_join(...) xasprintf(__VA_ARGS__)

/* The absolute path of a sibling of the running program ("lbrun"), from /proc/self/exe; owned. */
char *path_sibling(const char *program, struct err *err);

/* The path as glob(3) takes it for itself, though it has an asterisk or a bracket. Owned. */
char *path_literal(const char *path);

/* The helpers for libslurm of this installation: lbd-slurm beside the running program, and
 * ../lib/lowbits/lbd-slurm-NUMBER, NUMBER being that of libslurm.so. Owned. */
struct strv path_slurm_helpers(void);

/* The site's slurm.conf: SLURM_CONF, or the first of the usual places where there is one. NULL:
 * there is none that we may read; *told is then the value of SLURM_CONF, or NULL. Both borrowed. */
const char *path_slurm_conf(const char **told);

/* Is there a program of this name in one of the folders of `search`, a PATH? NULL: it has none. */
bool path_has_program(const char *search, const char *program);

/* What stands behind the last slash: a part of `path`. */
const char *path_base(const char *path);

/* What stands in `path` behind `folder` and a slash: a part of `path`. NULL: by its text it lies
 * elsewhere, or is that folder itself. */
const char *path_below(const char *path, const char *folder);

#endif
