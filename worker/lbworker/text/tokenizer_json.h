/* SPDX-License-Identifier: MIT */
/* tokenizer_json.h - a tokenizer.json that is being read; for the two files that do. */
#ifndef LBWORKER_TOKENIZER_JSON_H
#define LBWORKER_TOKENIZER_JSON_H

#include "common/base/json.h"
#include "worker/lbworker/text/tokenizer_parts.h"

struct reading {
	struct tokenizer *t;
	struct err *err;
	int16_t byte_of[0x180];
	json_t *vocab;
	bool has_own_pattern; /* none of those that are built in */
};

/* -1, with ERR_USAGE: that is not supported. */
int reading_refuse(struct reading *r, const char *key, const char *what);

/* Members of the document into r->t, in this order; each 0, or -1 with r->err. NULL is absent. */
int reading_normalizer(struct reading *r, const json_t *member);
int reading_pre_tokenizer(struct reading *r, const json_t *member);
int reading_decoder(struct reading *r, const json_t *member);
int reading_post_processor(struct reading *r, const json_t *member);

#endif
