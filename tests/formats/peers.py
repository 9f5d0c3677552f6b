# SPDX-License-Identifier: MIT
"""peers.py OPERANDS - operands and products of recipes beside the arithmetic of torchao, element by element, and tensors
in files of compressed-tensors.

OPERANDS is build/formats/operands. Each row quantises matrices of several kinds (normal, with outliers, over many binades)
here and there, and multiplies them: operands must be equal to the bit, or to the tolerance that the row names, with its
reason; products, in fp64 of these operands, then agree to it, too. The last line counts.
"""
import sys
import tempfile

import torch
import torchao
from safetensors import safe_open
from safetensors.torch import save_file
from torchao.float8.float8_scaling_utils import hp_tensor_to_float8_dynamic
from torchao.float8.config import ScalingGranularity
from torchao.float8.float8_training_tensor import LinearMMConfig
from torchao.optim.subclass_8bit import OptimState8bit
from torchao.prototype.mx_formats.config import ScaleCalculationMode as Mode
from torchao.prototype.mx_formats.mx_tensor import MXTensor
from torchao.prototype.mx_formats.nvfp4_tensor import NVFP4Tensor, per_tensor_amax_to_scale
from torchao.prototype.quantized_training.int8 import quantize_int8_rowwise
from torchao.prototype.safetensors.safetensors_support import flatten_tensor_state_dict, unflatten_tensor_state_dict

from matrices import COLUMNS, ROWS, apart, matrices, ours

def float8(dtype, by_row):
    def quantise(x):
        t = hp_tensor_to_float8_dynamic(
            x, dtype, LinearMMConfig(), axiswise_dim=-1 if by_row else None, round_scales_to_power_of_2=by_row,
            scaling_granularity=ScalingGranularity.AXISWISE if by_row else ScalingGranularity.TENSORWISE)
        return t._data.float() / t._scale
    return quantise


def mx(dtype, mode):
    return lambda x: MXTensor.to_mx(x, dtype, 32, scaling_mode=mode).dequantize(torch.float32)


def nvfp4(x):
    return NVFP4Tensor.to_nvfp4(x, per_tensor_scale=per_tensor_amax_to_scale(x.abs().max())).dequantize(torch.float32)


def int8(x):
    codes, scale = quantize_int8_rowwise(x)
    return codes.float() * scale.view(-1, 1)


def moments(signed):
    def keep(x):
        state = OptimState8bit.zeros(x.shape, signed, 256)
        state.copy_(x if signed else x.square())
        return state.dequantize()
    return keep


E4M3, E5M2, E2M1 = torch.float8_e4m3fn, torch.float8_e5m2, torch.float4_e2m1fn_x2
# slot; torchao's; how much an element may differ, as a share of its row's largest: where a scale is a quotient here and
# its reciprocal there, code times scale differs in the last bit of fp32
ROUNDED = 2 ** -22
EXACT = 0
PEERS = [
    ("e4m3fn tensor", float8(E4M3, False), ROUNDED), ("e5m2 tensor", float8(E5M2, False), ROUNDED),
    ("e4m3fn row pow2", float8(E4M3, True), EXACT),
    ("e4m3fn 1x32 floor", mx(E4M3, Mode.FLOOR), EXACT), ("e4m3fn 1x32 up", mx(E4M3, Mode.RCEIL), EXACT),
    ("e4m3fn 1x32 even", mx(E4M3, Mode.EVEN), EXACT), ("e5m2 1x32 floor", mx(E5M2, Mode.FLOOR), EXACT),
    ("e2m1 1x32 floor", mx(E2M1, Mode.FLOOR), EXACT), ("e2m1 1x32 up", mx(E2M1, Mode.RCEIL), EXACT),
    ("e2m1 1x32 even", mx(E2M1, Mode.EVEN), EXACT), ("e2m1 1x16 e4m3", nvfp4, EXACT), ("int8 row", int8, ROUNDED),
]


bad = compared = 0
print(f"torchao {torchao.__version__}, torch {torch.__version__}")
for words, theirs, tolerance in PEERS:
    said = []
    for kind, x in matrices(2 if "e4m3" in words.split()[1:] else 12):
        a, b = ours([words, str(ROWS), str(COLUMNS)], x), theirs(x.clone()).float()
        most, share = apart(a, b)
        pa, pb = a.double() @ a.double().T, b.double() @ b.double().T
        product = ((pa - pb).norm() / pb.norm()).item()
        good = most <= tolerance and product <= tolerance
        compared += x.numel() + pa.numel()
        bad += not good
        said.append(f"{kind}: {100 * share:.3g} % differ, by {most:.1e} at most, product {product:.1e}"
                    + ("" if good else " - TOO MUCH"))
    print(f"{words:20} " + "; ".join(said))
for name, signed in (("m", True), ("v", False)):
    for kind, x in matrices():
        a, b = ours(["moments", name, str(x.numel())], x if signed else x.square()), moments(signed)(x)
        share = (a != b).float().mean().item()
        compared += x.numel()
        bad += share > 0
        print(f"8-bit moments, {name}, {kind}: {share:.1e} differ")
for kind, x in matrices():
    # torchao's scaled_int8_mm, which has no kernel for CPUs, as its Triton kernel computes
    codes, scale = quantize_int8_rowwise(x)
    b = torch._int_mm(codes, codes.T).float() * scale.view(-1, 1) * scale.view(1, -1)
    most, share = apart(ours(["int8 row", str(ROWS), str(COLUMNS), "product"], x), b)
    compared += b.numel()
    bad += most > 2 * ROUNDED
    print(f"int8 product, {kind}: {100 * share:.3g} % differ, by {most:.1e} at most")


