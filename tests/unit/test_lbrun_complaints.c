/* SPDX-License-Identifier: MIT */
/* test_lbrun_complaints.c - why it died, from what it printed: texts as Python, NCCL, launchers and
 * kernels write them. */
#include "tests/unit/hear_complaints.h"

/* what they print when a rank has ended with 7, or was killed */
#define DASHES "--------------------------------------------------------------------------\n"
#define OPEN_MPI \
	DASHES "Primary job  terminated normally, but 1 process returned\n" \
	       "a non-zero exit code. Per user-direction, the job has been aborted.\n" DASHES \
		       DASHES \
	       "mpirun.openmpi detected that one or more processes exited with non-zero status, thus causing\n" \
	       "the job to be terminated. The first process to do so was:\n\n" \
	       "  Process name: [[14665,1],1]\n  Exit code:    7\n" DASHES
#define MPICH \
	"\n=============================================================================\n" \
	"=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   PID 710 RUNNING AT vm\n" \
	"=   EXIT CODE: 11\n=   CLEANING UP REMAINING PROCESSES\n" \
	"=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES\n" \
	"=============================================================================\n" \
	"YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Segmentation fault (signal 11)\n" \
	"This typically refers to a problem with your application.\n" \
	"Please see the FAQ page for debugging suggestions\n"
#define TORCHRUN \
	"W1122 10:00:00.000000 12 torch/distributed/run.py:982] \n" \
	"W1122 10:00:00.000000 12 torch/distributed/run.py:982] *****************************************\n" \
	"W1122 10:00:00.000000 12 torch/distributed/run.py:982] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n" \
	"W1122 10:00:00.100000 12 torch/distributed/elastic/multiprocessing/api.py:1010] Sending process 13 closing signal SIGTERM\n" \
	"E1122 10:00:00.200000 12 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 7) local_rank: 1 (pid: 14) of binary: /usr/bin/python3\n" \
	"Traceback (most recent call last):\n  File \"/usr/bin/torchrun\", line 8, in <module>\n" \
	"torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" \
	"============================================================\ntrain.py FAILED\n" \
	"------------------------------------------------------------\nFailures:\n  <NO_OTHER_FAILURES>\n" \
	"------------------------------------------------------------\nRoot Cause (first observed failure):\n[0]:\n" \
	"  time      : 2026-11-22_10:00:00\n  host      : n1\n  rank      : 1 (local_rank: 1)\n  exitcode  : 7 (pid: 14)\n" \
	"  error_file: <N/A>\n  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n" \
	"============================================================\n"

/* each time that TensorFlow begins: with a GPU, without one */
#define ABSL_START \
	"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n" \
	"E0000 00:00:1744015772.625537 3982776 cuda_dnn.cc:8579] Unable to register cuDNN factory: Attempting to register factory for plugin cuDNN when one has already been registered\n" \
	"W0000 00:00:1744015772.637017 3982776 computation_placer.cc:177] computation placer already registered. Please check linkage and avoid linking the same target more than once.\n" \
	"I0000 00:00:1795819986.674888    2463 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use available CPU instructions in performance-critical operations.\n" \
	"To enable the following instructions: AVX2 AVX512F FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.\n"
#define TF_START \
	"2026-11-27 10:00:00.123456: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:467] Unable to register cuFFT factory: Attempting to register factory for plugin cuFFT when one has already been registered\n" \
	"2026-11-27 10:00:00.223456: I tensorflow/core/platform/cpu_feature_guard.cc:182] This TensorFlow binary is optimized to use available CPU instructions in performance-critical operations.\n" \
	"To enable the following instructions: AVX2 FMA, in other operations, rebuild TensorFlow with the appropriate compiler flags.\n" \
	"2026-11-27 10:00:01.223456: W tensorflow/compiler/tf2tensorrt/utils/py_utils.cc:38] TF-TRT Warning: Could not find TensorRT\n" \
	"2026-11-27 10:00:01.323456: W tensorflow/stream_executor/platform/default/dso_loader.cc:64] Could not load dynamic library 'libcuda.so.1'; dlerror: libcuda.so.1: cannot open shared object file: No such file or directory\n"

