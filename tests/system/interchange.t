#!/bin/sh
# SPDX-License-Identifier: MIT
# Models in the files of others: Meta's consolidated.00.pth, LitGPT's lit_model.pth, torch.save's
# pytorch_model.bin, torchtitan's checkpoints of two ranks, all written by PyTorch
# (tests/golden/torch, by tests/torch/goldens.py and dcp_golden.py), in and out; and files that mean
# harm.
. "$(dirname "$0")/lib.sh"
gold=$src/tests/golden/torch

exits 0 "the model as transformers keeps it" lbworker convert "$gold/hf" "$T/hf" --dtype bfloat16
for layout in meta litgpt torch dcp; do
	exits 0 "$layout: in" lbworker convert "$gold/$layout" "$T/$layout-in" --dtype bfloat16
	ok "$layout: every bit is that of transformers" cmp "$T/hf/model.safetensors" "$T/$layout-in/model.safetensors"
	exits 0 "$layout: out" lbworker convert "$T/hf" "$T/$layout" --to $layout --dtype bfloat16
	exits 0 "$layout: and in again" lbworker convert "$T/$layout" "$T/$layout-again" --dtype bfloat16
	ok "$layout: to the same bits" cmp "$T/hf/model.safetensors" "$T/$layout-again/model.safetensors"
done
is "$(grep -v dtype "$T/hf/config.json" | sort | tr -d ,)" "$(grep -v dtype "$T/torch-again/config.json" | sort | tr -d ,)" \
	"the shape comes back"
for folder in hf torch torch-again; do
	is "$(grep -c '"bos_token_id": 1\|"eos_token_id": 2\|"pad_token_id": null' "$T/$folder/config.json")" 3 \
		"$folder: and the tokens that a text begins and ends with"
done
same=0
for layout in meta litgpt dcp; do	# what their files do not say has one meaning only
	for key in hidden_size intermediate_size num_key_value_heads vocab_size rope_theta tie_word_embeddings; do
		[ "$(grep "\"$key\"" "$T/hf/config.json")" = "$(grep "\"$key\"" "$T/$layout-again/config.json")" ] && same=$((same + 1))
	done
done
is $same 18 "also from params.json and model_config.yaml"
ok "the archives are sound, and their pickles call two functions of torch only" python3 - "$T" <<'PY'
import glob, pickletools, sys, zipfile
for path in glob.glob(sys.argv[1] + "/*/*.pth") + glob.glob(sys.argv[1] + "/*/*.bin"):
    archive = zipfile.ZipFile(path)
    assert archive.testzip() is None
    assert all(i.compress_type == 0 for i in archive.infolist())
    names = {arg for op, arg, _ in pickletools.genops(archive.read("archive/data.pkl")) if op.name == "GLOBAL"}
    assert names == {"torch._utils _rebuild_tensor_v2", "torch BFloat16Storage", "collections OrderedDict"}, names
PY
exits 0 "float16 out" lbworker convert "$gold/meta" "$T/half" --to litgpt --dtype float16
exits 2 "there is no such layout" lbworker convert "$gold/hf" "$T/never" --to gguf
like "$err" "^lbworker: --to is one of huggingface, meta, litgpt, torch, dcp, torchtitan;" "is said"

