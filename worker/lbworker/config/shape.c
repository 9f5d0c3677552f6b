/* SPDX-License-Identifier: MIT */
/* shape.c - where a shape comes from, and whether it can be. */
#include "worker/lbworker/config/shape.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/files.h"
#include "common/base/mem.h"
#include "common/base/paths.h"
#include "worker/lbworker/families/hf_config.h"
#include "worker/lbworker/model/limits.h"
#include "worker/lbworker/torch/foreign.h"

/* Where neither flavor nor file says otherwise; as torchtitan and transformers have them. */
enum { USUAL_POSITIONS = 1024, USUAL_MULTIPLE = 256, USUAL_CONTEXT = 8192 };
static const double USUAL_THETA = 10000;

static bool is_given(const struct toml *toml, const char *key)
{
	return toml_line(toml, key) != 0;
}

static int refuse(struct refusals *r, const struct toml *toml, const char *key, char *text)
{
	struct err err = { 0 };
	int rc = keys_refuse(toml, key, text, &err);

	free(text);
	return refusals_add(r, rc, &err);
}

/* --- what the sizes stand on ------------------------------------------------------------------ */

static int from_flavor(struct config *c, const struct toml *toml, struct refusals *r)
{
	const char *names;
	const struct model_flavor *flavor = model_flavor_find((enum model_family)c->model_name,
							      c->flavor, &names);

	if (!flavor)
		return refuse(r, toml, "model.flavor",
			      xasprintf("there is no \"%s\", allowed: %s; or sizes of your own, "
					"without a flavor",
					c->flavor, names));
	c->shape = flavor->shape;
	return 0;
}

/* The newest folder that the pattern matches; owned; NULL. */
static char *newest(const char *pattern, const char *folder)
{
	char *literal = path_literal(folder), *text = xasprintf(pattern, literal), *found = NULL;
	glob_t all = { 0 };

	if (glob(text, 0, NULL, &all) == 0)
		found = xstrndup(all.gl_pathv[all.gl_pathc - 1],
				 strlen(all.gl_pathv[all.gl_pathc - 1]) - strlen("/config.json"));
	globfree(&all);
	free(text);
	free(literal);
	return found;
}

/* The folder with the config.json of what training begins with: that folder itself, or checkpoints
 * in it; else of what this training has written, for its beginning may be gone by then. Owned. */
static char *shape_folder(const struct config *c)
{
	const char *initial = c->initial_load_path;
	char *found = folder_holds(initial, "config.json") ? xstrdup(initial) : NULL;

	if (!found)
		found = newest("%s/step-*/config.json", initial);
	if (!found)
		found = newest("%s/checkpoints/step-*/config.json", initial);
	if (!found)
		found = newest("%s/step-*/config.json", c->checkpoint_path);
	return found;
}

static int from_hf(struct config *c, const struct toml *toml, const char *folder,
		   struct refusals *r)
{
	struct err err = { 0 };
	size_t positions;

	if (hf_config_read(&c->shape, &positions, folder, &err) ||
	    limits_check_sizes(&c->shape, &err))
		return refuse(r, toml, "checkpoint.initial_load_path", xstrdup(err.text));
	if (is_given(toml, "model.name") && (int)c->shape.family != c->model_name)
		return refuse(r, toml, "model.name",
			      xasprintf("%s/config.json is of \"%s\": leave this key out, or "
					"model.flavor in",
					folder, model_family_name(c->shape.family)));
	c->model_name = (int)c->shape.family;
	free(c->flavor);
	c->flavor = xstrdup("");
	return 0;
}

/* A Llama in the files of others, which say its shape; a checkpoint of torchtitan may not. */
static int from_foreign(struct config *c, const struct toml *toml,
			const struct foreign_layout *layout, struct refusals *r)
{
	struct err err = { 0 };
	size_t positions;
	struct foreign *f = foreign_open(layout, c->initial_load_path, &c->shape, &positions, &err);

	foreign_close(f);
	if (!f || limits_check_sizes(&c->shape, &err))
		return refuse(r, toml, "checkpoint.initial_load_path", xstrdup(err.text));
	if (is_given(toml, "model.name") && (int)c->shape.family != c->model_name)
		return refuse(r, toml, "model.name",
			      xasprintf("%s is of \"%s\": leave this key out, or model.flavor in",
					c->initial_load_path, model_family_name(c->shape.family)));
	c->model_name = (int)c->shape.family;
	free(c->flavor);
	c->flavor = xstrdup("");
	return 0;
}

