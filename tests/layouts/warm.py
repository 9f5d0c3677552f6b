# SPDX-License-Identifier: MIT
"""Starts trainers.py again and again without importing its libraries each time:

    warm.py serve SOCKET LAYOUT     imports what LAYOUT needs; prints "ready"; then a trainer per connection
    warm.py run SOCKET              what lbrun starts: has a child made with its own environment, folder and
                                    output, and ends as that child ends, by the same signal

The child's first line is "pid N". It is the one that writes, so it is the one to kill."""

import importlib
import json
import os
import pickle
import signal
import socket
import struct
import sys
import tempfile


def rehearse(layout, report):
    """Two steps in a folder of its own: libraries import much of what they need only when it is needed."""
    import trainers
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LB_CHECKPOINT_DIR"] = folder
        trainers.STEPS = 2
        sys.stdout = open(os.devnull, "w")
        trainers.main(layout)
    with open(report, "w") as out:
        json.dump([name for name in sys.modules if not name.startswith("__")], out)


def import_all(layout):
    """What a rehearsal, in a child, imported. Nothing else of it is here: no thread, no state."""
    with tempfile.NamedTemporaryFile() as report:
        child = os.fork()
        if child == 0:
            try:
                rehearse(layout, report.name)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        if os.waitpid(child, 0)[1] != 0:
            sys.exit(f"{layout}: its rehearsal failed")
        with open(report.name) as names:
            for name in json.load(names):
                try:
                    importlib.import_module(name)
                except Exception:	# made up while it ran, not imported
                    pass


def become_trainer(connection, layout):
    data, fds, _, _ = socket.recv_fds(connection, 1 << 20, 2)
    environment, folder = pickle.loads(data)
    os.dup2(fds[0], 1)
    os.dup2(fds[1], 2)
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    print("pid", os.getpid(), flush=True)
    import trainers
    trainers.main(layout)
    sys.stdout.flush()


def serve(path, layout):
    import_all(layout)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen()
    print("ready", flush=True)
    while True:
        connection, _ = listener.accept()
        child = os.fork()
        if child == 0:
            listener.close()
            try:
                become_trainer(connection, layout)
            except BaseException:
                sys.excepthook(*sys.exc_info())
                os._exit(1)
            os._exit(0)
        # one trainer at a time: that is how an attempt works
        connection.send(struct.pack("i", child))
        connection.send(struct.pack("i", os.waitpid(child, 0)[1]))
        connection.close()


def run(path):
    server = socket.socket(socket.AF_UNIX)
    server.connect(path)
    socket.send_fds(server, [pickle.dumps((dict(os.environ), os.getcwd()))], [1, 2])
    (child,) = struct.unpack("i", server.recv(4))
    signal.signal(signal.SIGTERM, lambda *_: os.kill(child, signal.SIGTERM))
    (status,) = struct.unpack("i", server.recv(4))
    if os.WIFSIGNALED(status):
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL) if os.WTERMSIG(status) != signal.SIGKILL else None
        os.kill(os.getpid(), os.WTERMSIG(status))
    sys.exit(os.waitstatus_to_exitcode(status))


if __name__ == "__main__":
    serve(*sys.argv[2:]) if sys.argv[1] == "serve" else run(*sys.argv[2:])
