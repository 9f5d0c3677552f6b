# SPDX-License-Identifier: MIT
"""peers_reference.py OPERANDS SOURCES - operands and products of recipes beside the references in Python that NVIDIA and Microsoft
hold their own kernels against: Transformer Engine's and Microscaling's.

OPERANDS is build/formats/operands; SOURCES a folder with checkouts, TransformerEngine and microxcaling. Transformer Engine
as pip installs it (--no-deps) is enough for NVFP4, MXFP4 and scales of whole tensors. What cannot be had is named as left out,
and that none could is a failure. Both are taken file by file, as the packages themselves want a GPU: base classes that they import and
that compute nothing are stood in for. The last line counts.
"""
import ast
import importlib
import importlib.util
import os
import sys
import types

import torch

from matrices import apart, matrices, operand, ours, product

SOURCES = sys.argv[2]
E4M3, E5M2 = torch.float8_e4m3fn, torch.float8_e5m2


class Base:
    """For Quantizer and QuantizedTensorStorage."""

    def __init__(self, rowwise=True, columnwise=True):
        self.rowwise_usage, self.columnwise_usage = rowwise, columnwise


def stand_in(name, path=None, **members):
    module = types.ModuleType(name)
    if path:
        module.__path__ = [path]
    module.__dict__.update(members)
    sys.modules[name] = module


def package_at(name, *folders):
    """Where a package lies: the first folder there is, else where it is installed; None."""
    for folder in folders:
        if os.path.isdir(folder):
            return folder
    spec = importlib.util.find_spec(name)
    return spec.submodule_search_locations[0] if spec else None


def functions_of(path, names):
    """Functions and constants of a file whose imports want a GPU."""
    body = [n for n in ast.parse(open(path).read()).body
            if getattr(n, "name", "") in names or isinstance(n, ast.Assign) and getattr(n.targets[0], "id", "").isupper()]
    scope = {"torch": torch}
    exec(compile(ast.Module(body, []), path, "exec"), scope)
    return [scope[name] for name in names]


# --- rows: slot, theirs, how much an element may differ as a share of its row's largest, and how many may ---------------

EXACT = (0, 0)
# Codes times scales of other roundings: sums of 16 numbers in another order, and with them the tensor's scale; or the
# tensor's scale in another order of factors.
LAST_BIT = (2 ** -20, 1)
PRODUCT = 3e-6  # fp32 sums of 512, as a share of the norm
rows, left_out = [], []


