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

const char *trainer_request_name(enum trainer_request request)
{
	static const char *const names[TRAINER_REQUEST_COUNT] = {
		[TRAINER_REQUEST_STACKS] = "stacks",
		[TRAINER_REQUEST_SAVE] = "save",
	};

	return names[request];
}

int trainer_request_write(const char *folder, enum trainer_request request, const char *by,
			  struct err *err)
{
	char *path = path_join("%s/%s", folder, trainer_request_name(request));
	json_t *root = json_object();
	int rc;

	js_set_int(root, "version", WISH_VERSION);
	js_set_str(root, "by", by);
	rc = js_save(path, root, err);
	free(path);
	return rc;
}

bool trainer_request_take(const char *folder, enum trainer_request request, char *by, size_t size)
{
	char *path = path_join("%s/%s", folder, trainer_request_name(request));
	bool is_there;

	by[0] = '\0';
	folder_look_anew(folder);
	is_there = file_exists(path);
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
