/* SPDX-License-Identifier: MIT */
/* pickle.c - a pickle machine that builds values and calls nothing (CPython: Lib/pickletools.py has
 * the opcodes). */
#include "worker/lbworker/torch/pickle.h"

#include <endian.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/mem.h"
#include "worker/lbworker/torch/pickle_stack.h"

/* Far above any file of weights; what keeps a hostile one from taking all memory. */
enum { MAX_MEMO = 1 << 25 };

/* Their bytes, as pickletools names them. */
enum opcode {
	OP_MARK = '(',
	OP_STOP = '.',
	OP_POP = '0',
	OP_POP_MARK = '1',
	OP_DUP = '2',
	OP_BINFLOAT = 'G',
	OP_BININT = 'J',
	OP_BININT1 = 'K',
	OP_BININT2 = 'M',
	OP_NONE = 'N',
	OP_BINPERSID = 'Q',
	OP_REDUCE = 'R',
	OP_SHORT_BINSTRING = 'U',
	OP_BINSTRING = 'T',
	OP_BINUNICODE = 'X',
	OP_APPEND = 'a',
	OP_BUILD = 'b',
	OP_GLOBAL = 'c',
	OP_APPENDS = 'e',
	OP_BINGET = 'h',
	OP_LONG_BINGET = 'j',
	OP_EMPTY_LIST = ']',
	OP_LIST = 'l',
	OP_BINPUT = 'q',
	OP_LONG_BINPUT = 'r',
	OP_SETITEM = 's',
	OP_TUPLE = 't',
	OP_EMPTY_TUPLE = ')',
	OP_SETITEMS = 'u',
	OP_EMPTY_DICT = '}',
	OP_DICT = 'd',
	OP_PROTO = 0x80,
	OP_NEWOBJ = 0x81,
	OP_TUPLE1 = 0x85,
	OP_TUPLE2 = 0x86,
	OP_TUPLE3 = 0x87,
	OP_NEWTRUE = 0x88,
	OP_NEWFALSE = 0x89,
	OP_LONG1 = 0x8a,
	OP_LONG4 = 0x8b,
	OP_BINBYTES = 'B',
	OP_SHORT_BINBYTES = 'C',
	OP_SHORT_BINUNICODE = 0x8c,
	OP_BINUNICODE8 = 0x8d,
	OP_BINBYTES8 = 0x8e,
	OP_EMPTY_SET = 0x8f,
	OP_ADDITEMS = 0x90,
	OP_FROZENSET = 0x91,
	OP_NEWOBJ_EX = 0x92,
	OP_STACK_GLOBAL = 0x93,
	OP_MEMOIZE = 0x94,
	OP_FRAME = 0x95,
};

/* Little-endian; -1 with err where the pickle ends before. */
static int take_number(struct pickle *p, size_t bytes, uint64_t *out)
{
	*out = 0;
	if ((size_t)(p->end - p->in) < bytes)
		return pickle_bad(p, "is cut short");
	for (size_t i = 0; i < bytes; i++)
		*out |= (uint64_t)p->in[i] << 8 * i;
	p->in += bytes;
	return 0;
}

static int push_integer(struct pickle *p, enum pickle_kind kind, int64_t value)
{
	struct pickle_value *v = pickle_make(p, kind);

	if (v)
		v->integer = value;
	return pickle_push(p, v);
}

static int take_integer(struct pickle *p, size_t bytes)
{
	uint64_t number;

	if (take_number(p, bytes, &number))
		return -1;
	return push_integer(p, PICKLE_INT,
			    bytes == 4 ? (int64_t)(int32_t)(uint32_t)number : (int64_t)number);
}

/* Two's complement of any length. */
static int take_long(struct pickle *p, size_t count_bytes)
{
	uint64_t bytes, number = 0;

	if (take_number(p, count_bytes, &bytes))
		return -1;
	if (bytes > (uint64_t)(p->end - p->in))
		return pickle_bad(p, "is cut short");
	bool negative = bytes > 0 && p->in[bytes - 1] & 0x80;
	for (size_t i = 0; i < 8; i++)
		number |= (uint64_t)(i < bytes ? p->in[i] : negative ? 0xFF : 0) << 8 * i;
	p->in += bytes;
	if (bytes > 8)
		return push_integer(p, PICKLE_INT, negative ? INT64_MIN : INT64_MAX);
	return push_integer(p, PICKLE_INT, (int64_t)number);
}

static int take_real(struct pickle *p)
{
	struct pickle_value *v;
	uint64_t bits;

	if (take_number(p, 8, &bits))
		return -1;
	bits = htobe64(htole64(bits)); /* big-endian in the file */
	v = pickle_make(p, PICKLE_REAL);
	if (v)
		memcpy(&v->real, &bits, sizeof(bits));
	return pickle_push(p, v);
}

