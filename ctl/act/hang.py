# SPDX-License-Identifier: MIT
"""Who is missing from a collective: reads the dumps of PyTorch's flight recorder, one for each rank, in the folder
that is named, and says for each group of ranks which of them did not come to the collective that others wait in.
lbctl stacks runs it. A dump is a pickle of plain values; one that wants anything else is not read."""
import os, pickle, re, sys


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError("it wants %s.%s" % (module, name))


def load(folder):
    dumps = {}
    for name in sorted(os.listdir(folder)):
        match = re.fullmatch(r"rank_(\d+)", name)
        if not match:
            continue
        try:
            with open(os.path.join(folder, name), "rb") as f:
                dumps[int(match.group(1))] = Plain(f).load()
        except Exception as e:
            print("rank %s: its dump cannot be read: %s" % (match.group(1), e))
    return dumps


def groups_of(dumps):
    groups = {}
    for dump in dumps.values():
        for key, config in (dump.get("pg_config") or {}).items():
            ranks = config.get("ranks", [])
            if isinstance(ranks, str):
                ranks = [int(r) for r in re.findall(r"\d+", ranks)]
            groups.setdefault(str(config.get("name", key)), {"text": config.get("desc") or "", "ranks": set()})[
                "ranks"].update(ranks)
    return groups


def group_name(entry):
    group = entry.get("process_group")
    return str(group[0]) if isinstance(group, (list, tuple)) and group else str(entry.get("pg_name", entry.get("pg_id", 0)))


def place(entry):
    frames = [f for f in entry.get("frames") or [] if "/torch/" not in f.get("filename", "")]
    if not frames:
        return ""
    return ", at %s:%s (%s)" % (os.path.basename(frames[0]["filename"]), frames[0].get("line"), frames[0].get("name"))


def names(ranks):
    ranks = sorted(ranks)
    return "rank%s %s" % ("s" if len(ranks) > 1 else "", ", ".join(map(str, ranks[:16])) + (", ..." if len(ranks) > 16 else ""))


def what(entry):
    return "%s #%d" % (str(entry.get("profiling_name", "?")).removeprefix("nccl:"), entry["collective_seq_id"])


def judge(group, members, dumps):
    last = {}
    for rank in members & set(dumps):
        entries = [e for e in dumps[rank].get("entries", []) if group_name(e) == group and not e.get("is_p2p")]
        last[rank] = max(entries, key=lambda e: e["collective_seq_id"], default=None)
    come = [e for e in last.values() if e]
    if not come:
        return False
    frontier = max(e["collective_seq_id"] for e in come)
    there = {r: e for r, e in last.items() if e and e["collective_seq_id"] == frontier}
    first = there[min(there)]
    missing = set(last) - set(there)
    silent = members - set(dumps)
    for rank in sorted(missing):
        e = last[rank]
        print("rank %d is missing from %s of %s, where %d of %d ranks wait%s; its last there: %s" % (
            rank, what(first), group, len(there), len(members), place(first), what(e) + place(e) if e else "none"))
    if silent:
        print("%s: no dump; %s of %s may wait for it" % (names(silent), what(first), group))
    kinds = {e.get("profiling_name") for e in there.values()}
    if len(kinds) > 1:
        print("the ranks disagree on #%d of %s: %s" % (frontier, group, "; ".join(
            "%s in %s" % (names([r for r in there if there[r].get("profiling_name") == k]), str(k).removeprefix("nccl:"))
            for k in sorted(map(str, kinds)))))
    stuck = [r for r, e in there.items() if e.get("state") != "completed"]
    if not missing and not silent and len(kinds) == 1 and stuck:
        print("all %d ranks are in %s of %s%s: the network, or a GPU, does not finish it" % (
            len(members), what(first), group, place(first)))
    return bool(missing or silent or len(kinds) > 1 or stuck)


def main(folder):
    dumps = load(folder)
    groups = groups_of(dumps)
    found = [judge(name, group["ranks"], dumps) for name, group in sorted(groups.items())]
    if dumps and not any(found):
        print("no rank waits in a collective: %d dumps" % len(dumps))


main(sys.argv[1])
