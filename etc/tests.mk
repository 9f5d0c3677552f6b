# SPDX-License-Identifier: MIT
# The tests. `make check` runs all that a change must pass; these are for an hour of its own, or
# need what others wrote:
#
#   make sim [SEEDS=N | SEED=k]                simulated years; one world again
#   make faults [POINTS=100 KILLS=1000 …]      the programs, Slurm and disks, broken again and again
#   make chaos [MINUTES=60] [SEED=k]           faults drawn from a seed, all kinds at once
#   make check-steady [TIMES=20] [LOAD=6] [AT_ONCE=1] [DONE=FILE] [TESTS="…"]   does each system
#   test pass each time? Hours, in any number of sittings
#   make check-options [N=1000 SEED=1]         options of sbatch, by pairs and triples: lbctl beside
#                                              sbatch
#   make check-text [DOCUMENTS=N TOKENIZERS=DIR]   tokens beside those of the libraries of others
#   make check-formats                         numbers of few bits, bit for bit beside an
#                                              independent table
#   make check-neon                            the CPU backend on 64-bit Arm, by QEMU: the bits of
#                                              AVX2
#   make check-ranks                           one rank beside several, bit for bit, and controls
#   make check-losses [STEPS=200]             recipes of few bits, emulated GPU beside CPU
#   make check-torch [PYTHON=…]                 models of Meta, LitGPT and torch.save beside PyTorch
#   make check-headers | check-nvml | check-nccl | check-hta | check-recipes   beside Slurm's,
#   NVIDIA's, PyTorch's, Spack's
#   make check-slurm [VERSION=20.11|…|26.05|all]   lbd on the Slurm of other releases
#   make check-upgrade [ROOTS=DIR]             Slurm 24.11 becomes 26.05 under runs that train
#   make check-trackers [KILLS=6]              lbctl sync into a real MLflow, Trackio, W&B and
#                                              TensorBoard
#   make check-layouts [KILLS=50]              checkpoints of the real libraries, killed while
#                                              saving
#   make check-stage [KILLS=100]               lbrun killed while checkpoints come from the node's
#                                              stage
#   make check-launchers [MPIRUN=…]            a rank's own end behind the real torchrun and mpirun
#   make fuzz [SECONDS=60] [RUNS=10000000]    whatever reads what strangers wrote
#   make fuzz TOTAL=100000000 [READERS=…]     so many inputs together, in any number of sittings
#   make coverage [TESTS="…"]                  which lines and branches the tests reach
#
# How fast the machine multiplies is not what sanitizers make of it: those of peak.c took three
# seconds of each training.
$(if $(SAN),$(eval $(B)/obj/kernels/machine/peak.o: CFLAGS := $(filter-out $(SANFLAGS),$(CFLAGS)) -O2))
# At its end a sanitized program looks for leaks in all that it can write: 6 MB of that are UBSan's
# library, and next to nothing where that is linked in, as gcc can. A test starts hundreds.
STATIC_UBSAN := $(if $(SAN),$(if $(filter /%,$(shell $(CC) -print-file-name=libubsan.a)),$(call takes,-static-libubsan)))
LDFLAGS   += $(STATIC_UBSAN)
# -Og compiles in five sixths of -O1's time, and inlines no function that is called by a pointer.
CPPFLAGS  += $(if $(SAN),-DXXH_NO_INLINE_HINTS=1)
# --- tests ----------------------------------------------------------------------------------
# So many of them: the linker that takes half as long, where there is one.
GOLD      := $(if $(shell command -v ld.gold),-fuse-ld=gold)
UNIT_LIBS := -lcmocka -lncursesw -ltinfo -luv -lsqlite3 -ljansson -lpcre2-8 -lzstd -lz -lstdc++ -ldl -lm -lpthread
$(B)/unit/%: $(B)/obj/tests/unit/%.o $(B)/obj/tests/unit/scratch.o $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) $(GOLD) -o $@ $(filter %.o,$^) -Wl,--start-group $(ARCHIVES) -Wl,--end-group $(UNIT_LIBS)

# lbd and lbworker each have a config of their own, under the same names.
$(B)/unit/test_lbworker_config $(B)/unit/test_lbworker_titan: ARCHIVES := $(B)/lbworker.a $(B)/kernels.a $(B)/common.a

# Inside the table.
$(B)/unit/test_kernel_pool: $(B)/obj/kernels/cpu/pool.o

unit: $(UNIT)

$(B)/tests/scheduler_client: $(B)/obj/tests/system/scheduler_client.o $(B)/slurm.a $(B)/common.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_lbd)

# What system tests read answers with.
$(B)/tests/json: tests/system/json.c
	@mkdir -p $(@D)
	$(call say,CC) $(CC) -std=c11 -D_GNU_SOURCE $(WARN) -O2 -o $@ $< $(LIBS_lbd-slurm-commands)