static int push_text(struct pickle *p, enum pickle_kind kind, char *text, size_t len)
{
	struct pickle_value *v = pickle_make(p, kind);

	if (!v) {
		free(text);
		return -1;
	}
	v->text = text;
	v->len = len;
	return pickle_push(p, v);
}

static int take_text(struct pickle *p, size_t count_bytes)
{
	uint64_t len;

	if (take_number(p, count_bytes, &len))
		return -1;
	if (len > (uint64_t)(p->end - p->in))
		return pickle_bad(p, "is cut short");
	char *text = xmalloc((size_t)len + 1);
	memcpy(text, p->in, (size_t)len);
	text[len] = '\0';
	p->in += len;
	return push_text(p, PICKLE_TEXT, text, (size_t)len);
}

/* "module\nname\n" */
static int take_name(struct pickle *p)
{
	const unsigned char *module = p->in, *middle, *last = NULL;

	middle = memchr(module, '\n', (size_t)(p->end - module));
	if (middle)
		last = memchr(middle + 1, '\n', (size_t)(p->end - middle - 1));
	if (!last)
		return pickle_bad(p, "is cut short");
	char *text = xasprintf("%.*s.%.*s", (int)(middle - module), (const char *)module,
			       (int)(last - middle - 1), (const char *)middle + 1);
	p->in = last + 1;
	return push_text(p, PICKLE_NAME, text, strlen(text));
}

static int name_on_stack(struct pickle *p)
{
	struct pickle_value *name = pickle_pop(p), *module = name ? pickle_pop(p) : NULL;

	if (!module)
		return -1;
	if (name->kind != PICKLE_TEXT || module->kind != PICKLE_TEXT)
		return pickle_bad(p, "has a name that is no text");
	char *text = xasprintf("%s.%s", module->text, name->text);
	return push_text(p, PICKLE_NAME, text, strlen(text));
}

/* Where Python would call: `inputs` values, the callee lowest. */
static int note_call(struct pickle *p, size_t inputs)
{
	struct pickle_value *made;

	if (p->stack.count < inputs)
		return pickle_bad(p, "takes from an empty stack");
	if (pickle_gather(p, PICKLE_MADE, p->stack.count - inputs, p->stack.count - inputs))
		return -1;
	made = p->stack.at[p->stack.count - 1];
	made->count = 2; /* keyword arguments are let go */
	return 0;
}

static int note_state(struct pickle *p)
{
	struct pickle_value *state = pickle_pop(p), *made = state ? pickle_top(p) : NULL;

	if (!made)
		return -1;
	if (made->kind != PICKLE_MADE)
		return pickle_bad(p, "gives a state to what has none");
	if (made->count == 2)
		pickle_add_item(made, state);
	else
		made->item[2] = state;
	return 0;
}

static int note_outside(struct pickle *p)
{
	struct pickle_value *id = pickle_pop(p), *v = id ? pickle_make(p, PICKLE_OUTSIDE) : NULL;

	if (v)
		pickle_add_item(v, id);
	return pickle_push(p, v);
}

static int put_memo(struct pickle *p, size_t number)
{
	struct pickle_value *v = pickle_top(p);

	if (!v)
		return -1;
	if (number >= MAX_MEMO || number > 2 * p->memo.count + (1 << 16))
		return pickle_bad(p, "notes a value under a number that cannot be");
	while (p->memo.count <= number)
		values_push(&p->memo, NULL);
	p->memo.at[number] = v;
	return 0;
}

static int memo_by(struct pickle *p, size_t bytes, bool put)
{
	uint64_t number;

	if (take_number(p, bytes, &number))
		return -1;
	if (put)
		return put_memo(p, (size_t)number);
	if (number >= p->memo.count || !p->memo.at[number])
		return pickle_bad(p, "asks for a value that was not noted");
	return pickle_push(p, p->memo.at[number]);
}

static int skip(struct pickle *p, size_t bytes)
{
	uint64_t number;

	return take_number(p, bytes, &number);
}

static int step_small(struct pickle *p, enum opcode op)
{
	switch (op) {
	case OP_MARK:
		values_push(&p->stack, NULL);
		return 0;
	case OP_POP:
		if (p->stack.count == 0)
			return pickle_bad(p, "takes from an empty stack");
		p->stack.count--;
		return 0;
	case OP_POP_MARK:
		return pickle_pop_to_mark(p);
	case OP_DUP:
		return pickle_push(p, pickle_top(p));
	case OP_PROTO:
		return skip(p, 1);
	case OP_FRAME:
		return skip(p, 8);
	case OP_NONE:
		return pickle_push(p, pickle_make(p, PICKLE_NONE));
	case OP_NEWTRUE:
	case OP_NEWFALSE:
		return push_integer(p, PICKLE_BOOL, op == OP_NEWTRUE);
	case OP_BININT:
		return take_integer(p, 4);
	case OP_BININT1:
		return take_integer(p, 1);
	case OP_BININT2:
		return take_integer(p, 2);
	case OP_LONG1:
		return take_long(p, 1);
	case OP_LONG4:
		return take_long(p, 4);
	case OP_BINFLOAT:
		return take_real(p);
	case OP_SHORT_BINSTRING:
	case OP_SHORT_BINBYTES:
	case OP_SHORT_BINUNICODE:
		return take_text(p, 1);
	case OP_BINSTRING:
	case OP_BINBYTES:
	case OP_BINUNICODE:
		return take_text(p, 4);
	case OP_BINUNICODE8:
	case OP_BINBYTES8:
		return take_text(p, 8);
	default:
		return pickle_bad(p, "an opcode that is not known");
	}
}

