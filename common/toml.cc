/* SPDX-License-Identifier: MIT */
/* The one C++ file: toml++ parses, and this turns its tree into ours, in the order of the file and
 * with line numbers. Nothing is thrown past toml_native_parse. */
#define TOML_ENABLE_FORMATTERS 1
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common/toml_native.h"
extern "C" {
#include "common/json.h"
#include "common/text.h"
}

namespace
{
constexpr size_t MAX_BYTES = 1 << 20;
constexpr int MAX_DOTS = JS_MAX_DEPTH;

struct refusal {
	long long line;
	std::string text;
};

/* toml++ limits nested values but not dotted keys, and its tree is destroyed recursively: a line
 * "a.a.a.…" of a megabyte would end the program by stack overflow. This little scanner skips
 * comments and strings and counts the dots within one key. */
class key_scanner
{
public:
	key_scanner(const char *text, size_t len) : at(text), end(text + len) {}

	void check()
	{
		while (at < end) {
			char c = *at++;

			if (c == '#')
				skip_comment();
			else if (c == '"' || c == '\'')
				skip_string(c);
			else if (c == '.')
				dot();
			else if (c == '\n' || c == '=' || c == ',' || c == '[' || c == '{')
				dots = 0;
			line += c == '\n';
		}
	}

private:
	const char *at, *end;
	int dots = 0;
	long long line = 1;

	void dot()
	{
		if (++dots >= MAX_DOTS)
			throw refusal{line, "nested deeper than " + std::to_string(MAX_DOTS)};
	}

	void skip_comment()
	{
		while (at < end && *at != '\n')
			at++;
	}

	bool triple(char quote) const
	{
		return end - at >= 2 && at[0] == quote && at[1] == quote;
	}

	/* Stands behind the opening quote. Broken strings are the parser's to complain about. */
	void skip_string(char quote)
	{
		bool multi = triple(quote);

		if (multi)
			at += 2;
		while (at < end && (multi || *at != '\n')) {
			char c = *at++;

			line += c == '\n';
			if (c == '\\' && quote == '"' && at < end)
				line += *at++ == '\n';
			else if (c == quote && !multi)
				return;
			else if (c == quote && triple(quote)) {
				at += 2;
				return;
			}
		}
	}
};

struct unref {
	void operator()(json_t *value) const
	{
		json_decref(value);
	}
};
using json_owner = std::unique_ptr<json_t, unref>;

class converter
{
public:
	explicit converter(json_t *line_table) : lines(line_table) {}

	json_t *table(const toml::table &from, const std::string &path, int depth)
	{
		struct entry {
			const toml::key *key;
			const toml::node *node;
		};
		std::vector<entry> entries;
		json_owner object(json_object());

		for (auto &&[key, node] : from)
			entries.push_back({&key, &node});
		auto before = [](const entry &a, const entry &b) {
			auto x = a.key->source().begin, y = b.key->source().begin;
			return x.line != y.line ? x.line < y.line : x.column < y.column;
		};
		std::stable_sort(entries.begin(), entries.end(), before);
		for (const entry &e : entries) {
			std::string key(e.key->str());
			std::string whole = path.empty() ? key : path + "." + key;
			long long line = e.key->source().begin.line;

			json_object_set_new(lines, whole.c_str(), json_integer(line));
			json_object_set_new(object.get(), key.c_str(),
					    value(*e.node, whole, line, depth));
		}
		return object.release();
	}

private:
	json_t *lines; /* borrowed */

	json_t *array(const toml::array &from, const std::string &path, long long line, int depth)
	{
		json_owner list(json_array());
		size_t i = 0;

		for (auto &&node : from) {
			std::string whole = path + "[" + std::to_string(i++) + "]";
			long long own = node.source().begin.line;

			json_array_append_new(list.get(),
					      value(node, whole, own ? own : line, depth));
		}
		return list.release();
	}

	template <typename T> static json_t *as_text(const T &moment)
	{
		std::ostringstream out;

		out << moment;
		return json_string(out.str().c_str());
	}

	static json_t *string(const std::string &text, const std::string &path, long long line)
	{
		/* "\u0000" is legal TOML, but nothing behind us can hold it. */
		if (text.find('\0') != std::string::npos)
			throw refusal{line, path + ": a string must not contain NUL"};
		return json_stringn(text.data(), text.size());
	}

	static json_t *real(double number, const std::string &path, long long line)
	{
		if (!std::isfinite(number))
			throw refusal{line, path + ": inf and nan are not allowed"};
		return json_real(number);
	}

	json_t *value(const toml::node &node, const std::string &path, long long line, int depth)
	{
		if (depth >= JS_MAX_DEPTH && (node.is_table() || node.is_array()))
			throw refusal{line, "nested deeper than " + std::to_string(JS_MAX_DEPTH)};
		switch (node.type()) {
		case toml::node_type::table:
			return table(*node.as_table(), path, depth + 1);
		case toml::node_type::array:
			return array(*node.as_array(), path, line, depth + 1);
		case toml::node_type::string:
			return string(node.as_string()->get(), path, line);
		case toml::node_type::integer:
			return json_integer(node.as_integer()->get());
		case toml::node_type::floating_point:
			return real(node.as_floating_point()->get(), path, line);
		case toml::node_type::boolean:
			return json_boolean(node.as_boolean()->get());
		case toml::node_type::date:
			return as_text(node.as_date()->get());
		case toml::node_type::time:
			return as_text(node.as_time()->get());
		case toml::node_type::date_time:
			return as_text(node.as_date_time()->get());
		default:
			throw refusal{line, path + ": unknown kind of value"};
		}
	}
};

/* toml++ takes some bytes for spaces; we name bad text before it sees it. */
void check_bytes(const char *text, size_t len)
{
	long long line = 1;

	if (len > MAX_BYTES)
		throw refusal{1, "larger than 1 MiB"};
	for (size_t at = 0, step; at < len; at += step) {
		step = text_utf8_step(text + at, len - at);
		if (step == 0)
			throw refusal{line, "not valid UTF-8"};
		if (text[at] == '\0')
			throw refusal{line, "NUL byte"};
		line += text[at] == '\n';
	}
}

json_t *parse(const char *text, size_t len, json_t *lines)
{
	check_bytes(text, len);
	key_scanner(text, len).check();
	toml::table document = toml::parse(std::string_view(text, len));
	return converter(lines).table(document, "", 0);
}

json_t *failed(struct toml_fault *fault, long long line, std::string_view what)
{
	fault->line = line;
	std::snprintf(fault->what, sizeof(fault->what), "%.*s", (int)what.size(), what.data());
	return nullptr;
}
} // namespace

extern "C" json_t *toml_native_parse(const char *text, size_t len, json_t *lines,
				     struct toml_fault *fault)
{
	try {
		return parse(text, len, lines);
	} catch (const toml::parse_error &e) {
		return failed(fault, e.source().begin.line, e.description());
	} catch (const refusal &r) {
		return failed(fault, r.line, r.text);
	} catch (const std::exception &e) {
		return failed(fault, 0, e.what());
	} catch (...) {
		return failed(fault, 0, "unknown failure while parsing");
	}
}