# What they wait with.
$(B)/tests/await: $(B)/obj/tests/system/await.o $(B)/ctl.a $(B)/common.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_lbctl)

# File locks that say yes to everybody, and another machine's name: two-hosts.t.
$(B)/tests/nolocks.so: tests/system/nolocks.c
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(CPPFLAGS) -std=c11 -O2 -fPIC -shared -o $@ $< -ldl
# A site's plug-in of Slurm: plugins.t.
$(B)/tests/spank_plugin.so: tests/system/spank_plugin.c
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) -std=c11 $(WARN) -O2 -fPIC -shared -o $@ $<
# A driver's library that says of GPUs what a test wants.
$(B)/tests/nvml/libnvidia-ml.so.1: tests/system/nvml_standin.c
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) -std=c11 -D_GNU_SOURCE $(WARN) -O2 -fPIC -shared -o $@ $<
# What lib.sh needs.
ASKERS   := $(B)/tests/json $(B)/tests/await
check-system check-steady: $(ASKERS) $(B)/tests/nolocks.so $(B)/tests/nvml/libnvidia-ml.so.1 \
	$(if $(HAVE_SLURM),$(B)/tests/spank_plugin.so)

# What the CPU backend computes; instructions.t compares it for each set of instructions.
DIGEST   := $(B)/tests/kernel_digest
$(DIGEST): $(B)/obj/tests/system/kernel_digest.o $(B)/kernels.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ -ldl -lm -lpthread

# The simulator: the real engine and ledger in invented worlds. SEEDS worlds, or the world SEED.
SIM_TAPS := ledger_run_insert ledger_run_move ledger_run_set_wanted ledger_attempt_insert \
	    ledger_prequeued_insert ledger_prequeued_take ledger_attempt_set_job \
	    ledger_attempt_set_excluded ledger_attempt_released ledger_attempt_started \
	    ledger_attempt_end ledger_attempt_set_spool ledger_commit ledger_commit_first \
	    request_answer request_refuse request_end trainer_request_write clock_wall_ms clock_mono_ms file_write_atomic file_write_visible file_sync folder_sync
