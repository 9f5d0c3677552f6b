# SPDX-License-Identifier: MIT
"""Small trainings with the real libraries, each saving as its library does and as often as it can:

    trainers.py LAYOUT      in $LB_CHECKPOINT_DIR, from $LB_RESUME_FROM

Each prints "from STEP" once it has loaded what it was given (the step that the *content* tells), then
"step N" for each step; a checkpoint that cannot be loaded ends it with an error. warm.py starts them without
the seconds that importing the libraries takes."""

import os
import sys

FOLDER = SOURCE = None		# set by main()
STEPS = int(os.environ.get("STEPS", "1000000"))
WIDTH = int(os.environ.get("WIDTH", "600"))	# a save takes some tens of milliseconds


def began(step):
    print("from", step, flush=True)
    return step


def told(step):
    print(f"step {step}/{STEPS} loss {1 / (step + 1):.6f}", flush=True)


def torch_model():
    import torch
    torch.set_num_threads(1)
    model = torch.nn.Sequential(torch.nn.Linear(WIDTH, WIDTH), torch.nn.Linear(WIDTH, WIDTH))
    return torch, model, torch.optim.AdamW(model.parameters())


def train_torch():
    torch, model, optimizer = torch_model()
    step = 0
    if SOURCE:
        state = torch.load(SOURCE)
        model.load_state_dict(state["model"])
        step = state["step"]
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        torch.save({"model": model.state_dict(), "step": step}, f"{FOLDER}/ckpt_{step}.pt")


def train_safetensors():
    from safetensors.torch import load_file, save_file
    torch, model, _ = torch_model()
    step = 0
    if SOURCE:
        state = load_file(SOURCE)
        step = int(state.pop("step"))
        model.load_state_dict(state)
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        save_file(model.state_dict() | {"step": torch.tensor(step)}, f"{FOLDER}/model_{step}.safetensors")


def train_numpy():
    import numpy
    weights, step = numpy.random.rand(WIDTH, WIDTH), 0
    if SOURCE:
        with numpy.load(SOURCE) as state:
            weights, step = state["weights"], int(state["step"])
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        numpy.savez(f"{FOLDER}/ckpt_{step}.npz", weights=weights, more=weights + 1, step=step)


def train_legacy():
    """The format that torch.save had before 1.6, which is no archive: nothing in it tells its length."""
    torch, model, _ = torch_model()
    step = 0
    if SOURCE:
        state = torch.load(SOURCE)
        model.load_state_dict(state["model"])
        step = state["step"]
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        torch.save({"model": model.state_dict(), "step": step}, f"{FOLDER}/model-{step:04}.pth",
                   _use_new_zipfile_serialization=False)


def train_pickle():
    """Pickles in a folder of its own, beside copies of the best, which are made now and then."""
    import pickle
    import shutil
    import numpy
    weights, step = numpy.random.rand(WIDTH, WIDTH), 0
    if SOURCE:
        with open(SOURCE, "rb") as file:
            state = pickle.load(file)
        weights, step = state["weights"], state["step"]
    began(step)
    to = f"{FOLDER}/run1/ckpts"
    os.makedirs(to, exist_ok=True)
    while step < STEPS:
        step += 1
        told(step)
        with open(f"{to}/state_{step}.pkl", "wb") as file:
            pickle.dump({"weights": weights, "step": step}, file)
        if step % 3 == 0:
            shutil.copy(f"{to}/state_{step}.pkl", f"{to}/best_state_{step}.pkl")


def train_hdf5():
    import h5py
    import numpy
    weights, step = numpy.random.rand(WIDTH, WIDTH), 0
    if SOURCE:
        with h5py.File(SOURCE) as state:
            weights, step = state["weights"][:], int(state.attrs["step"])
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        with h5py.File(f"{FOLDER}/ckpt-{step:05}.weights.h5", "w") as state:
            for i in range(10):
                state[f"layer_{i}/bias"] = weights[:30]
            state["weights"] = weights
            state.attrs["step"] = step


def train_arrays():
    """Arrays behind each other, as Equinox writes its leaves."""
    import numpy
    weights, step = numpy.random.rand(WIDTH, WIDTH), 0
    if SOURCE:
        with open(SOURCE, "rb") as file:
            weights, _, step = numpy.load(file), numpy.load(file), int(numpy.load(file))
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        with open(f"{FOLDER}/model_{step}.eqx", "wb") as file:
            for array in (weights, weights + 1, numpy.array(step)):
                numpy.save(file, array)


def train_joblib():
    import joblib
    import numpy
    weights, step = numpy.random.rand(WIDTH, WIDTH), 0
    if SOURCE:
        state = joblib.load(SOURCE)
        weights, step = state["weights"], state["step"]
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        joblib.dump({"weights": weights, "more": weights + 1, "step": step}, f"{FOLDER}/model_{step}.joblib")


def train_orbax():
    import jax
    import numpy
    import orbax.checkpoint as ocp
    jax.config.update("jax_platforms", "cpu")
    weights, step = numpy.random.rand(WIDTH, WIDTH), 0
    manager = ocp.CheckpointManager(FOLDER, options=ocp.CheckpointManagerOptions(max_to_keep=5))
    if SOURCE:
        state = manager.restore(int(os.path.basename(SOURCE)), args=ocp.args.StandardRestore())
        weights, step = numpy.asarray(state["weights"]), int(state["step"])
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        manager.save(step, args=ocp.args.StandardSave({"weights": weights, "step": step}))
        manager.wait_until_finished()


