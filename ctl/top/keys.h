/* SPDX-License-Identifier: MIT */
/* keys.h - keys that are no characters, whoever reads the terminal. */
#ifndef CTL_TOP_KEYS_H
#define CTL_TOP_KEYS_H

enum top_key {
	TOP_NOTHING = 0,
	TOP_BACK = 8,
	TOP_RETURN = 10,
	TOP_REDRAW = 12, /* Ctrl-L */
	TOP_ESC = 27,
	TOP_UP = 256,
	TOP_DOWN,
	TOP_LEFT,
	TOP_RIGHT,
	TOP_PAGE_UP,
	TOP_PAGE_DOWN,
	TOP_FIRST,
	TOP_LAST,
};

#endif