# --- published models: files of several kinds side by side, and more in them than weights
mkdir "$T/both" && cp "$gold/hf"/* "$T/both" && cp "$gold/litgpt/lit_model.pth" "$gold/meta/consolidated.00.pth" "$T/both"
printf '\200\002\212\012l\374\234F\371 j\250P\031.' >"$T/both/pytorch_model.bin"
exits 0 "of several kinds those are taken that transformers takes" lbworker convert "$T/both" "$T/both-in" --dtype bfloat16
ok "to the same bits" cmp "$T/hf/model.safetensors" "$T/both-in/model.safetensors"
rm "$T/both/model.safetensors" "$T/both/lit_model.pth" "$T/both/consolidated.00.pth"
exits 2 "a file of torch.save before 1.6 alone" lbworker convert "$T/both" "$T/never"
like "$err" "^lbworker: $T/both/pytorch_model.bin: is of torch.save before PyTorch 1.6, which is not read: " "is called so"

# --- files of torch.save as others write them: split, wrapped, wider ----------------------------
cat >"$T/saved.py" <<'PY'
# saved.py FOLDER WAY: the golden's pytorch_model.bin once more, in one of those ways
import collections, io, json, pickle, struct, sys, types, zipfile
gold, to, way = sys.argv[1:]
torch, utils = types.ModuleType("torch"), types.ModuleType("torch._utils")
sys.modules["torch"], sys.modules["torch._utils"] = torch, utils
for kind in "BFloat16Storage", "FloatStorage", "DoubleStorage":
    setattr(torch, kind, type(kind, (), {"__module__": "torch"}))
def _rebuild_tensor_v2(*inputs):
    return Tensor(inputs)
_rebuild_tensor_v2.__module__, utils._rebuild_tensor_v2 = "torch._utils", _rebuild_tensor_v2
class Tensor:
    def __init__(self, inputs): self.inputs = inputs
    def __reduce__(self): return _rebuild_tensor_v2, self.inputs
class Storage:
    def __init__(self, id): self.id = id
class Reader(pickle.Unpickler):
    def persistent_load(self, id): return Storage(id)
class Writer(pickle.Pickler):
    def persistent_id(self, o): return o.id if isinstance(o, Storage) else None
archive = zipfile.ZipFile(gold + "/pytorch_model.bin")
root = archive.namelist()[0].split("/")[0]
model = dict(Reader(io.BytesIO(archive.read(root + "/data.pkl"))).load())
def save(name, value):
    out, above = io.BytesIO(), "of-a-file-once-called-otherwise-" * 3 if way == "long" else "archive"
    Writer(out, 2).dump(value)
    with zipfile.ZipFile(to + "/" + name, "w") as z:
        if way == "long":
            z.writestr("beside", "")
        z.writestr(above + "/data.pkl", out.getvalue())
        for entry in archive.namelist():
            if "/data/" in entry:
                z.writestr(above + "/data/" + entry.split("/")[-1], data(archive.read(entry)))
def data(raw):
    if way != "double":
        return raw
    wide = [struct.unpack("<f", b"\0\0" + raw[i:i + 2])[0] for i in range(0, len(raw), 2)]
    return struct.pack("<%dd" % len(wide), *wide)
names = list(model)
if way == "split":
    parts = [dict((n, model[n]) for n in names[k::2]) for k in (0, 1)]
    files = ["pytorch_model-0000%d-of-00002.bin" % (k + 1) for k in (0, 1)]
    for part, file in zip(parts, files):
        save(file, part)
    json.dump({"weight_map": {n: f for p, f in zip(parts, files) for n in p}}, open(to + "/pytorch_model.bin.index.json", "w"))
    sys.exit()
if way == "double":
    for t in model.values():
        id = t.inputs[0].id
        t.inputs = (Storage((id[0], torch.DoubleStorage, *id[2:])),) + t.inputs[1:]
within = 1
for _ in range(14):
    within = {str(k): within for k in range(20)}
bare = {n[len("model."):]: t for n, t in model.items() if n.startswith("model.")}
save("pytorch_model.bin", {"double": {**model, **{"shared_" + n: t for n, t in model.items()}}, "long": model, "bomb": {**model, "x": within}, "module": {"module." + n: t for n, t in model.items()},
    "lightning": {"epoch": 3, "empty": Tensor(next(iter(model.values())).inputs[:1] + (0, (2, 0), (1, 1), False, collections.OrderedDict())),
                  "state_dict": {"net._orig_mod." + n: t for n, t in model.items()}},
    "bare": {**bare, **{n: t for n, t in model.items() if n not in bare and not n.startswith("model.")}},
    "twins": {"student": model, "teacher": model}}[way])
PY
for way in split double long module lightning bare twins bomb; do
	mkdir "$T/$way" && cp "$gold/torch/config.json" "$T/$way"
	python3 "$T/saved.py" "$gold/torch" "$T/$way" $way || bail_out "no such file: $way"
done
for way in split double long module lightning bare; do
	exits 0 "torch.save, $way: in" lbworker convert "$T/$way" "$T/$way-in" --dtype bfloat16
	ok "$way: to the same bits" cmp "$T/hf/model.safetensors" "$T/$way-in/model.safetensors"
done
exits 2 "two models in one file" lbworker convert "$T/twins" "$T/never"
like "$err" "^lbworker: $T/twins/pytorch_model.bin: 2 tensors end in model.embed_tokens.weight, it must hold one model: " "are told"
exits 2 "a small file that means 20^14 numbers" timeout 60 "$B/lbworker" convert "$T/bomb" "$T/never"
like "$err" "^lbworker: $T/bomb/pytorch_model.bin: .* lies within more dictionaries than a model has" "is refused"
rm "$T/split/pytorch_model-00002-of-00002.bin"
exits 2 "a file that the index lists is missing" lbworker convert "$T/split" "$T/never"
like "$err" "^lbworker: $T/split/pytorch_model-00002-of-00002.bin: is missing, though pytorch_model.bin.index.json lists it$" "is told"
mkdir "$T/masked" && cp "$gold/hf/config.json" "$T/masked"
python3 - "$gold/hf/model.safetensors" "$T/masked/model.safetensors" <<'PY'
import json, struct, sys
raw = open(sys.argv[1], "rb").read()
size = struct.unpack("<Q", raw[:8])[0]
header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
for name, dtype, shape, n in (("model.layers.0.mask", "BOOL", [1, 1, 8, 8], 64), ("model.position_ids", "I64", [2], 16),
                              ("vision.patch", "F32", [1, 1, 1, 1, 2], 8)):
    header[name] = dict(dtype=dtype, shape=shape, data_offsets=[len(data), len(data) + n])
    data += bytes(n)
text = json.dumps(header).encode()
open(sys.argv[2], "wb").write(struct.pack("<Q", len(text)) + text + data)
PY
exits 0 "a file with masks and counters beside its weights" lbworker convert "$T/masked" "$T/masked-in" --dtype bfloat16
ok "to the same bits" cmp "$T/hf/model.safetensors" "$T/masked-in/model.safetensors"
sed -i 's/"model.norm.weight": {"dtype": "BF16"/"model.norm.weight": {"dtype": "F8E5"/' "$T/masked/model.safetensors"
exits 2 "weights of a type that is not known" lbworker convert "$T/masked" "$T/never"
like "$err" "^lbworker: $T/masked/model.safetensors: model.norm.weight is F8E5 16, the model needs F32 16$" "are refused"

# --- what those files say, or cannot say, of a model that is no plain Llama
for key in "attn_bias: true" "rope_condense_ratio: 4" "attention_scores_scalar: 256" "rope_local_base_freq: 10000"; do
	rm -rf "$T/other" && cp -r "$gold/litgpt" "$T/other"
	echo "$key" >>"$T/other/model_config.yaml"
	exits 2 "LitGPT's $key" lbworker convert "$T/other" "$T/never"
	like "$err" "model_config.yaml: ${key%%:*} must be [a-z0-9]+, it is ${key#*: }$" "is refused"
done
printf '[checkpoint]\ninitial_load_path = "%s"\n' "$T/other" >"$T/large.toml"
rm -rf "$T/other" && cp -r "$gold/litgpt" "$T/other"
sed -i "s/^n_layer: .*/n_layer: 1000000000000/" "$T/other/model_config.yaml"
exits 2 "more layers than a model can have" lbworker plan "$T/large.toml"
like "$err" "^lbworker: $T/large.toml:2: checkpoint.initial_load_path: model: layers 1000000000000 must be 1 to 1024$" "are refused"
scaled() { # scaled LOW ORIGINAL: the model of transformers with such rope scaling
	rm -rf "$T/scaled" && cp -r "$gold/hf" "$T/scaled"
	sed -i "s/\"rope_type\": .*/\"rope_type\": \"llama3\", \"factor\": 8.0, \"low_freq_factor\": $1, \"high_freq_factor\": 4.0/
		s/\"rope_theta\": .*/\"rope_theta\": 10000.5, \"original_max_position_embeddings\": $2,/" "$T/scaled/config.json"
}
for layout in meta dcp torchtitan; do
	for kind in "2.0 8192" "1.0 4096"; do
		# shellcheck disable=SC2086 # words
		scaled $kind
		exits 2 "$layout has no word for rope scaling like $kind" lbworker convert "$T/scaled" "$T/never" --to $layout
		like "$err" "^lbworker: Meta's files know rope scaling with low_freq_factor 1 and original_max_.* 8192 only" "is said"
	done
