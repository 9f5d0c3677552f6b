# SPDX-License-Identifier: MIT
"""What trackers take, by their own clients and interfaces: lbctl sync runs this, with a run's settled steps
on its standard input. One line about the run, then one line a step, steps ascending, from the first on or from
behind what is known to be there. Each tracker says itself what it has already; nothing is sent twice.

  {"kind","to","id","run","project","owner","state","over","generation","folder","commit","branch","changed_files",
   "settings":{"section.key":value}}
  {"step":1,"time_ms":…,"values":{"loss":…}}

generation counts up when steps that were sent have been made again: then a new curve takes the place of the
old one. Prints how many steps were sent."""
import base64, json, os, re, shutil, struct, sys, time, urllib.error, urllib.parse, urllib.request

MANY = 500  # steps in a request


def fail(text):
    sys.exit(" ".join(str(text).split())[:300])


def chunks(points):
    some = []
    for point in points:
        some.append(point)
        if len(some) == MANY:
            yield some
            some = []
    if some:
        yield some


def curve_name(head, generation=None):
    generation = head["generation"] if generation is None else generation
    return head["run"] if generation == 0 else "%s-r%d" % (head["run"], generation)


def config_of(head):
    """What the run was made of, as trackers show it beside the curve; without what is not known."""
    known = {"owner": head["owner"], "git.commit": head.get("commit"), "git.branch": head.get("branch"),
             "git.changed_files": head.get("changed_files")}
    return dict({k: v for k, v in known.items() if v is not None}, **head["settings"])


def write_state(path, value):
    with open(path + ".new", "w") as f:
        json.dump(value, f)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".new", path)


# --- MLflow: its REST interface -------------------------------------------------------------------
class MLflow:
    def __init__(self, head):
        self.head, self.api = head, head["to"].rstrip("/") + "/api/2.0/mlflow/"
        self.experiment = self.find_experiment(head["project"])
        for generation in range(head["generation"]):
            for old in self.find_runs(generation):
                self.call("runs/delete", {"run_id": old["info"]["run_id"]})
        found = self.find_runs(head["generation"])
        self.run = found[0] if found else None
        data = (self.run or {}).get("data", {})
        self.there = {m["key"]: int(m.get("step", 0)) for m in data.get("metrics", [])}
        self.params, self.tags = ({p["key"]: p["value"] for p in data.get(k, [])} for k in ("params", "tags"))

    def call(self, path, body=None, query=None, missing_ok=False):
        url = self.api + path + ("?" + urllib.parse.urlencode(query) if query else "")
        request = urllib.request.Request(url, None if body is None else json.dumps(body).encode())
        request.add_header("Content-Type", "application/json")
        if os.environ.get("MLFLOW_TRACKING_TOKEN"):
            request.add_header("Authorization", "Bearer " + os.environ["MLFLOW_TRACKING_TOKEN"])
        elif os.environ.get("MLFLOW_TRACKING_USERNAME"):
            word = "%s:%s" % (os.environ["MLFLOW_TRACKING_USERNAME"], os.environ.get("MLFLOW_TRACKING_PASSWORD", ""))
            request.add_header("Authorization", "Basic " + base64.b64encode(word.encode()).decode())
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read() or b"{}")
        except urllib.error.HTTPError as e:
            text = e.read().decode(errors="replace")
            if missing_ok and e.code == 404:
                return None
            fail("%s: %d %s" % (url, e.code, text))
        except OSError as e:
            fail("%s: %s" % (url, e))

    def find_experiment(self, name):
        found = self.call("experiments/get-by-name", query={"experiment_name": name}, missing_ok=True)
        if found:
            return found["experiment"]["experiment_id"]
        return self.call("experiments/create", {"name": name})["experiment_id"]

    def key(self, generation):
        return "%s/%d" % (self.head["id"], generation)

    def find_runs(self, generation):
        return self.call("runs/search", {"experiment_ids": [self.experiment], "max_results": 10,
                                         "filter": "tags.`lowbits.key` = '%s'" % self.key(generation)}).get("runs", [])

    def create(self, first_ms):
        tags = {"lowbits.key": self.key(self.head["generation"]), "lowbits.run": self.head["run"],
                "mlflow.user": self.head["owner"], "mlflow.source.git.commit": self.head.get("commit")}
        self.run = self.call("runs/create", {
            "experiment_id": self.experiment, "run_name": self.head["run"], "start_time": first_ms,
            "tags": [{"key": k, "value": v} for k, v in tags.items() if v]})["run"]

    def put_params(self):
        """Parameters stay as they were first, MLflow allows no other: what a restart has set anew is a tag of the same
        name, which says how it is now."""
        def text(value):
            return (("true" if value else "false") if isinstance(value, bool) else str(value))[:500]
        known = {re.sub(r"[^\w./ -]", "_", k)[:250]: text(v) for k, v in config_of(self.head).items() if v != ""}
        new = {k: v for k, v in known.items() if k not in self.params}
        changed = {k: v for k, v in known.items() if v != self.tags.get(k, self.params.get(k, v))}
        for kind, values in ("params", new), ("tags", changed):
            rows = [{"key": k, "value": v} for k, v in values.items()]
            for i in range(0, len(rows), 100):  # as many as it takes at once
                self.call("runs/log-batch", {"run_id": self.run["info"]["run_id"], kind: rows[i:i + 100]})
        self.params.update(new)
        self.tags.update(changed)

    def send(self, points):
        sent = 0
        for some in chunks(points):
            if self.run is None:
                self.create(some[0]["time_ms"])
            self.put_params()
            metrics = [{"key": k, "value": v, "timestamp": p["time_ms"], "step": p["step"]} for p in some
                       for k, v in p["values"].items() if p["step"] > self.there.get(k, -1)]
            sent += len({m["step"] for m in metrics})
            for i in range(0, len(metrics), 1000):  # as many as it takes at once
                self.call("runs/log-batch", {"run_id": self.run["info"]["run_id"], "metrics": metrics[i:i + 1000]})
        return sent

    def end(self):
        status = {"completed": "FINISHED", "failed": "FAILED", "killed": "KILLED"}.get(self.head["state"], "RUNNING")
        if self.run:
            self.put_params()
        if self.run and self.run["info"].get("status") != status:
            body = {"run_id": self.run["info"]["run_id"], "status": status}
            if self.head["over"]:
                body["end_time"] = int(time.time() * 1000)
            self.call("runs/update", body)


