# SPDX-License-Identifier: MIT
"""load_jobs.py LIBSLURM - for each line of stdin loads all jobs by libslurm alone and frees them,
then prints a line: no poll can take less. It keeps its memory as lbd-slurm does. Called by
scale.py."""
import ctypes
import sys

M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, KEPT_BYTES = -1, -3, 64 << 20
SHOW_ALL, SHOW_LOCAL = 0x0001, 0x0010

slurm = ctypes.CDLL(sys.argv[1], ctypes.RTLD_GLOBAL)    # its plug-ins look for its symbols
slurm.slurm_load_jobs.argtypes = [ctypes.c_long, ctypes.POINTER(ctypes.c_void_p), ctypes.c_uint16]
slurm.slurm_free_job_info_msg.argtypes = [ctypes.c_void_p]
slurm.slurm_init(None)
ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, KEPT_BYTES // 2)
ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, KEPT_BYTES)
for _ in sys.stdin:
    jobs = ctypes.c_void_p()
    if slurm.slurm_load_jobs(0, ctypes.byref(jobs), SHOW_ALL | SHOW_LOCAL):
        sys.exit("the jobs cannot be loaded")
    slurm.slurm_free_job_info_msg(jobs)
    print(flush=True)
