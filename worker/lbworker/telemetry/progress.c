/* SPDX-License-Identifier: MIT */
/* progress.c - one step, told three times. Tags in TensorBoard are torchtitan's, so that runs of
 * both lie in the same charts. */
#include "worker/lbworker/telemetry/progress.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/log.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/telemetry/plan.h"
#include "worker/lbworker/telemetry/precision_log.h"
#include "worker/lbworker/telemetry/tensorboard.h"

struct progress {
	const struct config *config;
	struct report *report;
	struct meter meter;
	int ranks;
	const struct plan_device *sheet;   /* of each; NULL: we know none, as of CPUs */
	struct tensorboard *tb;            /* NULL: not wanted */
	const struct precision *precision; /* of the model; or NULL */
	char *precision_path, *ranks_path,
		*experts_path; /* NULL: nothing is written there any more */
};

static int open_tensorboard(struct progress *p, int64_t first_step, struct err *err)
{
	const struct config *c = p->config;
	char *folder;

	if (!c->enable_tensorboard)
		return 0;
	folder = path_join("%s/%s", c->dump_folder, c->save_tb_folder);
	p->tb = tensorboard_open(folder, first_step, err);
	p->ranks_path = path_join("%s/ranks.jsonl", folder);
	free(folder);
	return p->tb ? 0 : err_wrap(err, "metrics.save_tb_folder");
}

static void print_ceilings(const struct progress *p)
{
	const struct token_flop *f = &p->meter.flop;

	printf("a token needs %.3f GFLOP (attention counted causally: %.3f; 6 N, as handbooks have "
	       "it: %.3f); peak %.3f TFLOP/s, %s\n",
	       f->palm * 1e-9, f->causal * 1e-9, f->handbook * 1e-9, p->meter.peak_flops * 1e-12,
	       p->config->peak_tflops > 0 ? "from metrics.peak_tflops" : "measured now");
	if (p->sheet)
		printf("%s: %.1f TFLOP/s by its data sheet, of which mfu_sheet is a share\n",
		       p->sheet->about, p->ranks * p->sheet->flops * 1e-12);
}

struct progress *progress_open(const struct config *config, const struct model *model,
			       struct report *report, const struct progress_start *start,
			       struct err *err)
{
	struct progress *p = xcalloc(1, sizeof(*p));

	p->config = config;
	p->ranks = start->ranks;
	p->report = report;
	p->precision = model->precision;
	p->precision_path = path_join("%s/precision.jsonl", config->dump_folder);
	p->experts_path = path_join("%s/experts.jsonl", config->dump_folder);
	if (p->precision || model->loads)
		(void)folder_make(config->dump_folder, 0755,
				  NULL); /* the file says what is wrong */
	if (open_tensorboard(p, start->first_step, err)) {
		progress_close(p);
		return NULL;
	}
	p->sheet = plan_device_of(model->backend->describe(model->device));
	meter_init(&p->meter, model, &start->peak);
	print_ceilings(p);
	return p;
}

void progress_close(struct progress *p)
{
	if (!p)
		return;
	tensorboard_close(p->tb);
	free(p->precision_path);
	free(p->ranks_path);
	free(p->experts_path);
	free(p);
}

static double of_ranks(const struct report_step *s, double ms)
{
	return s->ranks.count > 0 ? ms * 1e-3 : NAN;
}

static void chart(struct progress *p, const struct report_step *s)
{
	const struct tb_scalar scalars[] = {
		{ "loss_metrics/global_avg_loss", s->loss },
		{ "validation_metrics/loss", s->val_loss },
		{ "grad_norm", s->grad_norm },
		{ "lr", s->lr },
		{ "noise_scale(tokens)", s->noise_tokens },
		{ "experts/load_max", s->expert_most },
		{ "experts/load_min", s->expert_least },
		{ "throughput(tps)", s->tokens_per_s },
		{ "tflops", s->tflops },
		{ "mfu(%)", 100 * s->mfu },
		{ "mfu_causal(%)", 100 * s->mfu_causal },
		{ "mfu_handbook(%)", 100 * s->mfu_handbook },
		{ "mfu_sheet(%)", 100 * s->mfu_sheet },
		{ "memory/max_active(GiB)", s->memory_gib },
		{ "time_metrics/end_to_end(s)", s->step_ms * 1e-3 },
		{ "time_metrics/data_loading(s)", s->data_ms * 1e-3 },
		{ "time_metrics/checkpoint_wait(s)", s->checkpoint_ms * 1e-3 },
		{ "time_metrics/ranks_own_mean(s)", of_ranks(s, s->ranks.own_ms) },
		{ "time_metrics/ranks_own_slowest(s)", of_ranks(s, s->ranks.slowest_ms) },
		{ "time_metrics/ranks_data_mean(s)", of_ranks(s, s->ranks.data_ms) },
	};
	tensorboard_add(p->tb, s->step, scalars, sizeof(scalars) / sizeof(scalars[0]));
}

