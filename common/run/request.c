/* SPDX-License-Identifier: MIT */
/* request.c - leaves requests as files, and takes them away. */
#include "common/run/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/paths.h"

enum { WISH_VERSION = 1, WISH_MAX_BYTES = 4096 };

const char *wish_name(enum wish wish)
{
	static const char *const names[WISH_COUNT] = {
		[WISH_STACKS] = "stacks",
		[WISH_SAVE] = "save",
	};

	return names[wish];
}

int wish_write(const char *folder, enum wish wish, const char *by, struct err *err)
{
	char *path = path_join("%s/%s", folder, wish_name(wish));
	json_t *root = json_object();
	char *text;
	int rc;

	js_set_int(root, "version", WISH_VERSION);
	js_set_str(root, "by", by);
	text = js_line(root);
	rc = file_write_atomic(path, text, strlen(text), 0640, err);
	free(text);
	json_decref(root);
	free(path);
	return rc;
}

bool wish_take(const char *folder, enum wish wish, char *by, size_t size)
{
	char *path = path_join("%s/%s", folder, wish_name(wish));
	bool is_there = access(path, F_OK) == 0;

	by[0] = '\0';
	if (is_there) {
		json_t *root = js_load(path, WISH_MAX_BYTES, NULL);

		snprintf(by, size, "%s", js_str(root, "by", ""));
		json_decref(root);
		/* What cannot be taken away would be done for ever. */
		is_there = unlink(path) == 0;
	}
	free(path);
	return is_there;
}
