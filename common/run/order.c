/* SPDX-License-Identifier: MIT */
/* order.c - leaves and reads the file `order`. */
#include "common/run/order.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/json.h"
#include "common/base/paths.h"

enum { ORDER_VERSION = 1, ORDER_MAX_BYTES = 4096 };

int attempt_order_write(const char *folder, const struct attempt_order *order, struct err *err)
{
	char *path = path_join("%s/order", folder);
	json_t *root = json_object();
	int rc;

	js_set_int(root, "version", ORDER_VERSION);
	js_set_str(root, "order", run_order_name(order->order));
	js_set_str(root, "by", order->by);
	js_set_str(root, "text", order->text);
	if (order->goes_on)
		js_set_bool(root, "goes_on", true);
	rc = js_save_visible(path, root, err);
	free(path);
	return rc;
}

static int order_from_json(const json_t *root, struct attempt_order *out, struct err *err)
{
	enum run_order order = run_order_from_name(js_str(root, "order", ""));

	if (js_int(root, "version", 0) > ORDER_VERSION)
		return err_set(err, ERR_USAGE, "written by a newer version");
	if (order == ORDER_COUNT || order < ORDER_STOP)
		return err_set(err, ERR_USAGE, "\"order\" must be one of stop, kill, kill_now");
	out->order = order;
	snprintf(out->by, sizeof(out->by), "%s", js_str(root, "by", ""));
	snprintf(out->text, sizeof(out->text), "%s", js_str(root, "text", ""));
	out->goes_on = order == ORDER_STOP && js_bool(root, "goes_on", false);
	return 0;
}

int attempt_order_read(const char *folder, struct attempt_order *out, struct err *err)
{
	char *path = path_join("%s/order", folder);
	json_t *root;
	int rc = -1;

	*out = (struct attempt_order){ .order = ORDER_RUN };
	folder_look_anew(folder);
	root = js_load(path, ORDER_MAX_BYTES, err);
	if (root) {
		rc = order_from_json(root, out, err);
		if (rc < 0)
			err_wrap(err, "%s", path);
		json_decref(root);
	}
	free(path);
	return rc;
}
