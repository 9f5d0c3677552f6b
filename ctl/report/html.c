/* SPDX-License-Identifier: MIT */
/* html.c - what others wrote is shown, and never interpreted. */
#include "ctl/report/html.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "ctl/base/text.h"

static void put_clean(struct buf *out, const char *text, enum clean how)
{
	char *shown = xstrdup(text ? text : "");

	clean(shown, how);
	for (const char *c = shown; *c; c++) {
		const char *entity = text_entity(*c);

		buf_add(out, entity ? entity : c, entity ? strlen(entity) : 1);
	}
	free(shown);
}

void html_text(struct buf *out, const char *text)
{
	put_clean(out, text, CLEAN_LINE);
}

void html_line(struct buf *out, const char *text)
{
	put_clean(out, text, CLEAN_KEEP_TABS);
}

void html_table(struct buf *out, const char *const *titles, const char *numbers)
{
	buf_addf(out, "<table><tr>");
	for (size_t i = 0; titles[i]; i++)
		buf_addf(out, "<th%s scope=\"col\">%s</th>",
			 numbers[i] == 'n' ? " class=\"n\"" : "", titles[i]);
	buf_addf(out, "</tr>\n");
}

void html_table_end(struct buf *out)
{
	buf_addf(out, "</table>\n");
}

void html_cell(struct buf *out, const char *text)
{
	buf_addf(out, "<td>");
	html_text(out, text);
	buf_addf(out, "</td>");
}

void html_number(struct buf *out, const char *text)
{
	buf_addf(out, "<td class=\"n\">");
	html_text(out, text);
	buf_addf(out, "</td>");
}