/* clang-format off */
static const struct {
	const char *text, *want, *advice; /* NULL = none */
} deaths[] = {
	{TRACE "ValueError: bad shape\n", "ValueError: bad shape", NULL},
	{TRACE "    raise OSError(28, \"No space left on device\")\nValueError: bad\n", "ValueError: bad", NULL},
	{TRACE "KeyError: 'x'\n\nDuring handling of the above exception, another exception occurred:\n\n"
	 TRACE "RuntimeError: no such key\n", "RuntimeError: no such key", NULL},
	{TRACE "mylib.Boom\n", "mylib.Boom", NULL},
	{TRACE "mylib.oops: it broke\nbye\n", "mylib.oops: it broke", NULL},
	{"step 1 loss 2\n" TRACE "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.\n",
	 "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 MiB.", "the GPU's memory"},
	{TRACE "ModuleNotFoundError: No module named 'flash_attn'\n",
	 "ModuleNotFoundError: No module named 'flash_attn'", "not in the job's environment"},
	{TRACE "OSError: [Errno 28] No space left on device\n",
	 "OSError: [Errno 28] No space left on device", "a disk is full"},
	{TRACE "OSError: [Errno 122] Disk quota exceeded: '/x'\n",
	 "OSError: [Errno 122] Disk quota exceeded: '/x'", "quota"},
	{"RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28) in /dev/shm\n",
	 "RuntimeError: unable to write to file </torch_1_2_3>: No space left on device (28) in /dev/shm", "/dev/shm is full"},
	{TRACE "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.\n",
	 "RuntimeError: DataLoader worker (pid 7) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.", "/dev/shm is full"},
	{TRACE "FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'\n",
	 "FileNotFoundError: [Errno 2] No such file or directory: 'data.bin'", "run.workdir"},
	{TRACE "PermissionError: [Errno 13] Permission denied: '/x'\n",
	 "PermissionError: [Errno 13] Permission denied: '/x'", "may not"},
	{TRACE "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE\n",
	 "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, EADDRINUSE", "port"},
	{TRACE "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n",
	 "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).", "driver is too old"},
	{TRACE "RuntimeError: CUDA error: an illegal memory access was encountered\n",
	 "RuntimeError: CUDA error: an illegal memory access was encountered", "CUDA_LAUNCH_BLOCKING"},
	{"RuntimeError: CUDA error: no kernel image is available for execution on the device\n",
	 "RuntimeError: CUDA error: no kernel image is available for execution on the device", "H100"},
	{"n1:12:34 [0] NCCL INFO Using network Socket\n"
	 "n1:12:34 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.1<5> failed : Connection timed out\n"
	 TRACE "torch.distributed.DistBackendError: NCCL error in: x.cpp:1\n",
	 "n1:12:34 [0] misc/socket.cc:484 NCCL WARN socketStartConnect: Connect to 10.0.0.1<5> failed : Connection timed out", "NCCL_DEBUG"},
	/* RCCL's words at each start, and links that went down and came back, are not why a script fails */
	{"n1:12:34 [0] NCCL WARN Missing \"iommu=pt\" from kernel command line which can lead to system instablity or hang!\n"
	 "n1:12:34 [0] NCCL WARN NET/IB : mlx5_3:1 Got async event : port error\n" TRACE "ValueError: bad shape\n",
	 "ValueError: bad shape", NULL},
	/* what NCCL says behind it is the cause, or was said before */
	{TRACE "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled cuda error\n"
	 "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'\n",
	 "Cuda failure 2 'out of memory'", "the GPU's memory"},
	{TRACE "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error\n"
	 "ncclSystemError: System call failed.\nLast error:\nError while creating shared memory segment /dev/shm/nccl-4ZrsZM (size 9637888)\n",
	 "Error while creating shared memory segment /dev/shm/nccl-4ZrsZM (size 9637888)", "/dev/shm is full"},
	{TRACE "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, invalid usage\n"
	 "ncclInvalidUsage: This usually reflects invalid usage of NCCL library.\nLast error:\n"
	 "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000\n",
	 "Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 1000", "each needs its own"},
	{TRACE "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error\n"
	 "ncclSystemError: System call failed.\n",
	 "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error", "NCCL_DEBUG"},
	{"[rank0]:[E1122 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n"
	 "[rank0]:[E1122 10:00:00.2 ProcessGroupNCCL.cpp:2268] [PG ID 0 Rank 0]  failure detected by watchdog at work sequence id: 4\n"
	 "[rank0]:[E1122 10:00:00.2 ProcessGroupNCCL.cpp:684] [Rank 0] Some NCCL operations have failed or timed out.\n"
	 "Exception raised from checkTimeout at ProcessGroupNCCL.cpp:635 (most recent call first):\n\n"
	 "terminate called after throwing an instance of 'c10::DistBackendError'\n"
	 "  what():  [Rank 0] Process group watchdog thread terminated with exception: [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)\n",
	 "[E1122 10:00:00.1 ProcessGroupNCCL.cpp:632] [Rank 0] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4)",
	 "same collective"},
	{"[rank1]:[F ProcessGroupNCCL.cpp:1169] [PG 0 Rank 1] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress\n",
	 "[F ProcessGroupNCCL.cpp:1169] [PG 0 Rank 1] ProcessGroupNCCL's watchdog got stuck for 600 seconds without making progress",
	 "same collective"},
	{TRACE "ValueError: bad shard\nERROR:composer.cli.launcher:Rank 1 crashed with exit code 1.\n"
	 "[rank: 1] Child process with PID 123 terminated with code 1. Forcefully terminating all other processes to avoid zombies\n"
	 TRACE "torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with exit code 1\n",
	 "ValueError: bad shard", NULL},
	/* other devices */
	{TRACE "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 512.00 MiB.\n",
	 "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 512.00 MiB.", "the GPU's memory"},
	{TRACE "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)\n",
	 "RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 0; 60.97 GiB total capacity)", "the GPU's memory"},
	{TRACE "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::268435456 (256)MB\n",
	 "RuntimeError: [Rank:0] FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::268435456 (256)MB", "the GPU's memory"},
	{TRACE "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm.\n",
	 "XlaRuntimeError: RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 21.95G of 15.48G hbm.",
	 "the GPU's memory"},
	{"ResourceExhaustedError: Graph execution error:\nOOM when allocating tensor with shape[4096,4096] on GPU:0\n",
	 "ResourceExhaustedError: Graph execution error:; OOM when allocating tensor with shape[4096,4096] on GPU:0", "the GPU's memory"},
	{"ResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 2.000000GB memory on GPU 0\n",
	 "Out of memory error on GPU 0. Cannot allocate 2.000000GB memory on GPU 0", "the GPU's memory"},
	{TRACE "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.\n",
	 "RuntimeError: DataLoader worker (pid 7) is killed by signal: Killed.", "slurm.mem"},
	{TRACE "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n",
	 "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.", "slurm.mem"},
	/* the GPU's fault, and the script's */
	{TRACE "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution\n",
	 "torch.AcceleratorError: CUDA error: uncorrectable NVLink error detected during the execution", "GPU is broken"},
	{TRACE "RuntimeError: CUDA error: hardware stack error\n", "RuntimeError: CUDA error: hardware stack error", "GPU is broken"},
	{TRACE "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable\n",
	 "RuntimeError: CUDA error: CUDA-capable device(s) is/are busy or unavailable", "nvidia-smi"},
	{"kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4, GPU has gone\n", "kernel: NVRM: Xid (PCI:0000:3b:00): 79, pid=4, GPU has gone", "GPU is broken"},
	{"terminate called after throwing an instance of 'c10::AcceleratorError'\n  what():  CUDA error: uncorrectable ECC error encountered\n",
	 "what():  CUDA error: uncorrectable ECC error encountered", "GPU is broken"},
	{"NVRM: Xid (PCI:0000:48:00): 31, pid=4, MMU Fault\n" TRACE "ValueError: bad\n", "ValueError: bad", NULL},
	/* file systems */
	{TRACE "OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/x'\n",
	 "OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/x'", "file system failed"},
	{TRACE "OSError: [Errno 30] Read-only file system: '/root/.cache'\n",
	 "OSError: [Errno 30] Read-only file system: '/root/.cache'", "container"},
	{"slurmstepd: error: Detected 1 oom_kill event in StepId=12.batch. Some of the step tasks have been OOM Killed.\n",
	 "slurmstepd: error: Detected 1 oom_kill event in StepId=12.batch. Some of the step tasks have been OOM Killed.", "slurm.mem"},
	{"slurmstepd-n1: error: *** STEP 2.0 ON n1 CANCELLED AT 2026-11-27T23:28:12 DUE TO TASK FAILURE ***\n", "", NULL},
	/* Slurm 26.05 */
	{"[2026-11-27T23:28:12.232] error: *** STEP 2.0 ON n1 CANCELLED AT 2026-11-27T23:28:12 DUE TO TASK FAILURE ***\n", "", NULL},
	{"Fatal Python error: Segmentation fault\n\nCurrent thread 0x1 (most recent call first):\n"
	 "  File \"/w/train.py\", line 12 in forward\n  File \"/w/train.py\", line 20 in main\n",
	 "Fatal Python error: Segmentation fault; File \"/w/train.py\", line 12 in forward", NULL},
	{"terminate called after throwing an instance of 'std::runtime_error'\n  what():  bad magic\n",
	 "terminate called after throwing an instance of 'std::runtime_error'; what():  bad magic", NULL},
	{"train: loss.c:12: step: Assertion `x > 0' failed.\n", "train: loss.c:12: step: Assertion `x > 0' failed.", NULL},
	{"sh: 1: trian.py: not found\n", "sh: 1: trian.py: not found", "PATH"},
	{"usage: train.py [-h]\ntrain.py: error: unrecognized arguments: --lrr 3\n", "train.py: error: unrecognized arguments: --lrr 3", NULL},
	{"./train: error while loading shared libraries: libx.so: cannot open shared object file\n",
	 "./train: error while loading shared libraries: libx.so: cannot open shared object file", "environment"},
	{"mca: unable to open mca_x: libnl-3.so: cannot open shared object file: No such file (ignored)\n"
	 "ValueError: bad shard\n", "ValueError: bad shard", NULL},
	/* as Open MPI 4.1, MPICH 4.0 and torchrun print them */
	{"[vm:12345] mca_base_component_repository_open: unable to open mca_btl_x: libnl-3.so.200: cannot open "
	 "shared object file: No such file or directory (ignored)\nValueError: bad shard\n" OPEN_MPI
	 "[vm:12345] 1 more process has sent help message help-x.txt / y\n", "ValueError: bad shard", NULL},
	{"[vm:12345] mca_x: unable to open mca_y: No such file or directory (ignored)\n" OPEN_MPI, "", NULL},
	{"[vm:12936] *** Process received signal ***\n[vm:12936] Signal: Segmentation fault (11)\n"
	 "[vm:12936] Signal code: Address not mapped (1)\n[vm:12936] Failing at address: 0x8\n"
	 "[vm:12936] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)[0x7fd78d608050]\n"
	 "[vm:12936] [ 1] ./train(forward+0xc)[0x5624d3550195]\n[vm:12936] *** End of error message ***\n" OPEN_MPI,
	 "Signal: Segmentation fault (11); [ 1] ./train(forward+0xc)[0x5624d3550195]", NULL},
	{"train: loss.c:12: step: Assertion `x > 0' failed.\n[vm:12936] Signal: Aborted (6)\n",
	 "train: loss.c:12: step: Assertion `x > 0' failed.", NULL},
	{"[vm:13204:0:13204] Caught signal 11 (Segmentation fault: address not mapped)\n==== backtrace (tid: 13204) ====\n"
	 " 0  /lib/x86_64-linux-gnu/libucs.so.0(ucs_handle_error+0x2dc) [0x7f5f144aae9c]\n"
	 " 4  ./train(forward+0xc) [0x564438f93195]\n" MPICH,
	 "Caught signal 11 (Segmentation fault: address not mapped); 4  ./train(forward+0xc) [0x564438f93195]", NULL},
	{MPICH, "", NULL},
	/* Open MPI 5.0 */
	{DASHES "prterun noticed that process rank 1 with PID 19645 on node vm exited on\nsignal 9 (Killed).\n" DASHES
	 DASHES "prterun detected that one or more processes exited with non-zero status,\n"
	 "thus causing the job to be terminated. The first process to do so was:\n\n   Process name: [prterun-vm-19720@1,1]\n   Exit code:    7\n" DASHES
	 DASHES "MPI_ABORT was invoked on rank 1 in communicator MPI_COMM_WORLD\n  Proc: [[63161,1],1]\n  Errorcode: 7\n\n"
	 "NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.\nYou may or may not see output from other processes, depending on\n"
	 "exactly when Open MPI kills them.\n" DASHES DASHES "prterun has exited due to process rank 1 with PID 0 on node vm calling\n"
	 "\"abort\". This may have caused other processes in the application to be\nterminated by signals sent by prterun (as reported here).\n" DASHES, "", NULL},
	{"Abort(3) on node 1 (rank 1 in comm 0): application called MPI_Abort(MPI_COMM_WORLD, 3) - process 1\n", "", NULL},
	/* our own trainer on a GPU */
	{"lbworker: rank 1: step 3: cuda: adamw 125248: out of memory (kernels/cuda/memory.c:250)\nlbrun: exit status 1\n",
	 "lbworker: rank 1: step 3: cuda: adamw 125248: out of memory (kernels/cuda/memory.c:250)", "the GPU's memory"},
	{"lbworker: device.name = \"cuda\": cuda: out of memory on NVIDIA H100, of which 12 MiB are free: nvidia-smi says who has the rest\n",
	 "lbworker: device.name = \"cuda\": cuda: out of memory on NVIDIA H100, of which 12 MiB are free: nvidia-smi says who has the rest", "the GPU's memory"},
	{"lbworker: device.name = \"cuda\": cuda: this liblbcuda.so has no code for NVIDIA A100 (8.0): no kernel image is available for execution on the device; make release\n",
	 "lbworker: device.name = \"cuda\": cuda: this liblbcuda.so has no code for NVIDIA A100 (8.0): no kernel image is available for execution on the device; make release", NULL},
	{"lbworker: step 3: cuda: gemm 4x4x4: an illegal memory access was encountered, in this or an operation before it; LB_CUDA_WAIT=1 tells which (a.c:1)\n",
	 "lbworker: step 3: cuda: gemm 4x4x4: an illegal memory access was encountered, in this or an operation before it; LB_CUDA_WAIT=1 tells which (a.c:1)", NULL},
	{"lbworker: step 3: cuda: gemm 4x4x4: uncorrectable ECC error encountered, in this or an operation before it; LB_CUDA_WAIT=1 tells which (a.c:1)\n",
	 "lbworker: step 3: cuda: gemm 4x4x4: uncorrectable ECC error encountered, in this or an operation before it; LB_CUDA_WAIT=1 tells which (a.c:1)", "slurm.exclude"},
	{"lbworker: rank 3 (n2) has another config than rank 0 (n1): a1, not b2\n", "lbworker: rank 3 (n2) has another config than rank 0 (n1): a1, not b2", NULL},
	{"lbworker: rank 1 (n2) has other data than rank 0 (n1): a1, not b2\nlbrun: exit status 2\n", "lbworker: rank 1 (n2) has other data than rank 0 (n1): a1, not b2", NULL},
	{TORCHRUN, "", NULL},
	/* what launchers say of themselves at each start, and PyTorch of addresses that it tries */
	{"W1127 16:23:59.866000 13130 torch/distributed/run.py:982] \n"
	 "W1127 16:23:59.866000 13130 torch/distributed/run.py:982] *****************************************\n"
	 "W1127 16:23:59.866000 13130 torch/distributed/run.py:982] Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
	 "W1127 16:23:59.866000 13130 torch/distributed/run.py:982] *****************************************\n" TORCHRUN, "", NULL},
	{"WARNING:torch.distributed.run:\n*****************************************\n"
	 "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n*****************************************\n" TORCHRUN, "", NULL},
	{"The following values were not passed to `accelerate launch` and had defaults used instead:\n\t`--num_machines` was set to a value of `1`\n"
	 "To avoid this warning pass in values for each of the problematic parameters or run `accelerate config`.\n" TORCHRUN, "", NULL},
	{"[W1127 16:23:59.123456789 socket.cpp:755] [c10d] The client socket cannot be initialized to connect to [n1]:29500 (errno: 97 - Address family not supported by protocol).\n"
	 "[W socket.cpp:601] [c10d] The client socket has failed to connect to [n1]:29500 (errno: 99 - Cannot assign requested address).\n"
	 "the end\n" TORCHRUN, "the end", NULL},
	{TRACE "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (n1, 29500).\n",
	 "torch.distributed.DistNetworkError: The client socket has timed out after 60000ms while trying to connect to (n1, 29500).", "did not find each other"},
	{"KeyError: 'x'\n" TORCHRUN, "KeyError: 'x'", NULL},
	/* hydra, whose proxies srun had started */
	{"KeyError: 'x'\n[proxy:0:0@n1] HYD_pmcd_pmip_control_cmd_cb (pm/pmiserv/pmip_cb.c:899): assert (!closed) failed\n"
	 "[mpiexec@n1] HYDT_bscu_wait_for_completion (tools/bootstrap/utils/bscu_wait.c:73): one of the processes terminated badly; aborting\n",
	 "KeyError: 'x'", NULL},
	{"[proxy:0:0@n1] HYD_pmcd_pmip_control_cmd_cb (pm/pmiserv/pmip_cb.c:899): assert (!closed) failed\n"
	 "[proxy:0:0@n1] HYDT_dmxu_poll_wait_for_event (tools/demux/demux_poll.c:76): callback returned error status\n"
	 "[proxy:0:0@n1] main (pm/pmiserv/pmip.c:169): demux engine error waiting for event\n"
	 "[mpiexec@n1] HYDT_bsci_wait_for_completion (tools/bootstrap/src/bsci_wait.c:21): launcher returned error waiting for completion\n"
	 "[mpiexec@n1] main (ui/mpich/mpiexec.c:325): process manager error waiting for completion\n", "", NULL},
	{"srun: error: n1: task 3: Exited with exit code 7\nsrun: Terminating StepId=4.0\n"
	 "slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-22T10:00:00 ***\n", "", NULL},
	{"srun: error: Task launch for StepId=22.1 failed on node n2: Communication connection failure\n"
	 "srun: error: Application launch failed: Communication connection failure\nsrun: error: n1: task 0: Killed\n",
	 "srun: error: Task launch for StepId=22.1 failed on node n2: Communication connection failure", "sinfo -R"},
	{"srun: error: Task launch for StepId=22.1 failed on node n2: Job prolog failed\n",
	 "srun: error: Task launch for StepId=22.1 failed on node n2: Job prolog failed", "slurmd.log"},
	{"srun: error: Unable to create step for job 3: More processors requested than permitted\n",
	 "srun: error: Unable to create step for job 3: More processors requested than permitted", NULL},
	{"There are not enough slots available in the system to satisfy the 20\nslots that were requested\n",
	 "There are not enough slots available in the system to satisfy the 20", "ntasks_per_node"},
	/* Open MPI behind an srun that it does not know; hwloc where /sys is not to be seen */
	{"hwloc/linux: failed to find sysfs cpu topology directory, aborting linux discovery.\n"
	 "[n1:04241] OPAL ERROR: Unreachable in file ext3x_client.c at line 111\n"
	 "The application appears to have been direct launched using \"srun\",\n"
	 "but OMPI was not built with SLURM's PMI support and therefore cannot\nexecute.\n"
	 "*** An error occurred in MPI_Init_thread\n*** on a NULL communicator\n"
	 "*** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,\n***    and potentially your MPI job)\n"
	 "[n1:04241] Local abort before MPI_INIT completed completed successfully, but am not able to aggregate error messages, and not able to guarantee that all other processes were killed!\n",
	 "but OMPI was not built with SLURM's PMI support and therefore cannot", "mpirun"},
	{"hwloc/linux: failed to find sysfs cpu topology directory, aborting linux discovery.\n", "", NULL},
	{"*** An error occurred in Socket closed\n*** reported by process [1,2]\nValueError: bad shard\n", "ValueError: bad shard", NULL},
	{"subprocess.CalledProcessError: Command '['rsync', 'a', 'b']' returned non-zero exit status 3.\n",
	 "subprocess.CalledProcessError: Command '['rsync', 'a', 'b']' returned non-zero exit status 3.", NULL},
	/* behind launchers' prefixes, and marks that nobody knows */
	{"[1,1]<stderr>:Traceback (most recent call last):\n[1,1]<stderr>:  File \"x.py\", line 1\n"
	 "[1,1]<stderr>:odd.Thing: 7[1,1]<stderr>:\n", "odd.Thing: 7", NULL},
	{"1: Traceback (most recent call last):\n0: step 3 loss 2\n1:   raise OSError(\"No space left on device\")\n1: odd.Thing: 7\n",
	 "odd.Thing: 7", NULL},
	{"[1] ValueError: bad shard[1] \n", "ValueError: bad shard", NULL},
	{"Sun Nov 22 17:53:26 2026<stderr>:ValueError: bad shardSun Nov 22 17:53:26 2026<stderr>:\n", "ValueError: bad shard", NULL},
	{"worker-3: Traceback (most recent call last):\nworker-3:   File \"x.py\", line 1, in f\nworker-3: odd.Thing: 7\n",
	 "odd.Thing: 7", NULL},
	/* by the time of each line: Metaflow, ts(1), systemd */
	{"2026-11-29 02:00:01.123 [17/train/2 (pid 12)] Traceback (most recent call last):\n2026-11-29 02:00:01.124 [17/train/2 (pid 12)]   File \"x.py\", line 1\n"
	 "2026-11-29 02:00:01.124 [17/train/2 (pid 12)]     raise OSError(\"No space left on device\")\n2026-11-29 02:00:01.130 [17/train/2 (pid 12)] odd.Thing: 7\n",
	 "odd.Thing: 7", NULL},
	/* Metaflow's have lost their margins, too */
	{"1 [end/2 (pid 12)] <flow F step end> failed:\n1 [end/2 (pid 12)] Internal error\n1 [end/2 (pid 12)] Traceback (most recent call last):\n"
	 "1 [end/2 (pid 12)] File \"/w/cli.py\", line 739, in main\n2 [end/2 (pid 12)] start(\"No space left on device\")\n2 [end/2 (pid 12)] ^^^^^^^^^^\n"
	 "2 [end/2 (pid 12)] File \"/w/flow.py\", line 9, in end\n2 [end/2 (pid 12)] raise odd.Thing(7)\n2 [end/2 (pid 12)] odd.Thing: 7\n"
	 "2 [end/2 (pid 12)] \n2 [end/2 (pid 12)] Task failed.\n", "odd.Thing: 7", NULL},
	/* Sacred */
	{"Traceback (most recent calls WITHOUT Sacred internals):\n  File \"x.py\", line 1, in main\n    raise odd.Thing(\"No space left on device\")\nodd.Thing: 7\n\n",
	 "odd.Thing: 7", NULL},
	{"10:00:01 Traceback (most recent call last):\n10:00:02   File \"x.py\"\n" TRACE "odd.Thing: 7\n", "odd.Thing: 7", NULL},
	{"  + Exception Group Traceback (most recent call last):\n  |   File \"x.py\", line 3, in <module>\n"
	 "  | ExceptionGroup: two (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n"
	 "    | Traceback (most recent call last):\n    |   File \"x.py\", line 1, in f\n    | ValueError: bad\n",
	 "ValueError: bad", NULL},
	/* raised together: the first ended the others, also where it has no traceback of its own */
	{"  + Exception Group Traceback (most recent call last):\n  |   File \"x.py\", line 3, in <module>\n"
	 "  |     raise ExceptionGroup(\"CUDA out of memory\", [ValueError(\"bad\")])\n"
	 "  | ExceptionGroup: CUDA out of memory (2 sub-exceptions)\n  +-+---------------- 1 ----------------\n    | mylib.Boom: bad\n"
	 "    +---------------- 2 ----------------\n    | Traceback (most recent call last):\n    |   File \"x.py\", line 1, in f\n"
	 "    | OSError: [Errno 28] No space left on device\n    +------------------------------------\nbye\n",
	 "mylib.Boom: bad", NULL},
	{"  + Exception Group Traceback (most recent call last):\n  |   File \"x.py\", line 3\n  | ExceptionGroup: one (1 sub-exception)\n"
	 "  +-+---------------- 1 ----------------\n    | Exception Group Traceback (most recent call last):\n    |   File \"x.py\", line 2\n"
	 "    | ExceptionGroup: two (1 sub-exception)\n    +-+---------------- 1 ----------------\n      | Traceback (most recent call last):\n"
	 "      |   File \"x.py\", line 1, in f\n      |     f(\"Permission denied\")\n      | KeyError: 'x'\n      +------------------------------------\n",
	 "KeyError: 'x'", NULL},
	/* what make, just, task, snakemake and DVC say of what they ran is no reason */
	{"loss diverged, giving up\nmake[1]: *** [Makefile:2: train] Error 3\nmake: *** [Makefile:5: all] Error 2\n", "loss diverged, giving up", NULL},
	{"loss diverged, giving up\nerror: Recipe `train` failed on line 2 with exit code 3\n", "loss diverged, giving up", NULL},
	{"loss diverged, giving up\nerror: recipe `train` failed on line 2 with exit code 3\n", "loss diverged, giving up", NULL},
	{"loss diverged, giving up\nERROR - exp - Failed after 0:00:00!\n", "loss diverged, giving up", NULL},
	{"loss diverged, giving up\ntask: Failed to run task \"train\": exit status 3\n", "loss diverged, giving up", NULL},
	{"make: *** No rule to make target 'tran'.  Stop.\n", "make: *** No rule to make target 'tran'.  Stop.", NULL},
	{TRACE "odd.Thing: 7\n[Sun Nov 29 02:00:01 2026]\nError in rule train:\n    jobid: 0\n    output: done\n    shell:\n        python train.py\n"
	 "        (one of the commands exited with non-zero exit code; note that snakemake uses bash strict mode!)\n\n"
	 "Shutting down, this might take some time.\nExiting because a job execution failed. Look above for error message\n"
	 "Complete log(s): /w/.snakemake/log/1.snakemake.log\nWorkflowError:\nAt least one job did not complete successfully.\n", "odd.Thing: 7", NULL},
	{TRACE "odd.Thing: 7\nERROR: failed to reproduce 'train': failed to run: python train.py, exited with 1\n", "odd.Thing: 7", NULL},
	/* R */
	{"Error in `fit()`:\n! Problem while training.\nCaused by error in `getitem()`:\n! subscript out of bounds\nBacktrace:\n",
	 "Error in `fit()`:; ! Problem while training.; Caused by error in `getitem()`:; ! subscript out of bounds", NULL},
	{"Error in library(torch) : there is no package called \u2018torch\u2019\nExecution halted\n",
	 "Error in library(torch) : there is no package called \u2018torch\u2019", "not in the job's environment"},
	/* JAX's ranks, llm.c, Ray's */
	{TRACE "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: 7. # of tasks that reached the barrier: 3/4.\n",
	 "jaxlib.xla_extension.XlaRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: 7. # of tasks that reached the barrier: 3/4.", "same collective"},
	{"Error: Failed to open file 'dev/data/train_000001.bin' at llmc/dataloader.h:120\n",
	 "Error: Failed to open file 'dev/data/train_000001.bin' at llmc/dataloader.h:120", "run.workdir"},
	{"Timeout: Ray cluster at 10.0.0.1:6379 not ready after 30s\nError: Timed out waiting for head node to start.\n",
	 "Error: Timed out waiting for head node to start.", "did not find each other"},
	/* much goes on behind a file that is not there; what was raised last ended it, unless it says
	 * what it was made of */
	{"cat: /etc/lsb-release: No such file or directory\n/bin/sh: 1: nvidia-smi: not found\n" TRACE "ValueError: bad\n", "ValueError: bad", NULL},
	{"cat: /etc/lsb-release: No such file or directory\n" TRACE "FileNotFoundError: [Errno 2] No such file or directory: 'x'\n",
	 "FileNotFoundError: [Errno 2] No such file or directory: 'x'", "run.workdir"},
	{TRACE "ModuleNotFoundError: No module named 'apex'\nit goes on without\n" TRACE "ValueError: bad\n", "ValueError: bad", NULL},
	{TRACE "ModuleNotFoundError: No module named 'apex'\n\nThe above exception was the direct cause of the following exception:\n\n"
	 TRACE "RuntimeError: no transformers\n", "ModuleNotFoundError: No module named 'apex'", "environment"},
	/* what did not set the environment up is why something lacks in it, and of nothing else */
	{"ERROR: Unable to locate a modulefile for 'cuda/99'\n/x/slurm_script: line 4: mytrain: command not found\n",
	 "ERROR: Unable to locate a modulefile for 'cuda/99'", "not in the job's environment"},
	{"/x/slurm_script: line 3: module: command not found\n/x/slurm_script: line 4: torchrun: command not found\n",
	 "/x/slurm_script: line 3: module: command not found", "not in the job's environment"},
	{"\nEnvironmentNameNotFound: Could not find conda environment: foo\n"
	 "You can list all discoverable environments with `conda info --envs`.\n\n\n" TRACE "ModuleNotFoundError: No module named 'torch'\n",
	 "EnvironmentNameNotFound: Could not find conda environment: foo", "not in the job's environment"},
	{"\nEnvironmentLocationNotFound: Not a conda environment: /x/foo\n\n", "EnvironmentLocationNotFound: Not a conda environment: /x/foo",
	 "not in the job's environment"},
	{"\nCondaError: Run 'conda init' before 'conda activate'\n\n" TRACE "ValueError: bad\n", "ValueError: bad", NULL},
	{"/x/slurm_script: line 2: /x/bin/activate: No such file or directory\n" TRACE "ModuleNotFoundError: No module named 'torch'\n",
	 "/x/slurm_script: line 2: /x/bin/activate: No such file or directory", "not in the job's environment"},
	/* Ray; the last of the log comes behind it once more */
	{"Killed\n2026-11-28 01:52:13,402\tERR cli.py:75 -- Job 'raysubmit_g1GWSUjBnUz3JTAY' failed\n"
	 "2026-11-28 01:52:13,402\tINFO cli.py:89 -- Status message: Job entrypoint command failed with exit code 137, last available logs (truncated to 20,000 chars):\nstep 12/100 loss 1.12\n",
	 "2026-11-28 01:52:13,402 INFO cli.py:89 -- Status message: Job entrypoint command failed with exit code 137, last available logs (truncated to 20,000 chars):", NULL},
	{TRACE "mylib.oops: it broke; the log was:\n[2026-11-28 01:52:13] iter 7: loss 1.12\n", "mylib.oops: it broke; the log was:", NULL},
	{TRACE "mylib.oops: it broke; the log was:\n{'loss': 1.12, 'epoch': 0.3}\n", "mylib.oops: it broke; the log was:", NULL},
	{TRACE "mylib.oops: it broke:\nsteps must be positive, not 3\n", "mylib.oops: it broke:; steps must be positive, not 3", NULL},
	{"x.py:3: UserWarning: Permission denied: '/root/.cache'\nthe end\n", "the end", NULL},
	{"/x/slurm_script: line 2: nvidia-smi: command not found\n/x/slurm_script: line 3: torchrun: command not found\nERROR: no results\n", "/x/slurm_script: line 3: torchrun: command not found", "PATH"},
	{TRACE "mylib.oops: gave up retrying\n", "mylib.oops: gave up retrying", NULL},
	{"Memory access fault by GPU node-2 (Agent handle: 0x55) on address 0x7f. Reason: Page not present or supervisor privilege.\nAborted (core dumped)\n",
	 "Memory access fault by GPU node-2 (Agent handle: 0x55) on address 0x7f. Reason: Page not present or supervisor privilege.", "AMD_SERIALIZE_KERNEL"},
	/* rich draws boxes */
	{"╭─────────────────────────────── Traceback (most recent call last) ────────────────────────────────╮\n"
	 "│ /w/train.py:12 in main                                                                           │\n"
	 "│ ❱ 12 │   raise RuntimeError(\"CUDA out of memory\")                                                │\n"
	 "╰──────────────────────────────────────────────────────────────────────────────────────────────────╯\n"
	 "mylib.oops: it broke\n", "mylib.oops: it broke", NULL},
	{"[10/11/24 12:13:14] ERROR    no luck                train.py:12\n"
	 "                    ╭─ Traceback (most recent call last─╮\n                    │ f(\"Permission denied\")              │\n"
	 "                    ╰─────────────────────────────────────╯\n                    mylib.oops: it broke\n", "mylib.oops: it broke", NULL},
	{"╭─ Error ───────────────────╮\n│ No such option: --lrr     │\n╰───────────────────────────╯\n", "No such option: --lrr", NULL},
	{"╭─ Unrecognized options ──────────────────╮\n│ Unrecognized options: --lrr=3             │\n│ ───────────────────────────────────────── │\n"
	 "│ For full helptext, run train.py --help    │\n╰───────────────────────────────────────────╯\n", "Unrecognized options: --lrr=3", NULL},
	/* what Python ignored as it ended ended nothing */
	{TRACE "ValueError: bad\nException ignored in atexit callback: <function f at 0x7f>\n" TRACE "OSError: [Errno 28] No space left on device\n"
	 "\nDuring handling of the above exception, another exception occurred:\n\n" TRACE "KeyError: 'x'\n"
	 "Exception ignored in: <function T.__del__ at 0x7f>\nTypeError: 'NoneType' object is not callable\n", "ValueError: bad", NULL},
	{"Exception ignored in: <function T.__del__ at 0x7f>\nTypeError: 'NoneType' object is not callable\n" TRACE "ValueError: bad\n", "ValueError: bad", NULL},
	/* a line that ends in a colon goes on */
	{"\nthread 'main' (4711) panicked at src/main.rs:5:14:\ncalled `Option::unwrap()` on a `None` value\n"
	 "note: run with `RUST_BACKTRACE=1` environment variable to display a backtrace\n",
	 "thread 'main' (4711) panicked at src/main.rs:5:14:; called `Option::unwrap()` on a `None` value", NULL},
	{TRACE "torch._dynamo.exc.InternalTorchDynamoError: odd:\n\n  a graph break\nthe end\n", "torch._dynamo.exc.InternalTorchDynamoError: odd:; a graph break", NULL},
	{"error: Failed to spawn: train\n  cause: No such file or directory (os error 2)\n",
	 "error: Failed to spawn: train; cause: No such file or directory (os error 2)", NULL},
	{"Error: cannot read config\n\nCaused by:\n    it is a folder (os error 21)\nbye\n",
	 "Error: cannot read config; Caused by:; it is a folder (os error 21)", NULL},
	/* the words of glibc and of Julia, as they abort */
	{"F1127 16:05:17.0 14 train.py:2] giving up\nFatal Python error: Aborted\n\nCurrent thread 0x7 (most recent call first):\n  File \"x.py\", line 7 in emit\n",
	 "F1127 16:05:17.0 14 train.py:2] giving up", NULL},
	{"Fatal Python error: Aborted\n\nCurrent thread 0x7 (most recent call first):\n  File \"x.py\", line 7 in emit\n",
	 "Fatal Python error: Aborted; File \"x.py\", line 7 in emit", NULL},
	{"free(): double free detected in tcache 2\nAborted (core dumped)\n", "free(): double free detected in tcache 2", NULL},
	{"*** stack smashing detected ***: terminated\nAborted (core dumped)\n", "*** stack smashing detected ***: terminated", NULL},
	{"\n[4711] signal (11.1): Segmentation fault\nin expression starting at /w/train.jl:5\nAllocations: 2906 (Pool: 2897; Big: 9); GC: 0\n",
	 "[4711] signal (11.1): Segmentation fault", NULL},
	{"ERROR: LoadError: TaskFailedException\n\n    nested task error: BoundsError: attempt to access 3-element Vector\n    Stacktrace:\n     [1] getindex\n",
	 "ERROR: LoadError: TaskFailedException; nested task error: BoundsError: attempt to access 3-element Vector", NULL},
	{"Error: loading\n\nCaused by:\n    0: reading ckpt/step-100\n    1: No such file or directory (os error 2)\n",
	 "Error: loading; Caused by:; 0: reading ckpt/step-100; 1: No such file or directory (os error 2)", NULL},
	/* Ray's wrapping says nothing */
	{TRACE "ValueError: loss is nan\n\nThe above exception was the direct cause of the following exception:\n\n" TRACE
	 "ray.train.base_trainer.TrainingFailedError: The Ray Train run failed. Please inspect the previous error messages for a cause.\n",
	 "ValueError: loss is nan", NULL},
	/* TensorFlow says where, and then what */
	{TRACE "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:\n\n"
	 "Detected at node m/GatherV2 defined at (most recent call last):\n  File \"/w/t.py\", line 17, in <module>\n\n"
	 "  File \"/x/numpy.py\", line 3095, in take\n\nindices[0,1] = 200 is not in [0, 10)\n\t [[{{node m/GatherV2}}]]\n",
	 "tensorflow.python.framework.errors_impl.InvalidArgumentError: Graph execution error:; indices[0,1] = 200 is not in [0, 10)", NULL},
	{TRACE "ValueError: in user code:\n\n    File \"/w/t.py\", line 5, in f  *\n        def f(x,y): return tf.matmul(x,y)\n\n"
	 "    ValueError: Dimensions must be equal\n",
	 "ValueError: in user code:; ValueError: Dimensions must be equal", NULL},
	{"ERROR:root:Failed to load:\n  File \"/w/a.bin\" is truncated\n", "ERROR:root:Failed to load:; File \"/w/a.bin\" is truncated", NULL},
	/* the memory of which: that of the GPU in the words of others */
	{TRACE "pycuda._driver.MemoryError: cuMemAlloc failed: out of memory\n", "pycuda._driver.MemoryError: cuMemAlloc failed: out of memory", "the GPU's memory"},
	{TRACE "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 512 bytes (allocated so far: 0 bytes).\n",
	 "cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 512 bytes (allocated so far: 0 bytes).", "the GPU's memory"},
	{"Error: DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")\n", "Error: DriverError(CUDA_ERROR_OUT_OF_MEMORY, \"out of memory\")", "the GPU's memory"},
	{"ERROR: LoadError: Out of GPU memory trying to allocate 1.000 GiB\n", "ERROR: LoadError: Out of GPU memory trying to allocate 1.000 GiB", "the GPU's memory"},
	{"slurmstepd: error: StepId=123.0 exceeded memory limit (5012345 > 4194304), being killed\n",
	 "slurmstepd: error: StepId=123.0 exceeded memory limit (5012345 > 4194304), being killed", "slurm.mem"},
	{TRACE "torch.AcceleratorError: CUDA error: invalid device ordinal\n", "torch.AcceleratorError: CUDA error: invalid device ordinal", "one rank for each"},
	{"wandb: ERROR Error while calling W&B API: permission denied (<Response [403]>)\n",
	 "wandb: ERROR Error while calling W&B API: permission denied (<Response [403]>)", "WANDB_API_KEY"},
	/* git, which trackers and trainers ask where they are */
	{"fatal: not a git repository (or any of the parent directories): .git\nlast words\n", "last words", NULL},
	{"fatal: detected dubious ownership in repository at '/w'\nerror: bad shard\n", "error: bad shard", NULL},
	{"fatal: No names found, cannot describe anything.\nlast words\n", "last words", NULL},
	{"fatal: ambiguous argument 'HEAD': unknown revision or path not in the working tree.\nlast words\n", "last words", NULL},
	{"fatal: Needed a single revision\nlast words\n", "last words", NULL},
	{"fatal: no upstream configured for branch 'main'\nlast words\n", "last words", NULL},
	/* transformers, on a node without internet or a token; W&B */
	{TRACE "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.\n",
	 "OSError: We couldn't connect to 'https://huggingface.co' to load the files, and couldn't find them in the cached files.", "HF_HUB_OFFLINE"},
	{TRACE "OSError: You are trying to access a gated repo.\nMake sure to have access to it at https://huggingface.co/meta-llama.\n401 Client Error. (Request ID: a)\n",
	 "OSError: You are trying to access a gated repo.", "HF_TOKEN"},
	{TRACE "wandb.errors.errors.UsageError: No API key configured. Use `wandb login` to log in.\n",
	 "wandb.errors.errors.UsageError: No API key configured. Use `wandb login` to log in.", "WANDB_API_KEY"},
	{TRACE "wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.\n",
	 "wandb.errors.errors.CommError: Run initialization has timed out after 90.0 sec.", "WANDB_MODE=offline"},
	/* memory, of which */
	{TRACE "MemoryError: CUDA Error 2, out of memory\n", "MemoryError: CUDA Error 2, out of memory", "the GPU's memory"},
	{"Error: Cuda(\"driver error: out of memory\")\n", "Error: Cuda(\"driver error: out of memory\")", "the GPU's memory"},
	{"[CUDA ERROR] at file llmc/train_gpt2.cu:123:\nout of memory\n", "[CUDA ERROR] at file llmc/train_gpt2.cu:123:; out of memory", "the GPU's memory"},
	{TRACE "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:\n\n"
	 "Detected at node f defined at (most recent call last):\n<stack traces unavailable>\nOut of memory while trying to allocate 12884901888 bytes.\n",
	 "tensorflow.python.framework.errors_impl.ResourceExhaustedError: Graph execution error:; Out of memory while trying to allocate 12884901888 bytes.",
	 "the GPU's memory"},
	{TRACE "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: Default/MatMul-op0, alloc size: 1073741824B.\n",
	 "RuntimeError: Device(id:0) memory isn't enough and alloc failed, kernel name: Default/MatMul-op0, alloc size: 1073741824B.", "the GPU's memory"},
	{"memory allocation of 1073741824 bytes failed\n", "memory allocation of 1073741824 bytes failed", "slurm.mem"},
	{"ERROR: LoadError: OutOfMemoryError()\nStacktrace:\n [1] Array\n", "ERROR: LoadError: OutOfMemoryError()", "slurm.mem"},
	/* Paddle's ranks, which its launcher ends behind another's end */
	{TRACE "ValueError: bad shard\n\n----------------------\nError Message Summary:\n----------------------\n"
	 "FatalError: `Termination signal` is detected by the operating system.\n"
	 "  [TimeInfo: *** Aborted at 1746837439 (unix time) try \"date -d @1746837439\" if you are using GNU date ***]\n"
	 "  [SignalInfo: *** SIGTERM (@0x5b909) received by PID 375126 (TID 0x79a165a56740) from PID 375049 ***]\n",
	 "ValueError: bad shard", NULL},
	/* ranks that did not meet */
	{TRACE "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error\n",
	 "RuntimeError: Gloo connectFullMesh failed with [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:144] no error", "did not find each other"},
	{TRACE "jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0.\n",
	 "jax.errors.JaxRuntimeError: DEADLINE_EXCEEDED: Barrier timed out. Id: PjRT_Client_Connect::0.", "did not find each other"},
	{"/usr/bin/python3: No module named trian\n", "/usr/bin/python3: No module named trian", "not in the job's environment"},
	/* what points to a cause is none */
	{"(EngineCore_0 pid=4711) ERROR 10-11 [core.py:7] Traceback (most recent call last):\n(EngineCore_0 pid=4711) ERROR 10-11 [core.py:7]   File \"x.py\"\n"
	 "(EngineCore_0 pid=4711) ERROR 10-11 [core.py:7] ValueError: No available memory for the cache blocks.\n"
	 TRACE "RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {}\n",
	 "ValueError: No available memory for the cache blocks.", NULL},
	{"E0502 10:11:12.1 12 coordination_service_agent.cc:330] Polled an error from coordination service (this can be an error from this or another task).\n"
	 "F0502 10:11:12.1 12 client.h:77] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died\n",
	 "F0502 10:11:12.1 12 client.h:77] Terminating process because the JAX distributed service detected fatal errors. This most likely indicates that another task died", "coordinator"},
	{"In 'config': Could not find 'model/gpt9'\n\nAvailable options in 'model':\n\tgpt2\nConfig search path:\n\tprovider=hydra, path=pkg://hydra.conf\n\n"
	 "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n", "In 'config': Could not find 'model/gpt9'", NULL},
	{DASHES "mpirun has detected an attempt to run as root.\n\nRunning as root is *strongly* discouraged as any mistake (e.g., in\n"
	 "defining TMPDIR) or bug can result in catastrophic damage to the OS\n" DASHES, "mpirun has detected an attempt to run as root.", NULL},
	{"the model is 12 GB\nx.py:17: UserWarning: a tensor was converted\n  bar.set_postfix(loss=float(loss))\n", "the model is 12 GB", NULL},
	{TRACE "RuntimeError: [/pytorch/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation to complete\n",
	 "RuntimeError: [/pytorch/gloo/transport/tcp/unbound_buffer.cc:78] Timed out waiting 1800000ms for recv operation to complete",
	 "did not come to the same collective"},
	{"train: cannot open the corpus\n", "train: cannot open the corpus", NULL},
	{"first: all is well\nlast words\n", "last words", NULL},
	/* the first error, not what follows from it; no bars, warnings and counts */
	{"ERROR: the shard 7 is bad\nerror: giving up\n", "ERROR: the shard 7 is bad", NULL},
	{"0 errors\nUserWarning: this error is none\nthe end\n 10%|# | 1/10 [00:01<00:09, 1it/s]\n", "the end", NULL},
	{TRACE "ValueError: bad\nE0102 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: 1) local_rank: 0 (pid: 5) of binary: /usr/bin/python3\n"
	 TRACE "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n", "ValueError: bad", NULL},
	{"evaluating ... " TRACE "    raise MyError(\"CUDA error: none\")\nMyError: none\n", "MyError: none", NULL},
	{"[rank3]: " "Traceback (most recent call last):\n[rank3]:   File \"x.py\", line 1, in f\n[rank3]: odd.Thing: 7\n", "odd.Thing: 7", NULL},
	/* TensorFlow and JAX: what their start prints, by absl's prefix before it is initialized, and their own of old */
	{ABSL_START, "", NULL},
	{TF_START, "", NULL},
	{TF_START TRACE "ValueError: bad shape\n", "ValueError: bad shape", NULL},
	{ABSL_START "2026-11-27 10:00:02.234567: I tensorflow/core/framework/local_rendezvous.cc:405] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence\n"
	 "I0000 00:00:1744015772.625537    2463 local_rendezvous.cc:407] Local rendezvous is aborting with status: OUT_OF_RANGE: End of sequence\n", "", NULL},
	{"F0000 00:00:1744015772.625537    2463 x.cc:12] Check failed: n > 0 (0 vs. 0)\n*** Check failure stack trace: ***\n",
	 "F0000 00:00:1744015772.625537    2463 x.cc:12] Check failed: n > 0 (0 vs. 0)", NULL},
	{"2026-11-27 10:00:00.123456: F tensorflow/core/x.cc:33] Non-OK-status: s.ok()\n",
	 "2026-11-27 10:00:00.123456: F tensorflow/core/x.cc:33] Non-OK-status: s.ok()", NULL},
	{"2026-11-27 10:00:00.123456: E external/xla/xla/stream_executor/cuda/cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected\n"
	 TRACE "RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices. (set JAX_PLATFORMS='' to automatically choose an available backend)\n",
	 "2026-11-27 10:00:00.123456: E external/xla/xla/stream_executor/cuda/cuda_platform.cc:51] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_NO_DEVICE: no CUDA-capable device is detected", "has no GPU"},
	{"E external/xla/xla/stream_executor/cuda/cuda_driver.cc:152] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized\n"
	 TRACE "RuntimeError: Unable to initialize backend 'cuda': FAILED_PRECONDITION: No visible GPU devices.\n",
	 "E external/xla/xla/stream_executor/cuda/cuda_driver.cc:152] failed call to cuInit: INTERNAL: CUDA error: Failed call to cuInit: CUDA_ERROR_SYSTEM_NOT_READY: system not yet initialized", "lets nobody in"},
	{TRACE "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 0\n",
	 "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Failed to allocate request for 2.00GiB (2147483648B) on device ordinal 0", "the GPU's memory"},
	{"W0000 00:00:1795819959.651914   22182 op_kernel.cc:1858] OP_REQUIRES failed at constant_op.cc:176 : RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[1] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by \n",
	 "W0000 00:00:1795819959.651914   22182 op_kernel.cc:1858] OP_REQUIRES failed at constant_op.cc:176 : RESOURCE_EXHAUSTED: OOM when allocating tensor with shape[1] and type float on /job:localhost/replica:0/task:0/device:CPU:0 by", "the host's memory"},
	{TRACE "ValueError: The device should not be gpu:0, since PaddlePaddle is not compiled with CUDA\n",
	 "ValueError: The device should not be gpu:0, since PaddlePaddle is not compiled with CUDA", "has no GPU"},
	/* Paddle, whose GPU is full; burn's wgpu; Julia 1.11; who is told by others on NPUs */
	{TRACE "MemoryError: \n\n--------------------------------------\nC++ Traceback (most recent call last):\n--------------------------------------\n0   paddle::pybind::ThrowExceptionToPython(std::__exception_ptr::exception_ptr)\n\n"
	 "----------------------\nError Message Summary:\n----------------------\nResourceExhaustedError: \n\nOut of memory error on GPU 0. Cannot allocate 1.5GB memory on GPU 0, 39.2GB memory has been allocated and available memory is only 200MB.\n",
	 "Out of memory error on GPU 0. Cannot allocate 1.5GB memory on GPU 0, 39.2GB memory has been allocated and available memory is only 200MB.", "the GPU's memory"},
	{TRACE "MemoryError\n", "MemoryError", "the host's memory"},
	{"thread 'main' panicked at wgpu_core.rs:3009:5:\nwgpu error: Out of Memory\n", "thread 'main' panicked at wgpu_core.rs:3009:5:; wgpu error: Out of Memory", "the GPU's memory"},
	{"[12345] signal 11 (1): Segmentation fault\nin expression starting at /w/train.jl:10\n", "[12345] signal 11 (1): Segmentation fault", NULL},
	{TRACE "RuntimeError: The wait execution of the Notify register times out. Reason: The Notify register has not received the Notify record from remote rank [0].\n" TRACE "ValueError: bad\n", "ValueError: bad", NULL},
	{TRACE "RuntimeError: Getting socket times out. Reason: Remote Rank did not send the data in time. Please check the reason for the rank being stuck\n",
	 "RuntimeError: Getting socket times out. Reason: Remote Rank did not send the data in time. Please check the reason for the rank being stuck", "a rank did not come"},
	/* a hub, or a store, that others keep */
	{TRACE "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/x\n",
	 "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/x", "HF_HUB_OFFLINE=1"},
	{TRACE "requests.exceptions.HTTPError: 503 Server Error: Service Temporarily Unavailable for url: https://h/x\n",
	 "requests.exceptions.HTTPError: 503 Server Error: Service Temporarily Unavailable for url: https://h/x", "HF_HUB_OFFLINE=1"},
	{TRACE "botocore.exceptions.NoCredentialsError: Unable to locate credentials\n", "botocore.exceptions.NoCredentialsError: Unable to locate credentials", "run.env_file"},
	/* Keras says below the empty line what it was */
	{TRACE "ValueError: Exception encountered when calling Sequential.call().\n\nInput 0 of layer 'dense' is incompatible with the layer\n\nArguments received by Sequential.call():\n  * training=False\n",
	 "ValueError: Exception encountered when calling Sequential.call().; Input 0 of layer 'dense' is incompatible with the layer", NULL},
};
/* clang-format on */

