#!/bin/sh
# SPDX-License-Identifier: MIT
# gpu-bench.t - a rehearsal of gpu-bench, and of what it and gpu-check install: the emulated library
# in the GPU's place, the smallest shapes, and stand-ins for PyTorch, llm.c and PyPI's wheels, so
# that on the day there is a GPU nothing fails for the scripts' own sake.  B=build prove --exec sh
# tests/system/gpu-bench.t
. "$(dirname "$0")/trainer.sh"

need_emulated
python=$(command -v python3) || { echo "Bail out! there is no python3"; exit 1; }
case $B in /*) ;; *) B=$PWD/$B ;; esac

# A python3 in front of the real one: its PyTorch prints what bench/gpu/pytorch.py prints, or fails
# as that does where memory is short; its pip installs from the carried wheels only.
mkdir "$T/bin" "$T/carried" && cat >"$T/bin/python3" <<-END
	#!/bin/sh
	case "\$*" in
	"-c import sys, torch;"*) [ -e "$T/torch" ] ;;
	bench/gpu/pytorch.py\ 8B*) echo "# CUDNN_ATTENTION: OutOfMemoryError: CUDA out of memory." >&2
	        echo "pytorch: no attention backend worked" >&2; exit 1 ;;
	bench/gpu/pytorch.py*) while [ -e "$T/pause" ]; do touch "$T/began"; sleep 0.1; done
	        echo "480123 490000 torch-2.11.0+cu130 CUDNN_ATTENTION peak 61.2 GiB"
	        echo "500321 510000 torch-2.11.0+cu130 FLASH_ATTENTION peak 61.2 GiB"
	        echo "# EFFICIENT_ATTENTION: RuntimeError: none" >&2; echo "\$*" >>"$T/asked" ;;
	*) exec "$python" "\$@" ;;
	esac
END
chmod +x "$T/bin/python3"
PATH=$T/bin:$PATH
# A checkout of llm.c, as far as it is read: its Makefile builds a program that prints llm.c's
# lines.
mkdir -p "$T/llm.c/llmc" && echo '// cudaMemAdvise(p, n, PreferredLocation, cudaCpuDeviceId)' >"$T/llm.c/llmc/common.cuh"
printf 'train_gpt2cu:\n\tcp program $@ && chmod +x $@\n' >"$T/llm.c/Makefile"
cat >"$T/llm.c/program" <<-'END'
	#!/bin/sh
	while [ $# -gt 1 ]; do case $1 in -i) tokens=$2 ;; -v) every=$2 ;; esac; shift 2; done
	[ "$(od -An -tu4 -N12 "$tokens" | tr -s ' ')" = " 20240520 1 4000000" ] && [ "$(wc -c <"$tokens")" = 8001024 ] || exit 3
	echo "step    $((1 % every))/30 | loss 10.9 (+nanz)| norm 15.6 (+nanz)| lr 3.00e-04 | 161.2 ms | 45.1% bf16 MFU | 406553 tok/s"
	echo "step   30/30 | loss 6.1 (+0.3z)| norm 1.2 (+0.1z)| lr 3.00e-04 | 158.7 ms | 45.8% bf16 MFU | 413001 tok/s"
END
bench() { # bench NAME=VALUE...
	env B="$B" LB_GPU_TOY=1 LB_CUDA_LIBRARY="$emulated" LB_GPU_RESULTS="$T/results" LB_BENCH_LLMC="$T/llm.c" LB_BENCH_SM=90 \
		LB_GPU_WHEELS="$T/carried" "$@" sh bench/gpu/run.sh >"$T/out" 2>"$T/err"
}

bench PARTS="124M-pytorch 1B-pytorch"
grep -q '^124M-pytorch 124M PyTorch - (gpu-bench: missing: torch: neither here nor to be installed: ' "$T/out" &&
	grep -q '^1B-pytorch 1B PyTorch - (' "$T/out" && [ "$(find "$T/results" -name pip.log | wc -l)" = 1 ]
ok $? "without PyTorch its parts have a line each that says so"
touch "$T/torch"

# Killed while PyTorch measures: what is done stays, the rest comes with the next call, and nothing
# runs beside it.
touch "$T/pause"
setsid env B="$B" LB_GPU_TOY=1 LB_CUDA_LIBRARY="$emulated" LB_GPU_RESULTS="$T/results" PARTS="124M-ours 124M-pytorch" \
	sh bench/gpu/run.sh >"$T/out" 2>"$T/err" &
worker=$!
until [ -e "$T/began" ] || ! kill -0 $worker; do sleep 0.1; done
kill -KILL -$worker
wait $worker 2>/dev/null
worker=
ours=$(grep '^124M-ours .* [0-9]' "$T/results/results")
left=$(cat "$T/results/running")
[ -n "$ours" ] && ! grep -q '^124M-pytorch ' "$T/results/results" && kill -0 "$left"
ok $? "a part that was killed has no line"
bench PARTS=124M-ours && grep -q "^gpu-bench: ending $left, which an earlier call left running" "$T/out" && ! kill -0 "$left" 2>/dev/null
ok $? "what it left running is ended first"
rm "$T/pause"
bench
status=$?
[ "$status" = 0 ] && grep -qxF "$ours" "$T/results/results" && [ "$(wc -l <"$T/results/results")" = 21 ] &&
	! grep -v '^8B-pytorch\|^1B-pytorch ' "$T/results/results" | grep -v ' [0-9][0-9]*$' && [ "$(wc -l <"$T/asked")" = 5 ]
ok $? "every other part has its figure with the next call, and what is there is not measured again"
[ "$status" = 0 ] || sed 's/^/# /' "$T/out"
grep -q '^8B-pytorch 8B PyTorch - (# CUDNN_ATTENTION: OutOfMemoryError' "$T/results/results" &&
	grep -q '^8B-ours-two 8B ours [0-9]' "$T/results/results"
ok $? "what finds no memory is one line, and the next part comes"
grep -q '^gpt2-llmc gpt2 llm.c 413001$' "$T/results/results" && grep -q '^124M-pytorch 124M PyTorch 500321$' "$T/results/results"
ok $? "what llm.c and PyTorch print is read: llm.c's last mean, the best of attention's kinds"
grep -q '^124M  *[0-9][0-9]* 124M-ours  *500321 124M-pytorch.* >= 1.10 x: NOT met' "$T/out" &&
	grep -q '^8B  *[0-9].* - .*not measured' "$T/out" && grep -q '^gpt2 .* 413001 gpt2-llmc ' "$T/out"
ok $? "the table has the best of each side"
[ "$(grep -c '^\(124M\|1B\|8B\)  *[0-9][0-9]* [0-9A-Z]*-fp8.* ours in bf16  *[0-9.]*  >= .* met$' "$T/out")" = 3 ]
ok $? "and FP8 beside bf16"
bench PARTS="1B-pytorch" && grep -q '^1B-pytorch 1B PyTorch 500321$' "$T/results/results"
ok $? "a part without a figure is tried again where it is named"
# Other programs: the peers' figures hold.
cp "$emulated" "$T/other.so" && echo >>"$T/other.so" && rm "$T/asked" &&
	bench LB_CUDA_LIBRARY="$T/other.so" PARTS="gpt2-ours 124M-pytorch" && [ ! -e "$T/asked" ] &&
	! grep -q '^124M-ours ' "$T/results/results" && grep -q '^124M-ours ' "$T/results/history"
ok $? "after a change of ours PyTorch is not measured again, and the old results are kept"
bench PARTS=7B-ours
[ $? = 2 ] && grep -q 'gpu-bench: PARTS: there is no 7B-ours, allowed are: 124M-ours ' "$T/err"
ok $? "a part that there is not is said"

# --- what is installed
# -------------------------------------------------------------------------------------- A library
# that needs libcublasLt.so.99, which is nowhere but in a wheel that was carried, and a driver that
# has no device.
mkdir "$T/driver" "$T/nvidia" && echo 'int nothing;' >"$T/empty.c" &&
	gcc -shared -fPIC -o "$T/driver/libcuda.so.1" "$T/empty.c" &&
	gcc -shared -fPIC -Wl,-soname,libcublasLt.so.99 -o "$T/nvidia/libcublasLt.so.99" "$T/empty.c" &&
	gcc -shared -fPIC -o "$T/needy.so" "$T/empty.c" -Wl,--no-as-needed "$emulated" "$T/nvidia/libcublasLt.so.99"
check() { # check NAME=VALUE...
	env B="$T/b" LB_CUDA_LIBRARY="$T/needy.so" LB_GPU_RESULTS="$T/checked" LB_GPU_TOY=1 LB_GPU_ROUNDS=1 PARTS=ops-bf16 \
		LB_GPU_WHEELS="$T/carried" LD_LIBRARY_PATH="$T/driver" "$@" sh tests/gpu/check.sh >"$T/out" 2>"$T/err"
}
mkdir -p "$T/b/gpu" && ln -s "$B/gpu/ops" "$T/b/gpu/ops" && ln -s "$B/lbworker" "$T/b/lbworker"
check
[ $? = 1 ] && grep -q '^gpu-check: missing: .*cublas.*: neither here nor to be installed: ' "$T/out" &&
	grep -q 'libcublasLt.so.99: cannot open' "$T/out" && [ -z "$(find "$T/b/gpu" -mindepth 1 -type d)" ]
ok $? "a library that can not be had is named in a line"
check LD_LIBRARY_PATH=
[ $? = 77 ] && ! grep -q 'installing' "$T/out"
ok $? "without a driver nothing is installed"
"$python" - "$T/carried" "$T/nvidia/libcublasLt.so.99" <<-'PYTHON'
	import sys, zipfile
	folder, library = sys.argv[1:]
	def wheel(name, version, needs=(), files=()):
	    stem = f"{name}-{version}"
	    with zipfile.ZipFile(f"{folder}/{stem}-py3-none-any.whl", "w") as out:
	        for path, file in files:
	            out.write(file, path)
	        meta = "".join(f"Requires-Dist: {x}\n" for x in needs)
	        out.writestr(f"{stem}.dist-info/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
	                     f"Provides-Extra: cublas\nProvides-Extra: nvrtc\n{meta}")
	        out.writestr(f"{stem}.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: x\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
	        out.writestr(f"{stem}.dist-info/RECORD", "")
	wheel("cuda_toolkit", "99.1", ['nvidia-cublas; extra == "cublas"'])
	wheel("nvidia_cublas", "99.0", files=[("nvidia/cu99/lib/libcublasLt.so.99", library)])
	wheel("nvidia_cudnn_cu99", "9.0")
PYTHON
check && grep -q '^gpu-check: installing ' "$T/out" && grep -q '^ops-bf16  *ok' "$T/out" &&
	check FRESH=1 && ! grep -q 'installing' "$T/out" && grep -q '^ops-bf16  *ok' "$T/out"
ok $? "one that a wheel has is installed beside the programs, once, and the check runs"
check LD_LIBRARY_PATH="$T/driver:$T/nvidia" FRESH=1 B="$B" && ! grep -q 'installing' "$T/out" && grep -q '^ops-bf16  *ok' "$T/out"
ok $? "one that the loader knows is not"
echo "1..$count"