static int step(struct pickle *p, enum opcode op)
{
	switch (op) {
	case OP_GLOBAL:
		return take_name(p);
	case OP_STACK_GLOBAL:
		return name_on_stack(p);
	case OP_EMPTY_LIST:
	case OP_EMPTY_TUPLE:
	case OP_EMPTY_SET:
		return pickle_push(p, pickle_make(p, PICKLE_LIST));
	case OP_EMPTY_DICT:
		return pickle_push(p, pickle_make(p, PICKLE_DICT));
	case OP_TUPLE:
	case OP_LIST:
	case OP_FROZENSET:
		return pickle_gather_marked(p, PICKLE_LIST);
	case OP_DICT:
		return pickle_gather_marked(p, PICKLE_DICT);
	case OP_TUPLE1:
	case OP_TUPLE2:
	case OP_TUPLE3:
		return pickle_gather_top(p, (size_t)op - OP_TUPLE1 + 1);
	case OP_APPEND:
		return pickle_fill_top(p, PICKLE_LIST, 1);
	case OP_APPENDS:
	case OP_ADDITEMS:
		return pickle_fill_marked(p, PICKLE_LIST);
	case OP_SETITEM:
		return pickle_fill_top(p, PICKLE_DICT, 2);
	case OP_SETITEMS:
		return pickle_fill_marked(p, PICKLE_DICT);
	case OP_REDUCE:
	case OP_NEWOBJ:
		return note_call(p, 2);
	case OP_NEWOBJ_EX:
		return note_call(p, 3);
	case OP_BUILD:
		return note_state(p);
	case OP_BINPERSID:
		return note_outside(p);
	case OP_BINPUT:
		return memo_by(p, 1, true);
	case OP_LONG_BINPUT:
		return memo_by(p, 4, true);
	case OP_MEMOIZE:
		return put_memo(p, p->memo.count);
	case OP_BINGET:
		return memo_by(p, 1, false);
	case OP_LONG_BINGET:
		return memo_by(p, 4, false);
	default:
		return step_small(p, op);
	}
}

struct pickle *pickle_read(const void *bytes, size_t len, struct err *err)
{
	struct pickle *p = xcalloc(1, sizeof(*p));
	int rc = 0;

	p->in = p->start = bytes;
	p->end = p->start + len;
	p->err = err;
	while (rc == 0 && p->in < p->end && *p->in != OP_STOP)
		rc = step(p, (enum opcode) * p->in++);
	if (rc == 0)
		rc = p->in == p->end ? pickle_bad(p, "is cut short") : 0;
	p->root = rc == 0 ? pickle_pop(p) : NULL;
	if (p->root)
		return p;
	pickle_free(p);
	return NULL;
}

void pickle_free(struct pickle *p)
{
	if (!p)
		return;
	for (size_t i = 0; i < p->all.count; i++) {
		free(p->all.at[i]->text);
		free(p->all.at[i]->item);
		free(p->all.at[i]);
	}
	free(p->all.at);
	free(p->stack.at);
	free(p->memo.at);
	free(p);
}

const struct pickle_value *pickle_root(const struct pickle *p)
{
	return p->root;
}

const struct pickle_value *pickle_dict(const struct pickle_value *v)
{
	if (v && v->kind == PICKLE_MADE && v->count > 3)
		v = v->item[3];
	return v && v->kind == PICKLE_DICT ? v : NULL;
}

const struct pickle_value *pickle_member(const struct pickle_value *value, const char *key)
{
	const struct pickle_value *dict = pickle_dict(value);

	for (size_t i = 0; dict && i + 1 < dict->count; i += 2)
		if (dict->item[i]->kind == PICKLE_TEXT && strcmp(dict->item[i]->text, key) == 0)
			return dict->item[i + 1];
	return NULL;
}

bool pickle_is(const struct pickle_value *v, const char *name)
{
	if (v && v->kind == PICKLE_MADE)
		v = v->item[0];
	return v && v->kind == PICKLE_NAME && strcmp(v->text, name) == 0;
}