SEEDS    ?= 500
$(B)/sim: $(call objects,tests/sim/*.c) $(B)/daemon.a $(B)/slurm.a $(B)/sql.a $(B)/lbrun.a $(B)/common.a
	$(call say,LINK) $(CC) $(LDFLAGS) $(SIM_TAPS:%=-Wl,--wrap=%) -o $@ $^ $(LIBS_lbd)

# A month of one job on 64 nodes, under lbd and under its peers. bench/ettr.sh prints the table.
ETTR     := $(filter-out %/main.o,$(call objects,tests/sim/ettr/*.c)) $(B)/obj/tests/sim/agenda.o
$(B)/ettr.a: $(ETTR)
$(B)/ettr: $(B)/obj/tests/sim/ettr/main.o $(B)/ettr.a $(B)/daemon.a $(B)/slurm.a $(B)/sql.a $(B)/lbrun.a $(B)/common.a
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ -lsqlite3 -ljansson -lpcre2-8 -lz -lstdc++ -lm
$(B)/unit/test_ettr: ARCHIVES += $(B)/ettr.a
$(B)/unit/test_ettr: $(B)/ettr.a

# The fault tests' negative controls: the real programs, each with one protection taken out.
CONTROLS := $(B)/controls/lbd $(B)/controls/lbrun $(B)/controls/lbworker $(if $(HAVE_SLURM),$(B)/controls/lbd-slurm)
WRAP_lbworker  := clock_gettime checkpoint_newest_valid device_open reduction_push reduction_finish ranks_alone ranks_open ranks_exchange comm_lane_open arrays_begin arrays_wait data_sample squares_sum sharded_stream ranks_compare model_sum_norms slice_is_whole model_queue layer_backward optimizer_update context_position
WRAP_lbrun     := attempt_claim_take attempt_newest_claim predecessor_may_live
WRAP_lbd       := reconcile job_submit
WRAP_lbd-slurm := slurm_submit_batch_job
$(B)/controls/lbrun:     $(B)/obj/tests/faults/no_claim.o
$(B)/controls/lbd:       $(B)/obj/tests/faults/plain_submit.o
$(B)/controls/lbd-slurm: $(B)/obj/tests/faults/plain_slurm.o
$(B)/controls/lbrun:     $(B)/obj/worker/lbrun/main.o $(B)/lbrun.a $(B)/common.a
$(B)/controls/lbd:       $(B)/obj/daemon/main.o $(B)/daemon.a $(B)/slurm.a $(B)/sql.a $(B)/common.a
$(B)/controls/lbd-slurm: $(B)/obj/slurm/helper/main.o $(LBDSLURM) $(B)/slurm.a $(B)/common.a
$(B)/controls/lbworker:  $(B)/obj/tests/ranks/controls.o $(B)/obj/tests/faults/flips.o $(B)/obj/worker/lbworker/main.o $(B)/lbworker.a $(B)/kernels.a $(B)/common.a
$(CONTROLS):
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) $(WRAP_$(@F):%=-Wl,--wrap=%) -o $@ $^ $(LIBS_$(@F))

# That the simulator finds what it must, no sanitizer needs to show again.
sim: $(B)/sim
ifdef SEED
	$(B)/sim --seed $(SEED)
else
	$(if $(SAN),,@set -e; for control in no-claim plain-submit no-wait no-clear no-blame no-room no-check no-going-on no-nodes no-outages no-words no-lease no-ranks no-marks no-scancel; do \
		$(B)/sim --control $$control --seeds 60; \
	done)
	$(B)/sim --jobs 2 --seeds $(SEEDS)
endif

check-unit: $(UNIT) $(BINARIES)
	B=$(abspath $(B)) sh tests/prove.sh 3 'sh tests/unit/run.sh' $(UNIT)
# What gpu.t and gpu-library.t run where nvcc is found.
GPU_PARTS := $(if $(HAVE_CUDA),$(EMULATED) $(B)/liblbnccl-standin.so $(B)/gpu/ops $(B)/gpu/goldens $(B)/gpu/under_way $(B)/gpu/nvtx_tap.so \
	     $(if $(SAN),,$(LBCUDA) $(B)/release/operands/scales.o $(B)/gpu/sdpa_plans $(B)/gpu/stub/libcuda.so.1))
gpu-parts: $(BINARIES) $(GPU_PARTS)
# Tests mostly wait: more of them at once than there are cores. Those that take longest begin first,
# so that none runs alone at the end.
LONG     := $(foreach t,local-faults faults chaos stage gpu-check low-bits resume gpu gpu-bench lost-node leaving crowded-switches \
	    scheduler-commands lbrun text scheduler-slurm cron nodes hang batch-sbatch recover batch notify hostile frozen convert \
	    options,tests/system/$(t).t)
TESTS    ?= $(LONG) $(filter-out $(LONG),$(wildcard tests/system/*.t))
PROVE_JOBS ?= 8
check-system check-steady: $(BINARIES) $(CONTROLS) $(B)/tests/scheduler_client $(DIGEST) $(GPU_PARTS)
check-system:
	B=$(abspath $(B)) sh tests/prove.sh $(PROVE_JOBS) sh $(TESTS)
# Hours: each system test TIMES times alone, beside LOAD busy processes, and once on one processor.
# DONE remembers.
check-steady:
	B=$(abspath $(B)) DONE=$(or $(DONE),$(abspath $(B))/steady) sh tests/steady.sh $(TESTS)
# One rank beside several, in all ways; the last line counts.
RANK_KILLS ?= 20
check-ranks: $(B)/lbworker $(B)/controls/lbworker
	B=$(abspath $(B)) sh tests/ranks/check.sh
	$(if $(HAVE_CUDA),$(MAKE) $(GPU_PARTS) && B=$(abspath $(B)) sh tests/ranks/check.sh cuda)
	B=$(abspath $(B)) sh tests/ranks/parallel.sh
	B=$(abspath $(B)) sh tests/ranks/traffic.sh
	B=$(abspath $(B)) sh tests/ranks/memory.sh
	B=$(abspath $(B)) sh tests/ranks/gather.sh
	$(if $(HAVE_CUDA),B=$(abspath $(B)) sh tests/ranks/memory_gpu.sh && B=$(abspath $(B)) sh tests/ranks/gather.sh cuda)
	B=$(abspath $(B)) sh tests/ranks/kills.sh $(RANK_KILLS)
# Long trainings with each recipe of few bits, on the emulated GPU beside the CPU.
STEPS    ?= 200
check-losses: $(B)/lbworker $(GPU_PARTS)
	B=$(abspath $(B)) sh tests/gpu/losses.sh $(STEPS)
check-resume: $(B)/lbworker $(B)/tests/json
	B=$(abspath $(B)) sh tests/system/resume.t
# PyTorch and its friends come from PyPI, into a folder of their own; PYTHON=FILE takes one that has
# them.
ML_WHEELS := torch numpy safetensors transformers accelerate lightning peft h5py joblib orbax-checkpoint
KILLS     ?= 50
ML_PYTHON := $(or $(PYTHON),$(B)/ml/bin/python)
$(B)/ml/bin/python:
	python3 -m venv $(B)/ml
	$(B)/ml/bin/pip install --quiet --extra-index-url https://download.pytorch.org/whl/cpu $(ML_WHEELS) || \
		{ rm -rf $(B)/ml; exit 1; }
check-layouts: $(B)/lbrun $(ML_PYTHON)
	$(ML_PYTHON) tests/layouts/check.py --lbrun $(abspath $(B)/lbrun) --kills $(KILLS) $(LAYOUTS)
# lbrun killed again and again while checkpoints come from the node's stage; SEED=1 for the dice.
check-stage: $(B)/lbrun
	python3 tests/stage/kills.py $(B)/lbrun $(or $(filter-out 50,$(KILLS)),100) $(or $(SEED),1)
# The libraries of others come from PyPI; those of real models, in a folder of one's own:
# TOKENIZERS=DIR. DONE=FILE remembers those that have passed, so that an interrupted check goes on.
TEXT_PYTHON := $(or $(PYTHON),$(B)/text/bin/python)
DOCUMENTS ?= 1000000
$(B)/text/bin/python:
	python3 -m venv $(B)/text
	$(B)/text/bin/pip install --quiet tokenizers==0.23.3 tiktoken==0.14.0 sentencepiece || \
		{ rm -rf $(B)/text; exit 1; }
check-text: $(B)/lbworker $(TEXT_PYTHON)
	$(TEXT_PYTHON) tests/text/check.py --lbworker $(abspath $(B)/lbworker) --documents $(DOCUMENTS) \
		$(if $(TOKENIZERS),--tokenizers $(TOKENIZERS)) $(if $(DONE),--done $(DONE))
	$(TEXT_PYTHON) tests/text/components.py --lbworker $(abspath $(B)/lbworker)
# What lbworker convert writes, read by PyTorch, and what PyTorch writes, read by lbworker.
check-torch: $(B)/lbworker $(ML_PYTHON)
	$(ML_PYTHON) tests/torch/check.py --lbworker $(abspath $(B)/lbworker)
	$(ML_PYTHON) tests/torch/families.py --lbworker $(abspath $(B)/lbworker)
	$(ML_PYTHON) tests/torch/tuning.py --lbworker $(abspath $(B)/lbworker)
# Every format, code and rounding by the definition and by each set of instructions, beside the
# table that tests/formats/oracle.py made; the last line counts.
check-formats: $(B)/unit/test_formats
	LB_FORMATS=all $(B)/unit/test_formats | grep -v '^#' | grep '^formats: .* 0 differences'
# The CPU backend for 64-bit Arm, compiled across and run by QEMU.
check-neon: $(DIGEST)
	B=$(abspath $(B)) sh tests/neon/check.sh
# Operands and products of recipes, and 8-bit moments, beside torchao's; tensors in files of
# compressed-tensors; and beside the references of Transformer Engine and Microscaling. PYTHON: one
# that has them; SOURCES: a folder with checkouts of the latter two, which is filled where GitHub
# can be reached.
PEERS    := $(or $(PYTHON),$(B)/peers/bin/python)
SOURCES  := $(or $(SOURCES),$(B)/peers/sources)
$(B)/peers/bin/python:
	python3 -m venv $(B)/peers
	$(B)/peers/bin/pip install --quiet torch numpy torchao safetensors compressed-tensors && \
		$(B)/peers/bin/pip install --quiet --no-deps transformer_engine || { rm -rf $(B)/peers; exit 1; }
$(B)/peers/sources:
	@for peer in NVIDIA/TransformerEngine microsoft/microxcaling; do \
		git clone --quiet --depth 1 https://github.com/$$peer $@/$${peer#*/} || echo "$$peer cannot be had"; done
