#!/bin/sh
# SPDX-License-Identifier: MIT
# Every block of docs/cookbook, as it stands there, in its order. Stand-ins play what a test machine
# lacks: torchrun and nsys, an srun that knows containers (pyxis), torchtitan and LitGPT, the
# person's scripts, and GPUs that are files.
. "$(dirname "$0")/lib.sh"

export MC_GPUS=8 MC_CPUS=64
mkdir "$T/bin" "$T/work"
ln -s "$(command -v python3)" "$T/bin/python"
# One rank a node is enough to see a run go through.
cat >"$T/bin/torchrun" <<'END'
#!/bin/sh
while case $1 in --*) true ;; *) false ;; esac; do
	shift
done
RANK=${PET_NODE_RANK:-0} LOCAL_RANK=0 TORCHELASTIC_RUN_ID=none exec "$@"
END
cat >"$T/bin/nsys" <<'END'
#!/bin/sh
shift
while case $1 in --*) true ;; *) false ;; esac; do
	case $1 in --output=*) out=$(echo "${1#*=}" | sed "s/%q{LB_LAUNCH}/$LB_LAUNCH/; s/%q{LB_RANK}/$LB_RANK/") ;; esac
	shift
done
"$@"
status=$?
: >"$out.nsys-rep"
exit $status
END
real_srun=$(command -v srun) || { echo "Bail out! no srun"; exit 1; }
cat >"$T/bin/srun" <<END
#!/bin/sh
for word; do
	shift
	case \$word in --container-image=*#*) ;; --container-image=*.*/*) echo "no such image of Docker's hub" >&2; exit 1 ;; esac
	case \$word in --container-*) echo "\$word" >>"$T/containers" ;; *) set -- "\$@" "\$word" ;; esac
done
exec "$real_srun" "\$@"
END
# Twenty steps, saved at 10 and 20 as the library does it; rank 0 only; the first launch dies behind
# step 10 where DIES is there.
cat >"$T/standin.py" <<'END'
import os, signal, sys, time
def train(folder, files, prefix="step-"):
    if os.environ.get("RANK", os.environ.get("SLURM_PROCID", "0")) != "0":
        return
    saved = [int(n[len(prefix):]) for n in os.listdir(folder) if n.startswith(prefix)] if os.path.isdir(folder) else []
    start = max(saved, default=0)
    for step in range(start + 1, 21):
        print("step: %d  loss: %.4f" % (step, 4 - step / 10), flush=True)
        if step % 10 == 0:
            new = os.path.join(folder, ".new")
            os.makedirs(new)
            for name in files:
                open(os.path.join(new, name), "w").write(name)
            os.rename(new, os.path.join(folder, "%s%d" % (prefix, step)))
        if step == 12 and os.path.exists("DIES"):
            os.remove("DIES")
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(0.01)
END
mkdir -p "$T/py/torchtitan"
printf 'import standin, sys\nassert {"--module", "--config", "--checkpoint.enable"} <= set(sys.argv)\nstandin.train("outputs/titan-checkpoints", ["__0_0.distcp", ".metadata"])\n' >"$T/py/torchtitan/train.py"
: >"$T/py/torchtitan/__init__.py"
mv "$T/standin.py" "$T/py/"
# as Lightning compares them with what Slurm gave
cat >"$T/bin/litgpt" <<'END'
#!/bin/sh
case "$*" in *"--num_nodes $SLURM_NNODES --devices $SLURM_NTASKS_PER_NODE"*) ;; *) exit 1 ;; esac
[ "${SLURM_PROCID:-0}" != 0 ] ||
	exec python -c 'import sys, standin; standin.train(sys.argv[1], ["lit_model.pth", "model_config.yaml"])' "${4:-out}"
END
chmod +x "$T"/bin/*
PATH=$T/bin:$PATH PYTHONPATH=$T/py HOME=$T
export PATH PYTHONPATH HOME

cluster_start 2
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
cd "$T/work" || exit 1
for script in fsdp.py finetune.py; do
	printf 'import os, standin\nstandin.train(os.environ["LB_CHECKPOINT_DIR"], ["model.pt"])\n' >$script
done
printf '#!/bin/sh\nexec sleep 1000\n' >train.sh
mkdir cron.hourly cron.daily
printf '#!/bin/sh\n#SBATCH --time=5\necho cleaned\n' >cron.daily/clean.sh
chmod +x train.sh cron.daily/clean.sh
printf '[model]\nname = "llama"\nflavor = "debugmodel"\n[training]\nseq_len = 16\nsteps = 1\nthreads = 1\n' >tiny.toml
{
	lbworker prepare --out tiny.tokens tiny.toml
	lbworker train tiny.toml --training.dataset_path tiny.tokens --job.dump_folder tiny
	lbworker convert tiny/checkpoints/step-00000001 Llama-3-8B
} >"$T/tiny.log" 2>&1
[ -e Llama-3-8B ] || diag "$(cat "$T/tiny.log")"

# blocks PAGE: into files, block.N; how many
blocks() { awk -v out="$T/block." '/^```sh$/ { n++; on = 1; next } /^```$/ { on = 0 } on { print >(out n) } END { print n + 0 }' "$1"; }
for page in "$src"/docs/cookbook/*.md; do
	name=${page##*/}
	rm -f "$T"/block.*
	count=$(blocks "$page")
	[ "$name" != torchtitan.md ] || touch DIES
	for n in $(seq "$count"); do
		ok "$name, block $n of $count" timeout $((60 * patience)) sh -ec ". '$T/block.$n'" </dev/null
	done
	case $name in
	torchtitan.md)
		like "$(lbctl events titan)" 'launch 2, from step 10' "it died, and went on from its checkpoint"
		like "$(lbctl events titan)" 'launch 1, from step 10' "and again by its name"
		;;
	kill-switches.md)
		like "$(lbctl status exp-1)" '^exp-1  (killed|held)' "the switch ended the run"
		like "$(lbctl status exp-2)" '^exp-2  killed' "and that for all"
		;;
	fsdp-efa.md) like "$(cat "$T/containers")" 'container-image=nvcr.io#nvidia/pytorch' "the container reached srun" ;;
	hpe-slingshot.md) ok "the weights came back" cmp Llama-3-8B/model.safetensors as-hf/model.safetensors ;;
	litgpt-tcpx.md) like "$(lbctl checkpoints pythia)" 'litgpt' "LitGPT's checkpoints are known" ;;
	esac
done
done_testing
