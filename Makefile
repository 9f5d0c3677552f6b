# SPDX-License-Identifier: MIT
# `make` builds into build/, `make check` proves it, `make demo` shows it. etc/*.mk belong to it:
# the CUDA backend, MPI, generated files, portable programs, the tests (and what each is for), and
# what install does.
#
#   make [CC=clang] [SAN=1] [DEV=1] [V=1] [B=dir]   programs into $(B); SAN=1: ASan + UBSan into
#                                   build-san; DEV=1: warnings are no errors; V=1: say all
#   make check | check-unit | check-system | check-layers | lint
#   make check-quick                two minutes of that: layers, unit tests, some system tests
#   make tarball [ROOTS=DIR]        lowbits-VERSION-x86_64.tar.xz, without compiler or root
#   make deb | rpm [ROOTS=DIR]      packages for Debian 12 and 13; RPM packages of the tarball
#   make gpu-check | gpu-bench      what needs a GPU: agreement, and speed against PyTorch
#   make [CUDA=0|1|auto] [CUDA_HOME=dir]   the CUDA backend; auto: where nvcc is found
#   make format                     the code as .clang-format has it
#   make pictures                   the README's, from the recording of lbctl top --demo
#   make tags                       for editors: ctags
#   make demo | bench | man | install | uninstall [PREFIX=/usr/local] [DESTDIR=] | clean | help
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
OBJCOPY  ?= objcopy
PREFIX   ?= /usr/local
DESTDIR  ?=
# A shell leaves the ~ of "make PREFIX=~/.local" as it is.
home_of   = $(patsubst ~,$(HOME),$(patsubst ~/%,$(HOME)/%,$(1)))
override PREFIX  := $(call home_of,$(PREFIX))
override DESTDIR := $(call home_of,$(DESTDIR))
SAN      ?=
B        ?= $(if $(SAN),build-san,build)
VERSION  := 0.1.0

WARN     := -Wall -Wextra -Wpedantic -Wshadow -Wpointer-arith -Wundef -Wvla -Wwrite-strings \
	    -Wcast-qual $(if $(DEV),,-Werror)
CWARN    := -Wstrict-prototypes -Wmissing-prototypes
# What compiler and linker do against a mistake that is still in here; tests/system/hardened.t looks
# for it in the programs. Sanitized builds have better means, and start sooner where they are put.
takes     = $(shell $(CC) -O2 -Werror $(1) -include stdio.h -xc -fsyntax-only /dev/null >/dev/null 2>&1 && echo '$(1)')
HARDEN   := $(if $(SAN),-fno-pie,-fPIE -fstack-protector-strong -U_FORTIFY_SOURCE \
	    $(or $(call takes,-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3),-D_FORTIFY_SOURCE=2) \
	    $(call takes,-fstack-clash-protection) $(call takes,-fcf-protection))
HARDLINK := $(if $(SAN),-no-pie,-pie) -Wl,-z,relro -Wl,-z,now -Wl,-z,noexecstack
OPT      := $(if $(SAN),-Og -g1,-O2 -g)
SANFLAGS := $(if $(COVERAGE),--coverage -fprofile-update=atomic) $(if $(FUZZING),-fsanitize=fuzzer-no-link) $(if $(SAN),-fsanitize=address -fsanitize=undefined -fno-sanitize-recover=all -fno-omit-frame-pointer)
# Those that somebody types (make CFLAGS=-O3) stand behind ours, and take none of them away but
# -Werror: other flags bring other warnings.
typed     = $(if $(findstring command,$(origin $(1))),-Wno-error $($(1))$(eval override undefine $(1)))
CPPFLAGS := -I. -I$(B)/gen -D_GNU_SOURCE -DLB_VERSION='"$(VERSION)"' -MMD -MP $(call typed,CPPFLAGS)
CFLAGS   := -std=c11 $(OPT) $(WARN) $(CWARN) $(HARDEN) $(SANFLAGS) $(call typed,CFLAGS)
# What checks the tables of virtual functions opens a pipe: where descriptors are short, it finds
# faults of its own.
CXXFLAGS := -std=c++17 $(OPT) -Wall -Wextra $(if $(DEV),,-Werror) $(HARDEN) $(SANFLAGS) $(if $(SAN),-fno-sanitize=vptr) $(call typed,CXXFLAGS)
LDFLAGS  := $(SANFLAGS) $(HARDLINK) -Wl,--as-needed $(call typed,LDFLAGS)