$(B)/formats/operands: $(B)/obj/tests/formats/operands.o $(B)/lbworker.a $(B)/kernels.a $(B)/common.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_lbworker)
check-peers: $(B)/formats/operands $(PEERS) $(SOURCES)
	$(PEERS) tests/formats/peers.py $(abspath $(B)/formats/operands)
	$(PEERS) tests/formats/peers_reference.py $(abspath $(B)/formats/operands) $(abspath $(SOURCES))
# The helper is one source for every release of Slurm: compiled against the headers that suites of
# Debian and Ubuntu have, and, with SLURM_SOURCE=DIR, a repository of Slurm's, those that no suite
# has. They are fetched by name, once; without a network it is said which were left out.
SLURM_SUITES ?= bullseye jammy bookworm noble trixie resolute sid
SLURM_RELEASES ?= $(if $(SLURM_SOURCE),23.02 24.05 25.05)
check-headers: $(B)/gen/queries.h $(B)/gen/words.h
	@for of in $(SLURM_SUITES) $(SLURM_RELEASES); do \
		headers=$(B)/slurm-headers/$$of; \
		case $$of in [0-9]*) fetch="etc/slurm-source headers $(SLURM_SOURCE) $$of" ;; \
		*) fetch="etc/debian-unpack $$of libslurm-dev" ;; esac; \
		if ! test -e $$headers/usr/include/slurm/slurm.h && ! $$fetch $$headers >/dev/null 2>&1; then \
			echo "left out: Slurm's headers of $$of cannot be had"; continue; fi; \
		number=$$(sed -n 's/.*define SLURM_VERSION_NUMBER.*0x/0x/p' $$headers/usr/include/slurm/*.h); \
		version=$$(printf '%d.%02d.%d' $$((number >> 16)) $$((number >> 8 & 255)) $$((number & 255))); \
		$(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) $(CFLAGS) -isystem $$headers/usr/include -fsyntax-only \
			slurm/helper/*.c || exit 1; \
		echo "lbd-slurm compiles against Slurm $$version ($$of)"; done
# The same for what lbrun assumes of NVIDIA's management library: NVIDIA's own headers of three
# generations, from PyPI.
NVML_HEADERS ?= nvidia-nvml-dev-cu11 nvidia-nvml-dev-cu12 nvidia-nvml-dev
check-nvml:
	@for package in $(NVML_HEADERS); do \
		to=$(B)/nvml-headers/$$package; \
		test -d $$to || python3 -m pip install --quiet --no-deps --target $$to $$package 2>/dev/null || { \
			rm -rf $$to; echo "left out: $$package cannot be had"; continue; }; \
		header=$$(find $$to -name nvml.h); \
		$(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) $(CFLAGS) -Wno-deprecated-declarations -isystem $${header%/nvml.h} \
			-fsyntax-only tests/nvml/abi.c || exit 1; \
		echo "lbrun's NVML is that of $$(ls -d $$to/*.dist-info | sed 's,.*/,,; s,.dist-info,,')"; done
# Traces beside HolisticTraceAnalysis, from PyPI, into a folder of its own: of pandas 3 it knows
# nothing yet.
HTA_PYTHON := $(or $(PYTHON),$(B)/hta/bin/python)
$(B)/hta/bin/python:
	python3 -m venv $(B)/hta
	$(B)/hta/bin/pip install --quiet HolisticTraceAnalysis 'pandas<3' || { rm -rf $(B)/hta; exit 1; }
check-hta: $(B)/lbworker $(HTA_PYTHON)
	$(if $(HAVE_CUDA),$(MAKE) $(EMULATED) $(B)/liblbnccl-standin.so)
	$(HTA_PYTHON) tests/hta/check.py $(abspath $(B)/lbworker) $(abspath $(B))
# What kernels/nccl.h declares beside NVIDIA's own header and library, from PyPI, some 300 MB each;
# removed again. No GPU is needed, but CUDA's headers.
NCCL_WHEELS ?= nvidia-nccl-cu12==2.18.3 nvidia-nccl-cu12 nvidia-nccl-cu13
check-nccl:
	@test -n "$(CUDA_HOME)" || { echo "CUDA's headers are needed: CUDA_HOME=DIR"; exit 1; }
	@mkdir -p $(B)/nccl
	@for wheel in $(NCCL_WHEELS); do \
		to=$(B)/nccl/$$wheel; rm -rf $$to; \
		python3 -m pip install --quiet --no-deps --target $$to $$wheel 2>/dev/null || { \
			rm -rf $$to; echo "left out: $$wheel cannot be had"; continue; }; \
		$(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) -std=c11 -O1 $(WARN) -isystem $$to/nvidia/nccl/include -isystem $(CUDA_HOME)/include \
			-o $(B)/nccl/abi tests/nccl/abi.c kernels/nccl.c kernels/wheels.c -ldl && \
			LB_NCCL_LIBRARY=$$to/nvidia/nccl/lib/libnccl.so.2 $(B)/nccl/abi || { rm -rf $$to; exit 1; }; \
		rm -rf $$to; done
# The Slurm of other releases, each in a root of the suite that has it, or built from
# SLURM_SOURCE=DIR: needs root and a network.
check-slurm:
	ROOTS=$(or $(ROOTS),$(B)/roots) sh tests/slurm/check.sh $(if $(filter command,$(origin VERSION)),$(VERSION),all)
# The recipes for Spack and conda by the linters of those: what `spack style` runs, with its
# settings, and rattler-build's own reader. From PyPI, into a folder of their own.
RECIPES   := $(B)/recipes/bin
$(RECIPES)/python:
	python3 -m venv $(B)/recipes
	$(RECIPES)/pip install --quiet black isort flake8 py-rattler-build || { rm -rf $(B)/recipes; exit 1; }
check-recipes: $(RECIPES)/python
	$(RECIPES)/black --quiet --check -l 99 --skip-magic-trailing-comma etc/packaging/spack/package.py
	$(RECIPES)/isort --check --profile black -l 99 --project spack etc/packaging/spack/package.py
	$(RECIPES)/flake8 --max-line-length 99 --extend-ignore F403,F405 etc/packaging/spack/package.py
	$(RECIPES)/python -c 'import rattler_build as r, sys; [print(v.recipe.package.name, "renders") for v in \
		r.Stage0Recipe.from_file(sys.argv[1]).render(r.VariantConfig.from_file(sys.argv[2]))]' \
		etc/packaging/conda/recipe.yaml etc/packaging/conda/variants.yaml
# One release of Slurm exchanged for another under runs that train, with the tarball's programs.
check-upgrade: tarball
	ROOTS=$(or $(ROOTS),$(B)/roots) sh tests/slurm/upgrade.sh $(B)/lowbits-$(VERSION)-x86_64.tar.xz
# Their own ends told by the real torchrun and mpirun (MPIRUN=…).
check-launchers: $(BINARIES) $(ASKERS) $(ML_PYTHON)
	B=$(abspath $(B)) TORCHRUN=$(abspath $(dir $(ML_PYTHON)))/torchrun sh tests/launchers/real.sh
# The trackers come from PyPI; the reader of W&B's files is that of a release that had one in
# Python.
TRACKERS  := $(or $(PYTHON),$(B)/trackers/bin/python)
$(B)/trackers/bin/python:
	python3 -m venv $(B)/trackers
	$(B)/trackers/bin/pip install --quiet mlflow trackio wandb tensorboard && \
		$(B)/trackers/bin/pip install --quiet --target $(B)/trackers/reader wandb==0.18.7 setuptools || \
		{ rm -rf $(B)/trackers; exit 1; }
check-trackers: $(BINARIES) $(ASKERS) $(TRACKERS)
	B=$(abspath $(B)) PYTHON=$(abspath $(TRACKERS)) READER=$(abspath $(dir $(TRACKERS))/../reader) KILLS=$(or $(filter-out 50,$(KILLS)),6) \
		sh tests/trackers/check.sh
check-layers: all
	B=$(B) sh tests/layers.sh

# One stamp per file, so that a second run looks only at what changed. NODES is how far the analyzer
# follows the paths of a function: this is a third of lint's time, 5000 would be half again as much
# in all, clang's own 225000 ten times. `make lint B=build-lint NODES=25000` before a release.
NODES    ?= 2000
LINTED   := $(wildcard common/*/*.c sql/*.c slurm/*.c slurm/*/*.c daemon/*.c daemon/*/*.c daemon/*/*/*.c ctl/*.c ctl/*/*.c \
	    worker/*/*.c worker/*/*/*.c kernels/*.c kernels/comm/shared.c kernels/comm/lane.c kernels/machine/*.c kernels/formats/*.c $(call rooms,kernels/cpu) tests/sim/*.c tests/sim/ettr/*.c \
	    $(if $(HAVE_CUDA),kernels/cuda/*.c kernels/cuda/*/*.c tests/gpu/*.c))
LINTED   := $(if $(HAVE_SLURM),$(LINTED),$(filter-out slurm/helper/%,$(LINTED)))
LINT_ID   = $(eval LINT_ID := $(shell { clang-tidy --version; shellcheck --version; } 2>&1 | cksum))$(LINT_ID)
LINT      = @mkdir -p $(@D) && echo "$(1) $<" && LB_LINT=$(2) LB_LINT_ID="$(LINT_ID) $(NODES)" NODES=$(NODES) tests/lint.sh
$(B)/lint/%.tidy: % .clang-tidy tests/lint.sh | $(B)/gen/queries.h $(B)/gen/words.h $(B)/gen/trackers.h $(B)/gen/hang.h $(B)/demo/top_demo.h
	$(call LINT,clang-tidy,tidy) -std=c11 -I. -I$(B)/gen -I$(B)/demo -D_GNU_SOURCE -DLB_VERSION='""' \
		$(if $(HAVE_CUDA),-isystem $(CUDA_HOME)/include) -c -o $@ $<
tidy: $(LINTED:%=$(B)/lint/%.tidy)
# cppcheck keeps what it found of each file in a folder, for one caller at a time, and tells files
# of one name in several rooms apart by their order alone: each list of files has a folder of its
# own. A new clone begins with that of the last check that was clean, which lies beside ccache's.
CPPCHECKED := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/lowbits/cppcheck
CPPCHECK_ID = $(eval CPPCHECK_ID := $(firstword $(shell echo $(LINTED) | cksum)))$(CPPCHECK_ID)
CPPCHECK_OWN = $(B)/lint/cppcheck-$(CPPCHECK_ID)
cppcheck: $(B)/gen/queries.h $(B)/gen/words.h $(B)/gen/trackers.h $(B)/gen/hang.h
	@mkdir -p $(B)/lint
	@test -d $(CPPCHECK_OWN) || cp -R $(CPPCHECKED)-$(CPPCHECK_ID) $(CPPCHECK_OWN) 2>/dev/null || mkdir -p $(CPPCHECK_OWN)
	@echo "cppcheck, $(words $(LINTED)) files" && cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr \
		--suppress=missingIncludeSystem --error-exitcode=1 --cppcheck-build-dir=$(CPPCHECK_OWN) \
		-j 2 -I. -I$(B)/gen -D_GNU_SOURCE $(LINTED)
	@{ mkdir -p $(dir $(CPPCHECKED)) && new=$$(mktemp -d $(CPPCHECKED).XXXXXX) && cp -R $(CPPCHECK_OWN)/. $$new && \
		rm -rf $(CPPCHECKED)-* && mv -T $$new $(CPPCHECKED)-$(CPPCHECK_ID); } 2>/dev/null || rm -rf "$$new"
SCRIPTS  := $(addprefix etc/,install-deps debian-root debian-unpack slurm-source packaging/tarball packaging/deb packaging/rpm demo minicluster) \
	    .ci/run bench/run $(wildcard etc/suite.sh etc/packaging/*.sh etc/cron/*.sh bench/*.sh bench/gpu/*.sh common/*/*.sh sql/*.sh \
	    tests/*.sh $(foreach f,unit faults fuzz gpu slurm system,tests/$(f)/*.sh) tests/system/*.t)
$(B)/lint/%.shell: % .shellcheckrc $(filter %.sh,$(SCRIPTS)) tests/ranks/training.sh
	$(call LINT,shellcheck,shell) -x c -c -o $@ $<
shellcheck: $(SCRIPTS:%=$(B)/lint/%.shell)
# One dialect: .clang-format. `make format` writes it, lint only looks.
FORMATTED := $(shell git ls-files '*.c' '*.h' '*.cu' '*.cuh' '*.cpp' 2>/dev/null)
format:
	clang-format -i $(FORMATTED)
format-check:
	@test -z "$(FORMATTED)" || clang-format --dry-run -Werror $(FORMATTED)
	@LC_ALL=C awk -f tests/columns.awk Makefile etc/*.mk $(FORMATTED) $(SCRIPTS)
lint: format-check tidy cppcheck shellcheck

# Everything a change must pass. The recursive calls are this same file with SAN=1: tests run
# against sanitized programs, and PLAIN against those that people use. HEAVY only against those:
# what takes too long sanitized (hundreds of starts of lbd, trainings on an emulated GPU, trainings
# that are killed and compared to the bit), and what looks at files, at make or at sbatch, where a
# sanitizer has nothing to find. Unit tests run sanitized only: check-quick has them as they are.
HEAVY    := $(foreach t,faults local-faults chaos gpu-check gpu-bench gpu-library gpu-low-bits resume low-bits convert demo options install cookbook contributing hardened prove \
	    ranks-slurm preflight nccl,tests/system/$(t).t)
PLAIN    := $(foreach t,trainer lbrun instructions,tests/system/$(t).t)
PLAIN    := $(filter $(HEAVY) $(PLAIN),$(LONG)) $(filter-out $(LONG),$(HEAVY) $(PLAIN))
check: all
	$(MAKE) check-layers
	$(if $(HAVE_HIP),$(MAKE) check-hip)
	$(MAKE) SAN=1 B=$(B)-san all unit gpu-parts
	$(MAKE) SAN=1 B=$(B)-san check-unit
	$(MAKE) --jobs=3 check-sanitized check-plain check-linted check-simulated check-fuzzed
# System tests mostly wait, so both kinds run at once; what only computes takes what they leave of
# the processors, and what is left of it when they are done is done side by side. 60 worlds here,
# 500 with `make sim`. Conditions are asked by the lbctl that starts faster: the sanitized one has a
# thousand other occasions to show what is wrong.
check-sanitized:
	LB_ASKER=$(abspath $(B))/lbctl $(MAKE) SAN=1 B=$(B)-san TESTS='$(filter-out $(HEAVY),$(TESTS))' check-system
check-plain:
	$(MAKE) TESTS='$(PLAIN)' PROVE_JOBS=4 check-system
check-linted:
	nice $(MAKE) lint check-headers SLURM_SUITES='bullseye bookworm trixie sid'
check-simulated:
	nice $(MAKE) SAN=1 B=$(B)-san SEEDS=12 sim
	nice $(MAKE) SEEDS=60 sim
check-fuzzed:
	nice $(MAKE) SECONDS=1 fuzz
.PHONY: check-sanitized check-plain check-linted check-simulated check-fuzzed

# For daily work: plain programs, and the tests that find the most in the least time.
QUICK    := $(foreach t,lbd lbrun kill crash submit-with,tests/system/$(t).t)
check-quick: all unit
	$(MAKE) check-layers
	$(MAKE) check-unit
	$(MAKE) TESTS='$(QUICK)' check-system

# Which lines and branches of the programs unit and system tests reach, into
# build-coverage/coverage.txt. It is a lower bound: who is killed, or leaves by _exit() after a
# fork(), tells nothing of its last steps.
.PHONY: coverage
coverage:
	$(MAKE) COVERAGE=1 B=build-coverage all unit
	-$(MAKE) COVERAGE=1 B=build-coverage check-unit
	-$(MAKE) COVERAGE=1 B=build-coverage TESTS='$(TESTS)' check-system
	gcovr --root . --object-directory build-coverage --gcov-ignore-parse-errors --exclude tests/ \
		--exclude build-coverage/ --exclude bench/ --output build-coverage/coverage.txt build-coverage
	gcovr --root . --object-directory build-coverage --gcov-ignore-parse-errors --exclude tests/ \
		--exclude build-coverage/ --exclude bench/ --branches build-coverage | tail -n 4
	@tail -n 4 build-coverage/coverage.txt

# Fuzz targets: everything that reads what strangers wrote. SECONDS each (0: without end) or RUNS
# inputs, two at a time.
FUZZ     := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
SECONDS  ?= 60
RUNS     ?=
# The rooms that they reach, and no others: a reader elsewhere adds its own.
$(B)/fuzzed.a: $(COMMON) $(call objects,slurm/*.c slurm/batch/*.c daemon/calendar/*.c \
	       worker/lbworker/base/*.c worker/lbworker/text/*.c worker/lbworker/torch/*.c worker/lbworker/unicode/*.c)
$(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(B)/obj/tests/fuzz/fuzz.o $(B)/fuzzed.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CXX) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ -luv -ljansson -lpcre2-8 -lzstd -lz -lm -lpthread
fuzz-targets: $(FUZZ)
# TOTAL: so many inputs of the READERS together, in as many sittings as it takes. Counts are kept in
# build-fuzz.
READERS  ?= message switch spool spec
TOTAL    ?=
FUZZED   := $(patsubst tests/fuzz/%.c,build-fuzz/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
fuzz:
	$(MAKE) CC=clang CXX=clang++ SAN=1 FUZZING=1 B=build-fuzz fuzz-targets
	$(if $(TOTAL),,B=$(abspath build-fuzz) RUNS=$(RUNS) prove -j 2 --exec 'sh tests/fuzz/run.sh $(SECONDS)' $(FUZZED))
	@B=$(abspath build-fuzz) sh tests/fuzz/total.sh $(if $(TOTAL),-u $(TOTAL) -s $(SECONDS) \
		$(READERS:%=build-fuzz/fuzz/fuzz_%),$(FUZZED))

# How often each fault; 0 leaves it out. An hour or two, as they stand: docs/bench/FAULTS.md.
POINTS   ?= 100
LBRUN_POINTS ?= 20
WORKER_POINTS ?= 10
KILLS    ?= 1000
ACCEPT   ?= 200
FREEZE   ?= 200
MUNGE    ?= 20
FORGET   ?= 20
DISK     ?= 1000
SPOOL    ?= 80
N        ?= 1000
faults: all $(CONTROLS) $(ASKERS)
	@$(foreach v,POINTS LBRUN_POINTS WORKER_POINTS KILLS ACCEPT FREEZE MUNGE FORGET DISK SPOOL,$(v)=$($(v))) \
		SETTLE=now B=$(abspath $(B)) sh tests/system/faults.t
	LB_LONG=1 B=$(abspath $(B)) sh tests/system/in-slurm.t
	B=$(abspath $(B)) sh tests/faults/checkpoint.sh $(N)
MINUTES  ?= 60
chaos: all $(ASKERS) $(B)/controls/lbrun
	MINUTES=$(MINUTES) SEED=$(SEED) B=$(abspath $(B)) sh tests/prove.sh 1 sh tests/system/chaos.t
# N pairs and triples of sbatch's options: lbctl's jobs beside sbatch's.
check-options: all $(ASKERS)
	OPTIONS_COUNT=$(N) OPTIONS_SEED=$(or $(SEED),1) B=$(abspath $(B)) sh tests/system/options.t
# What was carried to a machine that can not build it is taken as it is.
ifneq ($(filter gpu-check gpu-bench,$(MAKECMDGOALS)),)
GPU_BUILT := $(if $(call have,jansson.h),$(B)/lbworker $(LBCUDA) $(B)/gpu/ops $(B)/gpu/goldens)
endif
gpu-check: $(GPU_BUILT)
	B=$(B) sh tests/gpu/check.sh
gpu-bench: $(GPU_BUILT)
	B=$(B) sh bench/gpu/run.sh
demo:
	sh etc/demo
bench: all $(B)/ettr $(ASKERS)
	B=$(abspath $(B)) sh bench/run

.PHONY: check-quick check-hip sim fuzz fuzz-targets faults chaos check-options check check-unit check-system \
	check-steady check-ranks check-losses check-resume check-layers check-headers check-recipes check-slurm check-upgrade \
	check-layouts check-stage check-trackers check-nvml check-nccl check-hta check-text check-torch check-formats \
	check-neon
