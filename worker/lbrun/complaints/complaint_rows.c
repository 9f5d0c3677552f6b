/* SPDX-License-Identifier: MIT */
/* complaint_rows.c - the tables of complaint_rows.h. */
#include "worker/lbrun/complaints/complaint_rows.h"

#define PLAIN COMPLAINT_PLAIN
#define FRAMED COMPLAINT_FRAMED
#define OUTSIDE COMPLAINT_OUTSIDE
#define KNOWN WEIGHT_KNOWN, PLAIN
#define KNOWN_OUTSIDE WEIGHT_KNOWN, OUTSIDE
#define EVERYDAY WEIGHT_EVERYDAY, PLAIN
#define EVERYDAY_OUTSIDE WEIGHT_EVERYDAY, OUTSIDE
#define FOLLOWS WEIGHT_FOLLOWS, PLAIN, NULL
#define NCCL_ADVICE \
	"NCCL_DEBUG=INFO tells more; slurm.network sets what the fabric needs, lbctl doctor looks at versions"

/* of TensorFlow, before it took absl's */
#define TF_PREFIX "(?:\\d{4}-\\d\\d-\\d\\d )?\\d\\d:\\d\\d:\\d\\d\\.\\d+: "
/* slurmstepd; without its name since Slurm 26.05 */
#define STEPD_PREFIX "^(?:slurmstepd(?:-\\S+)?: |\\[\\d{4}-\\d\\d-\\d\\dT[\\d:.]+\\] )error: "
#define NO_GPU "the job has no GPU, or this build is for CPUs: set slurm.gpus_per_node"
#define NOT_SET_UP \
	"it is not in the job's environment (PATH, PYTHONPATH): activate that before lbctl submit, or put it into the command"
/* in the words of shells */
#define SHELL_LINE "^\\S+: (?:line )?\\d+: "
#define LAUNCHER_MISSING \
	SHELL_LINE "(?<missing>torchrun|accelerate|deepspeed|composer|horovodrun|" \
		   "colossalai|srun|mpirun|mpiexec|python[\\d.]*): (?:command )?not found$"

const char complaint_not_met[] =
	"the ranks did not find each other: look at MASTER_ADDR, the number of nodes, and firewalls";

