# SPDX-License-Identifier: MIT
"""Report to lbrun from any Python trainer; see PROTOCOL.md. Outside lbrun every call does nothing."""
import json, os, socket

_path, orders = os.environ.get("LB_SOCKET"), []  # orders heard: {"type":"save"}, {"type":"stop"}
_sock = socket.socket(socket.AF_UNIX) if _path else None
_in = _sock and (_sock.connect(_path) or _sock.makefile("rb"))

def send(kind, **fields):  # send("step", step=7, loss=2.5); returns the number it has in the spool
    if not _sock: return None
    _sock.sendall(json.dumps({"type": kind, **fields}, allow_nan=False).encode() + b"\n")
    while True:
        answer = json.loads(_in.readline() or b'{"type":"error","text":"lbrun is gone"}')
        if answer["type"] == "ack": return answer["seq"]
        if answer["type"] == "error": raise ValueError(answer["text"])
        orders.append(answer)

def asked(kind):  # asked("stop"), asked("save"): after a send, has lbrun ordered it? Tells once.
    return any(orders.pop(i) for i, o in enumerate(orders) if o["type"] == kind)
