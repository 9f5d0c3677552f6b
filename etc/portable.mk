# SPDX-License-Identifier: MIT
# --- for machines without compiler: make tarball and packages ------------------------------------
# One for another libslurm, of the headers and the library below the folder HELPER (make tarball).
$(B)/lbd-slurm-%: $(LBDSLURM:$(B)/obj/%.o=%.c) slurm/helper/main.c $(B)/slurm.a $(B)/common.a
	$(call say,LINK) $(CC) $(filter-out -MMD -MP,$(CPPFLAGS)) $(CFLAGS) -isystem $(HELPER)/usr/include $(LDFLAGS) \
		-o $@ $(filter %.c %.a,$^) $(call within,-ljansson) $(firstword $(wildcard \
		$(HELPER)/usr/lib/*/libslurm.so.$* $(HELPER)/usr/lib/*/libslurm.so.$*.*)) \
		-Wl,--unresolved-symbols=ignore-in-shared-libs

# PORTABLE=1, for make tarball: all but glibc is linked in, and glibc 2.28 will do.
ifdef PORTABLE
LIBUV    := $(if $(findstring /,$(shell $(CC) -print-file-name=libuv_a.a)),-l:libuv_a.a,-l:libuv.a)
within    = -Wl,-Bstatic $(1) -Wl,-Bdynamic
LIBS_lbd       := $(call within,$(LIBUV) -lsqlite3 -ljansson -lpcre2-8 -lzstd -lz -lstdc++) -ldl -lm -lpthread
LIBS_lbctl     := $(call within,-lncursesw -ltinfo -ljansson -lpcre2-8 -lzstd -lz -lstdc++) -lm
LIBS_lbworker  := $(call within,-ljansson -lpcre2-8 -lzstd -lz -lstdc++) -ldl -lm -lpthread
LIBS_lbd-slurm := $(call within,-ljansson) -lslurm -lpthread
LIBS_lbd-slurm-commands := $(call within,-ljansson)
CPPFLAGS += -include etc/packaging/old-glibc.h
LDFLAGS  += -static-libgcc
OPT      := -O2
$(B)/lbd: LDFLAGS += -Wl,--wrap=exp,--wrap=log,--wrap=log2,--wrap=pow
$(B)/lbd: $(B)/old_math.o
$(B)/old_math.o: etc/packaging/old-math.h
	$(call say,CC) $(CC) -O2 -fPIE -xc -c -o $@ $<
endif
