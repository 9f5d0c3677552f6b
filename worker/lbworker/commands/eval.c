/* SPDX-License-Identifier: MIT */
/* eval.c - lbworker eval: the loss of a model on data. */
#include "worker/lbworker/commands/command.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/mem.h"
#include "worker/lbworker/data/data.h"
#include "worker/lbworker/commands/infer.h"
#include "worker/lbworker/base/safetensors.h"

/* The first sample's tokens and logits, for a comparison with other programs. */
static int write_logits(struct model *m, const int32_t *tokens, const char *path, struct err *err)
{
	size_t vocab = m->shape.vocab;
	float *logits = xmalloc(m->seq * vocab * sizeof(*logits));
	const struct st_tensor list[] = {
		{ .name = "tokens",
		  .type = ST_I32,
		  .dimensions = 1,
		  .shape = { m->seq },
		  .data = tokens },
		{ .name = "logits",
		  .type = ST_F32,
		  .dimensions = 2,
		  .shape = { m->seq, vocab },
		  .data = logits },
	};
	int rc = model_logits(m, tokens, 0, m->seq, logits, err);

	if (rc == 0)
		rc = st_write(path, list, 2, NULL, err);
	free(logits);
	return rc;
}

static int eval(struct model *m, const struct data *data, const struct infer_arguments *a,
		struct err *err)
{
	int32_t *tokens = xcalloc(2 * m->seq, sizeof(*tokens)), *targets = tokens + m->seq;
	uint64_t samples = data_samples(data);
	double sum = 0, part;
	int rc = 0;

	if (a->samples > 0 && (uint64_t)a->samples < samples)
		samples = (uint64_t)a->samples;
	for (uint64_t i = 0; i < samples && rc == 0; i++) {
		rc = data_sample(data, i, tokens, targets, err);
		if (rc == 0 && i == 0 && a->logits)
			rc = write_logits(m, tokens, a->logits, err);
		if (rc == 0)
			rc = model_loss(m, tokens, targets, &part, err);
		sum += rc == 0 ? part : 0;
	}
	double loss = sum / (double)(samples * m->seq);
	if (rc == 0)
		printf("%" PRIu64 " tokens in %" PRIu64 " samples: loss %.6f, perplexity %.4f\n",
		       samples * m->seq, samples, loss, exp(loss));
	free(tokens);
	return rc;
}

static int eval_with(struct infer *f, const struct infer_arguments *a, struct err *err)
{
	if (!a->data)
		return err_set(err, ERR_USAGE,
			       "eval needs DATA behind the model: a file of tokens, or a folder of "
			       "them");
	if (infer_read(f, a, err))
		return -1;
	const struct data_options options = {
		.path = a->data, .seq = f->options.seq, .vocab = f->shape.vocab, .verify = true
	};
	struct data *data = data_open(&options, err);
	int rc = data ? infer_open(f, a, err) : -1;
	if (rc == 0)
		rc = eval(f->model, data, a, err);
	data_close(data);
	return rc;
}

int command_eval(int argc, char **argv)
{
	struct infer_arguments a = { 0 };
	struct infer f = { 0 };
	struct err err = { 0 };
	int rc = infer_parse(&a, argc, argv, &err);

	if (rc == 0)
		rc = eval_with(&f, &a, &err);
	infer_close(&f);
	return rc ? command_failed(&err) : EXIT_DONE;
}