static void print(const struct report_step *s)
{
	printf("step %" PRId64 "/%" PRId64 " loss %.4f grad_norm %.3f lr %.3e %.0f tokens/s"
	       " %.3f TFLOP/s",
	       s->step, s->target_step, s->loss, s->grad_norm, s->lr, s->tokens_per_s, s->tflops);
	if (isfinite(s->mfu))
		printf(" %.1f%% MFU", 100 * s->mfu);
	if (isfinite(s->noise_tokens))
		printf(" noise scale %.3g tokens", s->noise_tokens);
	if (isfinite(s->expert_most))
		printf(" experts %.2f to %.2f of the mean", s->expert_least, s->expert_most);
	printf(" %.2f GiB\n", s->memory_gib);
	if (isfinite(s->val_loss))
		printf("validation at step %" PRId64 ": loss %.4f, perplexity %.2f\n", s->step,
		       s->val_loss, exp(s->val_loss));
}

bool progress_is_logged(const struct progress *p, const struct report_step *s)
{
	return s->step % p->config->log_freq == 0 || s->step == 1 || s->step == s->target_step;
}

/* The first failure is a warning, and the last line: no training dies of its statistics. */
static void tell_precision(struct progress *p, int64_t step)
{
	struct err err = { 0 };

	if (!p->precision || !p->precision_path ||
	    precision_log(p->precision, step, p->precision_path, p->tb, &err) == 0)
		return;
	log_warn("precision.jsonl: %s", err.text);
	free(p->precision_path);
	p->precision_path = NULL;
}

static void add_times(json_t *line, const char *name, int count, const double *first, size_t stride)
{
	json_t *times = json_array();

	for (int r = 0; r < count; r++)
		json_array_append_new(
			times, json_real(*(const double *)(const void *)((const char *)first +
									 r * stride)));
	json_object_set_new(line, name, times);
}

/* Takes out and line. What cannot be written is one warning, and no path any more. */
static void append_line(FILE *out, json_t *line, char **path, const char *name)
{
	char *text = json_dumps(line, JSON_COMPACT | JSON_REAL_PRECISION(6));
	bool is_written = out && fprintf(out, "%s\n", text) > 0;

	if ((out && fclose(out) != 0) || !is_written) {
		log_warn("%s: %s", name, strerror(errno));
		free(*path);
		*path = NULL;
	}
	free(text);
	json_decref(line);
}

void progress_ranks(struct progress *p, int64_t step, int count, const double *own_ms,
		    const double *data_ms, size_t stride)
{
	FILE *out = p->ranks_path ? file_append_lines(p->ranks_path) : NULL;

	if (!p->ranks_path)
		return;
	json_t *line = json_pack("{s:I}", "step", (json_int_t)step);
	add_times(line, "own_ms", count, own_ms, stride);
	add_times(line, "data_ms", count, data_ms, stride);
	append_line(out, line, &p->ranks_path, "ranks.jsonl");
}

void progress_experts(struct progress *p, int64_t step, const struct model_shape *shape,
		      const uint64_t *loads)
{
	const struct model_experts *e = &shape->experts;
	FILE *out = p->experts_path ? file_append_lines(p->experts_path) : NULL;

	if (!p->experts_path)
		return;
	json_t *layers = json_array();
	for (size_t l = e->dense; l < shape->layers; l++) {
		json_t *layer = json_array();
		for (size_t i = 0; i < e->count; i++)
			json_array_append_new(layer,
					      json_integer((json_int_t)loads[l * e->count + i]));
		json_array_append_new(layers, layer);
	}
	json_t *line = json_pack("{s:I, s:I, s:o}", "step", (json_int_t)step, "first_layer",
				 (json_int_t)e->dense, "tokens", layers);
	append_line(out, line, &p->experts_path, "experts.jsonl");
}

void progress_step(struct progress *p, struct report_step *s)
{
	struct meter *m = &p->meter;
	bool is_logged = progress_is_logged(p, s) || isfinite(s->val_loss);

	if (is_logged && meter_hold_against(m, m->flop.causal * s->tokens_per_s))
		printf("peak %.3f TFLOP/s, measured again: the machine was busy before\n",
		       m->peak_flops * 1e-12);
	s->tflops = m->flop.palm * s->tokens_per_s * 1e-12;
	s->mfu = meter_mfu(m, m->flop.palm, s->tokens_per_s);
	s->mfu_causal = meter_mfu(m, m->flop.causal, s->tokens_per_s);
	s->mfu_handbook = meter_mfu(m, m->flop.handbook, s->tokens_per_s);
	s->mfu_sheet = p->sheet ? m->flop.palm * s->tokens_per_s / (p->ranks * p->sheet->flops)
				: NAN;
	s->memory_gib = (double)meter_memory_bytes(m, is_logged) / (1 << 30);
	report_step(p->report, s);
	if (!is_logged)
		return;
	print(s);
	if (progress_is_logged(p, s))
		tell_precision(p, s->step);
	if (p->tb)
		chart(p, s);
}