/* clang-format off */
const struct complaint_row complaint_rows[] = {
	/* launchers and ranks that only follow */
	{"SignalException|SIGTERM death signal|\\*\\*\\* SIGTERM|`Termination signal` is detected|Received \\d+ death signal|Rendezvous(?:Closed|GracefulExit)Error", FOLLOWS},
	{"[Cc]onnection (?:reset|closed) by (?:remote )?peer|communicator was aborted|recvValue failed|"
	 "remote process exited|Broken ?[Pp]ipe|ncclRemoteError|Socket Timeout|An error occurred in Socket closed", FOLLOWS},
	/* JAX */
	{"tasks are unhealthy|that another task died", WEIGHT_FOLLOWS, PLAIN,
	 "a task ended, or never reached the coordinator: look at what each did last"},
	/* TensorFlow, each time that it begins on a node without GPUs; JAX, before it fails */
	{"failed call to cuInit: (?!.*SYSTEM_NOT_READY)", WEIGHT_HINT, OUTSIDE, NO_GPU},
	/* UCX, below MPI */
	{"process_vm_\\w+\\(.*No such process|Endpoint timeout|"
	 "Transport retry count exceeded", FOLLOWS},
	{"[Ww]atchdog caught collective operation timeout|ProcessGroupNCCL's watchdog got stuck|"
	 "signal due to a collective timeout|: Barrier timed out(?!.*PjRT_Client_Connect)|Notify register times out|Getting socket times out|Timed out waiting \\d+ms for (?:recv|send) operation|failed to pass monitoredBarrier|DistStoreError: wait timeout", WEIGHT_FOLLOWS, PLAIN,
	 "a rank did not come to the same collective as the others: look at what each did last"},
	{"NET/IB ?: Got completion from peer .*(?:error |status=)12\\b|[Uu]nresponsive (?:remote|receiver)", WEIGHT_FOLLOWS, PLAIN,
	 "the other side did not answer: its rank has ended, or a link between both is bad (ibstat)"},
	{"ranks? \\d[\\w, .-]* (?:did not answer for|" COMPLAINT_NOT_BEGUN ") \\d+ s", WEIGHT_FOLLOWS, PLAIN,
	 "that rank stands still, or its node does: what it printed last says where"},

	{"^" COMPLAINT_NOT_LAUNCHED "\\S+ failed on node \\S+ (?:Communication|Unable to contact|Socket timed out|Connection|"
	 "No route)", KNOWN, "Slurm reaches that node no more: sinfo -R says why"},
	{"^" COMPLAINT_NOT_LAUNCHED "\\S+ failed on node", KNOWN,
	 "that node began no task of the job: its slurmd.log says more than srun"},

	/* memory */
	{"\\b(?:CUDA|HIP|XPU|NPU|HPU|MLU|MUSA|MPS backend) out of memory|CUBLAS_STATUS_ALLOC_FAILED|cudaErrorMemoryAllocation|"
	 "RESOURCE_EXHAUSTED: Out of memory|Cuda failure.*out of memory|OOM when allocating tensor(?!.*device:CPU:)|"
	 "Failed to allocate request for .* on device ordinal|"
	 "Out of memory error on \\w+ \\d|[Rr]an out of memory in memory space|at the bottom of memory\\. That was not|"
	 "Error.*CUDA_ERROR_OUT_OF_MEMORY|cuMemAlloc failed: out of memory|Out of GPU memory trying to allocate|"
	 "cupy\\S*OutOfMemoryError: |(?i:cuda|hip|driver) ?(?i:error)\\b.*\\bout of memory|"
	 "ResourceExhaustedError.*Out of memory while|memory isn't enough and alloc failed|"
	 "wgpu error: Out of [Mm]emory|UR_RESULT_ERROR_OUT_OF_\\w+|MODULE:PT_DEVMEM Allocation failed|^lbworker: .*\\bcuda: .*out of memory", KNOWN,
	 "the GPU's memory is full: a smaller micro-batch, activation checkpointing, or more GPUs"},
	{"/dev/shm.*No space left|No space left.*(?:/dev/shm|shm_)|"
	 "(?:unable to|cannot|failed to) (?:open|mmap|write to|allocate|resize).{0,20} shared memory|"
	 "[Ee]rror while creating shared memory segment|"
	 "(?:out of|insufficient) shared memory", KNOWN_OUTSIDE,
	 "/dev/shm is full: fewer DataLoader workers, or a larger --shm-size of the container"},
	{"(?i)oom[_-]kill|OOM Killed|Out of memory: Killed|exceeded (?:\\w+ )?memory limit", KNOWN,
	 "the job's memory is used up: ask for more (slurm.mem), or hold less at once"},
	{"DataLoader worker .* killed by signal: Killed|node running low on memory|"
	 "Cannot allocate memory|std::bad_alloc|^(?:\\w+\\.)*_?(?:Array)?MemoryError\\b(?!:\\s*$)|" /* Paddle's: what it means stands below */
	 "DefaultCPUAllocator: (?:can't allocate|not enough) memory|^memory allocation of \\d+ bytes failed|OutOfMemoryError\\(\\)|OOM when allocating tensor", KNOWN,
	 "the host's memory is used up: ask for more (slurm.mem), or hold less at once"},

	/* disks and files */
	{"[Dd]isk quota exceeded|\\[Errno 122\\]", KNOWN_OUTSIDE,
	 "your quota is used up: remove something, or keep fewer checkpoints"},
	{"No space left on device|\\[Errno 28\\]|ENOSPC|file write failed", KNOWN_OUTSIDE,
	 "a disk is full: df -h shows which; make room, or keep fewer checkpoints"},
	{"Stale (?:NFS )?file handle|Cannot send after transport endpoint shutdown|Input/output error", KNOWN,
	 "that file system failed on the node: its dmesg says more, slurm.exclude keeps the run away from it"},
	{"Read-only file system", KNOWN,
	 "nobody may write there, as in a container's own folders: write below run.workdir, or mount a folder"},
	{"Too many open files|\\[Errno 24\\]", KNOWN,
	 "too many files are open: raise ulimit -n, or use fewer DataLoader workers"},
	{"GLIBC(?:XX)?_[\\d.]+'? not found", KNOWN_OUTSIDE, "it was built for a newer system than the node's"},
	/* environment modules, Lmod, Spack, conda, mamba, a virtualenv: a script mostly goes on without */
	{"Unable to locate a modulefile for |The following module\\(s\\) |matches no installed packages|"
	 "^Environment(?:Name|Location)NotFound: |Run 'conda init' before |configured to use 'conda activate'|"
	 "critical libmamba .*prefix does not exist|/activate: No such file or directory|"
	 SHELL_LINE "(?:module|ml|spack|conda|mamba|micromamba): (?:command )?not found$", WEIGHT_HINT, OUTSIDE, NOT_SET_UP},
	{"ModuleNotFoundError: |ImportError: |python[\\d.]*: No module named |error while loading shared libraries|"
	 "cannot open shared object file(?!.*\\(ignored\\))|there is no package called ", EVERYDAY_OUTSIDE, NOT_SET_UP},
	{"ArgumentError: Package \\S+ (?:not found in current path|.*does not seem to be installed)", KNOWN_OUTSIDE, NOT_SET_UP},
	{"not enough slots available in the system", KNOWN,
	 "more ranks than the job's tasks: slurm.ntasks_per_node, or mpirun --oversubscribe"},
	{"OMPI was not built with SLURM's PMI support", KNOWN,
	 "srun and this MPI do not know each other: slurm.mpi, one of those of srun --mpi=list, or mpirun instead of srun"},
	{LAUNCHER_MISSING, KNOWN_OUTSIDE, NOT_SET_UP},
	{"command not found$|^[^ ]+: (?:line )?\\d+: .*not found$|exec.*: No such file or directory|"
	 "execvp error on file|was unable to (?:launch|find|start) the specified", EVERYDAY_OUTSIDE, NOT_SET_UP},
	{"Error\\(s\\) in loading state_dict|size mismatch for ", KNOWN,
	 "the checkpoint is one of another model: lbctl restart --from another step or scratch"},
	{"FileNotFoundError|No such file or directory|Failed to open file '", EVERYDAY,
	 "not there on the node; paths without / begin at run.workdir"},
	{"PermissionError|(?<!W&B API: )[Pp]ermission denied", EVERYDAY,
	 "this user may not do that there: namei -l PATH shows which folder or file is closed"},

	/* the GPU */
	{"CUDA driver version is insufficient|driver on your system is too old|"
	 "forward compatibility was attempted|unsupported display driver", KNOWN_OUTSIDE,
	 "the node's driver is too old for this CUDA: load another module, or a build for an older CUDA"},
	{"liblbcuda\\.so has no code for", KNOWN, NULL},
	{"no kernel image is available|is not compatible with the current PyTorch|"
	 "named symbol not found|unsupported GPU architecture", KNOWN_OUTSIDE,
	 "this build does not know the GPU: H100 and H200 need CUDA 11.8 and NCCL 2.16 or newer"},
	{"No CUDA GPUs are available|no CUDA-capable device|Found no NVIDIA driver|No visible GPU devices|"
	 "not compiled with CUDA\\b|cannot find any torch accelerator", KNOWN_OUTSIDE, NO_GPU},
	{"^XID \\d+ of GPU -?\\d+, hardware", KNOWN,
	 "the GPU is broken: slurm.exclude keeps the run away from the node; have it looked at"},
	{"^XID \\d+ of GPU -?\\d+, application", KNOWN,
	 "a kernel failed; with CUDA_LAUNCH_BLOCKING=1 in the environment the traceback shows which"},
	{"uncorrectable (?:ECC|NVLink)|hardware stack error|fallen off the bus|GPU is lost|"
	 "\\bXid\\b(?: ?\\([^)]*\\))?(?: error)?[:= ]+(?:38|44|46|48|54|61|62|64|74|79|95|110|119|120|140|143|144|145|149)\\b",
	 KNOWN, "the GPU is broken: slurm.exclude keeps the run away from the node; have it looked at"},
	{"invalid device ordinal", KNOWN_OUTSIDE,
	 "the job has no such GPU: one rank for each (slurm.ntasks_per_node, slurm.gpus_per_node), as cuda:LOCAL_RANK"},
	{"busy or unavailable|system not yet initialized", KNOWN_OUTSIDE,
	 "that GPU lets nobody in: nvidia-smi on the node says whether another process has it; slurm.exclude keeps away from it"},
	{"LB_CUDA_WAIT=1 tells which", KNOWN, NULL},
	{"HIP error: |Memory access fault by GPU|HSA_STATUS_ERROR_(?:MEMORY|EXCEPTION|ILLEGAL)", KNOWN,
	 "a kernel failed; with AMD_SERIALIZE_KERNEL=3 in the environment the traceback shows which"},
	{"illegal memory access|misaligned address|device-side assert|unspecified launch failure|"
	 "CU(?:BLAS|DNN)_STATUS_EXECUTION_FAILED|CUDA error: |Cuda failure", KNOWN,
	 "a kernel failed; with CUDA_LAUNCH_BLOCKING=1 in the environment the traceback shows which"},

	/* the network */
	{"[Aa]ddress already in use|EADDRINUSE|\\[Errno 98\\]", KNOWN_OUTSIDE,
	 "somebody has that port: do not set MASTER_PORT (lbrun finds a free one), or set another"},
	{"RendezvousConnectionError|RendezvousTimeoutError|client socket has (?:failed|timed out)|waiting for clients|connectFullMesh failed|PjRT_Client_Connect|"
	 "TCPStore.*time[d ]*out|Timed out waiting for (?:head|other) nodes? ", EVERYDAY_OUTSIDE, complaint_not_met},
	{"NCCL WARN", WEIGHT_HINT, PLAIN, NCCL_ADVICE},
	{"Duplicate GPU detected", KNOWN_OUTSIDE,
	 "two ranks took one GPU: each needs its own, as cuda:LOCAL_RANK, and no more ranks on a node than GPUs"},
	{"ncclSystemError|ncclInternalError|ncclUnhandledCudaError|ncclInvalidUsage|NCCL error", WEIGHT_EXCEPTION, PLAIN,
	 NCCL_ADVICE},
	{"W&B API: permission denied|wandb\\.errors\\.[\\w.]+: (?:api_key not|No API key) configured", KNOWN_OUTSIDE,
	 "no access to it: a key belongs into run.env_file, as WANDB_API_KEY=..."},
	{"wandb\\.errors\\.(?:\\w+\\.)*CommError: ", EVERYDAY_OUTSIDE,
	 "its server did not answer: WANDB_MODE=offline writes to the disk, wandb sync sends that later"},
	{"GatedRepoError|trying to access a gated repo|40[13] Client Error|RepositoryNotFoundError", EVERYDAY_OUTSIDE,
	 "no access to it: a token belongs into run.env_file, as HF_TOKEN=..."},
	{"NoCredentialsError: |DefaultCredentialsError: ", KNOWN_OUTSIDE,
	 "no access to it: its keys belong into run.env_file, as AWS_ACCESS_KEY_ID=... or GOOGLE_APPLICATION_CREDENTIALS=..."},
	{"429 Client Error|50[0234] Server Error|HTTP Error (?:429|50[0234])\\b", EVERYDAY_OUTSIDE,
	 "its server lets nobody in for now: download before, and set HF_HUB_OFFLINE=1; with a token (HF_TOKEN) more may be asked for"},
	{"Name or service not known|Temporary failure in name resolution|Max retries exceeded|"
	 "Network is unreachable|LocalEntryNotFoundError|couldn't connect to 'https?://", EVERYDAY_OUTSIDE,
	 "compute nodes often have no internet: download before, and set HF_HUB_OFFLINE=1"},

	{"rank \\d+ \\([^)]*\\) has (?:another|other) .* than rank 0 \\(", KNOWN, NULL},

	/* crashes, and the words of languages */
	{"^srun: |^(?:mpirun|mpiexec|prterun)\\b|^\\[(?:mpiexec|proxy:)", FOLLOWS},
	{"^Signal: Abort", WEIGHT_FOLLOWS, FRAMED, NULL},
	{"^Fatal Python error: Aborted", WEIGHT_ERROR, FRAMED, NULL},
	{"^Signal: |Fatal Python error: |^Segmentation fault|Caught signal \\d+ \\(|^(?:\\[\\d+\\] )?signal (?:\\(\\d|\\d+ \\()|\\*\\*\\* SIG|AddressSanitizer: ",
	 WEIGHT_KNOWN, FRAMED, NULL},
	{"^terminate called after throwing", WEIGHT_EXCEPTION, FRAMED, NULL},
	/* glog, absl and XLA, before they abort; before absl is initialized the time is one of Unix */
	{"^F\\d{4} \\d\\d:\\d\\d:\\d+\\.|^" TF_PREFIX "F ", WEIGHT_EXCEPTION, PLAIN, NULL},
	/* glibc, as it aborts */
	{"^(?:\\w+\\(\\): )?(?:double free|invalid (?:next )?(?:pointer|size)|corrupted|mismatching|memory corruption|unaligned)\\b.{0,60}$|"
	 "\\*\\*\\* (?:stack smashing|buffer overflow) detected", WEIGHT_EXCEPTION, FRAMED, NULL},
	/* Ray; no rank's end, as the last of the log is printed once more behind it */
	{"Job entrypoint command failed with exit code", WEIGHT_HINT, PLAIN, NULL},
	/* argparse, jsonargparse, tyro, Fire, absl, click and typer, transformers, OmegaConf */
	{"unrecognized arguments: |following arguments are required|invalid choice: |: error: argument \\S+: |"
	 "^error: Parser key \"|^Unrecognized options: |^Error parsing --|^ERROR: Could not consume arg: |^FATAL Flags parsing error: |"
	 "^(?:Error: )?(?:No such option\\b|Invalid value for '|Missing (?:option|argument) ')|"
	 "Some specified arguments are not used by|omegaconf\\.errors\\.(?:ConfigKeyError|ConfigAttributeError|MissingMandatoryValue): ",
	 KNOWN_OUTSIDE, NULL},
	{"See root cause above|inspect the previous error messages", FOLLOWS},
	{"^(?:In '.*': )?Could not (?:find|override|append|delete|load) '|(?:ORTE|PRTE) (?:was unable|has lost)|^srun returned non-zero exit status|attempt to run as root|"
	 "Assertion .* failed|^thread '.*'(?: \\(\\d+\\))? panicked|^panic: ", WEIGHT_EXCEPTION, PLAIN, NULL},
	{"^(?:[A-Za-z_]\\w*\\.)*[A-Z]\\w*(?:Error|Exception|Interrupt|Exit|Failure)(?::|$)",
	 WEIGHT_EXCEPTION, PLAIN, NULL},
	{"(?i)\\b(?:error|fatal|exception|failed|aborted|aborting|cannot)\\b", WEIGHT_ERROR, PLAIN, NULL},
};
/* clang-format on */
const size_t complaint_row_count = sizeof(complaint_rows) / sizeof(complaint_rows[0]);
_Static_assert(sizeof(complaint_rows) / sizeof(complaint_rows[0]) <= COMPLAINT_ROWS_MAX,
	       "each has its place in struct complaints");

