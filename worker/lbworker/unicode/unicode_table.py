#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# unicode_table.py - prints unicode_table.c. Wants Python 3.11 for Unicode 14, `pip install unicodedata2==16.0.0` for
# Unicode 16, and tokenizers for what it calls punctuation: what
# the split patterns of Hugging Face's tokenizers 0.23 and tiktoken 0.14 go by (tests/text/check.py compares).
import unicodedata as old

import unicodedata2 as u
from tokenizers import pre_tokenizers

assert u.unidata_version == "16.0.0", u.unidata_version
assert old.unidata_version == "14.0.0", old.unidata_version  # of PCRE2 10.40 to 10.42
# Of NFC Hugging Face's library knows Unicode 9: what came later has no combining class there, and no parts.
LATER = [
    (0x7FD, 0x7FD), (0x897, 0x89F), (0x8CA, 0x8D3), (0x9FE, 0x9FE), (0xC3C, 0xC3C), (0xD3B, 0xD3C),
    (0xEBA, 0xEBA), (0x1715, 0x1715), (0x1ABF, 0x1ACE), (0x1DF6, 0x1DFA), (0xA82C, 0xA82C), (0x105C9, 0x105C9),
    (0x105E4, 0x105E4), (0x10D24, 0x10D27), (0x10D69, 0x10D6D), (0x10EAB, 0x10EAC), (0x10EFD, 0x10EFF),
    (0x10F46, 0x10F50), (0x10F82, 0x10F85), (0x11070, 0x11070), (0x1133B, 0x1133B), (0x11383, 0x11383),
    (0x11385, 0x11385), (0x1138E, 0x1138E), (0x11391, 0x11391), (0x113C5, 0x113C5), (0x113C7, 0x113C8),
    (0x113CE, 0x113D0), (0x1145E, 0x1145E), (0x11839, 0x1183A), (0x11938, 0x11938), (0x1193D, 0x1193E),
    (0x11943, 0x11943), (0x119E0, 0x119E0), (0x11A34, 0x11A34), (0x11A47, 0x11A47), (0x11A99, 0x11A99),
    (0x11D42, 0x11D42), (0x11D44, 0x11D45), (0x11D97, 0x11D97), (0x11F41, 0x11F42), (0x16121, 0x16128),
    (0x1612F, 0x1612F), (0x16D68, 0x16D6A), (0x16FF0, 0x16FF1), (0x1E08F, 0x1E08F), (0x1E130, 0x1E136),
    (0x1E2AE, 0x1E2AE), (0x1E2EC, 0x1E2EF), (0x1E4EC, 0x1E4EF), (0x1E5EE, 0x1E5EF),
]
LATER = {c for first, last in LATER for c in range(first, last + 1)}
SPACES = set([*range(9, 14), 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x2028, 0x2029, 0x202F, 0x205F, 0x3000])
MARKED = pre_tokenizers.Punctuation("isolated")
PUNCTUATION = {c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and
               len(MARKED.pre_tokenize_str("a" + chr(c))) == 2}
BIT = {"Lu": 1, "Lt": 1, "Ll": 2, "Lm": 4, "Lo": 4, "Mn": 8, "Mc": 8, "Me": 8, "Nd": 16, "Nl": 16, "No": 16}


def combining(c):
    return 0 if c in LATER else u.combining(chr(c))


def kind(c):
    bits = BIT.get(u.category(chr(c)), 0) | (32 if c in SPACES else 0)
    # May not stand in NFC as it is, or may join with what is before it.
    if combining(c) or c in STIRRED:
        bits |= 64
    return bits | (128 if c in PUNCTUATION else 0)


def young(c):
    now = u.category(chr(c))
    return ord(now[0]) << 8 | ord(now[1]) if now != "Cn" and old.category(chr(c)) == "Cn" else 0


decomposed = []  # of one code point: one or two, as the standard has it, not to the end
for c in range(0x110000):
    parts = u.decomposition(chr(c)).split()
    if parts and not parts[0].startswith("<") and c not in LATER:
        decomposed.append((c, [int(p, 16) for p in parts]))
composed = sorted((a[0], a[1], c) for c, a in decomposed
                  if len(a) == 2 and u.normalize("NFC", chr(c)) == chr(c))
STIRRED = {c for c, _ in decomposed if u.normalize("NFC", chr(c)) != chr(c)}
STIRRED |= {b for _, b, _ in composed} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))


def runs(value):
    out = []
    for c in range(0x110000):
        v = value(c)
        if out and out[-1][2] == v:
            out[-1][1] = c
        else:
            out.append([c, c, v])
    return [r for r in out if r[2]]


def table(head, rows):
    print(head + " = {")
    line = "\t"
    for row in rows:
        text = "{ " + ", ".join(str(x) for x in row) + " }, "
        if len(line.expandtabs(8)) + len(text) > 100:
            print(line.rstrip())
            line = "\t"
        line += text
    print(line.rstrip() + "\n};")


# clang-format: the rows are a machine's.
print("""/* SPDX-License-Identifier: MIT */
/* unicode_table.c - Unicode 16.0: classes, combining classes, canonical (de)compositions.
 * Printed by unicode_table.py; not to be edited. */
#include "worker/lbworker/unicode/unicode_table.h"

/* clang-format off */""")
kinds = runs(kind)
classes = runs(combining)
table("const struct unicode_run unicode_kinds[]", kinds)
print("const size_t unicode_kind_count = %d;" % len(kinds))
table("const struct unicode_run unicode_combining[]", classes)
print("const size_t unicode_combining_count = %d;" % len(classes))
decompositions = [(c, p[0], p[1] if len(p) > 1 else 0) for c, p in decomposed]
table("const struct unicode_pair unicode_decompositions[]", decompositions)
print("const size_t unicode_decomposition_count = %d;" % len(decompositions))
compositions = [(c, a, b) for a, b, c in composed]
table("const struct unicode_pair unicode_compositions[]", compositions)
print("const size_t unicode_composition_count = %d;" % len(compositions))
later = runs(young)
table("const struct unicode_run unicode_young_runs[]", later)
print("const size_t unicode_young_count = %d;" % len(later))
print("/* clang-format on */")
