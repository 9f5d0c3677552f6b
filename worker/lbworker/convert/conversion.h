/* SPDX-License-Identifier: MIT */
/* conversion.h - a conversion that is under way; for the files of this room. */
#ifndef LBWORKER_CONVERT_CONVERSION_H
#define LBWORKER_CONVERT_CONVERSION_H

#include "worker/lbworker/convert/convert.h"
#include "worker/lbworker/convert/weights.h"
#include "worker/lbworker/lora/lora.h"
#include "worker/lbworker/model/model.h"

enum { FILE_MODE = 0644 };

/* What goes into one file: tensors first to first + count - 1 of the model. */
struct shard {
	size_t first, count;
};

struct conversion {
	const struct model *model;
	struct weights *weights;
	const struct convert_type *type;
	const struct foreign_layout *layout; /* NULL: that of Hugging Face */
	uint64_t max_bytes;                  /* of a file's data */
	struct lora_merge *merge;            /* an adapter to be added, or NULL */
	struct foreign_want want;            /* of files of others */
	bool fold;
	struct shard *shard; /* as many as there are tensors, at most */
	size_t shards;
};

/* A file that is being written: one of the two. */
struct sink {
	struct st_writer *st;
	struct foreign_writer *foreign;
};

/* The tensor that was selected, row by row, in the order and the type that the target wants. */
int put_tensor(const struct conversion *c, const struct sink *out, const struct model_tensor *t,
	       struct err *err);

/* All tensors as model.safetensors, or several files and an index. */
int shards_write(struct conversion *c, const char *folder, struct err *err);
/* All tensors, and what was asked for of the optimizer, as files of c->layout. */
int foreign_files_write(struct conversion *c, const char *from, const char *folder,
			struct err *err);

#endif
