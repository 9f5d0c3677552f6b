# SPDX-License-Identifier: MIT
# Ranks over MPI: a library of its own, opened by lbworker when srun or mpiexec has started several.
# Only MPICH itself is linked: what it needs it names, and Ubuntu has no headers of that beside it.
MPI      := $(shell pkg-config --exists mpich 2>/dev/null && echo yes)
LBMPI    := $(if $(MPI),$(B)/liblbmpi.so)
$(B)/obj/kernels/comm/mpi.o: CPPFLAGS += $(subst -I,-isystem ,$(if $(MPI),$(shell pkg-config --cflags-only-I mpich)))
$(B)/obj/kernels/comm/mpi.o: CFLAGS += -fPIC -fvisibility=hidden
$(B)/liblbmpi.so: $(B)/obj/kernels/comm/mpi.o
	$(call say,LINK) $(CC) $(filter-out -pie -no-pie,$(LDFLAGS)) -shared -o $@ $^ $(filter -L% -lmpi%,$(shell pkg-config --libs-only-L --libs-only-l mpich))