const char complaint_sign[] =
	"(?i)error|exception|fault|fatal|^f\\d{4} |\\d: f |exited on$|did not (?:answer|begin)|has (?:an)?other|abort|assert|kill|denied|no space|quota|nccl|cuda|out of memory|"
	"memory|cannot|not ?found|no such|caught|exit ?(?:code|string)|return code|exit status|died with|interrupt|"
	"panic|signal|terminat|local_rank|peer|pipe|insuffic|unable|too many|already in use|mismatch|arguments|invalid|"
	"process name|could not|corrupt|\\bfree\\b|smashing|overflow|as root|has lost|not enough|compatib|driver|failed|timeout|timed out|xid|ecc|\\bbus\\b|retries|unreach|resolution|not known|gated|\\boom\\b|is lost|unrecogni|missing|no module|stale|read-only|input/output|busy|no package|no rule to|initialized|completion|bottom of|unresponsive";

const char complaint_harmless[] =
	"(?i)warn(?:ing)?s?\\b|\\b(?:0|no|without) (?:\\w+ )?errors?\\b|errors?['\"]?\\s*[=:]\\s*0\\b|error[_-]?(?:rate|bar|handl|if)|"
	/* of glog and PyTorch: "W1127 16:23:59.8 1 run.py:982] ", "[W1127 16:23:59.8 socket.cpp:755] " */
	"^\\[?[WI]\\d{3,4} \\d\\d:\\d\\d:\\d+\\.|^\\[[WI] \\w+\\.cpp:\\d+\\]|^" TF_PREFIX "[WI] |"
	/* git, by which trainers say what code they are */
	"^fatal: (?:not a git repository|detected dubious ownership|unsafe repository|no names found|no tags|"
	"no upstream|needed a single revision|ambiguous argument|bad revision|your current branch)|"
	"\\bINFO\\b|\\bDEBUG\\b|on_error|ignor|retrying|recovered|fault[_-]?toler";