# --- Trackio: its database, by its own library ----------------------------------------------------
class Trackio:
    def __init__(self, head):
        if head["to"]:
            os.environ["TRACKIO_DIR"] = head["to"]
        try:
            from trackio.sqlite_storage import SQLiteStorage
        except ImportError as e:
            fail("trackio is not installed for %s: %s" % (sys.executable, e))
        self.head, self.storage = head, SQLiteStorage
        for generation in range(head["generation"]):
            SQLiteStorage.delete_run(head["project"], curve_name(head, generation))

    def send(self, points):
        from datetime import datetime, timezone
        name, sent = curve_name(self.head), 0
        there = {log.get("step") for log in self.storage.get_logs(self.head["project"], name)}
        for some in chunks(p for p in points if p["step"] not in there):
            self.storage.bulk_log(
                self.head["project"], name, [p["values"] for p in some], [p["step"] for p in some],
                [datetime.fromtimestamp(p["time_ms"] / 1000, timezone.utc).isoformat() for p in some],
                config_of(self.head),
                # it keeps the first of two with the same
                ["%s/%d/%d" % (self.head["id"], self.head["generation"], p["step"]) for p in some])
            sent += len(some)
        return sent

    def end(self):
        pass


# --- Weights & Biases: offline runs, by its own client --------------------------------------------
class Wandb:
    """Each call with something new makes a folder offline-run-*, complete or not at all, that `wandb sync`
    uploads; all of them have the run's id. A file in it says which steps it holds."""
    MARK = "lowbits.json"

    def __init__(self, head):
        self.head = head
        self.folder = os.path.join(head["to"] or os.path.join(head["folder"], "wandb"), "wandb")
        self.staging = os.path.join(self.folder, ".new-" + head["run"])
        os.makedirs(self.folder, exist_ok=True)
        shutil.rmtree(self.staging, ignore_errors=True)
        self.last = -1
        for name in os.listdir(self.folder):
            try:
                with open(os.path.join(self.folder, name, self.MARK)) as f:
                    mark = json.load(f)
            except OSError:
                continue
            if mark["id"] != head["id"]:
                continue
            if mark["generation"] == head["generation"]:
                self.last = max(self.last, mark["last"])
            else:
                shutil.rmtree(os.path.join(self.folder, name))

    def send(self, points):
        points = [p for p in points if p["step"] > self.last]
        if not points:
            return 0
        try:
            import wandb
        except ImportError as e:
            fail("wandb is not installed for %s: %s" % (sys.executable, e))
        os.makedirs(self.staging)
        os.environ["WANDB_SILENT"] = "true"
        identity = "%s-%d" % (self.head["id"].replace("/", "-"), self.head["generation"])
        settings = wandb.Settings(console="off", disable_git=True, disable_code=True, x_disable_stats=True,
                                  x_disable_meta=True, x_disable_machine_info=True)
        run = wandb.init(project=self.head["project"], name=curve_name(self.head), id=identity, mode="offline",
                         resume="allow", dir=self.staging, settings=settings,
                         config=config_of(self.head))
        for p in points:
            run.log(dict(p["values"], _timestamp=p["time_ms"] / 1000), step=p["step"])
        run.finish()
        made = [n for n in os.listdir(os.path.join(self.staging, "wandb")) if n.startswith("offline-run-")]
        source = os.path.join(self.staging, "wandb", made[0])
        write_state(os.path.join(source, self.MARK), {
            "id": self.head["id"], "generation": self.head["generation"], "first": points[0]["step"],
            "last": points[-1]["step"]})
        name, again = made[0], 0
        while os.path.exists(os.path.join(self.folder, name)):  # two within a second
            again += 1
            name = made[0].replace("offline-run-", "offline-run-%d" % again, 1)
        os.rename(source, os.path.join(self.folder, name))
        shutil.rmtree(self.staging, ignore_errors=True)
        return len(points)

    def end(self):
        pass


