/* SPDX-License-Identifier: MIT */
/* graphics.h - does this terminal show pictures? It is asked, and believed only when it says so. */
#ifndef CTL_REPORT_GRAPHICS_H
#define CTL_REPORT_GRAPHICS_H

#include <stddef.h>

struct style;

enum graphics { GRAPHICS_NONE, GRAPHICS_SIXEL, GRAPHICS_KITTY };

/* The terminal behind stdout; GRAPHICS_NONE for all else, for one of fewer lines, and for one that
 * does not answer within a second. What is typed meanwhile is lost. */
enum graphics graphics_ask(const struct style *style, int lines);

/* What its answers say; pure. */
enum graphics graphics_of(const char *answers);

/* The size of a character in dots; a guess where the terminal does not tell. */
void graphics_cell(int *width, int *height);

#endif