done
scaled 2.0 4096
exits 0 "LitGPT has" lbworker convert "$T/scaled" "$T/scaled-lit" --to litgpt
exits 0 "and it comes back" lbworker convert "$T/scaled-lit" "$T/scaled-back"
exits 0 "as transformers has it" lbworker convert "$T/scaled" "$T/scaled-want"
for key in rope_theta low_freq_factor original_max_position_embeddings; do
	is "$(grep "$key" "$T/scaled-back/config.json")" "$(grep "$key" "$T/scaled-want/config.json")" "$key, too"
done

# --- ranks that have nothing of a tensor: 16 rows on 5 are 4, 4, 4, 4 and none ------------------
cp -r "$gold/dcp" "$T/uneven"
cat >"$T/metadata.py" <<'PY'
import pickle, sys, types
class Made:	# what torch would make: as it was called, and its state
    def __new__(cls, *inputs):
        o = object.__new__(cls)
        o.inputs, o.state = inputs, None
        return o
    def __setstate__(self, state): self.state = state
    def __reduce__(self): return (type(self), self.inputs) + (() if self.state is None else (self.state,))
class Reader(pickle.Unpickler):
    def find_class(self, module, name):
        for i in range(len(module.split("."))):
            sys.modules.setdefault(".".join(module.split(".")[:i + 1]), types.ModuleType(module))
        if not hasattr(sys.modules[module], name):
            setattr(sys.modules[module], name, type(name, (Made,), {"__module__": module}))
        return getattr(sys.modules[module], name)
