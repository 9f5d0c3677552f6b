/* SPDX-License-Identifier: MIT */
/* html.h - HTML into a buffer: escaped text, tables. Pure. */
#ifndef CTL_REPORT_HTML_H
#define CTL_REPORT_HTML_H

#include <stdbool.h>

#include "common/base/mem.h"

/* Cleaned, and with < > & and quotes as HTML wants them. NULL: nothing. */
void html_text(struct buf *out, const char *text);
/* The same; tabs stay. */
void html_line(struct buf *out, const char *text);

/* A table and the titles of its columns, up to NULL; `numbers` has an 'n' for each that is aligned
 * at the right. html_table_end after the last row. */
void html_table(struct buf *out, const char *const *titles, const char *numbers);
void html_table_end(struct buf *out);
void html_cell(struct buf *out, const char *text);
void html_number(struct buf *out, const char *text);

#endif
