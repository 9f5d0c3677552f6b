/* SPDX-License-Identifier: MIT */
/* tokenizer_write.h - what was learned, as Hugging Face's tokenizer.json. */
#ifndef LBWORKER_TOKENIZER_WRITE_H
#define LBWORKER_TOKENIZER_WRITE_H

#include "common/base/err.h"
#include "worker/lbworker/text/bpe_train.h"

/* The first `specials` tokens are special; `pattern` splits texts, NULL: as GPT-2 does. In one
 * piece or not at all. */
int tokenizer_write(const char *path, const struct bpe_trained *trained, size_t specials,
		    const char *pattern, struct err *err);

#endif