# --- what is built --------------------------------------------------------------------------
have      = $(shell $(CC) -E -include $(1) -xc /dev/null >/dev/null 2>&1 && echo yes)
HAVE_SLURM := $(call have,slurm/slurm.h)

PROGRAMS := lbd lbctl lbrun lbworker lbd-slurm-commands $(if $(HAVE_SLURM),lbd-slurm)
BINARIES := $(PROGRAMS:%=$(B)/%)

objects   = $(patsubst %,$(B)/obj/%.o,$(basename $(wildcard $(1))))
# A folder and the rooms in it.
rooms     = $(1)/*.c $(1)/*/*.c $(1)/*/*/*.c
library   = $(filter-out %/main.o,$(call objects,$(1)))
# kernels/cpu is compiled once for each set of instructions; kernels/load.c chooses when a program
# starts.
CPU      := $(call objects,$(call rooms,kernels/cpu))
CPU_SETS := base $(if $(findstring x86_64,$(shell $(CC) -dumpmachine)),avx2 avx512)
SET_avx2   := -mavx2 -mfma
SET_avx512 := -mavx512f -mfma
COMMON   := $(call objects,common/*/*.c common/*/*.cc)
SQL      := $(call objects,sql/*.c)
SLURM    := $(call objects,slurm/*.c slurm/batch/*.c slurm/local/*.c slurm/pipe/*.c)
DAEMON   := $(call library,$(call rooms,daemon))
CTL      := $(call library,$(call rooms,ctl))
LBRUN    := $(call library,$(call rooms,worker/lbrun))
LBWORKER := $(call library,$(call rooms,worker/lbworker))
KERNELS  := $(call objects,kernels/*.c kernels/comm/shared.c kernels/comm/lane.c kernels/formats/*.c kernels/machine/*.c) $(CPU_SETS:%=$(B)/obj/cpu-%.o)
LBDSLURM := $(call library,slurm/helper/*.c)
COMMANDS := $(call library,slurm/commands/*.c)
ARCHIVES := $(foreach a,daemon ctl lbrun lbworker kernels slurm sql common,$(B)/$(a).a)
UNIT     := $(patsubst tests/unit/%.c,$(B)/unit/%,$(wildcard tests/unit/test_*.c))

include etc/cuda.mk
include etc/mpi.mk

all: $(BINARIES) $(LBCUDA) $(LBMPI)
ifeq ($(HAVE_SLURM),)
	@echo "note: <slurm/slurm.h> not found: lbd-slurm is left out, lbd speaks to Slurm through its commands"
endif

# lbrun must start on a bare compute node: what it uses beyond libc is linked in. And lbctl is to
# start quickly: finding its libraries took longer than most of what it does.
STATIC_JSON := -Wl,-Bstatic -ljansson -Wl,-Bdynamic
STATIC_PCRE := -Wl,-Bstatic -lpcre2-8 -Wl,-Bdynamic
STATIC_ZLIB := -Wl,-Bstatic -lz -Wl,-Bdynamic
STATIC_ZSTD := -Wl,-Bstatic -lzstd -Wl,-Bdynamic
# (ASan must find the library's __cxa_throw)
STATIC_CXX  := $(if $(SAN),-lstdc++,-static-libgcc -Wl,-Bstatic -lstdc++ -Wl,-Bdynamic)
LIBS_lbd       := -luv -lsqlite3 -ljansson -lpcre2-8 -lzstd -lz -lstdc++ -ldl -lm -lpthread
LIBS_lbctl     := -lncursesw -ltinfo $(STATIC_JSON) $(STATIC_PCRE) $(STATIC_ZSTD) $(STATIC_ZLIB) $(STATIC_CXX) -lm
LIBS_lbrun     := $(STATIC_JSON) $(STATIC_PCRE) $(STATIC_ZLIB) -ldl -lm
LIBS_lbworker  := $(STATIC_JSON) $(STATIC_PCRE) $(STATIC_ZSTD) $(STATIC_ZLIB) -lstdc++ -ldl -lm -lpthread
LIBS_lbd-slurm := -ljansson -lslurm -lpthread
LIBS_lbd-slurm-commands := -ljansson

include etc/portable.mk
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
	$(call say,AR) $(AR) qcs $@ $^

$(B)/lbd:       $(B)/obj/daemon/main.o $(B)/daemon.a $(B)/slurm.a $(B)/sql.a $(B)/common.a
$(B)/lbctl:     $(B)/obj/ctl/main.o $(B)/ctl.a $(B)/slurm.a $(B)/common.a
$(B)/lbrun:     $(B)/obj/worker/lbrun/main.o $(B)/lbrun.a $(B)/common.a
$(B)/lbworker:  $(B)/obj/worker/lbworker/main.o $(B)/lbworker.a $(B)/kernels.a $(B)/common.a
$(B)/lbd-slurm: $(B)/obj/slurm/helper/main.o $(LBDSLURM) $(B)/slurm.a $(B)/common.a
$(B)/lbd-slurm-commands: $(B)/obj/slurm/commands/main.o $(COMMANDS) $(B)/slurm.a $(B)/common.a
# By another name first: it may be running.
$(BINARIES):
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@.new $^ $(LIBS_$(@F)) && mv -f $@.new $@

# Kernels: results must not depend on the compiler contracting a*b+c where the source does not say
# so. Nobody looks at floating-point exceptions; compilers that must keep them leave loops with a
# comparison scalar. The small product's loop fills two lines of code; shifted, it takes three, and
# 1 % longer.
KERNEL_FLAGS := $(if $(SAN),-O2,-O3) $(call takes,-falign-loops=64) -ffp-contract=off -fno-math-errno -fno-trapping-math -fopenmp-simd
$(B)/obj/kernels/%.o: CFLAGS += $(KERNEL_FLAGS)
# What multiplies keeps sums in an array that is no memory, unless a sanitizer marks when it comes
# and goes: no address of it leaves its function, so that mark finds nothing, and the product takes
# three times as long.
$(CPU_SETS:%=$(B)/obj/%/kernels/cpu/products/micro.o): KERNEL_FLAGS += $(if $(SAN),-fno-sanitize-address-use-after-scope)
# Each set is one object that shows nothing but its table, backend_cpu_SET.
$(B)/obj/kernels/cpu/%.o: CPPFLAGS += -Dbackend_cpu_set=backend_cpu_base
define cpu_set
$(B)/obj/$(1)/%.o: %.c
	@mkdir -p $$(@D)
	$$(call say,CC) $$(CC) $$(CPPFLAGS) $$(CFLAGS) $$(KERNEL_FLAGS) $$(SET_$(1)) \
		-Dbackend_cpu_set=backend_cpu_$(1) -c -o $$@ $$<
endef
$(foreach set,$(filter-out base,$(CPU_SETS)),$(eval $(call cpu_set,$(set))))
$(B)/obj/cpu-base.o: $(CPU)
$(foreach set,$(filter-out base,$(CPU_SETS)),$(eval $(B)/obj/cpu-$(set).o: $(CPU:$(B)/obj/%=$(B)/obj/$(set)/%)))
$(CPU_SETS:%=$(B)/obj/cpu-%.o): $(B)/obj/cpu-%.o:
	$(call say,LD) $(CC) -r -nostdlib -o $@ $^ && $(OBJCOPY) --keep-global-symbol=backend_cpu_$* $@

$(B)/obj/%.o: %.c
	@mkdir -p $(@D)
	$(call say,CC) $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<
$(B)/obj/%.o: %.cc
	@mkdir -p $(@D)
	$(call say,CXX) $(CXX) $(CPPFLAGS) $(CXXFLAGS) -c -o $@ $<

# A test looks at what came of it.
$(B)/obj/tests/%.o: CFLAGS += -Wno-unused-result

include etc/generated.mk
include etc/tests.mk
include etc/install.mk

help:
	@sed -n 's/^#   //p' Makefile etc/tests.mk
# `lbctl top --demo` after 92 seconds (etc/pictures/record made that); pyte lacks xterm's repeated
# characters.
pictures: $(B)/lbctl
	TERM=screen-256color TZ=UTC LANG=C.UTF-8 LC_ALL= /usr/bin/python3 etc/pictures/picture.py 132x17 \
		$(or $(PICTURE_SECONDS),92) docs/top.svg $(B)/lbctl top --demo
# For editors: where each name is defined.
tags:
	ctags -R --languages=C,C++ common sql slurm daemon ctl worker kernels tests
clean:
	rm -rf build build-san build-fuzz build-coverage tags

.PHONY: pictures tags format format-check release all unit gpu-parts gpu-check gpu-bench hip-parts lint tidy cppcheck shellcheck demo bench man install clean help
.DELETE_ON_ERROR:
.SECONDARY:
-include $(shell find $(B)/obj $(B)/cuda $(B)/release $(B)/emulated $(B)/hip -name '*.d' 2>/dev/null)