/* What is the same in all sizes of a family, as its smallest flavor has it. */
static struct model_shape usual_shape(enum model_family family)
{
	const struct model_shape *f = &model_flavor_find(family, "debugmodel", NULL)->shape;

	return (struct model_shape){ .family = family,
				     .norm_eps = f->norm_eps,
				     .rope_theta = f->rope_theta > 0 ? f->rope_theta : USUAL_THETA,
				     .tied = f->tied,
				     .positions = f->positions > 0 ? USUAL_POSITIONS : 0,
				     .window = f->window,
				     .full_every = f->full_every,
				     .local_theta = f->local_theta,
				     .score_softcap = f->score_softcap,
				     .logit_softcap = f->logit_softcap,
				     .experts = f->experts };
}

/* Sizes alone: those without which there is no model. */
static int from_nothing(struct config *c, const struct toml *toml, struct refusals *r)
{
	const struct {
		const char *key;
		int64_t value;
	} needed[] = { { "model.dim", c->dim },
		       { "model.n_layers", c->n_layers },
		       { "model.n_heads", c->n_heads },
		       { "model.vocab_size", c->vocab_size } };
	int rc = 0;

	for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++)
		if (needed[i].value == 0)
			rc = refuse(r, toml, needed[i].key,
				    xstrdup("is required where model.flavor is not given"));
	c->shape = usual_shape((enum model_family)c->model_name);
	free(c->flavor);
	c->flavor = xstrdup("");
	return rc;
}

static int base_shape(struct config *c, const struct toml *toml, struct refusals *r)
{
	const char *initial = c->initial_load_path;
	char *folder = NULL;

	if (is_given(toml, "model.flavor") && c->flavor[0])
		return from_flavor(c, toml, r);
	if (initial[0])
		folder = shape_folder(c);
	if (folder) {
		int rc = from_hf(c, toml, folder, r);
		free(folder);
		return rc;
	}
	const struct foreign_layout *layout = foreign_in(initial);
	if (initial[0] && layout && !is_given(toml, "model.dim"))
		return from_foreign(c, toml, layout, r);
	if (initial[0] && !is_given(toml, "model.dim"))
		return refuse(r, toml, "checkpoint.initial_load_path",
			      xasprintf("%s/config.json, which has the shape, is not there; or say "
					"it with model.flavor",
					initial));
	return is_given(toml, "model.dim") ? from_nothing(c, toml, r) : from_flavor(c, toml, r);
}

/* --- sizes over it ---------------------------------------------------------------------------- */

static size_t round_up(size_t value, size_t step)
{
	return (value + step - 1) / step * step;
}

/* Llama's rule: two thirds of four times the width, times a factor, up to a whole multiple. */
static size_t usual_ffn(const struct config *c)
{
	size_t ffn = 4 * c->shape.dim;

	if (!model_is_gated(c->shape.family))
		return ffn;
	ffn = 2 * ffn / 3;
	if (c->ffn_dim_multiplier > 0)
		ffn = (size_t)(c->ffn_dim_multiplier * (double)ffn);
	return round_up(ffn, c->multiple_of > 0 ? (size_t)c->multiple_of : USUAL_MULTIPLE);
}

static void take(size_t *size, int64_t value)
{
	if (value != 0)
		*size = value > 0 ? (size_t)value : 0;
}

/* Below 0: none. */
static void take_real(double *number, double value)
{
	if (value != 0)
		*number = value > 0 ? value : 0;
}

static void take_experts(struct model_experts *e, const struct config *c)
{
	take(&e->count, c->num_experts);
	take(&e->top, c->top_k);
	take(&e->ffn, c->moe_inter_dim);
	take(&e->shared, c->num_shared_experts);
	take(&e->dense, c->n_dense_layers);
	take_real(&e->scale, c->route_scale);
}

