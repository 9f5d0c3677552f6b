# SPDX-License-Identifier: MIT
"""What a tracker has of a run, read by its own means: read.py KIND WHERE PROJECT RUN prints "STEP LOSS" lines in the
order in which they are stored, each as often as it is there.

Behind "# " stands what it knows of the run beside: KEY=VALUE.

"events" is TensorBoard's file by a reader of our own that checks every checksum; it needs nothing installed."""
import glob, os, struct, sys

kind, where, project, run = sys.argv[1:5]


def crc32c(data):
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF


def fields(data):  # of a protobuf message: number, value
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, data[at:at + size]
            at += size


def events():
    for path in sorted(glob.glob(os.path.join(where, run, "events.out.tfevents.*"))):
        data = open(path, "rb").read()
        while data:
            size, = struct.unpack("<Q", data[:8])
            record = data[12:12 + size]
            assert crc32c(data[:8]) == struct.unpack("<I", data[8:12])[0], "the checksum of a length"
            assert crc32c(record) == struct.unpack("<I", data[12 + size:16 + size])[0], "the checksum of an event"
            data = data[16 + size:]
            event = dict(fields(record))
            for number, value in fields(event.get(5, b"")):
                one = dict(fields(value))
                if number == 1 and one[1] == b"loss":
                    yield event[2], struct.unpack("<f", one[2])[0]


def tensorboard():
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    seen = EventAccumulator(os.path.join(where, run), size_guidance={"scalars": 0})
    seen.Reload()
    return [(e.step, e.value) for e in seen.Scalars("loss")]


def tell(config):
    for key, value in config.items():
        print("# %s=%s" % (key, value))


def mlflow():
    from mlflow import MlflowClient
    client = MlflowClient(where)
    found = client.search_runs([client.get_experiment_by_name(project).experiment_id], "attributes.run_name = '%s'" % run)
    assert len(found) == 1, "%d runs" % len(found)
    print("#", found[0].info.status)
    tell(found[0].data.params)
    tell({"tag " + key: value for key, value in found[0].data.tags.items()})
    return [(m.step, m.value) for m in client.get_metric_history(found[0].info.run_id, "loss")]


def trackio():
    os.environ["TRACKIO_DIR"] = where
    from trackio.sqlite_storage import SQLiteStorage
    runs = [r for r in SQLiteStorage.get_runs(project) if r == run or r.startswith(run + "-r")]
    assert len(runs) == 1, runs
    tell(SQLiteStorage.get_run_config(project, runs[0]))
    return [(log["step"], log["loss"]) for log in SQLiteStorage.get_logs(project, runs[0])]


def wandb():  # its offline runs, by the reader of its own sync
    import json
    from wandb.proto import wandb_internal_pb2
    from wandb.sdk.internal.datastore import DataStore
    ids = set()
    for path in sorted(glob.glob(os.path.join(where, "wandb", "offline-run-*", "*.wandb"))):
        store = DataStore()
        store.open_for_scan(path)
        while True:
            data = store.scan_data()
            if data is None:
                break
            record = wandb_internal_pb2.Record()
            record.ParseFromString(data)
            if record.HasField("run"):
                ids.add(record.run.run_id)
                tell({i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.run.config.update})
            if record.HasField("history"):
                items = {i.key or i.nested_key[0]: json.loads(i.value_json) for i in record.history.item}
                step = record.history.step.num if record.history.HasField("step") else items["_step"]
                yield step, items["loss"]
    assert len(ids) == 1, ids


for step, loss in {"events": events, "tensorboard": tensorboard, "mlflow": mlflow, "trackio": trackio,
                   "wandb": wandb}[kind]():
    print(step, "%.2f" % loss)