root = Reader(open(sys.argv[1], "rb")).load()
if sys.argv[2:]:	# all pieces of this tensor begin where it begins
    for index in root.state["storage_data"]:
        if index.state["fqn"] == sys.argv[2]:
            index.state["offset"] = type(index.state["offset"])((0, 0))
    pickle.dump(root, open(sys.argv[1], "wb"), 2)
    sys.exit()
for index, info in list(root.state["storage_data"].items()):
    size = getattr(root.state["state_dict_metadata"].get(index.state["fqn"]), "state", None)
    if size and size["size"].inputs[0]:
        whole = size["size"].inputs[0]
        empty, at = Made.__new__(type(index)), type(size["size"])((whole[0],) + (0,) * (len(whole) - 1))
        empty.state = dict(index.state, offset=at)
        nowhere = Made.__new__(type(info))
        nowhere.state = dict(info.state, offset=0, length=0)
        root.state["storage_data"][empty] = nowhere
pickle.dump(root, open(sys.argv[1], "wb"), 2)
PY
python3 "$T/metadata.py" "$T/uneven/.metadata" || bail_out "no metadata"
exits 0 "a checkpoint with pieces of nothing" lbworker convert "$T/uneven" "$T/uneven-in" --dtype bfloat16
ok "to the same bits" cmp "$T/hf/model.safetensors" "$T/uneven-in/model.safetensors"
cp -r "$gold/dcp" "$T/overlap"
python3 "$T/metadata.py" "$T/overlap/.metadata" tok_embeddings.weight || bail_out "no metadata"
exits 2 "pieces on each other, as many elements as the whole" lbworker convert "$T/overlap" "$T/never"
like "$err" "/.metadata: tok_embeddings.weight has pieces that overlap$" "are refused"

# --- a training of torchtitan goes on here --------------------------------------------------------
python3 -c "import sys; sys.stdout.buffer.write(b''.join((i * i % 40).to_bytes(2, 'little') for i in range(4000)))" >"$T/raw.bin"
lbworker prepare --out "$T/data.tokens" --join "$T/raw.bin" >"$T/said" 2>&1
cat >"$T/over.toml" <<-END
	[model]
	dim = 16
	n_layers = 2
	n_heads = 2
	n_kv_heads = 1
	ffn_dim = 24
	vocab_size = 40
	[lr_scheduler]
	warmup_steps = 0
	[training]
	dataset_path = "$T/data.tokens"
	local_batch_size = 2
	seq_len = 8
	threads = 1
	[metrics]
	peak_tflops = 1
	[checkpoint]
	initial_load_path = "$gold/dcp"