def in_torchao_file(tensor):
    """A tensor of torchao's from a safetensors file, as torchao flattens it into one."""
    with tempfile.TemporaryDirectory() as folder:
        data, metadata = flatten_tensor_state_dict({"layer.weight": tensor})
        save_file(data, folder + "/model.safetensors", metadata=metadata)
        with safe_open(folder + "/model.safetensors", "pt") as file:
            data = {name: file.get_tensor(name) for name in file.keys()}
            return unflatten_tensor_state_dict(data, file.metadata())[0]["layer.weight"].dequantize(torch.float32)


TORCHAO_FILES = [
    ("MXFP8", "e4m3fn 1x32 up", lambda x: MXTensor.to_mx(x, E4M3, 32, scaling_mode=Mode.RCEIL)),
    ("MXFP4", "e2m1 1x32 even", lambda x: MXTensor.to_mx(x, E2M1, 32, scaling_mode=Mode.EVEN)),
    ("NVFP4", "e2m1 1x16 e4m3",
     lambda x: NVFP4Tensor.to_nvfp4(x, per_tensor_scale=per_tensor_amax_to_scale(x.abs().max()))),
]
for name, words, quantise in TORCHAO_FILES:
    for kind, x in matrices(2):
        a = ours([words, str(ROWS), str(COLUMNS)], x)
        theirs, back = in_torchao_file(quantise(x)), in_torchao_file(quantise(a))
        compared += 2 * x.numel()
        good = torch.equal(theirs, a) and torch.equal(back, a)
        bad += not good
        print(f"{name} file of torchao, {kind}: of the same matrix {100 * apart(theirs, a)[1]:.3g} % differ, of ours there and back "
              f"{100 * apart(back, a)[1]:.3g} %" + ("" if good else " - TOO MUCH"))


def in_file(scheme_name, compressor, x):
    """x as compressed-tensors reads it from a safetensors file that it has written, with scales of its own; but those of
    MXFP8, which it rounds to one digit, are the specification's."""
    scheme = preset_name_to_scheme(scheme_name, ["Linear"])
    group = x.reshape(x.shape[0], -1, scheme.weights.group_size)
    state = {"weight": x}
    if scheme_name.startswith("NVFP4"):
        state["weight_global_scale"] = generate_gparam(x.min(), x.max())
    scale = calculate_qparams(group.amin(-1), group.amax(-1), scheme.weights, state.get("weight_global_scale"))[0]
    if scheme_name.startswith("MXFP8"):
        scale = torch.exp2(torch.floor(torch.log2(group.abs().amax(-1))) - 8)
    state["weight_scale"] = scale.float()
    packed = compressor.compress(state, scheme)
    with tempfile.TemporaryDirectory() as folder:
        save_file({name: t.contiguous() for name, t in packed.items()}, folder + "/model.safetensors")
        packed = load_file(folder + "/model.safetensors")
    return compressor.decompress(packed, scheme)["weight"].float()


try:
    import compressed_tensors
    from compressed_tensors.compressors import (
        MXFP4PackedCompressor, MXFP6PackedCompressor, MXFP8QuantizationCompressor, NVFP4PackedCompressor)
    from compressed_tensors.quantization.quant_scheme import preset_name_to_scheme
    from compressed_tensors.quantization.utils.helpers import calculate_qparams, generate_gparam
    from safetensors.torch import load_file
    FILES = [("MXFP4A16", MXFP4PackedCompressor, "e2m1 1x32 even", EXACT),
             ("MXFP6A16", MXFP6PackedCompressor, "e2m3 1x32 even", EXACT),
             ("MXFP8A16", MXFP8QuantizationCompressor, "e4m3fn 1x32 floor", EXACT),
             ("NVFP4A16", NVFP4PackedCompressor, "e2m1 1x16 e4m3", ROUNDED)]
    print(f"compressed-tensors {compressed_tensors.__version__}")
except ImportError as missing:
    FILES = []
    print(f"compressed-tensors cannot be had ({missing}): its files are not compared")
for name, compressor, words, tolerance in FILES:
    for kind, x in matrices(2):
        if name.startswith("NVFP4"):  # a scale of the tensor that is a power of two, as its numbers pass through bf16
            x = x * (5.25 / x.abs().max())
        a = ours([words, str(ROWS), str(COLUMNS)], x)
        there, back = apart(in_file(name, compressor, a), a)[0], ours([words, str(ROWS), str(COLUMNS)], a)
        theirs, share = apart(in_file(name, compressor, x), a)
        good = there <= tolerance and theirs <= tolerance and torch.equal(back, a)
        compared += 3 * x.numel()
        bad += not good
        print(f"{name} file, {kind}: ours into it and back differ by {there:.1e}, theirs of the same matrix by {theirs:.1e} in "
              f"{100 * share:.3g} %" + ("" if good else " - TOO MUCH"))
# What must be seen: scales as the specification has them beside scales up.
x = dict(matrices())["normal"]
if apart(ours(["e4m3fn 1x32 floor", str(ROWS), str(COLUMNS)], x), mx(E4M3, Mode.RCEIL)(x))[0] < 0.05:
    print("the control is not seen")
    bad += 1
print(f"peers: {compared} comparisons, {bad} beyond tolerance")
sys.exit(bad > 0)
