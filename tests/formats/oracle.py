#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""oracle.py > formats.txt - what codes mean and what numbers become, from the words of the standards.

Independent of kernels/formats: a format is the sorted list of its numbers (fractions.Fraction), and
rounding looks its neighbours up. Where ml_dtypes (pip install numpy ml_dtypes gfloat) has a format, numbers
and rounding to nearest are compared with it, and with gfloat, before anything is written.

Lines of the table:
  values NAME NUMBER...              of all codes, for formats of at most 8 bits
  runs NAME ROUNDING SAT CODE:N...   codes (hex) of all 65,536 bf16 inputs in the order of their bits
  crc NAME ROUNDING SAT INPUTS CRC   zlib.crc32 of such codes, 16 bits each, little-endian; INPUTS bf16, or
                                     wide: fp32 with the bits b = (i * 2654435761 + 12345) mod 2^32,
                                     i < 2^17; for odd i the exponent is 107 + (its bits in b) mod 40
Random numbers: word i % 4 of Philox4x32-10, counter { i / 4, 0, 7, 11 }, key 0x123456789abcdef0.
"""
import math
import sys
import zlib
from fractions import Fraction as F

import numpy as np

NAMED = ("e4m3fn e5m2 e4m3 e3m4 e4m3fnuz e5m2fnuz e3m2 e2m3 e2m1 e8m0 int8 int4 bf16 fp16").split()
OTHERS = [f"e{x}m{y}" for x in range(1, 8) for y in range(0, 8 - x)]
OTHERS += [f"e{x}m{y}fn" for x in range(1, 8) for y in [7 - x]]
OTHERS += [f"e{x}m{y}fnuz" for x in range(2, 7) for y in range(1, 8 - x)]
NAMES = NAMED + [n for n in OTHERS if n not in NAMED]
WIDE = 1 << 17


class Format:
    """magnitudes: the numbers >= 0 in the order of their codes, and one more: where "beyond" begins."""

    def __init__(self, name):
        self.name, self.more = name, 0
        if name.startswith("int"):
            self.kind, self.bits = "integer", int(name[3:])
            top = 2 ** (self.bits - 1)
            self.magnitudes = [F(i) for i in range(top + 1)]
            self.top, self.nan, self.inf = top - 1, None, None
            return
        if name == "e8m0":
            self.kind, self.bits, self.top, self.nan, self.inf = "scale", 8, 254, 255, None
            self.magnitudes = [F(2) ** (i - 127) for i in range(256)]
            return
        alias = {"bf16": "e8m7", "fp16": "e5m10"}.get(name, name)
        x = int(alias[1:alias.index("m")])
        rest = alias[alias.index("m") + 1:]
        y = int(rest.rstrip("fnuz"))
        behind = rest[len(str(y)):]
        self.bits = 1 + x + y
        bias = 2 ** (x - 1) - 1 + (behind == "fnuz")
        if behind == "fnuz":
            self.kind = "fnuz"
        elif behind == "fn" and self.bits == 8:
            self.kind = "fn"
        elif behind == "" and self.bits >= 8 and x > 1 and y > 0:
            self.kind = "ieee"
        else:
            self.kind = "finite"
        count = 2 ** (x + y)
        self.magnitudes = []
        for code in range(count + 1):  # the last: where the numbers would go on
            e, m = code >> y, code & (2 ** y - 1)
            self.magnitudes.append(F(2) ** (max(e, 1) - bias) * (F(m, 2 ** y) + (1 if e else 0)))
        self.inf = self.nan = None
        if self.kind == "ieee":
            self.inf = count - 2 ** y
            self.nan = self.inf + 2 ** (y - 1)
            self.top = self.inf - 1
        elif self.kind == "fn":
            self.nan, self.top = count - 1, count - 2
        elif self.kind == "fnuz":
            self.nan, self.top = 1 << (self.bits - 1), count - 1
        else:
            self.top = count - 1

    def beyond(self, saturate):
        if saturate or self.kind in ("finite", "integer"):
            return self.top
        return self.inf if self.kind == "ieee" else self.nan

    def values(self):
        out = []
        for code in range(1 << self.bits):
            below = code & ((1 << (self.bits - 1)) - 1)
            sign = -1.0 if code >> (self.bits - 1) else 1.0
            if self.kind == "integer":
                out.append(float(code - (1 << self.bits) if sign < 0 else code))
            elif self.kind == "scale":
                out.append(math.nan if code == 255 else float(self.magnitudes[code]))
            elif self.kind == "fnuz" and code == self.nan:
                out.append(math.nan)
            elif below <= self.top:
                out.append(sign * float(self.magnitudes[below]))
            else:
                out.append(sign * math.inf if below == self.inf else math.nan)
        return out

    def encode(self, x, rounding, saturate, random):
        """x: float64 array of fp32 numbers; -> uint16 codes."""
        top = np.full(x.shape, self.top)
        if self.kind == "integer":
            top = top + np.signbit(x)
        grid = np.array([float(v) for v in self.magnitudes])
        a = np.abs(x)
        finite = np.isfinite(x)
        reach = np.where(finite, np.minimum(a, grid[-1]), 0)
        low = np.clip(np.searchsorted(grid, reach, side="right") - 1, 0, len(grid) - 1)
        high = np.minimum(low + 1, len(grid) - 1)
        gap = grid[high] - grid[low]
        part = np.where(gap > 0, (reach - grid[low]) / np.where(gap > 0, gap, 1), 0)
        if self.kind == "scale":  # below 2^-127 is 2^-127
            part = np.where(a < grid[0], 0, part)
        if rounding == "nearest":
            # of a number with one digit, 2 2^E is the even one
            odd = low % 2 == 1
            if grid_has_one_digit(self):
                odd = (low > 0) | (self.kind == "scale")
            up = (part > 0.5) | ((part == 0.5) & odd)
        elif rounding == "stochastic":
            up = (random >> 8) / 2.0 ** 24 < part
        else:
            up = np.zeros(x.shape, bool)
        code = low + up
        outside = (code > top) | ((a >= grid[-1]) & (top < len(grid) - 1 + (self.kind == "integer")))
        if rounding == "toward_zero":
            code = np.where(finite & outside, top, code)
        else:
            code = np.where(finite & outside, np.where(self.beyond(saturate) == self.top, top, self.beyond(saturate)), code)
        code = np.where(np.isinf(x), np.where(self.beyond(saturate) == self.top, top, self.beyond(saturate)), code)
        code = np.where(np.isnan(x), self.nan if self.nan is not None else self.top, code)
        sign = np.signbit(x)
        if self.kind == "scale":
            return np.where(np.isnan(x) | (x <= 0), 255, code).astype(np.uint16)
        if self.kind == "integer":
            return (np.where(sign, -code, code) & ((1 << self.bits) - 1)).astype(np.uint16)
        if self.kind == "fnuz":
            sign = sign & (code != 0) & (code != self.nan)
        return (code | (sign.astype(np.int64) << (self.bits - 1))).astype(np.uint16)


def grid_has_one_digit(f):
    return f.kind == "scale" or (f.name.startswith("e") and "m0" in f.name)


def philox(count):
    mask = np.uint64(0xFFFFFFFF)
    i = np.arange((count + 3) // 4, dtype=np.uint64)
    c = [i & mask, i >> np.uint64(32), np.full_like(i, 7), np.full_like(i, 11)]
    k0, k1 = 0x9abcdef0, 0x12345678
    for _ in range(10):
        p0 = np.uint64(0xD2511F53) * c[0]
        p1 = np.uint64(0xCD9E8D57) * c[2]
        c = [(p1 >> np.uint64(32)) ^ c[1] ^ np.uint64(k0), p1 & mask,
             (p0 >> np.uint64(32)) ^ c[3] ^ np.uint64(k1), p0 & mask]
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return np.stack(c, 1).reshape(-1)[:count].astype(np.uint64)


def inputs(kind):
    if kind == "bf16":
        bits = np.arange(65536, dtype=np.uint32) << np.uint32(16)
    else:
        i = np.arange(WIDE, dtype=np.uint64)
        bits = ((i * np.uint64(2654435761) + np.uint64(12345)) & np.uint64(0xFFFFFFFF)).astype(np.uint32)
        near = (bits & np.uint32(0x807FFFFF)) | ((107 + (bits >> np.uint32(23) & np.uint32(255)) % 40) << np.uint32(23))
        bits = np.where(i % 2 == 1, near, bits).astype(np.uint32)
    with np.errstate(invalid="ignore"):
        return bits.view(np.float32).astype(np.float64)


def compare_with_others(formats):
    """The oracle beside the libraries of others, where they have the format. Raises where they differ."""
    import gfloat
    import gfloat.formats as theirs
    import ml_dtypes
    names = {"e4m3fn": "float8_e4m3fn", "e5m2": "float8_e5m2", "e4m3": "float8_e4m3", "e3m4": "float8_e3m4",
             "e4m3fnuz": "float8_e4m3fnuz", "e5m2fnuz": "float8_e5m2fnuz", "e3m2": "float6_e3m2fn",
             "e2m3": "float6_e2m3fn", "e2m1": "float4_e2m1fn", "e8m0": "float8_e8m0fnu", "bf16": "bfloat16"}
    x = np.concatenate([inputs("bf16"), inputs("wide")])
    compared = 0
    for name, other in names.items():
        f = formats[name]
        kind = getattr(ml_dtypes, other)
        keep = ~np.isnan(x) & ~((name == "e8m0") & (x < 2.0 ** -126))  # theirs takes all of fp32 without a leading 1 for 2^-126
        with np.errstate(all="ignore"):
            got = x[keep].astype(np.float32).astype(kind).view(np.uint16 if f.bits > 8 else np.uint8)
        want = f.encode(x, "nearest", False, None)[keep]
        assert (got == want).all(), (name, x[keep][got != want][:5])
        codes = np.arange(1 << f.bits, dtype=np.uint16 if f.bits > 8 else np.uint8)
        np.testing.assert_array_equal(codes.view(kind).astype(np.float64), f.values())
        compared += len(want) + len(codes)
    for name, info in {"e4m3fn": theirs.format_info_ocp_e4m3, "e5m2": theirs.format_info_ocp_e5m2,
                       "e3m2": theirs.format_info_ocp_e3m2, "e2m3": theirs.format_info_ocp_e2m3,
                       "e2m1": theirs.format_info_ocp_e2m1, "fp16": theirs.format_info_binary16,
                       "bf16": theirs.format_info_bfloat16, "int8": theirs.format_info_ocp_int8}.items():
        f = formats[name]
        y = x[np.isfinite(x)]
        unit = 64.0 if name == "int8" else 1.0  # MXINT8 counts in 2^-6
        for rounding, mode in (("nearest", gfloat.RoundMode.TiesToEven), ("toward_zero", gfloat.RoundMode.TowardZero)):
            with np.errstate(all="ignore"):
                got = gfloat.round_ndarray(info, y / unit, mode, sat=True) * unit
            want = np.array(f.values())[f.encode(y, rounding, True, None)]
            assert (got == want).all(), (name, rounding, y[got != want][:5])
            compared += len(want)
    print(f"oracle: {compared} comparisons with ml_dtypes and gfloat, 0 differences", file=sys.stderr)


def runs(codes):
    edges = np.flatnonzero(np.diff(codes.astype(np.int64))) + 1
    starts = np.concatenate([[0], edges])
    ends = np.concatenate([edges, [len(codes)]])
    return " ".join(f"{codes[s]:x}:{e - s}" for s, e in zip(starts, ends))


def main():
    formats = {name: Format(name) for name in NAMES}
    try:
        compare_with_others(formats)
    except ImportError as e:
        print(f"oracle: {e.name} is not there: not compared with it", file=sys.stderr)
    print("# made by oracle.py, which says what the lines mean")
    for name, f in formats.items():
        if f.bits <= 8:
            print("values", name, *(f"{v:.17g}" for v in f.values()))
        for rounding in ("nearest", "stochastic", "toward_zero"):
            for sat in (1, 0):
                for kind in ("bf16", "wide"):
                    x = inputs(kind)
                    codes = f.encode(x, rounding, sat, philox(len(x)))
                    if name in NAMED and f.bits <= 8 and sat and kind == "bf16" and rounding == "nearest":
                        print("runs", name, rounding, sat, runs(codes))
                    print("crc", name, rounding, sat, kind, f"{zlib.crc32(codes.astype('<u2').tobytes()):08x}")


main()
