#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""near.py A B [LIMIT] - two files of safetensors, F32: the names and shapes must be the same, and of each
tensor the largest difference, as a share of its largest element, at most LIMIT (1e-5). Prints the
worst tensor; exits 1 when it is above."""
import array
import json
import sys


def read(path):
    with open(path, "rb") as f:
        head = json.loads(f.read(int.from_bytes(f.read(8), "little")))
        body = f.read()
    tensors = {}
    for name, t in head.items():
        if name != "__metadata__":
            values = array.array("f")
            values.frombytes(body[slice(*t["data_offsets"])])
            tensors[name] = (t["shape"], values)
    return tensors


def main(one, other, limit=1e-5):
    a, b = read(one), read(other)
    if {n: t[0] for n, t in a.items()} != {n: t[0] for n, t in b.items()}:
        sys.exit("other names or shapes")
    worst, name = 0.0, ""
    for n in a:
        most = max(map(abs, a[n][1])) or 1.0
        far = max(abs(x - y) for x, y in zip(a[n][1], b[n][1])) / most
        if not far <= worst:
            worst, name = far, n
    print(f"{worst:.2g} {name}")
    return 0 if worst <= limit else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2], *map(float, sys.argv[3:])))