static void put_sizes_over(struct config *c, const struct toml *toml)
{
	struct model_shape *s = &c->shape;
	bool shares_heads = s->kv_heads != s->heads;
	bool new_ffn = c->dim > 0 || c->multiple_of > 0 || c->ffn_dim_multiplier > 0;

	take(&s->vocab, c->vocab_size);
	take(&s->dim, c->dim);
	take(&s->layers, c->n_layers);
	take(&s->heads, c->n_heads);
	if (c->n_heads > 0 && !shares_heads)
		s->kv_heads = s->heads;
	take(&s->kv_heads, c->n_kv_heads);
	take(&s->head_dim, c->head_dim);
	if (new_ffn && c->ffn_dim == 0)
		s->ffn = usual_ffn(c);
	take(&s->ffn, c->ffn_dim);
	take(&s->positions, model_is_rotary(s->family) ? 0 : c->max_seq_len);
	if (c->norm_eps > 0)
		s->norm_eps = (float)c->norm_eps;
	if (c->rope_theta > 0)
		s->rope_theta = c->rope_theta;
	take(&s->window, c->window);
	take(&s->full_every, c->full_every);
	take_real(&s->local_theta, c->local_theta);
	take_real(&s->query_scalar, c->query_scalar);
	take_real(&s->score_softcap, c->score_softcap);
	take_real(&s->logit_softcap, c->logit_softcap);
	take_experts(&s->experts, c);
	if (is_given(toml, "model.route_norm"))
		s->experts.normed = c->route_norm;
	if (c->rope_factor == 1)
		s->scaling = (struct rope_scaling){ 0 };
	else if (c->rope_factor > 0 && c->rope_factor != s->scaling.factor)
		s->scaling = (struct rope_scaling){ c->rope_factor, 1, 4, USUAL_CONTEXT };
	if (is_given(toml, "model.tie_word_embeddings"))
		s->tied = c->tied;
}

/* The share of a head that turns; what a flavor or a file has is a number of elements. */
static void turn(struct config *c, size_t head_dim, size_t old_head_dim)
{
	struct model_shape *s = &c->shape;
	double share = s->rotary && old_head_dim ? (double)s->rotary / (double)old_head_dim : 1;

	if (!model_is_rotary(s->family))
		return;
	if (s->family == MODEL_NEOX && old_head_dim == 0)
		share = 0.25; /* GPTNeoXConfig's */
	if (c->rotary_pct > 0)
		share = c->rotary_pct;
	/* what a division lost must not cost an element */
	s->rotary = share < 1 ? (size_t)(share * (double)head_dim + 1e-9) : 0;
	c->rotary_pct = share;
}

/* --- whether it can be ------------------------------------------------------------------------ */

static const char *blamed(const struct toml *toml, const char *first, const char *second)
{
	return is_given(toml, first) ? first : is_given(toml, second) ? second : "model.flavor";
}

static size_t divisor_below(size_t value, size_t limit)
{
	while (limit > 1 && value % limit != 0)
		limit--;
	return limit;
}

/* Heads that divide the width into even parts, the nearest to what was asked for; 0: none. */
static size_t heads_near(size_t dim, size_t heads)
{
	for (size_t away = 0; away < heads && away <= dim; away++) {
		if (dim % (2 * (heads - away)) == 0)
			return heads - away;
		if (dim % (2 * (heads + away)) == 0)
			return heads + away;
	}
	return 0;
}

static int check_heads(const struct config *c, const struct toml *toml, struct refusals *r)
{
	const struct model_shape *s = &c->shape;
	size_t near = heads_near(s->dim, s->heads);

	if (s->head_dim % 2 != 0)
		return refuse(r, toml, "model.head_dim",
			      xasprintf("%zu is odd, and elements turn in pairs: %zu would do",
					s->head_dim, s->head_dim + 1));
	if (s->head_dim && !model_has_own_heads(s->family) && s->head_dim * s->heads != s->dim)
		return refuse(r, toml, "model.head_dim",
			      xasprintf("must be dim / n_heads, %zu, in %s", s->dim / s->heads,
					model_family_name(s->family)));
	if (s->head_dim || s->dim % (2 * s->heads) == 0)
		return 0;
	char *other = near ? xasprintf(", or n_heads %zu", near) : xstrdup("");
	char *text = xasprintf(
		"dim %zu is not n_heads %zu times an even number: dim %zu would do%s", s->dim,
		s->heads, round_up(s->dim, 2 * s->heads), other);
	free(other);
	return refuse(r, toml, blamed(toml, "model.n_heads", "model.dim"), text);
}