END
over() { lbworker train "$T/over.toml" --job.dump_folder "$T/$1" --training.steps "$2" --checkpoint.initial_load_model_only "$3"; }
exits 0 "torchtitan's checkpoint is taken over" over over 9 false
like "$out" "^took over $gold/dcp at step 7$" "at its step"
like "$out" "^step 9/9 " "and goes on"
ok "with its moments: they fade as AdamW lets them" python3 - "$T/over/checkpoints/step-00000009" <<'PY'
import json, struct, sys
def tensor(path, name):
    raw = open(path, "rb").read()
    size = struct.unpack("<Q", raw[:8])[0]
    a, b = json.loads(raw[8:8 + size])[name]["data_offsets"]
    return memoryview(raw[8 + size:][a:b]).cast("f")
name = "model.layers.0.self_attn.q_proj.weight"
m = tensor(sys.argv[1] + "/optimizer.safetensors", "exp_avg." + name)
w = tensor(sys.argv[1] + "/model.safetensors", name)
# two steps with gradients far below the moments: m = 0.81 * 2 w
big = [(a, b) for a, b in zip(m, w) if abs(b) > 0.2]
assert len(big) > 20 and all(abs(a - 1.62 * b) < 0.1 * abs(b) + 0.05 for a, b in big), big[:3]
PY
exits 0 "or its weights alone" over fresh 1 true
like "$out" "^step 1/1 " "from step 0"
sed "s/dim = 16/dim = 32/" "$T/over.toml" >"$T/wide.toml"
exits 2 "into another shape" lbworker train "$T/wide.toml" --job.dump_folder "$T/never" --training.steps 1
like "$err" "checkpoint.initial_load_path: .*tok_embeddings.weight has 40x16 elements, the model needs 40x32" "it is refused"
rm -rf "$T/never"

# --- and is given back ----------------------------------------------------------------------------
for layout in dcp torchtitan; do
	exits 0 "$layout: with moments and step" lbworker convert "$T/over/checkpoints/step-00000009" "$T/$layout-back" --to $layout --moments on
	sed "s|$gold/dcp|$T/$layout-back|" "$T/over.toml" >"$T/back.toml"
	exits 0 "$layout: it is taken over once more" lbworker train "$T/back.toml" --job.dump_folder "$T/more-$layout" \
		--training.steps 9 --lr_scheduler.total_steps 9 --checkpoint.initial_load_model_only false
	like "$out" "^took over $T/$layout-back at step 9$" "at its step"
	exits 0 "$layout: and goes out again" lbworker convert "$T/$layout-back" "$T/$layout-hf"
	exits 0 "$layout: as the checkpoint does" lbworker convert "$T/over" "$T/$layout-want"
	ok "$layout: with the same bits" cmp "$T/$layout-hf/model.safetensors" "$T/$layout-want/model.safetensors"
done
exits 2 "moments of AdamW are of no use to Muon" lbworker train "$T/over.toml" --job.dump_folder "$T/never" \
	--checkpoint.initial_load_model_only false --optimizer.name Muon
like "$err" "moments of torchtitan are AdamW's, and the config says Muon" "is said"
exits 2 "moments are a checkpoint's" lbworker convert "$T/hf" "$T/never" --to dcp --moments on
like "$err" "^lbworker: --moments on: .*train_state.json" "is said"
exits 2 "and go without an adapter" lbworker convert "$T/over" "$T/never" --to dcp --moments on --adapter "$gold/hf"
like "$err" "^lbworker: --moments on goes without --adapter" "is said"
exits 2 "and for a checkpoint" lbworker convert "$T/over" "$T/never" --to meta --moments on
like "$err" "^lbworker: --moments on is for --to dcp and torchtitan" "is said"

# --- Meta's files of several parts ----------------------------------------------------------------
exits 0 "a wide model" lbworker convert "$gold/hf" "$T/one" --to meta
exits 2 "one key/value head is not cut in two" lbworker convert "$gold/hf" "$T/never" --to meta --parts 2
like "$err" "^lbworker: --parts 2 must divide heads \\(2\\), key/value heads \\(1\\)" "is said"
sed "s/n_kv_heads = 1/n_kv_heads = 2/; /initial_load_path/d" "$T/over.toml" >"$T/even.toml"
exits 0 "a model of two" lbworker train "$T/even.toml" --job.dump_folder "$T/even" --training.steps 1
exits 0 "goes out in two parts" lbworker convert "$T/even" "$T/two" --to meta --parts 2
exits 0 "and comes in again" lbworker convert "$T/two" "$T/two-in"
ok "with the same bits" cmp "$T/two-in/model.safetensors" "$T/even/checkpoints/step-00000001/model.safetensors"
mv "$T/two/consolidated.01.pth" "$T/two/consolidated.02.pth"
exits 2 "without its second part" lbworker convert "$T/two" "$T/never"
like "$err" "^lbworker: .*consolidated.00.pth: layers.0.attention.wq.weight has 8x16 elements, the model needs 16x16" "it is refused"
exits 2 "parts are for Meta's" lbworker convert "$T/even" "$T/never" --parts 2
like "$err" "^lbworker: --parts is for --to meta" "is said"