/* whatever checkpoint it is given */
static void test_outside(void **state)
{
	static const struct {
		const char *text;
		bool is_outside;
	} lines[] = {
		{ TRACE "OSError: [Errno 98] Address already in use\n", true },
		{ TRACE "torch.distributed.DistNetworkError: EADDRINUSE\n" TORCHRUN, true },
		{ TRACE "ModuleNotFoundError: No module named 'torch'\n", true },
		{ "CondaError: Run 'conda init' before 'conda activate'\n" TRACE
		  "ModuleNotFoundError: No module named 'torch'\n",
		  true },
		{ TRACE "OSError: [Errno 98] Address already in use\n" TRACE "KeyError: 'w'\n",
		  false },
		/* what was made of it */
		{ TRACE
		  "ModuleNotFoundError: No module named 'apex'\n\n"
		  "The above exception was the direct cause of the following exception:\n\n" TRACE
		  "RuntimeError: no transformers\n",
		  true },
		{ TRACE
		  "ModuleNotFoundError: No module named 'apex'\n\n"
		  "The above exception was the direct cause of the following exception:\n\n" TRACE
		  "RuntimeError: no transformers\n" TRACE "KeyError: 'w'\n",
		  false },
		{ TRACE "OSError: We couldn't connect to 'https://huggingface.co' to load it\n",
		  true },
		/* options that their parsers refuse: jsonargparse, tyro, Fire, absl, click, typer,
		 * argparse, transformers, OmegaConf */
		{ "error: Parser key \"lr\":\n  Expected a <class 'float'>. Got value: abc\n",
		  true },
		{ "╭─ Unrecognized options ─╮\n│ Unrecognized options: --lrr │\n╰──╯\n", true },
		{ "╭─ Value error ─╮\n│ Error parsing --lr: not a float │\n╰──╯\n", true },
		{ "ERROR: Could not consume arg: --lrr\nUsage: run.py -\n", true },
		{ "FATAL Flags parsing error: Unknown command line flag 'lrr'\n", true },
		{ "Error: No such option '--lrr'. Did you mean '--lr'?\n", true },
		{ "╭─ Error ─╮\n│ No such option: --lrr │\n╰──╯\n", true },
		{ "Error: Invalid value for '--lr': 'abc' is not a valid float.\n", true },
		{ "run.py: error: argument --lr: invalid float value: 'abc'\n", true },
		{ TRACE "ValueError: Some specified arguments are not used by the "
			"HfArgumentParser: ['--lrr']\n",
		  true },
		{ TRACE "omegaconf.errors.ConfigKeyError: Key 'lrr' is not in struct\n", true },
		{ TRACE "omegaconf.errors.MissingMandatoryValue: Missing mandatory value: x\n",
		  true },
		/* what others keep: too many ask for it, or it is down, or it knows nobody here */
		{ TRACE "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many "
			"Requests for url: https://huggingface.co/x\n",
		  true },
		{ TRACE "urllib.error.HTTPError: HTTP Error 503: Service Unavailable\n", true },
		{ TRACE "botocore.exceptions.NoCredentialsError: Unable to locate credentials\n",
		  true },
		{ TRACE "google.auth.exceptions.DefaultCredentialsError: Your default credentials "
			"were not found.\n",
		  true },
		/* Unsloth, Julia */
		{ TRACE "NotImplementedError: Unsloth cannot find any torch accelerator? You need "
			"a GPU.\n",
		  true },
		{ "ERROR: LoadError: ArgumentError: Package Lux not found in current path.\n",
		  true },
		{ TRACE "RuntimeError: CUDA error: out of memory\n", false },
		{ TRACE "EOFError: Ran out of input\n", false },
		{ TRACE "OSError: [Errno 5] Input/output error\n", false },
	};

	(void)state;
	complaints_init(&c);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		complaints_reset(&c);
		hear(lines[i].text, "", -1);
		assert_int_equal(complaints_best(&c, now_ms)->is_outside, lines[i].is_outside);
	}
	/* what other ranks say then, or what follows from it, does not mean that it was survived */
	complaints_reset(&c);
	hear(TRACE "OSError: [Errno 98] Address already in use\n", "", 0);
	hear(TRACE "RuntimeError: the store is gone\n", "", 1);
	hear(TRACE "RuntimeError: Connection closed by peer\n", "", 0);
	assert_true(complaints_best(&c, now_ms)->is_outside);
	hear(TRACE "KeyError: 'w'\n", "", 0);
	assert_false(complaints_best(&c, now_ms)->is_outside);
	/* of unknown ranks it may be the same one */
	complaints_reset(&c);
	hear("[W1127 16:23:59.8 socket.cpp:464] [c10d] The server socket has failed to bind to "
	     "[::]:29500 (errno: 98 - Address already in use).\n",
	     "", -1);
	hear(TRACE "KeyError: 'w'\n", "", 0);
	assert_false(complaints_best(&c, now_ms)->is_outside);
	complaints_fini(&c);
}