static int check_kv_heads(const struct config *c, const struct toml *toml, struct refusals *r)
{
	const struct model_shape *s = &c->shape;
	const char *key = blamed(toml, "model.n_kv_heads", "model.n_heads");

	if (!model_has_own_heads(s->family) && s->kv_heads != s->heads)
		return refuse(r, toml, key,
			      xasprintf("%s has as many as n_heads: %zu would do",
					model_family_name(s->family), s->heads));
	if (s->kv_heads <= s->heads && s->heads % s->kv_heads == 0)
		return 0;
	return refuse(r, toml, key,
		      xasprintf("n_heads %zu is no multiple of n_kv_heads %zu: %zu would do",
				s->heads, s->kv_heads,
				divisor_below(s->heads,
					      s->kv_heads < s->heads ? s->kv_heads : s->heads)));
}

static int check_experts(const struct config *c, const struct toml *toml, struct refusals *r)
{
	const struct {
		const char *key;
		bool is_set;
	} keys[] = { { "model.num_experts", c->num_experts != 0 },
		     { "model.top_k", c->top_k != 0 },
		     { "model.moe_inter_dim", c->moe_inter_dim != 0 },
		     { "model.num_shared_experts", c->num_shared_experts != 0 },
		     { "model.n_dense_layers", c->n_dense_layers != 0 },
		     { "model.route_norm", c->route_norm },
		     { "model.route_scale", c->route_scale > 0 } };
	const struct model_experts *e = &c->shape.experts;
	int rc = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (!model_has_experts(c->shape.family) && keys[i].is_set)
			rc = refuse(r, toml, keys[i].key,
				    xasprintf("%s has no experts: qwen3_moe and dots1 do",
					      model_family_name(c->shape.family)));
	if (rc != 0 || !model_has_experts(c->shape.family))
		return rc;
	if (e->top > e->count)
		return refuse(r, toml, blamed(toml, "model.top_k", "model.num_experts"),
			      xasprintf("a token cannot go to %zu of %zu experts", e->top,
					e->count));
	if (e->dense > c->shape.layers)
		return refuse(r, toml, blamed(toml, "model.n_dense_layers", "model.n_layers"),
			      xasprintf("%zu are more than all %zu layers", e->dense,
					c->shape.layers));
	if (e->shared > 0 && !model_has_shared_experts(c->shape.family))
		return refuse(r, toml, "model.num_shared_experts",
			      xasprintf("%s has none: dots1 does",
					model_family_name(c->shape.family)));
	return 0;
}

static int check_rotary(const struct config *c, const struct toml *toml, size_t head_dim,
			struct refusals *r)
{
	const struct model_shape *s = &c->shape;

	if (!model_is_rotary(s->family) || c->rotary_pct >= 1)
		return 0;
	if (s->family != MODEL_NEOX) /* config.json could not say it */
		return refuse(r, toml, "model.rotary_pct",
			      xasprintf("all of a head turns in %s: leave it out, or name = "
					"\"neox\"",
					model_family_name(s->family)));
	if (s->rotary > 0 && s->rotary % 2 == 0)
		return 0;
	size_t even = s->rotary < 2 ? 2 : s->rotary - 1;
	return refuse(r, toml, blamed(toml, "model.rotary_pct", "model.n_heads"),
		      xasprintf("turns %zu elements of a head of %zu, which must be even: "
				"rotary_pct %.6g would do",
				s->rotary, head_dim, (double)even / (double)head_dim));
}

/* What config.json has no word for in this family: who reads the weights would compute another
 * model. */
static int check_words(const struct config *c, const struct toml *toml, struct refusals *r)
{
	const struct model_shape *s = &c->shape;
	bool has_windows = model_has_windows(s->family), has_caps = model_has_softcaps(s->family);
	const struct {
		const char *key;
		bool is_wrong;
		const char *what, *who;
	} rows[] = {
		{ "model.sliding_window", s->window > 0 && !has_windows, "all layers see all keys",
		  "mistral, qwen3, gemma2 and gemma3 have windows" },
		{ "model.full_attention_every",
		  s->full_every > 0 && (!has_windows || s->family == MODEL_MISTRAL),
		  "all layers are alike", "qwen3, gemma2 and gemma3 mix them" },
		{ "model.rope_local_theta", s->local_theta > 0 && s->family != MODEL_GEMMA3,
		  "all layers have one rope_theta", "gemma3 has two" },
		{ "model.rope_scaling_factor", s->scaling.factor > 0 && !model_is_rotary(s->family),
		  "positions are learned", "all others turn them" },
		/* files that --check wrote had the usual one */
		{ "model.rope_theta",
		  c->rope_theta > 0 && c->rope_theta != USUAL_THETA && !model_is_rotary(s->family),
		  "positions are learned", "all others turn them" },
		{ "model.rotary_pct", c->rotary_pct > 0 && !model_is_rotary(s->family),
		  "positions are learned", "all others turn them" },
		{ "model.query_scalar", s->query_scalar > 0 && !has_caps, "is head_dim",
		  "gemma2 and gemma3 have others" },
		{ "model.score_softcap", s->score_softcap > 0 && s->family != MODEL_GEMMA2,
		  "there is none", "gemma2 has it" },
		{ "model.logit_softcap", s->logit_softcap > 0 && !has_caps, "there is none",
		  "gemma2 and gemma3 have it" },
		{ "model.route_scale", s->family == MODEL_QWEN3_MOE && s->experts.scale != 1,
		  "must be 1", "dots1 has others" },
	};
	int rc = 0;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is_wrong)
			rc = refuse(r, toml, rows[i].key,
				    xasprintf("%s in %s: %s", rows[i].what,
					      model_family_name(s->family), rows[i].who));
	return rc;
}

