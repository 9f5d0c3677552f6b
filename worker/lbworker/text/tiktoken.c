/* SPDX-License-Identifier: MIT */
/* tiktoken.c - tiktoken's files: a line for each token, its bytes in base64 and its rank, which
 * is its number. How a text is split, and the special tokens, stand in the programs of those who
 * trained it: here by the number of tokens. */
#include "worker/lbworker/text/tokenizer_parts.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/text/base64.h"

static const struct publisher {
	size_t tokens; /* ranks in the file */
	const char *pattern;
	struct special {
		const char *name;
		uint32_t id;
	} special[8];
} publishers[] = {
	/* r50k_base, p50k_base: GPT-2, GPT-3 */
	{ 50256, "gpt2", { { "<|endoftext|>", 50256 } } },
	{ 50280, "gpt2", { { "<|endoftext|>", 50256 } } },
	{ 100256,
	  "cl100k",
	  { { "<|endoftext|>", 100257 },
	    { "<|fim_prefix|>", 100258 },
	    { "<|fim_middle|>", 100259 },
	    { "<|fim_suffix|>", 100260 },
	    { "<|endofprompt|>", 100276 } } },
	{ 199998, "o200k", { { "<|endoftext|>", 199999 }, { "<|endofprompt|>", 200018 } } },
	/* Llama 3 */
	{ 128000,
	  "llama3",
	  { { "<|begin_of_text|>", 128000 },
	    { "<|end_of_text|>", 128001 },
	    { "<|start_header_id|>", 128006 },
	    { "<|end_header_id|>", 128007 },
	    { "<|eom_id|>", 128008 },
	    { "<|eot_id|>", 128009 },
	    { "<|python_tag|>", 128010 } } },
	/* Llama 4 */
	{ 200000, "o200k", { { "<|begin_of_text|>", 200000 }, { "<|end_of_text|>", 200001 } } },
	/* Qwen, Qwen2, Qwen3 */
	{ 151643,
	  "qwen2",
	  { { "<|endoftext|>", 151643 }, { "<|im_start|>", 151644 }, { "<|im_end|>", 151645 } } },
};

static const struct publisher *publisher_of(size_t tokens)
{
	for (size_t i = 0; i < sizeof(publishers) / sizeof(publishers[0]); i++)
		if (publishers[i].tokens == tokens)
			return &publishers[i];
	return NULL;
}

static int read_line(struct tokenizer *t, const char *line, size_t len, size_t number,
		     struct err *err)
{
	const char *blank = memchr(line, ' ', len);
	char *bytes = xmalloc(len + 1);
	size_t count = 0;
	uint64_t rank = 0;
	bool good = blank && blank + 1 < line + len && line + len - blank < 12 &&
		    from_base64(line, (size_t)(blank - line), bytes, &count);

	for (const char *at = good ? blank + 1 : line + len; at < line + len; at++) {
		good = good && *at >= '0' && *at <= '9';
		rank = 10 * rank + (uint64_t)(*at - '0');
	}
	good = good && rank < VOCABULARY_MAX &&
	       vocabulary_find(&t->vocabulary, bytes, count) == NO_TOKEN &&
	       vocabulary_add(&t->vocabulary, (uint32_t)rank, bytes, count);
	free(bytes);
	if (good)
		return 0;
	return err_set(
		err, ERR_USAGE,
		"line %zu is no token in base64 with a number of its own: neither tokenizer.json, "
		"nor SentencePiece's, nor tiktoken's",
		number);
}

static size_t read_lines(struct tokenizer *t, const char *text, size_t len, struct err *err)
{
	size_t number = 0, tokens = 0;

	for (size_t at = 0; at < len;) {
		const char *stop = memchr(text + at, '\n', len - at);
		size_t count = stop ? (size_t)(stop - text) - at : len - at;
		size_t next = at + count + 1;
		if (count > 0 && text[at + count - 1] == '\r')
			count--;
		number++;
		if (count > 0 && read_line(t, text + at, count, number, err))
			return 0;
		tokens += count > 0;
		at = next;
	}
	if (tokens == 0)
		err_set(err, ERR_USAGE, "is empty");
	return tokens;
}

static void add_specials(struct tokenizer *t, const struct publisher *p)
{
	for (size_t i = 0; p && i < 8 && p->special[i].name; i++) {
		char *name = xstrdup(p->special[i].name);
		const struct added_token token = {
			.text = name, .len = strlen(name), .id = p->special[i].id, .special = true
		};
		added_tokens_add(&t->added, &token);
		free(name);
	}
}

int tokenizer_read_tiktoken(struct tokenizer *t, const char *text, size_t len, const char *pattern,
			    struct err *err)
{
	const char *names;
	size_t tokens = read_lines(t, text, len, err);
	const struct publisher *p = publisher_of(tokens);

	if (tokens == 0)
		return -1;
	if (!pattern && !p)
		return err_set(
			err, ERR_USAGE,
			"%zu tokens: a tiktoken file of nobody known here; say by --pattern how it "
			"splits: gpt2, llama3, qwen2, cl100k, o200k, tekken",
			tokens);
	if (!split_named(&t->split[0], pattern ? pattern : p->pattern, &names))
		return err_set(err, ERR_USAGE, "--pattern %.40s: there is none, allowed are %s",
			       pattern, names);
	t->splits = 1;
	t->by_bytes = true;
	t->ignore_merges = true;
	tokenizer_find_bytes(t);
	tokenizer_pair_all(t, NULL);
	add_specials(t, p);
	return 0;
}