# --- TensorBoard: an event file -------------------------------------------------------------------
def crc32c_table():
    table = []
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        table.append(n)
    return table


class TensorBoard:
    TABLE = crc32c_table()

    def __init__(self, head):
        self.head = head
        folder = os.path.join(head["to"] or os.path.join(head["folder"], "tensorboard"), head["run"])
        os.makedirs(folder, exist_ok=True)
        self.path = os.path.join(folder, "events.out.tfevents.%s.lowbits" % head["created"])
        self.state_path = os.path.join(head["folder"], "tensorboard-%s.state" % head["target"])
        self.state = {"generation": -1}
        try:
            with open(self.state_path) as f:
                self.state = json.load(f)
        except OSError:
            pass
        if self.state["generation"] != head["generation"] or not os.path.exists(self.path):
            self.state = {"generation": head["generation"], "bytes": 0, "last": -1}

    @classmethod
    def crc(cls, data):
        crc = 0xFFFFFFFF
        for byte in data:
            crc = cls.TABLE[(crc ^ byte) & 255] ^ crc >> 8
        crc ^= 0xFFFFFFFF
        return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)

    @classmethod
    def record(cls, data):
        size = struct.pack("<Q", len(data))
        return size + cls.crc(size) + data + cls.crc(data)

    @staticmethod
    def varint(n):
        out = b""
        while n > 127:
            out, n = out + bytes([n & 127 | 128]), n >> 7
        return out + bytes([n])

    @classmethod
    def field(cls, number, data):
        return cls.varint(number << 3 | 2) + cls.varint(len(data)) + data

    def event(self, point):
        head = b"\x09" + struct.pack("<d", point["time_ms"] / 1000) + b"\x10" + self.varint(point["step"])
        values = b"".join(self.field(1, self.field(1, k.encode()) + b"\x15" + struct.pack("<f", v))
                          for k, v in point["values"].items())
        return self.record(head + self.field(5, values))

    def send(self, points):
        sent = 0
        with open(self.path, "r+b" if os.path.exists(self.path) else "w+b") as f:
            f.truncate(self.state["bytes"])
            f.seek(self.state["bytes"])
            if self.state["bytes"] == 0:
                now = b"\x09" + struct.pack("<d", int(self.head["created"]))
                f.write(self.record(now + self.field(3, b"brain.Event:2")))
            for point in points:
                if point["step"] > self.state["last"]:
                    f.write(self.event(point))
                    self.state["last"] = point["step"]
                    sent += 1
            f.flush()
            os.fsync(f.fileno())
            self.state["bytes"] = f.tell()
        write_state(self.state_path, self.state)
        return sent

    def end(self):
        pass


KINDS = {"mlflow": MLflow, "trackio": Trackio, "wandb": Wandb, "tensorboard": TensorBoard}


def main():
    head = json.loads(sys.stdin.readline())
    tracker = KINDS[head["kind"]](head)
    sent = tracker.send(json.loads(line) for line in sys.stdin)
    tracker.end()
    print(sent)


if __name__ == "__main__":
    main()
