/* SPDX-License-Identifier: MIT */
/* slot.c - a slot of a recipe from its words, and back. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/text.h"
#include "worker/lbworker/recipes/recipe.h"

#define SLOT_WORDS \
	"a slot is \"-\", or FORMAT [tensor | row | AxB] [pow2 | floor | up | even | e4m3] " \
	"[stochastic | zero] [hadamard] [four-over-six] [delayed:N]"

static const char *const scales[SCALE_KIND_COUNT] = {
	[SCALE_FP32] = "fp32", [SCALE_POW2] = "pow2", [SCALE_FLOOR] = "floor",
	[SCALE_UP] = "up",     [SCALE_EVEN] = "even", [SCALE_E4M3] = "e4m3",
};

static bool take_scale(struct operand_cast *c, const char *word)
{
	for (int i = SCALE_FP32; i < SCALE_KIND_COUNT; i++)
		if (strcmp(scales[i], word) == 0) {
			c->scale = (enum scale_kind)i;
			return true;
		}
	return false;
}

/* A count from 1 on; *at stands behind it then. */
static bool take_count(const char **at, uint32_t *out)
{
	enum { MOST = 99999 };

	*out = 0;
	while (**at >= '0' && **at <= '9' && *out <= MOST)
		*out = 10 * *out + (uint32_t)(*(*at)++ - '0');
	return *out >= 1 && *out <= MOST;
}

/* What shares a scale. */
static bool take_share(struct operand_cast *c, const char *word)
{
	uint32_t across, along;

	if (strcmp(word, "tensor") == 0)
		c->across = c->along = OPERAND_ALL;
	else if (strcmp(word, "row") == 0)
		c->across = 1, c->along = OPERAND_ALL;
	else if (take_count(&word, &across) && *word++ == 'x' && take_count(&word, &along) &&
		 *word == '\0')
		c->across = across, c->along = along;
	else
		return false;
	if (c->scale == SCALE_NONE)
		c->scale = SCALE_FP32;
	return true;
}

static bool take_more(struct operand_cast *c, const char *word)
{
	static const char delayed[] = "delayed:";
	uint32_t steps;

	if (strcmp(word, "stochastic") == 0)
		c->rounding = ROUND_STOCHASTIC;
	else if (strcmp(word, "zero") == 0)
		c->rounding = ROUND_TOWARD_ZERO;
	else if (strcmp(word, "hadamard") == 0)
		c->hadamard = true;
	else if (strcmp(word, "four-over-six") == 0)
		c->four_over_six = true;
	else if (text_begins_with(word, delayed) &&
		 (word += strlen(delayed), take_count(&word, &steps)) && *word == '\0' &&
		 steps <= AMAX_HISTORY_MAX)
		c->history = (uint16_t)steps;
	else
		return false;
	return true;
}

/* Words that do not go together; NULL: they do. */
static const char *what_is_wrong(const struct operand_cast *c)
{
	bool whole = c->along == OPERAND_ALL && c->across == OPERAND_ALL;
	bool is_scaled = c->scale != SCALE_NONE;

	if (c->format.kind == FORMAT_SCALE)
		return "is a format of scales, not of operands";
	if (c->format.exponent == 8 && is_scaled)
		return "bf16 needs no scale: leave it out";
	if (!is_scaled && c->format.bits < 16)
		return "needs a scale: tensor, row, or AxB such as 1x32";
	if (c->scale == SCALE_E4M3 && whole)
		return "e4m3 scales are for blocks: 1x16";
	if (c->history && !(whole && is_scaled))
		return "delayed goes with tensor";
	if (c->four_over_six && (c->scale != SCALE_E4M3 || strncmp(c->format.name, "e2m1", 4) != 0))
		return "four-over-six is for e2m1 with e4m3 scales";
	return NULL;
}

int slot_parse(struct operand_cast *out, const char *text, struct err *err)
{
	char copy[SLOT_BYTES], *rest = NULL;

	*out = (struct operand_cast){ 0 };
	if (strcmp(text, "-") == 0)
		return 0;
	if (strlen(text) >= sizeof(copy))
		return err_set(err, ERR_USAGE, "\"%.20s...\": too long; " SLOT_WORDS, text);
	snprintf(copy, sizeof(copy), "%s", text);
	char *word = strtok_r(copy, " ", &rest);
	if (!word || !format_find(word, &out->format))
		return err_set(err, ERR_USAGE, "\"%s\": there is no format \"%s\"; there are %s",
			       text, word ? word : "", format_names());
	while ((word = strtok_r(NULL, " ", &rest)))
		if (!take_scale(out, word) && !take_share(out, word) && !take_more(out, word))
			return err_set(err, ERR_USAGE, "\"%s\": \"%s\" is not known; " SLOT_WORDS,
				       text, word);
	const char *why = what_is_wrong(out);
	return why ? err_set(err, ERR_USAGE, "\"%s\": %s", text, why) : 0;
}

static void add(char out[SLOT_BYTES], const char *word)
{
	size_t at = strlen(out);

	snprintf(out + at, SLOT_BYTES - at, "%s%s", at > 0 ? " " : "", word);
}

static void add_scale(const struct operand_cast *c, char out[SLOT_BYTES])
{
	char word[24];

	if (c->scale == SCALE_NONE)
		return;
	if (c->along == OPERAND_ALL)
		add(out, c->across == OPERAND_ALL ? "tensor" : "row");
	else {
		snprintf(word, sizeof(word), "%ux%u", c->across, c->along);
		add(out, word);
	}
	if (c->scale != SCALE_FP32)
		add(out, scales[c->scale]);
}

const char *slot_print(const struct operand_cast *c, char out[SLOT_BYTES])
{
	char word[24];

	out[0] = '\0';
	add(out, c->format.bits ? c->format.name : "-");
	add_scale(c, out);
	if (c->rounding != ROUND_NEAREST_EVEN)
		add(out, c->rounding == ROUND_STOCHASTIC ? "stochastic" : "zero");
	if (c->hadamard)
		add(out, "hadamard");
	if (c->four_over_six)
		add(out, "four-over-six");
	if (c->history) {
		snprintf(word, sizeof(word), "delayed:%u", c->history);
		add(out, word);
	}
	return out;
}