static void tell_experts(struct config *c)
{
	const struct model_experts *e = &c->shape.experts;

	c->num_experts = (int64_t)e->count;
	c->top_k = (int64_t)e->top;
	c->moe_inter_dim = (int64_t)e->ffn;
	c->num_shared_experts = (int64_t)e->shared;
	c->n_dense_layers = e->dense > 0 ? (int64_t)e->dense : e->count > 0 ? -1 : 0;
	c->route_norm = e->normed;
	c->route_scale = e->scale;
}

/* What was worked out, so that the effective file says it all. */
static void tell_sizes(struct config *c)
{
	const struct model_shape *s = &c->shape;

	c->dim = (int64_t)s->dim;
	c->n_layers = (int64_t)s->layers;
	c->n_heads = (int64_t)s->heads;
	c->n_kv_heads = (int64_t)s->kv_heads;
	c->head_dim = (int64_t)(s->head_dim ? s->head_dim : s->dim / s->heads);
	c->ffn_dim = (int64_t)s->ffn;
	c->vocab_size = (int64_t)s->vocab;
	c->max_seq_len = (int64_t)s->positions;
	/* as few digits as give the same float again: 1e-5, not 9.99999974e-6 */
	char text[32];
	snprintf(text, sizeof(text), "%.6g", (double)s->norm_eps);
	c->norm_eps = strtod(text, NULL);
	c->rope_theta = model_is_rotary(s->family) ? s->rope_theta : 0;
	c->rope_factor = s->scaling.factor;
	c->tied = s->tied;
	int64_t no_window = model_has_windows(s->family) ? -1 : 0;
	double no_cap = model_has_softcaps(s->family) ? -1 : 0;
	c->window = s->window > 0 ? (int64_t)s->window : no_window;
	c->full_every = s->full_every > 0 ? (int64_t)s->full_every : no_window;
	c->local_theta = s->local_theta > 0 ? s->local_theta : (double)no_window;
	c->query_scalar = s->query_scalar > 0 ? s->query_scalar : no_cap;
	c->score_softcap = s->score_softcap > 0 ? s->score_softcap : no_cap;
	c->logit_softcap = s->logit_softcap > 0 ? s->logit_softcap : no_cap;
	tell_experts(c);
	c->multiple_of = 0;
	c->ffn_dim_multiplier = 0;
}

int shape_work_out(struct config *c, const struct toml *toml, struct refusals *r)
{
	struct model_shape *s = &c->shape;
	size_t before = r->count;

	if (base_shape(c, toml, r))
		return -1;
	size_t old = s->heads ? s->dim / s->heads : 0;
	old = s->head_dim ? s->head_dim : old;
	put_sizes_over(c, toml);
	if (s->kv_heads == 0)
		s->kv_heads = s->heads;
	size_t head_dim = s->head_dim ? s->head_dim : s->dim / s->heads;
	turn(c, head_dim, old);
	if (check_heads(c, toml, r) == 0)
		(void)check_rotary(c, toml, head_dim, r);
	(void)check_kv_heads(c, toml, r);
	(void)check_experts(c, toml, r);
	(void)check_words(c, toml, r);
	if (s->head_dim && s->head_dim * s->heads == s->dim)
		s->head_dim = 0; /* said, but what it would be anyway */
	tell_sizes(c);
	return r->count > before ? -1 : 0;
}
