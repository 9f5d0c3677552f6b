# SPDX-License-Identifier: MIT
# The only Makefile.  `make` builds into build/, `make check` proves it, `make demo` shows it.
#
#   make [CC=clang] [SAN=1] [DEV=1] [V=1] [B=dir]   programs into $(B); SAN=1: ASan + UBSan into
#                                              build-san; DEV=1: warnings are no errors; V=1: say all
#   make check | check-unit | check-system | check-layers | lint
#   make sim [SEEDS=N | SEED=k]                simulated years; one world again
#   make faults [POINTS=100 KILLS=1000 …]      the programs, Slurm and disks, broken again and again
#   make gpu-check | gpu-bench                 what needs a GPU: agreement, and speed against PyTorch
#   make [CUDA=0|1|auto] [CUDA_HOME=dir]       the CUDA backend; auto: where nvcc is found
#   make fuzz [SECONDS=60] [RUNS=10000000]    whatever reads what strangers wrote
#   make demo | bench | man | install [PREFIX=/usr/local] [DESTDIR=] | clean | help
#
# Folders are layers: each has an archive of its own, and tests/layers.sh says who may include whom.

.DEFAULT_GOAL := all

# All cores, unless told otherwise; sub-makes share them.
ifeq ($(MAKELEVEL)$(filter -j% --jobs%,$(MAKEFLAGS)),0)
MAKEFLAGS += --jobs=$(shell nproc)
endif
MAKEFLAGS += --no-print-directory
say       = $(if $(V),,@printf '  %-6s %s\n' $(1) $@ &&)

CC       ?= cc
CXX      ?= c++
ifeq ($(origin CC),default)
CC       := gcc
endif
ifeq ($(origin CXX),default)
CXX      := g++
endif
PREFIX   ?= /usr/local
SAN      ?=
B        ?= $(if $(SAN),build-san,build)
VERSION  := 0.1.0

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wpointer-arith -Wundef -Wvla -Wwrite-strings \
	    -Wcast-qual $(if $(DEV),,-Werror)
