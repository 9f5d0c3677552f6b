# SPDX-License-Identifier: MIT
# prepare.sh - what a machine may lack that has a GPU's driver and nothing else; sourced by check.sh
# and bench/gpu/run.sh, which set me (their name, for messages), B (absolute) and T (a folder of
# their own).
#
#   liblbcuda.so  as it was built or carried; else it is built here, by the nvcc that there is or by
#                 PyPI's
#   cuBLASLt and cuDNN  where the loader, a toolkit or the Python on PATH has them; else PyPI's
#                       nvidia-* wheels
#   PyTorch       of python3, where it sees the GPU; else PyPI's (only where a part asks for it)
#
#   compute-sanitizer  on PATH or in a toolkit; else PyPI's
#
# Wheels go to folders of $B/gpu and to nowhere else. What can not be had is said in one line.
# Nothing is installed where there is no driver.
#
# LB_GPU_WHEELS  a folder of wheels that were carried: nothing is asked of PyPI
# shellcheck shell=sh disable=SC2154 # me, B, T: see above
export LB_CUDA_LIBRARY="${LB_CUDA_LIBRARY:-$B/liblbcuda.so}"
PATH=$PATH:/usr/local/cuda/bin:/opt/cuda/bin # compute-sanitizer
own_path=${LD_LIBRARY_PATH:-}

say() { echo "$me: $*"; }
# What a call that was killed has left would compute beside this one.
end_left_running() {
	left=$(cat "$T/running" 2>/dev/null) || return 0
	if tr '\0' ' ' <"/proc/$left/cmdline" 2>/dev/null | grep -q '^timeout \|/lbworker train '; then
		say "ending $left, which an earlier call left running"
		kill "$left"
		while kill -0 "$left" 2>/dev/null; do sleep 0.1; done
	fi
	rm -f "$T/running"
}
trap end_left_running EXIT
trap 'exit 130' HUP INT TERM
limited() { # limited SECONDS COMMAND...
	seconds=$1
	shift
	timeout "$seconds" "$@" </dev/null &
	echo $! >"$T/running"
	wait $!
	set -- $?
	rm -f "$T/running"
	return "$1"
}
site() { echo "$B/gpu/$1/lib/python3/site-packages"; }
# wheels FOLDER WORD...: into a folder of their own each (pip would empty one that is there)
wheels() {
	folder=$1
	shift
	python3 -m pip --version >/dev/null 2>&1 ||
		{ say "missing: $*: neither here nor to be installed: there is no python3 with pip"; return 1; }
	[ -z "${LB_GPU_TOY:-}" ] || [ -n "${LB_GPU_WHEELS:-}" ] ||
		{ say "missing: $*: a rehearsal asks nothing of PyPI"; return 1; }
	say "installing $* into $B/gpu/$folder"
	rm -rf "${B:?}/gpu/$folder"
	# shellcheck disable=SC2086 # words
	limited 450 python3 -m pip install -q --no-compile --no-cache-dir --disable-pip-version-check --retries 1 --timeout 20 \
		--target "$(site "$folder")" ${LB_GPU_WHEELS:+--no-index --find-links "$LB_GPU_WHEELS"} "$@" \
		>"$T/pip.log" 2>&1 && return 0
	why=$(grep ERROR "$T/pip.log" | tail -n 1 | cut -c 1-150)
	! grep -qi 'connection\|timed out\|timeout' "$T/pip.log" || why="PyPI is out of reach"
	why=${why:-not through in 450 s}
	say "missing: $*: neither here nor to be installed: $why ($T/pip.log)"
	rm -rf "${B:?}/gpu/$folder"
	return 1
}
# The loader finds what lies in these folders, too; those that are none do not mind.
look_in() {
	for folder in "$@"; do
		[ ! -d "$folder" ] || LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder"
	done
	export LD_LIBRARY_PATH
}
# As 12.8; "": not known
driver_cuda() { nvidia-smi 2>/dev/null | sed -n 's/.*CUDA Version: *\([0-9.]*\).*/\1/p' | head -n 1; }
has_driver() { ! env -u LB_CUDA_LIBRARY "$B/gpu/ops" --rounds 0 2>&1 | grep -q 'there is no driver'; }

