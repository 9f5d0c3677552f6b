/* SPDX-License-Identifier: MIT */
/* rules.c - reads rules, and says whether one fits. */
#include "worker/lbworker/recipes/rules.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const module_names[MODULE_COUNT] = { "qkv", "out", "up", "down", "output" };

static const char *const product_names[][PRODUCT_COUNT] = { { "forward", "input", "weight" },
							    { "fprop", "dgrad", "wgrad" } };

#define RULE_WORDS \
	"a rule is [steps=A-B] [layers=0-1,-1] [modules=qkv,out,up,down,output] " \
	"[products=forward,input,weight] recipe=NAME"

/* Where it ends is where *at stands then. */
static int64_t take_number(const char **at)
{
	char *end;
	int64_t number = strtoll(*at, &end, 10);

	*at = end;
	return number;
}

/* "A-B", "A-", "-B", "A"; negative numbers, where they may be, count from `end`. */
static bool range_parse(struct range *out, const char *text, int64_t end)
{
	bool open = end == 0 && text[0] == '-'; /* steps: "-B" */
	const char *rest = text;
	int64_t first = open ? 0 : take_number(&rest), last = first;

	if (!open && rest == text)
		return false;
	if (*rest == '-') {
		rest++;
		last = *rest == '\0' ? INT64_MAX : take_number(&rest);
	}
	if (*rest != '\0')
		return false;
	out->first = first < 0 ? end + first : first;
	out->last = last < 0 ? end + last : last;
	return out->first >= 0 && out->first <= out->last;
}

static bool take_layers(struct rule *r, char *list, size_t layers)
{
	char *rest = NULL;

	for (char *part = strtok_r(list, ",", &rest); part; part = strtok_r(NULL, ",", &rest))
		if (r->layer_ranges == RULE_RANGES ||
		    !range_parse(&r->layers[r->layer_ranges], part, (int64_t)layers) ||
		    r->layers[r->layer_ranges++].first >= (int64_t)layers)
			return false;
	return r->layer_ranges > 0;
}

static bool take_names(unsigned *bits, char *list, const char *const *names, size_t count)
{
	char *rest = NULL;

	for (char *part = strtok_r(list, ",", &rest); part; part = strtok_r(NULL, ",", &rest)) {
		size_t i = 0;
		while (i < count && strcmp(names[i], part) != 0)
			i++;
		if (i == count)
			return false;
		*bits |= 1u << i;
	}
	return *bits != 0;
}

static bool take_word(struct rule *r, char *word, size_t layers)
{
	char again[RULE_WORD_BYTES], *value = strchr(word, '=');

	if (!value)
		return false;
	*value++ = '\0';
	snprintf(again, sizeof(again), "%s", value);
	if (strcmp(word, "steps") == 0)
		return range_parse(&r->steps, value, 0) && r->steps.last >= 1;
	if (strcmp(word, "layers") == 0)
		return take_layers(r, value, layers);
	if (strcmp(word, "modules") == 0)
		return take_names(&r->modules, value, module_names, MODULE_COUNT);
	if (strcmp(word, "products") == 0)
		return take_names(&r->products, value, product_names[0], PRODUCT_COUNT) ||
		       (r->products = 0,
			take_names(&r->products, again, product_names[1], PRODUCT_COUNT));
	if (strcmp(word, "recipe") == 0 && value[0] != '\0') {
		snprintf(r->recipe, sizeof(r->recipe), "%s", value);
		return true;
	}
	return false;
}

int rule_parse(struct rule *out, const char *text, size_t layers, struct err *err)
{
	char copy[RULE_WORD_BYTES], shown[RULE_WORD_BYTES], *rest = NULL;

	*out = (struct rule){ .steps = { 0, INT64_MAX } };
	if (strlen(text) >= sizeof(copy))
		return err_set(err, ERR_USAGE, "\"%.20s...\": too long; " RULE_WORDS, text);
	snprintf(copy, sizeof(copy), "%s", text);
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		snprintf(shown, sizeof(shown), "%s", word);
		if (!take_word(out, word, layers))
			return err_set(err, ERR_USAGE,
				       "\"%s\": \"%s\" is not known, of steps from 1 on and layers "
				       "0 to %zu; " RULE_WORDS,
				       text, shown, layers - 1);
	}
	if (out->recipe[0] == '\0')
		return err_set(err, ERR_USAGE, "\"%s\": names no recipe; " RULE_WORDS, text);
	return 0;
}

static bool is_within(const struct range *r, int64_t value)
{
	return value >= r->first && value <= r->last;
}

bool rule_holds(const struct rule *r, int64_t step)
{
	return is_within(&r->steps, step);
}

bool rule_fits(const struct rule *r, int64_t step, size_t layer, enum module module,
	       enum product product)
{
	bool fits = r->layer_ranges == 0;

	for (size_t i = 0; i < r->layer_ranges && module != MODULE_OUTPUT; i++)
		fits = fits || is_within(&r->layers[i], (int64_t)layer);
	return fits && is_within(&r->steps, step) &&
	       (r->modules == 0 || r->modules & 1u << module) &&
	       (r->products == 0 || r->products & 1u << product);
}

bool module_is_called(enum module module, size_t layer, const char *part)
{
	static const char *const names[MODULE_COUNT][8] = {
		[MODULE_QKV] = { "layers.%zu.attention.wq", "layers.%zu.attention.wk",
				 "layers.%zu.attention.wv", "layers.%zu.self_attn.q_proj",
				 "layers.%zu.self_attn.k_proj", "layers.%zu.self_attn.v_proj",
				 "h.%zu.attn.c_attn", "layers.%zu.attention.query_key_value" },
		[MODULE_OUT] = { "layers.%zu.attention.wo", "layers.%zu.self_attn.o_proj",
				 "h.%zu.attn.c_proj", "layers.%zu.attention.dense" },
		[MODULE_UP] = { "layers.%zu.feed_forward.w1", "layers.%zu.feed_forward.w3",
				"layers.%zu.mlp.gate_proj", "layers.%zu.mlp.up_proj",
				"h.%zu.mlp.c_fc", "layers.%zu.mlp.dense_h_to_4h" },
		[MODULE_DOWN] = { "layers.%zu.feed_forward.w2", "layers.%zu.mlp.down_proj",
				  "h.%zu.mlp.c_proj", "layers.%zu.mlp.dense_4h_to_h" },
		[MODULE_OUTPUT] = { "output", "lm_head", "embed_out" },
	};
	char name[64];

	for (size_t i = 0; i < 8 && names[module][i]; i++) {
		const char *one = names[module][i], *mark = strstr(one, "%zu");
		if (mark)
			snprintf(name, sizeof(name), "%.*s%zu%s", (int)(mark - one), one, layer,
				 mark + strlen("%zu"));
		else
			snprintf(name, sizeof(name), "%s", one);
		if (strstr(name, part))
			return true;
	}
	return false;
}