# --- a training begins with any of them, which say their shape ------------------------------------
sed '/^\[model\]/,/^vocab_size/d' "$T/over.toml" >"$T/shapeless.toml"
for layout in hf meta litgpt torch dcp; do
	exits 0 "--init-from $layout" lbworker train "$T/shapeless.toml" --job.dump_folder "$T/from-$layout" --training.steps 1 \
		--training.seq_len 8 --init-from "$gold/$layout" --checkpoint.initial_load_model_only true \
		--checkpoint.export_dtype bfloat16
	ok "$layout: the same first step" cmp "$T/from-hf/checkpoints/step-00000001/model.safetensors" \
		"$T/from-$layout/checkpoints/step-00000001/model.safetensors"
done
is "$(grep -c '"eos_token_id": 2' "$T/from-hf/checkpoints/export-bfloat16/config.json")" 1 "its texts end as those of the model that it was"

# --- but with no other model's: CodeLlama has the sizes of Llama 2, and another rope_theta
differs() { # differs LAYOUT OPTION...: sizes that fit, and what does not show in tensors
	sed "s|$gold/dcp|$gold/$1|" "$T/over.toml" >"$T/differs.toml"
	shift
	lbworker train "$T/differs.toml" --job.dump_folder "$T/never" --training.steps 1 --checkpoint.initial_load_model_only true "$@"
}
for layout in hf meta litgpt torch; do
	rm -rf "$T/never"
	exits 2 "$layout with another rope_theta" differs $layout --model.rope_theta 1e6
	like "$err" "^lbworker: checkpoint.initial_load_path: .*$layout.*: family, heads, .* are not those of the keys of .model.$" "is refused"
done
for layout in hf meta litgpt torch dcp; do
	rm -rf "$T/never"
	exits 2 "$layout for a model of fewer layers" differs $layout --model.n_layers 1
	like "$err" "^lbworker: checkpoint.initial_load_path: .*$layout.*: has (2 layers, model.n_layers is 1: |more than the 1 layers)" "is refused"
done
for layout in hf torch; do
	rm -rf "$T/tied" && cp -r "$gold/$layout" "$T/tied"
	sed -i 's/"tie_word_embeddings": false/"tie_word_embeddings": true/' "$T/tied/config.json"
	exits 2 "$layout with a head of its own, whose config.json says that it is the embedding" lbworker convert "$T/tied" "$T/never"
	like "$err" "^lbworker: $T/tied: lm_head.weight is not the embedding, though config.json says so: " "is refused"
done
exits 2 "dcp with such a head, for a model whose head is the embedding" differs dcp --model.tie_word_embeddings true
like "$err" "^lbworker: checkpoint.initial_load_path: .*dcp: its head is not the embedding: model.tie_word_embeddings = false$" "is refused"
for layout in hf meta dcp; do
	rm -rf "$T/never"
	exits 2 "$layout in a training of u-muP" differs $layout --u_mup.enable true --optimizer.weight_decay 0
	like "$err" "^lbworker: checkpoint.initial_load_path: .*: .* would change$|a weight means something else: " "is refused"
done
rm -rf "$T/never"