# --- liblbcuda.so ---------------------------------------------------------------------------------
find_nvcc() {
	for nvcc in "${CUDA_HOME:-}/bin/nvcc" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc /usr/local/cuda-*/bin/nvcc \
		/opt/cuda/bin/nvcc "$(site nvcc)/nvidia/cu13/bin/nvcc"; do
		[ ! -x "$nvcc" ] || { echo "${nvcc%/bin/nvcc}"; return; }
	done
}
# PyPI's compiler: it is no whole toolkit before its libraries have names that a linker looks for
# and cuDNN's headers lie beside the others.
install_nvcc() {
	version=$(driver_cuda)
	case ${version:=13.0} in
	13.*) ;;
	*) say "missing: nvcc: the driver is for CUDA $version, whose compiler is not on PyPI: install its toolkit"; return 1 ;;
	esac
	wheels nvcc "cuda-toolkit[nvcc,cudart,cublas,nvrtc,crt,cccl,nvtx]==$version.*" nvidia-cudnn-cu13 || return 1
	cuda=$(site nvcc)/nvidia/cu13
	for file in "$cuda"/lib/*.so.*; do
		ln -sf "${file##*/}" "${file%%.so.*}.so"
	done
	ln -sf "$(site nvcc)"/nvidia/cudnn/include/*.h "$cuda/include/" && ln -sfn lib "$cuda/lib64"
}
build_library() {
	cuda=$(find_nvcc)
	[ -n "$cuda" ] || { install_nvcc && cuda=$(find_nvcc); } || return 1
	say "building $LB_CUDA_LIBRARY with $cuda/bin/nvcc"
	make CUDA=1 CUDA_HOME="$cuda" B="${B#"$PWD"/}" "${LB_CUDA_LIBRARY#"$PWD"/}" >"$T/build.log" 2>&1 </dev/null || {
		say "missing: $LB_CUDA_LIBRARY: not built: $(grep -m 1 -i 'error' "$T/build.log" | cut -c 1-150) ($T/build.log)"
		return 1
	}
}

# --- its libraries --------------------------------------------------------------------------------
probe() { "$B/gpu/ops" --rounds 0 >"$T/probe" 2>&1; }
lacks_library() { grep -q 'cannot open shared object file\|no cuDNN 9' "$T/probe"; }
# That of the Python on PATH, wherever it keeps its packages; toolkits in places that the loader
# does not know.
find_libraries() {
	# shellcheck disable=SC2046 # words
	look_in $(python3 - 2>/dev/null <<-'PYTHON'
		import glob, sys
		print(*(found for folder in sys.path if folder for found in glob.glob(folder + "/nvidia/*/lib") if " " not in found))
	PYTHON
	) /usr/local/cuda/lib64 /usr/local/cuda-*/lib64 /opt/cuda/lib64 /usr/lib/cuda/lib64
}
# As the driver's CUDA has them, where that is of the library's generation; cuDNN needs NVRTC to
# plan.
install_libraries() {
	cuda=$(grep -ao 'libcublasLt\.so\.[0-9]*' "$LB_CUDA_LIBRARY" | head -n 1)
	cuda=${cuda##*.}
	cuda=${cuda:-13}
	version=$(driver_cuda)
	case $version in "$cuda".*) ;; *) version=$cuda ;; esac
	wheels python "cuda-toolkit[cublas,nvrtc]==$version.*" "nvidia-cudnn-cu$cuda"
}
# prepare_libraries: as probe() ends at last; 77 without a GPU. T/probe says what there is, or why
# there is nothing.
prepare_libraries() {
	end_left_running
	if [ ! -x "$B/gpu/ops" ]; then
		echo "there is no $B/gpu/ops: make gpu-check builds it where a compiler is, and it can be carried" >"$T/probe"
		return 1
	fi
	if [ ! -e "$LB_CUDA_LIBRARY" ] && has_driver && ! build_library; then
		echo "there is no $LB_CUDA_LIBRARY" >"$T/probe"
		return 1
	fi
	look_in "$(site python)"/nvidia/*/lib "$(site nvcc)"/nvidia/*/lib
	probe
	status=$?
	lacks_library && has_driver || return $status
	find_libraries
	probe
	status=$?
	lacks_library || return $status
	install_libraries || return 1
	look_in "$(site python)"/nvidia/*/lib
	probe
}

# --- the peer -------------------------------------------------------------------------------------
# python3 as it was before we looked for libraries: PyTorch brings its own.
peer() { # peer SECONDS ARGUMENT...
	seconds=$1
	shift
	limited "$seconds" env LD_LIBRARY_PATH="$own_path" PYTHONUNBUFFERED=1 python3 "$@"
}
torch_works() {
	peer 120 -c 'import sys, torch; torch.nn.RMSNorm; sys.exit(not (sys.argv[1] or torch.cuda.is_available()))' \
		"${LB_GPU_TOY:-}" >/dev/null 2>&1
}
# A line, and false, where there is no PyTorch of 2.4 or later that sees the GPU and none can be
# installed.
prepare_torch() {
	torch_works && return 0
	PYTHONPATH=$(site torch)${PYTHONPATH:+:$PYTHONPATH}
	export PYTHONPATH
	torch_works && return 0
	wheels torch torch || return 1
	torch_works || { say "missing: a PyTorch that sees the GPU: $(site torch)"; return 1; }
}

# --- tools
# ---------------------------------------------------------------------------------------------- A
# line, and false, where there is no compute-sanitizer and none can be installed.
prepare_sanitizer() {
	! command -v compute-sanitizer >/dev/null || return 0
	PATH=$PATH:$(site sanitizer)/nvidia/cu13/bin
	command -v compute-sanitizer >/dev/null || wheels sanitizer "nvidia-cuda-sanitizer-api==13.*"
}