CWARN    := -Wstrict-prototypes -Wmissing-prototypes
OPT      := -O2 -g
SANFLAGS := $(if $(FUZZING),-fsanitize=fuzzer-no-link) $(if $(SAN),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
CPPFLAGS := -I. -I$(B)/gen -D_GNU_SOURCE -DLB_VERSION='"$(VERSION)"' -MMD -MP
CFLAGS   := -std=c11 $(OPT) $(WARN) $(CWARN) $(SANFLAGS)
CXXFLAGS := -std=c++17 $(OPT) -Wall -Wextra $(if $(DEV),,-Werror) $(SANFLAGS)
LDFLAGS  := $(SANFLAGS) -Wl,--as-needed

# --- what is built --------------------------------------------------------------------------
have      = $(shell $(CC) -E -include $(1) -xc /dev/null >/dev/null 2>&1 && echo yes)
HAVE_SLURM := $(call have,slurm/slurm.h)

PROGRAMS := lbd lbctl lbrun lbworker $(if $(HAVE_SLURM),lbd-slurm)
BINARIES := $(PROGRAMS:%=$(B)/%)

objects   = $(patsubst %,$(B)/obj/%.o,$(basename $(wildcard $(1))))
library   = $(filter-out %/main.o,$(call objects,$(1)))
COMMON   := $(call objects,common/*.c common/*.cc)
SQL      := $(call objects,sql/*.c)
SLURM    := $(call objects,slurm/*.c)
DAEMON   := $(call library,daemon/*.c)
CTL      := $(call library,ctl/*.c)
LBRUN    := $(call library,worker/lbrun/*.c)
LBWORKER := $(call library,worker/lbworker/*.c)
KERNELS  := $(call objects,kernels/*.c kernels/cpu/*.c)
LBDSLURM := $(call library,slurm/lbd-slurm/*.c)
ARCHIVES := $(foreach a,daemon ctl lbrun lbworker kernels slurm sql common,$(B)/$(a).a)
UNIT     := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))

# --- the CUDA backend: a library of its own, which lbworker opens at run time -----------------
CUDA      ?= auto
CUDA_HOME ?= $(firstword $(patsubst %/bin/nvcc,%,$(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc)))
NVCC      := $(wildcard $(CUDA_HOME)/bin/nvcc)
ifeq ($(CUDA),auto)
HAVE_CUDA := $(NVCC)
else ifeq ($(CUDA),1)
HAVE_CUDA := $(or $(NVCC),$(error CUDA=1: there is no bin/nvcc in "$(CUDA_HOME)"))
endif
CU       := $(patsubst kernels/cuda/%.cu,%,$(wildcard kernels/cuda/*.cu))
CUC      := $(patsubst kernels/cuda/%.c,%,$(wildcard kernels/cuda/*.c))
# Machine code for Hopper while developing; PTX for all from Ampere on, and Blackwell, to install.
sm        = -gencode arch=compute_$(1),code=sm_$(1)
GENCODE  := $(call sm,90a)
RELEASE  := -gencode arch=compute_80,code=compute_80 $(call sm,90a) $(call sm,100a)
# The host side of a kernel file is C but in name: no C++ library is linked.
NVCCFLAGS := -std=c++17 -O3 -I. $(if $(DEV),,-Werror all-warnings) -Xptxas -v -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-fno-threadsafe-statics,-fno-exceptions,-fno-rtti
CULINK   := -shared -Wl,--exclude-libs,ALL -Wl,-z,defs -L$(CUDA_HOME)/lib64 \
	    -Wl,-rpath,$(CUDA_HOME)/lib64 -lcublasLt -lcudart_static -ldl -lrt -lpthread -lm
LBCUDA   := $(if $(HAVE_CUDA),$(if $(SAN),,$(B)/liblbcuda.so))

$(B)/obj/kernels/cuda/%.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(B)/obj/kernels/cuda/%.o: CFLAGS += -fPIC -fvisibility=hidden
# What the assembler said of registers and spills is kept beside the object: tests/gpu/objects.sh.
$(B)/cuda/%.o: kernels/cuda/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC) $(NVCC) $(NVCCFLAGS) $(GENCODE) -MD -MF $@.d -c -o $@ $< 2>$@.log || { cat $@.log; exit 1; }
$(B)/release/%.o: kernels/cuda/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC) $(NVCC) $(NVCCFLAGS) $(RELEASE) -MD -MF $@.d -c -o $@ $< 2>$@.log || { cat $@.log; exit 1; }
$(B)/liblbcuda.so: $(CU:%=$(B)/cuda/%.o) $(CUC:%=$(B)/obj/kernels/cuda/%.o)
$(B)/release/liblbcuda.so: $(CU:%=$(B)/release/%.o) $(CUC:%=$(B)/obj/kernels/cuda/%.o)
$(B)/liblbcuda.so $(B)/release/liblbcuda.so:
	$(call say,LINK) $(CC) -o $@ $^ $(CULINK)

# The same kernels on the host (tests/emulation), for tests where there is no GPU.
EMULATION := $(patsubst tests/emulation/%.cc,%,$(wildcard tests/emulation/*.cc))
EMULATED  := $(if $(HAVE_CUDA),$(B)/liblbcuda-emulated.so)
$(B)/obj/tests/emulation/%.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(B)/obj/tests/emulation/%.o: CXXFLAGS += -fPIC -fvisibility=hidden
$(B)/emulated/%.o: kernels/cuda/%.cu tests/emulation/emulate.h
	@mkdir -p $(@D)
	$(call say,CXX) $(CXX) $(CPPFLAGS) -isystem $(CUDA_HOME)/include $(CXXFLAGS) -fPIC \
		-fvisibility=hidden -ffp-contract=off -Wno-unused-function -Wno-unknown-pragmas -x c++ \
		-include tests/emulation/emulate.h -c -o $@ $<
$(B)/liblbcuda-emulated.so: $(CU:%=$(B)/emulated/%.o) $(EMULATION:%=$(B)/obj/tests/emulation/%.o) \
		$(patsubst %,$(B)/obj/kernels/cuda/%.o,$(filter-out cudnn_api,$(CUC)))
	$(call say,LINK) $(CXX) $(SANFLAGS) -shared -o $@ $^ -ldl -lm

all: $(BINARIES) $(LBCUDA)
ifeq ($(HAVE_SLURM),)
	@echo "note: <slurm/slurm.h> not found: lbd-slurm is left out, lbd will use scheduler = \"local\""
endif

# lbrun must start on a bare compute node: what it uses beyond libc is linked in.
STATIC_JSON := -Wl,-Bstatic -ljansson -Wl,-Bdynamic
STATIC_PCRE := -Wl,-Bstatic -lpcre2-8 -Wl,-Bdynamic
LIBS_lbd       := -luv -lsqlite3 -ljansson -lpcre2-8 -lzstd -lstdc++ -lm
LIBS_lbctl     := -ljansson -lzstd -lm
LIBS_lbrun     := $(STATIC_JSON) $(STATIC_PCRE) -lm
LIBS_lbworker  := $(STATIC_JSON) -lstdc++ -ldl -lm -lpthread
LIBS_lbd-slurm := -ljansson -lslurm

# cuDNN's plans without a GPU: a driver that loads code and has no device.
$(B)/gpu/stub/libcuda.so.1: tests/gpu/stub_driver.sh
	@mkdir -p $(@D)
	$(call say,STUB) sh tests/gpu/stub_driver.sh $(CUDA_HOME)/lib64/stubs/libcuda.so >$(@D)/libcuda.c && \
		$(CC) -w -shared -fPIC -Wl,-soname,libcuda.so.1 -o $@ $(@D)/libcuda.c
$(B)/obj/tests/gpu/sdpa_plans.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(B)/gpu/sdpa_plans: $(B)/obj/tests/gpu/sdpa_plans.o $(B)/obj/kernels/cuda/sdpa.o $(B)/obj/kernels/cuda/cudnn_api.o
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ -Wl,-rpath,$(CUDA_HOME)/lib64 -Wl,--disable-new-dtags -ldl -lm

# What a profiler sees of our ranges, without one.
$(B)/obj/tests/gpu/nvtx_tap.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(B)/obj/tests/gpu/nvtx_tap.o: CFLAGS += -fPIC
$(B)/gpu/nvtx_tap.so: $(B)/obj/tests/gpu/nvtx_tap.o
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -shared -o $@ $^

# A test that opens the CUDA backend as lbworker does.
$(B)/gpu/ops: $(patsubst tests/gpu/%.c,$(B)/obj/tests/gpu/%.o,$(wildcard tests/gpu/ops_*.c)) $(B)/obj/tests/gpu/suite.o
$(B)/gpu/ops $(B)/gpu/goldens: $(B)/gpu/%: $(B)/obj/tests/gpu/%.o $(B)/lbworker.a $(B)/kernels.a $(B)/common.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LIBS_lbworker)

$(B)/common.a:   $(COMMON)
$(B)/sql.a:      $(SQL)
$(B)/slurm.a:    $(SLURM)
$(B)/daemon.a:   $(DAEMON)
$(B)/ctl.a:      $(CTL)
$(B)/lbrun.a:    $(LBRUN)
$(B)/lbworker.a: $(LBWORKER)
$(B)/kernels.a:  $(KERNELS)
$(B)/%.a:
	@rm -f $@
	$(call say,AR) $(AR) rcs $@ $^

$(B)/lbd:       $(B)/obj/daemon/main.o $(B)/daemon.a $(B)/slurm.a $(B)/sql.a $(B)/common.a
$(B)/lbctl:     $(B)/obj/ctl/main.o $(B)/ctl.a $(B)/common.a
$(B)/lbrun:     $(B)/obj/worker/lbrun/main.o $(B)/lbrun.a $(B)/common.a
$(B)/lbworker:  $(B)/obj/worker/lbworker/main.o $(B)/lbworker.a $(B)/kernels.a $(B)/common.a
$(B)/lbd-slurm: $(B)/obj/slurm/lbd-slurm/main.o $(LBDSLURM) $(B)/slurm.a $(B)/common.a
$(BINARIES):
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ $(LIBS_$(@F))

# Kernels: vector code chooses its instructions at run time; results must not depend on the
# compiler contracting a*b+c where the source does not say so.
KERNEL_FLAGS := -O3 -ffp-contract=off -fno-math-errno -fopenmp-simd
$(B)/obj/kernels/%.o: CFLAGS += $(KERNEL_FLAGS)
$(SQL): $(B)/gen/queries.h

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/obj/%.o: %.cc
	@mkdir -p $(@D)
	$(call say,CXX) $(CXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

$(B)/gen/queries.h: sql/embed.sh $(wildcard sql/queries/*.sql sql/schema/*.sql)
	@mkdir -p $(@D)
	$(call say,EMBED) sh sql/embed.sh $(filter %.sql,$^) >$@.tmp && mv $@.tmp $@
$(COMMON): $(B)/gen/words.h
$(B)/gen/words.h: common/words.sh common/words.txt
	@mkdir -p $(@D)
	$(call say,WORDS) sh common/words.sh common/words.txt >$@.tmp && mv $@.tmp $@

# --- tests ----------------------------------------------------------------------------------
$(B)/unit/%: $(B)/obj/tests/unit/%.o $(ARCHIVES)
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $< -Wl,--start-group $(ARCHIVES) -Wl,--end-group \
		-lcmocka -luv -lsqlite3 -ljansson -lpcre2-8 -lzstd -lstdc++ -ldl -lm -lpthread

# lbd and lbworker each have a config of their own, under the same names.
$(B)/unit/test_lbworker_config: ARCHIVES := $(B)/lbworker.a $(B)/kernels.a $(B)/common.a

unit: $(UNIT)

$(B)/tests/scheduler_client: $(B)/obj/tests/system/scheduler_client.o $(B)/slurm.a $(B)/common.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ -luv -ljansson -lpcre2-8 -lstdc++ -lm

# File locks that say yes to everybody, and another machine's name: two-hosts.t.
$(B)/tests/nolocks.so: tests/system/nolocks.c
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(CPPFLAGS) -std=c11 -O2 -fPIC -shared -o $@ $< -ldl
check-system: $(B)/tests/nolocks.so

# The CPU backend as it is, and for one set of instructions each; instructions.t compares them.
DIGEST   := $(B)/tests/kernel_digest
CLONES_base    :=
CLONES_avx2    := __attribute__((target("avx2")))
CLONES_avx512f := __attribute__((target("avx512f")))
DIGEST_SOURCES := tests/system/kernel_digest.c $(wildcard kernels/*.c kernels/cpu/*.c)
$(DIGEST): $(B)/obj/tests/system/kernel_digest.o $(B)/kernels.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ -ldl -lm -lpthread
define digest_of
$(B)/obj/only-$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(KERNEL_FLAGS) -D'CPU_CLONES=$$(CLONES_$(1))' -c -o $$@ $$<
$(DIGEST)-$(1): $(DIGEST_SOURCES:%.c=$(B)/obj/only-$(1)/%.o)
	@mkdir -p $$(@D)
	$$(call say,LINK) $$(CC) $$(LDFLAGS) -o $$@ $$^ -ldl -lm -lpthread
endef
$(foreach set,base avx2 avx512f,$(eval $(call digest_of,$(set))))

# The simulator: the real engine and ledger in invented worlds. SEEDS worlds, or the world SEED.
SIM_TAPS := ledger_run_insert ledger_run_move ledger_run_set_wanted ledger_attempt_insert \
	    ledger_spare_insert ledger_spare_take ledger_attempt_set_job \
	    ledger_attempt_set_excluded ledger_attempt_released ledger_attempt_started \
	    ledger_attempt_end ledger_attempt_set_spool ledger_commit
SEEDS    ?= 500
$(B)/sim: $(call objects,tests/sim/*.c) $(B)/daemon.a $(B)/slurm.a $(B)/sql.a $(B)/common.a
	$(call say,LINK) $(CC) $(LDFLAGS) $(SIM_TAPS:%=-Wl,--wrap=%) -o $@ $^ -lsqlite3 -ljansson -lpcre2-8 -lstdc++ -lm

# A month of one job on 64 nodes, under lbd and under its peers. bench/ettr.sh prints the table.
ETTR     := $(filter-out %/main.o,$(call objects,tests/sim/ettr/*.c)) $(B)/obj/tests/sim/agenda.o
$(B)/ettr.a: $(ETTR)
$(B)/ettr: $(B)/obj/tests/sim/ettr/main.o $(B)/ettr.a $(B)/daemon.a $(B)/slurm.a $(B)/sql.a $(B)/lbrun.a $(B)/common.a
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ -lsqlite3 -ljansson -lpcre2-8 -lstdc++ -lm
$(B)/unit/test_ettr: ARCHIVES += $(B)/ettr.a
$(B)/unit/test_ettr: $(B)/ettr.a

# The fault tests' negative controls: the real programs, each with one protection taken out.
CONTROLS := $(B)/controls/lbd $(B)/controls/lbrun $(if $(HAVE_SLURM),$(B)/controls/lbd-slurm)
WRAP_lbrun     := attempt_claim_take attempt_newest_claim older_may_live
WRAP_lbd       := reconcile
WRAP_lbd-slurm := slurm_submit_batch_job
$(B)/controls/lbrun:     $(B)/obj/tests/faults/no_claim.o
$(B)/controls/lbd:       $(B)/obj/tests/faults/plain_submit.o
$(B)/controls/lbd-slurm: $(B)/obj/tests/faults/plain_slurm.o
$(B)/controls/lbrun:     $(B)/obj/worker/lbrun/main.o $(B)/lbrun.a $(B)/common.a
$(B)/controls/lbd:       $(B)/obj/daemon/main.o $(B)/daemon.a $(B)/slurm.a $(B)/sql.a $(B)/common.a
$(B)/controls/lbd-slurm: $(B)/obj/slurm/lbd-slurm/main.o $(LBDSLURM) $(B)/slurm.a $(B)/common.a
$(CONTROLS):
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) $(WRAP_$(@F):%=-Wl,--wrap=%) -o $@ $^ $(LIBS_$(@F))

sim: $(B)/sim
ifdef SEED
	$(B)/sim --seed $(SEED)
else
	$(B)/sim --control no-claim --seeds 20
	$(B)/sim --control plain-submit --seeds 20
	$(B)/sim --jobs 2 --seeds $(SEEDS)
endif

check-unit: $(UNIT) $(BINARIES)
	B=$(abspath $(B)) prove -j 2 --exec 'sh tests/unit/run.sh' $(UNIT)
# What gpu.t runs where nvcc is found.
GPU_PARTS := $(if $(HAVE_CUDA),$(EMULATED) $(B)/gpu/ops $(B)/gpu/goldens $(B)/gpu/nvtx_tap.so \
	     $(if $(SAN),,$(LBCUDA) $(B)/release/gelu.o $(B)/gpu/sdpa_plans $(B)/gpu/stub/libcuda.so.1))
gpu-parts: $(BINARIES) $(GPU_PARTS)
# Tests mostly wait: more of them at once than there are cores.
TESTS    ?= $(wildcard tests/system/*.t)
check-system: $(BINARIES) $(CONTROLS) $(B)/tests/scheduler_client $(DIGEST) $(DIGEST)-base \
		$(DIGEST)-avx2 $(DIGEST)-avx512f $(GPU_PARTS)
	B=$(abspath $(B)) prove -j 4 --timer --exec sh $(TESTS)
check-resume: $(B)/lbworker
	B=$(abspath $(B)) sh tests/system/resume.t
check-layers:
	sh tests/layers.sh

# One stamp per file, so that a second run looks only at what changed. NODES is how far the analyzer follows
# the paths of a function: clang's own 225000 takes twice as long.
NODES    ?= 75000
LINTED   := $(wildcard common/*.c sql/*.c slurm/*.c slurm/lbd-slurm/*.c daemon/*.c ctl/*.c \
	    worker/*/*.c kernels/*.c kernels/cpu/*.c tests/sim/*.c tests/sim/ettr/*.c \
	    $(if $(HAVE_CUDA),kernels/cuda/*.c tests/gpu/*.c))
LINTED   := $(if $(HAVE_SLURM),$(LINTED),$(filter-out slurm/lbd-slurm/%,$(LINTED)))
$(B)/lint/%.tidy: % .clang-tidy | $(B)/gen/queries.h $(B)/gen/words.h
	@mkdir -p $(@D)
	@echo "clang-tidy $<"
	@clang-tidy --quiet $< -- -std=c11 -I. -I$(B)/gen -D_GNU_SOURCE -DLB_VERSION='""' \
		-Xclang -analyzer-config -Xclang max-nodes=$(NODES) \
		$(if $(HAVE_CUDA),-isystem $(CUDA_HOME)/include) 2>$@.log || \
		{ cat $@.log; exit 1; }
	@touch $@
tidy: $(LINTED:%=$(B)/lint/%.tidy)
cppcheck: $(B)/gen/queries.h $(B)/gen/words.h
	@mkdir -p $(B)/lint/cppcheck
	cppcheck --quiet --std=c11 --enable=warning,portability,performance --inline-suppr \
		--suppress=missingIncludeSystem --error-exitcode=1 --cppcheck-build-dir=$(B)/lint/cppcheck \
		-j 2 -I. -I$(B)/gen -D_GNU_SOURCE $(LINTED)
shellcheck:
	shellcheck -x etc/install-deps etc/demo etc/minicluster etc/cron/*.sh .ci/run bench/run bench/*.sh \
		bench/gpu/*.sh common/*.sh sql/*.sh tests/*.sh tests/unit/*.sh tests/faults/*.sh \
		tests/fuzz/*.sh tests/gpu/*.sh tests/system/*.sh tests/system/*.t
lint: tidy cppcheck shellcheck

# Everything a change must pass. The recursive calls are this same file with SAN=1: tests run against
# sanitized programs, and PLAIN against those that people use. What takes too long sanitized, hundreds of
# starts of lbd and trainings on an emulated GPU, only against those.
HEAVY    := tests/system/faults.t tests/system/gpu-check.t
PLAIN    := $(HEAVY) $(foreach t,demo install gpu lbd lbrun instructions trainer crash,tests/system/$(t).t)
check: all unit
	$(MAKE) check-layers
	$(MAKE) lint
	$(MAKE) SAN=1 B=$(B)-san all unit gpu-parts
	$(MAKE) SAN=1 B=$(B)-san check-unit
	$(MAKE) SAN=1 B=$(B)-san TESTS='$(filter-out $(HEAVY),$(TESTS))' check-system
	$(MAKE) check-unit
	$(MAKE) TESTS='$(PLAIN)' check-system
	$(MAKE) SAN=1 B=$(B)-san SEEDS=20 sim
	$(MAKE) sim
	$(MAKE) SECONDS=4 fuzz

# Fuzz targets: everything that reads what strangers wrote. SECONDS each (0: without end) or RUNS inputs,
# two at a time.
FUZZ     := $(patsubst tests/fuzz/%.c,$(B)/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))
SECONDS  ?= 60
RUNS     ?=
$(B)/fuzz/%: $(B)/obj/tests/fuzz/%.o $(B)/obj/tests/fuzz/fuzz.o $(B)/daemon.a $(B)/slurm.a $(B)/common.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CXX) $(LDFLAGS) -fsanitize=fuzzer -o $@ $^ -luv -ljansson -lpcre2-8 -lzstd -lm
fuzz-targets: $(FUZZ)
fuzz:
	$(MAKE) CC=clang CXX=clang++ SAN=1 FUZZING=1 B=build-fuzz fuzz-targets
	B=$(abspath build-fuzz) RUNS=$(RUNS) prove -j 2 --exec 'sh tests/fuzz/run.sh $(SECONDS)' \
		$(patsubst tests/fuzz/%.c,build-fuzz/fuzz/%,$(wildcard tests/fuzz/fuzz_*.c))

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
faults: all $(CONTROLS)
	@$(foreach v,POINTS LBRUN_POINTS WORKER_POINTS KILLS ACCEPT FREEZE MUNGE FORGET DISK SPOOL,$(v)=$($(v))) \
		SETTLE=now B=$(abspath $(B)) sh tests/system/faults.t
	LB_LONG=1 B=$(abspath $(B)) sh tests/system/in-slurm.t
	B=$(abspath $(B)) sh tests/faults/checkpoint.sh $(N)
gpu-check: $(BINARIES) $(LBCUDA) $(B)/gpu/ops $(B)/gpu/goldens
	B=$(B) sh tests/gpu/check.sh
gpu-bench: $(BINARIES) $(LBCUDA) $(B)/gpu/ops
	B=$(B) sh bench/gpu/run.sh
demo:
	sh etc/demo
help:
	@sed -n 's/^#   //p' Makefile
bench: all $(B)/ettr
	B=$(abspath $(B)) sh bench/run

# --- install --------------------------------------------------------------------------------
# Man pages are written in scdoc; where it is missing they are left out, and said so.
MAN      := $(if $(shell command -v scdoc),$(patsubst docs/man/%.scd,$(B)/man/%,$(wildcard docs/man/*.scd)))
SHARE    := $(DESTDIR)$(PREFIX)/share

man: $(MAN)
ifeq ($(MAN),)
	@echo "note: scdoc not found: the man pages are left out"
endif
$(B)/man/%: docs/man/%.scd
	@mkdir -p $(@D)
	SOURCE_DATE_EPOCH=$${SOURCE_DATE_EPOCH:-$$(stat -c %Y $<)} scdoc <$< >$@.tmp && mv $@.tmp $@

# The library for every GPU from Ampere on; install takes it where it was made (some minutes).
release: $(if $(HAVE_CUDA),$(B)/release/liblbcuda.so)
	@for l in $^; do sh tests/gpu/code.sh $$l; done

install: all man
	install -d $(DESTDIR)$(PREFIX)/bin $(SHARE)/systemd/user $(SHARE)/doc/lowbits \
		$(SHARE)/man/man1 $(SHARE)/man/man5 $(SHARE)/man/man8 \
		$(SHARE)/bash-completion/completions $(SHARE)/zsh/site-functions \
		$(SHARE)/fish/vendor_completions.d
	install -m 755 $(BINARIES) $(DESTDIR)$(PREFIX)/bin
	for l in $(firstword $(wildcard $(B)/release/liblbcuda.so) $(LBCUDA)); do \
		install -d $(DESTDIR)$(PREFIX)/lib/lowbits && \
		install -m 755 $$l $(DESTDIR)$(PREFIX)/lib/lowbits || exit 1; done
	for m in $(MAN); do \
		install -m 644 $$m $(SHARE)/man/man$${m##*.}/ || exit 1; done
	for c in etc/completions/*; do case $$c in \
		*.bash) install -m 644 $$c $(SHARE)/bash-completion/completions/lbctl ;; \
		*.fish) install -m 644 $$c $(SHARE)/fish/vendor_completions.d/ ;; \
		*/_*) install -m 644 $$c $(SHARE)/zsh/site-functions/ ;; \
		esac || exit 1; done
	sed 's,@BINDIR@,$(PREFIX)/bin,' etc/lbd.service >$(SHARE)/systemd/user/lbd.service
	install -m 644 README.md CHANGELOG.md LICENSE NOTICE LICENSES/* docs/PROTOCOL.md docs/ARCHITECTURE.md \
		etc/lbd.toml $(wildcard docs/*.py) $(SHARE)/doc/lowbits
	install -d $(SHARE)/lowbits/network
	install -m 644 etc/network/*.toml $(SHARE)/lowbits/network
	install -d $(SHARE)/doc/lowbits/cron
	install -m 755 etc/cron/*.sh $(SHARE)/doc/lowbits/cron

clean:
	rm -rf build build-san build-fuzz

.PHONY: release all unit gpu-parts gpu-check gpu-bench sim fuzz fuzz-targets faults check check-unit check-system check-resume check-layers lint tidy cppcheck \
	shellcheck demo bench man install clean help
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(B)/obj $(B)/cuda $(B)/release $(B)/emulated -name '*.d' 2>/dev/null)
