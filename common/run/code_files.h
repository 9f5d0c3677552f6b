/* SPDX-License-Identifier: MIT */
/* code_files.h - names in a run's folder of what is known of the code that it was submitted
 * with. */
#ifndef COMMON_RUN_CODE_FILES_H
#define COMMON_RUN_CODE_FILES_H

#define CODE_JSON "code.json"
/* Lines "BYTES SECONDS.NANOSECONDS NAME", names below the root that code.json tells. */
#define CODE_FILES "code.files"
/* One line, by lbrun: which of them a later launch found changed. */
#define CODE_CHANGED "code.changed"

#endif