# --- files that mean harm
# --------------------------------------------------------------------------------------- bad NAME
# PATTERN: what stands on standard input (python: `out` is the file) is refused in one line
bad() {
	mkdir -p "$T/bad"
	rm -rf "$T/bad/"*
	cp "$gold/meta/params.json" "$T/bad"
	cp "$gold/meta/consolidated.00.pth" "$T/bad"
	{ cat <<-'PY'
		import io, os, pickle, struct, sys, zipfile
		out, touched = sys.argv[1] + "/bad/consolidated.00.pth", sys.argv[1] + "/touched"
		def archive(data, entries=()):
		    with zipfile.ZipFile(out, "w") as z:
		        z.writestr("archive/data.pkl", data)
		        for name, bytes_ in entries:
		            z.writestr("archive/" + name, bytes_)
		class Call:
		    def __init__(self, *call): self.call = call
		    def __reduce__(self): return self.call
	PY
	cat; } | python3 - "$T" || bail_out "no bad file"
	exits 2 "$1" lbworker convert "$T/bad" "$T/never"
	like "$err" "^lbworker: $T/bad/consolidated.00.pth: $2" "is refused"
	is "$(wc -l <"$T/exits.err")" 1 "in one line"
}
bad "a pickle that would run a command" "there is no tensor tok_embeddings.weight" <<'PY'
archive(pickle.dumps({"tok_embeddings.weight": Call(os.system, ("touch " + touched,))}, 2))
PY
ok "which did not run" [ ! -e "$T/touched" ]
bad "half of a file" "a zip archive without its end: it was cut short" <<'PY'
data = open(out, "rb").read()
open(out, "wb").write(data[:len(data) // 2])
PY
bad "a pickle that is cut" "its pickle, byte [0-9]+: is cut short" <<'PY'
archive(pickle.dumps({"a": list(range(100))}, 2)[:-20])
PY
bad "no pickle" "its pickle, byte 1: an opcode that is not known" <<'PY'
archive(b"\xffhello")
PY
bad "another archive" "data.pkl is not in it" <<'PY'
with zipfile.ZipFile(out, "w") as z:
    z.writestr("README", "hello")
PY
bad "a tensor beyond its storage" "tok_embeddings.weight is longer than what is stored of it" <<'PY'
data = (b"\x80\x02}X\x15\0\0\0tok_embeddings.weightctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"
        b"ctorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQK\0K\x04K\x04\x86K\x04K\x01\x86\x89}tRs.")
archive(data, [("data/0", b"\0" * 16)])
PY
bad "the bytes of another machine" "byteorder is big, must be little" <<'PY'
data = (b"\x80\x02}X\x15\0\0\0tok_embeddings.weightctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"
        b"ctorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQK\0K\x02K\x02\x86K\x02K\x01\x86\x89}tRs.")
archive(data, [("byteorder", b"big"), ("data/0", b"\0" * 16)])
PY
bad "a tensor of 2^62 rows" "tok_embeddings.weight is not stored row by row" <<'PY'
data = (b"\x80\x02}X\x15\0\0\0tok_embeddings.weightctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"
        b"ctorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x04tQK\0\x8a\x08\0\0\0\0\0\0\0\x40K\x04\x86K\x04K\x01"
        b"\x86\x89}tRs.")
archive(data, [("data/0", b"\0" * 16)])
PY
bad "a list within itself" "there is no tensor tok_embeddings.weight" <<'PY'
archive(b"\x80\x02]q\0h\0a.")
PY
cp -r "$gold/dcp" "$T/cut" && rm "$T/cut/params.json"
exits 2 "a checkpoint that does not say its shape" lbworker convert "$T/cut" "$T/never"
like "$err" "a checkpoint does not say the model.s shape: give --flavor NAME " "says so"
exits 2 "the wrong shape" lbworker convert "$T/cut" "$T/never" --flavor debugmodel
like "$err" "cut/.metadata: tok_embeddings.weight has 40x16 elements, the model needs 256x64$" "is said"
cp "$gold/dcp/params.json" "$T/cut" && truncate -s 20000 "$T/cut/__1_0.distcp"
exits 2 "a file of pieces that is cut short" lbworker convert "$T/cut" "$T/never"
like "$err" "^lbworker: $T/cut/__1_0.distcp: " "is named"
exits 2 "another shape" sh -c "cp -r '$gold/meta' '$T/wide' && sed -i 's/\"n_layers\": 2/\"n_layers\": 3/' '$T/wide/params.json' &&
	'$B/lbworker' convert '$T/wide' '$T/never'"
like "$err" "consolidated.00.pth: there is no tensor layers.2.attention.wq.weight$" "is said"
is "$(find "$T" -maxdepth 1 -name 'never*')" "" "nothing is left behind"
done_testing