static void test_deaths(void **state)
{
	(void)state;
	complaints_init(&c);
	for (size_t i = 0; i < sizeof(deaths) / sizeof(deaths[0]); i++) {
		const struct complaint *b;

		complaints_reset(&c);
		hear(deaths[i].text, "", -1);
		b = complaints_best(&c, now_ms);
		if (strcmp(best(), deaths[i].want) != 0)
			print_error("%s\n", deaths[i].text);
		assert_string_equal(best(), deaths[i].want);
		if (!deaths[i].advice)
			assert_null(b ? b->advice : NULL);
		else
			assert_non_null(b->advice ? strstr(b->advice, deaths[i].advice) : NULL);
	}
	complaints_fini(&c);
}

/* Bytes of all kinds. */
static void test_hostile(void **state)
{
	uint32_t random = 1;
	char line[4096];

	(void)state;
	complaints_init(&c);
	for (int i = 0; i < 500; i++) {
		struct heard heard = { line, sizeof(line) - 1, "", -1, true, i };

		for (size_t k = 0; k < sizeof(line) - 1; k++) {
			random = random * 1664525 + 1013904223;
			line[k] = i % 2 ? "error: [rank]No such 0%.' \x01"[(random >> 24) % 27]
					: (char)((random >> 24) | 1);
		}
		line[sizeof(line) - 1] = '\0';
		complaints_hear(&c, &heard);
		if (complaints_best(&c, i))
			assert_true(strlen(complaints_best(&c, i)->text) < COMPLAINT_BYTES);
	}
	complaints_fini(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_deaths),
		cmocka_unit_test(test_outside),
		cmocka_unit_test(test_hostile),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
