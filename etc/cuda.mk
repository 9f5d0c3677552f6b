# SPDX-License-Identifier: MIT
# --- the CUDA backend: a library of its own, which lbworker opens at run time -----------------
CUDA      ?= auto
CUDA_HOME ?= $(firstword $(patsubst %/bin/nvcc,%,$(wildcard /usr/local/cuda/bin/nvcc) $(shell command -v nvcc)))
NVCC      := $(wildcard $(CUDA_HOME)/bin/nvcc)
# ccache, where it is installed, remembers what compilers for GPUs made, too: by the text of all
# files that they read, as nvcc preprocesses for one architecture alone, and not for the host.
CCACHE    := $(patsubst %,CCACHE_DEPEND=1 %,$(shell command -v ccache))
ifeq ($(CUDA),auto)
HAVE_CUDA := $(NVCC)
else ifeq ($(CUDA),1)
HAVE_CUDA := $(or $(NVCC),$(error CUDA=1: there is no bin/nvcc in "$(CUDA_HOME)"))
endif
CU       := $(patsubst kernels/cuda/%.cu,%,$(wildcard kernels/cuda/ops/*.cu kernels/cuda/operands/*.cu))
CUC      := $(patsubst kernels/cuda/%.c,%,$(wildcard $(call rooms,kernels/cuda)))
# Machine code for Hopper while developing; to install, that of each generation from Ampere on, for
# of PTX a driver of an earlier CUDA 13 makes none, and PTX for those to come.
sm        = -gencode arch=compute_$(1),code=sm_$(1)
GENCODE  := $(call sm,90a)
RELEASE  := -gencode arch=compute_80,code=compute_80 $(foreach s,80 90a 100 120,$(call sm,$s))
# The host side of a kernel file is C but in name: no C++ library is linked.
NVCCFLAGS := -std=c++17 -O3 -I. $(if $(DEV),,-Werror all-warnings) -Xptxas -v -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-fno-threadsafe-statics,-fno-exceptions,-fno-rtti
CULINK   := -shared -Wl,--exclude-libs,ALL -Wl,-z,defs -L$(CUDA_HOME)/lib64 \
	    -Wl,-rpath,$(CUDA_HOME)/lib64 -lcublasLt -lcudart_static -ldl -lrt -lpthread -lm
LBCUDA   := $(if $(HAVE_CUDA),$(if $(SAN),,$(B)/liblbcuda.so))

$(B)/obj/kernels/cuda/%.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(B)/obj/kernels/cuda/%.o: CFLAGS += -fPIC -fvisibility=hidden
# Formats of few bits are the host's, too: the same objects.
CUFORMATS := $(patsubst %.c,$(B)/obj/%.o,$(wildcard kernels/formats/*.c))
$(CUFORMATS): CFLAGS += -fPIC -fvisibility=hidden
# Sums of squares must come out as on the host.
$(B)/cuda/operands/scales.o $(B)/release/operands/scales.o: NVCCFLAGS += -fmad=false
# What the assembler said of registers and spills is kept beside the object: tests/gpu/objects.sh.
$(B)/cuda/%.o: kernels/cuda/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC) $(CCACHE) $(NVCC) $(NVCCFLAGS) $(GENCODE) -MD -MF $@.d -c -o $@ $< 2>$@.log || { cat $@.log; exit 1; }
$(B)/release/%.o: kernels/cuda/%.cu
	@mkdir -p $(@D)
	$(call say,NVCC) $(CCACHE) $(NVCC) $(NVCCFLAGS) $(RELEASE) -MD -MF $@.d -c -o $@ $< 2>$@.log || { cat $@.log; exit 1; }
$(B)/liblbcuda.so: $(CU:%=$(B)/cuda/%.o) $(CUC:%=$(B)/obj/kernels/cuda/%.o) $(CUFORMATS)
$(B)/release/liblbcuda.so: $(CU:%=$(B)/release/%.o) $(CUC:%=$(B)/obj/kernels/cuda/%.o) $(CUFORMATS)
$(B)/liblbcuda.so $(B)/release/liblbcuda.so:
	$(call say,LINK) $(CC) -o $@.new $^ $(CULINK) && mv -f $@.new $@

# The same kernels on the host (tests/emulation), for tests where there is no GPU.
EMULATION := $(patsubst tests/emulation/%.cc,%,$(wildcard tests/emulation/*.cc))
EMULATED  := $(if $(HAVE_CUDA),$(B)/liblbcuda-emulated.so)
$(B)/obj/tests/emulation/%.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(B)/obj/tests/emulation/%.o: CXXFLAGS += -fPIC -fvisibility=hidden
# Its products are what an emulated step takes.
$(B)/obj/tests/emulation/cublaslt.o: CXXFLAGS += -O3
$(B)/emulated/%.o: kernels/cuda/%.cu tests/emulation/emulate.h
	@mkdir -p $(@D)
	$(call say,CXX) $(CXX) $(CPPFLAGS) -isystem $(CUDA_HOME)/include $(CXXFLAGS) -fPIC \
		-fvisibility=hidden -ffp-contract=off -Wno-unused-function -Wno-unknown-pragmas -x c++ \
		-include tests/emulation/emulate.h -c -o $@ $<
$(B)/liblbcuda-emulated.so: $(CUFORMATS) $(CU:%=$(B)/emulated/%.o) $(EMULATION:%=$(B)/obj/tests/emulation/%.o) \
		$(patsubst %,$(B)/obj/kernels/cuda/%.o,$(filter-out lib/cudnn_api,$(CUC)))
	$(call say,LINK) $(CXX) $(SANFLAGS) -shared -o $@ $^ -ldl -lm
# NCCL between emulated GPUs, and with the faults that tests want.
$(B)/obj/tests/nccl/%.o: CFLAGS += -fPIC -fvisibility=hidden
$(B)/liblbnccl-standin.so: $(B)/obj/tests/nccl/standin.o
	$(call say,LINK) $(CC) $(filter-out -pie -no-pie,$(LDFLAGS)) $(SANFLAGS) -shared -o $@ $^ -ldl

# cuDNN's plans without a GPU: a driver that loads code and has no device.
$(B)/gpu/stub/libcuda.so.1: tests/gpu/stub_driver.sh
	@mkdir -p $(@D)
	$(call say,STUB) sh tests/gpu/stub_driver.sh $(CUDA_HOME)/lib64/stubs/libcuda.so >$(@D)/libcuda.c && \
		$(CC) -w -shared -fPIC -Wl,-soname,libcuda.so.1 -o $@ $(@D)/libcuda.c
$(B)/obj/tests/gpu/sdpa_plans.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(B)/gpu/sdpa_plans: $(B)/obj/tests/gpu/sdpa_plans.o $(B)/obj/kernels/cuda/lib/sdpa.o \
		$(B)/obj/kernels/cuda/lib/sdpa_graph.o $(B)/obj/kernels/cuda/lib/cudnn_api.o
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ $^ -Wl,-rpath,$(CUDA_HOME)/lib64 -Wl,--disable-new-dtags -ldl -lm

# What a profiler sees of our ranges, without one.
$(B)/obj/tests/gpu/nvtx_tap.o: CPPFLAGS += -isystem $(CUDA_HOME)/include
$(B)/obj/tests/gpu/nvtx_tap.o: CFLAGS += -fPIC
$(B)/gpu/nvtx_tap.so: $(B)/obj/tests/gpu/nvtx_tap.o
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(filter-out -pie -no-pie,$(LDFLAGS)) -shared -o $@ $^

# A test that opens the CUDA backend as lbworker does.
$(B)/gpu/ops: $(patsubst tests/gpu/%.c,$(B)/obj/tests/gpu/%.o,$(wildcard tests/gpu/ops_*.c)) $(B)/obj/tests/gpu/suite.o
$(B)/gpu/ops $(B)/gpu/goldens $(B)/gpu/under_way: $(B)/gpu/%: $(B)/obj/tests/gpu/%.o $(B)/lbworker.a $(B)/kernels.a $(B)/common.a
	@mkdir -p $(@D)
	$(call say,LINK) $(CC) $(LDFLAGS) -o $@ -Wl,--start-group $^ -Wl,--end-group $(LIBS_lbworker)

# For AMD: every kernel becomes code for gfx90a, and what is not NVIDIA's libraries compiles against
# HIP, with nothing but Debian's packages (etc/install-deps --only hip). Products and attention are
# what lacks: neither hipBLASLt nor a library of attention is in Debian 12.
HIPCXX    ?= $(firstword $(wildcard $(foreach v,19 18 17 16 15,/usr/bin/clang-$(v))))
HIP_CODE  := $(firstword $(wildcard $(foreach d,/usr/lib/*/amdgcn/bitcode,$(d)/ockl.bc)))
HAVE_HIP  := $(and $(HIPCXX),$(HIP_CODE),$(wildcard /usr/include/hip/hip_runtime.h))
HIPFLAGS  := -x hip --offload-arch=gfx90a --cuda-device-only --rocm-path=/usr --rocm-device-lib-path=$(dir $(HIP_CODE)) \
	     -D__HIP_PLATFORM_AMD__ -DLB_HIP -std=c++17 -O3 -ffp-contract=off -I. -Wall -Wextra -Werror -Wno-unused-function
HIPC      := $(filter-out ranges shares lib/%,$(CUC))
$(B)/hip/%.s: kernels/cuda/%.cu
	@mkdir -p $(@D)
	$(call say,HIP) $(CCACHE) $(HIPCXX) $(HIPFLAGS) -MD -MF $@.d -S -o $@ $<
$(B)/hip/%.o: kernels/cuda/%.c
	@mkdir -p $(@D)
	$(call say,HIP) $(CC) $(CPPFLAGS) -D__HIP_PLATFORM_AMD__ -DLB_HIP $(CFLAGS) -MD -MF $@.d -c -o $@ $<
hip-parts: $(if $(HAVE_HIP),$(CU:%=$(B)/hip/%.s) $(HIPC:%=$(B)/hip/%.o))
check-hip: hip-parts
	@$(if $(HAVE_HIP),sh tests/gpu/hip.sh $(B)/hip/ops $(B)/hip/operands,echo "check-hip: not run: etc/install-deps --only hip")