const char complaint_noise[] =
	/* srun and slurmstepd */
	STEPD_PREFIX
	"\\*\\*\\* (?:STEP|JOB) |"
	"^srun: (?:error: [^\\s:]+: tasks? \\d|Job step aborted|[Tt]erminating|Force Terminated|launch/slurm: )|"
	/* Open MPI, and libraries that it tries and does without */
	"^hwloc/\\S+: |"
	"\\(ignored\\)\\s*$|^Primary job +terminated|^a non-zero exit code\\.? |Per user-direction|"
	"^(?:mpirun|mpiexec|prterun)\\S* (?:detected that|noticed that|has exited due to)|^(?:thus causing )?the job to be terminated\\. |"
	"^signal \\d+ \\([^)]*\\)\\.$|^\"abort\"\\. This may have|^terminated by signals sent by |^\\s*Process name: |^\\s*Exit code: |"
	"MPI_ABORT was invoked|^with errorcode -?\\d|^NOTE: invoking MPI_ABORT|^You may or may not see output|"
	"^exactly when Open MPI kills|ORTE_ERROR_LOG|^PMIX ERROR|help message|Set MCA parameter|"
	"^\\*\\*\\* (?:Process received signal|End of error message) \\*\\*\\*|^Signal code: |^Failing at address|"
	/* MPICH, Intel MPI */
	"^\\[(?:mpiexec|proxy:)[^\\]]*\\] \\w+ \\([^)]*\\): (?:assert \\(!closed\\)|callback returned|demux engine|one of the processes|"
	"launcher returned|process manager|error waiting|unable to (?:write|send)|write error)|"
	"^=   |^YOUR APPLICATION TERMINATED|^This typically refers to|^Please see the FAQ|"
	"application called MPI_Abort|^===* backtrace \\(|"
	/* TensorFlow, whenever it starts */
	"Unable to register \\w+ factory: |^To enable the following instructions: |"
	/* RCCL, whenever it starts on such a node */
	"NCCL WARN (?:Missing \"iommu=pt\"|NUMA auto balancing)|"
	/* PyTorch's watchdog, beside what it found */
	"^terminate called after throwing an instance of 'c10::DistBackendError'|"
	"ProcessGroupNCCL\\.cpp:\\d+\\] .*(?:failure detected by watchdog|Stack trace of the failed collective|"
	"Some NCCL operations have failed|taking the entire process down|\\bdump\\b.* flag|preparing to dump)|"
	"^Exception raised from |^\\s*Original exception:|"
	/* torchrun, accelerate, deepspeed */
	"^Setting OMP_NUM_THREADS environment|^The following values were not passed to `accelerate|^To avoid this warning pass in|"
	"torch/distributed/run\\.py:\\d+\\] |ChildFailedError|Sending process \\d+ closing signal|failed \\(exitcode: |Root Cause \\(first|^Failures:$|"
	"<NO_OTHER_FAILURES>|^ +(?:time|host|rank|exitcode|error_file|traceback|msg) *: |^\\[\\d+\\]:\\s*$|^\\S+ FAILED\\s*$|"
	"CalledProcessError: Command '\\['[^']*python[\\d.]*', .* (?:returned non-zero|died with)|"
	"exits with return code|Killing subprocess \\d|"
	/* torch.multiprocessing.spawn, Lightning, Composer */
	"ProcessExitedException: process \\d|Child process with PID \\d+ terminated with code|"
	"Rank \\d+ crashed with exit code|^(?:\\S+:)?Global rank \\d+ \\(PID \\d+\\) exited with code|"
	/* JAX, of any task that has died */
	"Polled an error from coordination service|"
	/* Hydra */
	"HYDRA_FULL_ERROR|"
	/* make, just, poe, task, DVC, snakemake, Sacred: what they ran, or that it has failed */
	"^make(?:\\[\\d+\\])?: (?:\\*\\*\\* )?\\[|^error: [Rr]ecipe `|^Poe => |^task: Failed to run task|^ERROR: failed to reproduce '|"
	"^Error in rule \\S+:$|^WorkflowError:$|^At least one job did not complete|^Exiting because a job execution failed|^Complete log\\(s\\): |"
	"^Shutting down, this might take some time|^ERROR - .* - Failed after [\\d:]+!$|"
	/* lines drawn */
	"^\\s*[-=*#_]{3,}\\s*$";

