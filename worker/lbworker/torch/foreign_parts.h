/* SPDX-License-Identifier: MIT */
/* foreign_parts.h - a row of the layouts of others, and how each says a shape. Private to
 * foreign*. */
#ifndef LBWORKER_FOREIGN_PARTS_H
#define LBWORKER_FOREIGN_PARTS_H

#include "common/base/err.h"
#include "worker/lbworker/model/model.h"
#include "worker/lbworker/torch/foreign.h"
#include "worker/lbworker/torch/tensors.h"

enum foreign_names { NAMES_OURS, NAMES_META, NAMES_LITGPT, NAMES_TITAN, NAMES_COUNT };

struct foreign_layout {
	const char *name, *weights, *config; /* the latter two: files */
	enum foreign_names names;
	const char *prefix; /* of a layer's tensors, in front of its number */
	int (*read)(struct model_shape *out, size_t *positions, const char *folder,
		    const struct tensors *tensors, struct err *err);
	int (*write)(const struct model_shape *shape, size_t positions, const char *dtype,
		     const char *path, struct err *err);
};

/* *out: what is known beforehand, or all zero; then what the files say. */
int meta_read(struct model_shape *out, size_t *positions, const char *folder,
	      const struct tensors *tensors, struct err *err);
int meta_write(const struct model_shape *shape, size_t positions, const char *dtype,
	       const char *path, struct err *err);
int litgpt_read(struct model_shape *out, size_t *positions, const char *folder,
		const struct tensors *tensors, struct err *err);
int litgpt_write(const struct model_shape *shape, size_t positions, const char *dtype,
		 const char *path, struct err *err);
int hf_read(struct model_shape *out, size_t *positions, const char *folder,
	    const struct tensors *tensors, struct err *err);
int hf_write(const struct model_shape *shape, size_t positions, const char *dtype, const char *path,
	     struct err *err);

/* foreign_put_settings of a checkpoint. */
struct dcp_writer;
int settings_put(struct dcp_writer *writer, const struct st_tensor *list, size_t count,
		 const struct foreign_settings *settings, struct err *err);

int dcp_shape(struct model_shape *out, size_t *positions, const char *folder,
	      const struct tensors *tensors, struct err *err);

#endif