def transformer_engine(package):
    name = "transformer_engine"
    for part in ("", ".pytorch", ".pytorch.custom_recipes", ".pytorch.tensor"):
        stand_in(name + part, package + part.replace(".", "/"))
    stand_in(name + ".pytorch.quantized_tensor", Quantizer=Base, QuantizedTensorStorage=Base)
    stand_in(name + ".pytorch.tensor.utils", is_custom=lambda x: True)
    nvfp4 = importlib.import_module(name + ".pytorch.custom_recipes.reference_nvfp4")
    current = importlib.import_module(name + ".pytorch.custom_recipes.reference_current_scaling")
    gemm = importlib.import_module(name + ".pytorch.custom_recipes.gemm")

    def quantizer(tile=(1, 16), **more):
        return nvfp4.NVFP4QuantizerRef(nvfp4.reference_utils.Fp4Formats.E2M1, quant_tile_shape=tile, **more)

    def values(codes, scales, amax, most):
        x = nvfp4.cast_from_fp4x2(codes, torch.float32)
        scale = scales.float() * (amax / (6 * most)) if amax is not None else scales.float()
        return (x.view(*scale.shape, -1) * scale.unsqueeze(-1)).view(x.shape)

    def fp4(tile=(1, 16), most=448.0, **more):
        def quantise(x):
            codes, scales, _, _, amax, _ = quantizer(tile, columnwise=False, **more)._quantize(x)
            return values(codes, scales, amax, most)
        return quantise

    def turned(x):
        """Of the transposed, as Transformer Engine turns what the weight's gradient is made of."""
        _, _, codes, scales, _, amax = quantizer(with_rht=True)._quantize(x.T.contiguous())
        return values(codes, scales, amax, 448.0)

    def mxfp4(x):
        codes, scales = nvfp4.NVFP4QuantizerRef._quantize_blockwise_reference(x, None, 32, 1, pow_2_scales=True, eps=0.0)
        return values(codes, scales, None, 0)

    def fp4_product(x):
        q = quantizer(columnwise=False)
        codes, scales, _, _, amax, _ = q._quantize(x)
        made = types.SimpleNamespace(global_amax_row=amax, global_amax_col=amax)
        return q.qgemm(codes, codes, gemm.MMParams(), torch.float32, scales.float(), scales.float(), qresult_x=made, qresult_w=made)

    def tensor(dtype):
        def quantise(x):
            codes, scale, _, _ = current.CurrentScalingQuantizerRef(dtype, columnwise=False)._quantize(x)
            return codes.float() * scale
        return quantise

    def own_signs(x):
        """x with the signs of their Hadamard transform in the place of ours, which takes them away again."""
        ours_d = 4 * operand("bf16 hadamard", torch.eye(16))[:, 0]
        return x * (nvfp4.get_wgrad_sign_vector() * ours_d).repeat(x.shape[1] // 16)

    same = lambda x: x
    rows.extend([
        ("e4m3fn tensor", tensor(E4M3), EXACT, same), ("e5m2 tensor", tensor(E5M2), EXACT, same),
        ("e2m1 1x32 up", mxfp4, EXACT, same), ("e2m1 1x16 e4m3", fp4(), EXACT, same),
        ("e2m1 16x16 e4m3", fp4((16, 16)), EXACT, same), ("e2m1 1x16 e4m3 hadamard", turned, LAST_BIT, own_signs),
        ("e2m1 1x16 e4m3 four-over-six", fp4(most=256.0, nvfp4_use_4over6=True, nvfp4_e4m3_max=256, nvfp4_4over6_err_mode="MSE"),
         LAST_BIT, same),
        ("e2m1 16x16 e4m3 four-over-six", fp4((16, 16), 256.0, nvfp4_use_4over6=True, nvfp4_e4m3_max=256, nvfp4_4over6_err_mode="MSE"),
         LAST_BIT, same),
    ])
    return fp4_product


def transformer_engine_tests(folder):
    """References of its tests, which are in no package: blocks of 128 and MXFP8 in squares."""
    sys.path.insert(0, folder)
    reference = importlib.import_module("references.blockwise_quantizer_reference").BlockwiseQuantizerReference()
    mxfp8, inverse = functions_of(folder + "/test_mxfp8_2d_quantize.py", ["_mxfp8_2d_quantize_reference", "_e8m0_to_scale_inv"]
                                  + ["_float_to_e8m0"])[:2]

    def blocks(tile, pow2):
        def quantise(x):
            q = reference.quantize(x, E4M3, pow_2_scales=pow2, quant_tile_shape=tile, munge_scale_shapes=False)
            return reference.ref_dequantize_rowwise(q.data, tile, q.scale, torch.float32)
        return quantise

    def squares(x):
        codes, scales, _ = mxfp8(x)
        return codes.float() * inverse(scales).repeat_interleave(32, dim=1)

    same = lambda x: x
    reference.scale_munger.demunge_scale_shape_from_backend = lambda shape, scale, tile: scale
    rows.extend([("e4m3fn 1x128", blocks((1, 128), False), EXACT, same), ("e4m3fn 128x128", blocks((128, 128), False), EXACT, same),
                 ("e4m3fn 1x128 pow2", blocks((1, 128), True), EXACT, same),
                 ("e4m3fn 128x128 pow2", blocks((128, 128), True), EXACT, same), ("e4m3fn 32x32 up", squares, EXACT, same)])


def microscaling(folder):
    stand_in("mx", folder + "/mx")
    quantize = importlib.import_module("mx.mx_ops")._quantize_mx

    def theirs(name):
        return lambda x: quantize(x, 8, name, axes=[-1], block_size=32, round="even")

    same = lambda x: x
    for slot, name, tolerance in [("e4m3fn", "fp8_e4m3", EXACT), ("e5m2", "fp8_e5m2", EXACT), ("e3m2", "fp6_e3m2", EXACT),
                                  ("e2m3", "fp6_e2m3", EXACT), ("e2m1", "fp4_e2m1", EXACT), ("int8", "int8", EXACT)]:
        rows.append((slot + " 1x32 floor", theirs(name), tolerance, same))


def norm_apart(a, b):
    return ((a.double() - b).norm() / b.norm()).item()


def compare():
    bad = compared = 0
    for slot, theirs, (most, share), change in rows:
        said = []
        for kind, x in matrices(2 if "e4m3" in slot.split()[1:] else 12, rows=128):
            if slot.startswith("int8"):
                x = x.abs()  # theirs has no -128
            a, b = operand(slot, x), theirs(change(x)).float()
            by, how_many = apart(a, b)
            pa, pb = product(slot, x), b.double() @ b.double().T
            apart_products = norm_apart(pa, pb)
            good = by <= most and how_many <= share and apart_products <= max(PRODUCT, by * share)
            compared += a.numel() + pa.numel()
            bad += not good
            said.append(f"{kind}: {100 * how_many:.3g} % differ, by {by:.1e} at most, product {apart_products:.1e}"
                        + ("" if good else " - TOO MUCH"))
        print(f"{slot:30} " + "; ".join(said))
    # What must be seen: the operand of one row beside theirs of the next.
    x = dict(matrices(2, rows=128))["normal"]
    if apart(operand(rows[0][0], x), rows[1][1](x).float())[0] <= rows[0][2][0]:
        print("the control is not seen")
        bad += 1
    return bad, compared


def main():
    bad = compared = 0
    package = package_at("transformer_engine", SOURCES + "/TransformerEngine/transformer_engine")
    for name, path, take in (("Transformer Engine", package, transformer_engine),
                             ("the references of its tests", SOURCES + "/TransformerEngine/tests/pytorch", transformer_engine_tests),
                             ("Microscaling", SOURCES + "/microxcaling", microscaling)):
        if path and os.path.isdir(path):
            print(f"{name}: {path}")
            del rows[:]
            fp4_product = take(path)
            some_bad, some = compare()
            bad, compared = bad + some_bad, compared + some
            if fp4_product:
                for kind, x in matrices(2, rows=128):
                    by = norm_apart(product("e2m1 1x16 e4m3", x), fp4_product(x).double())
                    bad += by > PRODUCT
                    print(f"NVFP4 product as its reference of the tensor cores, {kind}: differs by {by:.1e} at most")
        else:
            left_out.append(name)
    print(f"references: {compared} comparisons, {bad} beyond tolerance" + ("; left out: " + ", ".join(left_out) if left_out else ""))
    return bad > 0 or compared == 0


sys.exit(main())