const char complaint_frame[] =
	"^\\s*(?:File \"[^\"]+\", line \\d+|#\\d+\\s+0x|what\\(\\):|at .+:\\d+|"
	"(?:\\[ *\\d+\\]|\\d+) +(?!\\S*/lib(?:c|pthread|uc\\w|mpi)\\b)\\S+\\(\\w+\\+0x)";

const char complaint_step[] =
	"(?i)^[\\W\\d]*(?:steps?|iter|iteration|epoch|loss)\\b[\\s'\":=#\\[(]*\\d";

const char *const rank_end_patterns[] = {
	/* torchrun; its summary */
	"failed \\(exitcode: (?<code>-?\\d+)\\) local_rank: (?<local>\\d+)",
	"^\\s*rank\\s*: (?<rank>\\d+) \\(local_rank: (?<named>\\d+)\\)",
	"^\\s*exitcode\\s*: (?<code>-?\\d+) \\(pid",
	/* srun; a rank that it ended itself is none that ended the others */
	"^srun: error: (?<node>[^\\s:]+): tasks? (?<rank>\\d+)[^:]*: Exited with exit code (?<code>\\d+)",
	("^srun: error: (?<node>[^\\s:]+): tasks? (?<rank>\\d+)[^:]*: "
	 "(?<word>Segmentation fault|Killed|Aborted|Bus error|Floating point exception|Illegal instruction)"),
	"^srun: error: (?<node>[^\\s:]+): tasks? (?<rank>\\d+)[^:]*: (?<oom>Out Of Memory)",
	(STEPD_PREFIX ".*(?<oom>exceeded (?:\\w+ )?memory limit .*being killed)"),
	/* Open MPI; 5 has the signal in the line below */
	"noticed that process rank (?<rank>\\d+) with PID \\d+ on node (?<node>\\S+) exited on(?: signal (?<signal>\\d+)|$)",
	"^signal (?<signal>\\d+) \\([^)]*\\)\\.$",
	"^\\s*Process name: \\[[^ ]*,(?<rank>\\d+)\\]",
	"^\\s*Exit code:\\s+(?<code>\\d+)\\s*$",
	"MPI_ABORT was invoked on rank (?<rank>\\d+)\\b",
	"^(?:with errorcode|\\s*Errorcode:) (?<code>\\d+)\\.?$",
	/* MPICH, Intel MPI */
	"MPI_Abort\\([^,]*, (?<code>\\d+)\\) - process (?<rank>\\d+)",
	"^=\\s+KILLED BY SIGNAL: (?<signal>\\d+)",
	"TERMINATED WITH THE EXIT STRING: .*\\(signal (?<signal>\\d+)\\)",
	"^=\\s+EXIT CODE: (?<code>\\d+)",
	/* torch.multiprocessing.spawn, Lightning, Composer */
	("ProcessExitedException: process (?<rank>\\d+) terminated with "
	 "(?:signal (?<word>SIG[A-Z]+)|exit code (?<code>\\d+))"),
	"\\[rank: (?<rank>\\d+)\\] Child process with PID \\d+ terminated with code (?<code>-?\\d+)\\.",
	"\\bRank (?<rank>\\d+) crashed with exit code (?<code>-?\\d+)\\.",
	/* bash; who kills helpers takes other signals */
	("^\\S+: line \\d+: +\\d+ "
	 "(?<word>Segmentation fault|Aborted|Bus error|Floating point exception|Illegal instruction)\\b"),
	/* make, just */
	("^make(?:\\[\\d+\\])?: \\*\\*\\* \\[[^\\]]*\\] "
	 "(?<word>Segmentation fault|Killed|Aborted|Bus error|Floating point exception|Illegal instruction)"),
	"^error: [Rr]ecipe `.*was terminated .*by signal (?<signal>\\d+)",
	/* in a pipeline, or before a last command, that is no status */
	(LAUNCHER_MISSING),
	/* DeepSpeed and accelerate */
	"exits with return code = (?<code>-?\\d+)",
	"CalledProcessError: Command '\\['[^']*python[\\d.]*', .*returned non-zero exit status (?<code>\\d+)\\.",
	"CalledProcessError: Command '\\['[^']*python[\\d.]*', .*died with <Signals\\.\\w+: (?<signal>\\d+)>",
};
const size_t rank_end_pattern_count = sizeof(rank_end_patterns) / sizeof(rank_end_patterns[0]);
_Static_assert(sizeof(rank_end_patterns) / sizeof(rank_end_patterns[0]) <= RANK_END_PATTERNS_MAX,
	       "each has its place in struct rank_ends");

const char complaint_lost_node[] =
	"^(?:ORTE|PRTE) has lost communication with a remote daemon|"
	"^srun returned non-zero exit status \\(-?\\d+\\) from launching$";
