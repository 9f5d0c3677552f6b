/* SPDX-License-Identifier: MIT */
/* redact.h - secrets in a line that others will read. */
#ifndef COMMON_BASE_REDACT_H
#define COMMON_BASE_REDACT_H

/* Replaces, in place, by "***": the values of variables in `env` (NULL-terminated "NAME=value")
 * that are called like secrets, tokens of well-known forms, passwords in addresses, and what stands
 * behind "token=", "--api-key ", "Bearer " and the like. */
void redact(char *text, char *const *env);

#endif