def train_shards():
    """A file of each rank beside each other, without a folder of their own."""
    torch, model, _ = torch_model()
    step = 0
    if SOURCE:
        for rank in range(3):
            state = torch.load(SOURCE.replace("rank0", f"rank{rank}"))
            assert state["rank"] == rank
            step = state["step"]
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        for rank in (2, 0, 1):
            torch.save({"model": model.state_dict(), "step": step, "rank": rank},
                       f"{FOLDER}/step{step}_rank{rank}.pt")


def train_folder():
    torch, model, optimizer = torch_model()
    step = 0
    if SOURCE:
        model.load_state_dict(torch.load(f"{SOURCE}/model.pt"))
        optimizer.load_state_dict(torch.load(f"{SOURCE}/optimizer.pt"))
        step = int(open(f"{SOURCE}/step.txt").read())
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        to = f"{FOLDER}/step-{step:08}"
        os.makedirs(to, exist_ok=True)
        torch.save(model.state_dict(), f"{to}/model.pt")
        torch.save(optimizer.state_dict(), f"{to}/optimizer.pt")
        open(f"{to}/step.txt", "w").write(str(step))


def train_transformers():
    import torch
    from transformers import Trainer, TrainerCallback, TrainingArguments
    _, model, _ = torch_model()

    class Wrapped(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x, labels=None):
            return {"loss": self.inner(x).pow(2).mean()}

    class Say(TrainerCallback):
        def on_train_begin(self, args, state, control, **_):
            began(state.global_step)

        def on_step_end(self, args, state, control, **_):
            told(state.global_step)

    data = [{"x": torch.ones(WIDTH), "labels": 0}] * 1000
    arguments = TrainingArguments(output_dir=FOLDER, max_steps=STEPS, save_steps=1, report_to=[],
                                  per_device_train_batch_size=1, disable_tqdm=True, use_cpu=True,
                                  save_total_limit=6, logging_strategy="no")
    Trainer(model=Wrapped(), args=arguments, train_dataset=data,
            callbacks=[Say()]).train(resume_from_checkpoint=SOURCE)


def train_accelerate():
    from accelerate import Accelerator
    torch, model, optimizer = torch_model()

    class Counter:
        step = 0

        def state_dict(self):
            return {"step": self.step}

        def load_state_dict(self, state):
            self.step = state["step"]

    accelerator, counter = Accelerator(cpu=True), Counter()
    model, optimizer = accelerator.prepare(model, optimizer)
    accelerator.register_for_checkpointing(counter)
    if SOURCE:
        accelerator.load_state(SOURCE)
    began(counter.step)
    while counter.step < STEPS:
        counter.step += 1
        told(counter.step)
        accelerator.save_state(f"{FOLDER}/step_{counter.step}")


def train_lightning():
    import lightning
    import torch

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = torch_model()[1]

        def training_step(self, batch, _):
            return self.model(batch).pow(2).mean()

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters())

        def on_train_start(self):
            began(self.global_step)

        def on_before_optimizer_step(self, *_):		# the last that is heard before it saves
            told(self.global_step + 1)

    saver = lightning.pytorch.callbacks.ModelCheckpoint(every_n_train_steps=1, save_top_k=-1)
    data = torch.utils.data.DataLoader(torch.ones(100000, WIDTH), batch_size=1)
    lightning.Trainer(default_root_dir=FOLDER, max_steps=STEPS, callbacks=[saver], accelerator="cpu",
                      enable_progress_bar=False, enable_model_summary=False,
                      logger=lightning.pytorch.loggers.CSVLogger(FOLDER)).fit(Module(), data, ckpt_path=SOURCE)


def train_dcp():
    import torch.distributed.checkpoint as dcp
    torch, model, _ = torch_model()
    state = {"model": model.state_dict(), "step": torch.tensor(0)}
    if SOURCE:
        dcp.load(state, checkpoint_id=SOURCE)
    step = began(int(state["step"]))
    while step < STEPS:
        step += 1
        told(step)
        state["step"] = torch.tensor(step)
        dcp.save(state, checkpoint_id=f"{FOLDER}/step-{step}")


def train_deepspeed():
    """The files that DeepSpeed writes, in its order; the library itself wants a compiler and MPI."""
    torch, model, optimizer = torch_model()
    step = 0
    if SOURCE:
        state = torch.load(f"{SOURCE}/mp_rank_00_model_states.pt")
        torch.load(f"{SOURCE}/zero_pp_rank_0_mp_rank_00_optim_states.pt")
        model.load_state_dict(state["module"])
        step = state["global_steps"]
    began(step)
    while step < STEPS:
        step += 1
        told(step)
        to = f"{FOLDER}/global_step{step}"
        os.makedirs(to, exist_ok=True)
        torch.save({"module": model.state_dict(), "global_steps": step}, f"{to}/mp_rank_00_model_states.pt")
        torch.save(optimizer.state_dict(), f"{to}/zero_pp_rank_0_mp_rank_00_optim_states.pt")
        open(f"{FOLDER}/latest", "w").write(f"global_step{step}")


def main(layout):
    global FOLDER, SOURCE
    FOLDER, SOURCE = os.environ["LB_CHECKPOINT_DIR"], os.environ.get("LB_RESUME_FROM")
    globals()["train_" + layout]()


if __name__ == "__main__":
    main(sys.argv[1])
