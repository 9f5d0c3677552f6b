# SPDX-License-Identifier: MIT
"""press.py HOME WHAT [ARG…]: what strangers, and everybody else, do to lbd's control socket."""
import json
import os
import resource
import socket
import struct
import sys
import time

HOME, WHAT = sys.argv[1] + "/lbd.sock", sys.argv[2]
HARD = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (min(HARD, 20000), HARD))
LS = b'{"v":1,"verb":"ls","args":{"all":true}}\n'
GONE = (BlockingIOError, BrokenPipeError, ConnectionResetError)


def connect(timeout=30):
    s = socket.socket(socket.AF_UNIX)
    s.connect(HOME)  # with a deadline it would not wait for room in the queue
    s.settimeout(timeout)
    return s


def ask(s, line=LS):
    s.sendall(line)
    answer = s.makefile("rb").readline()
    return json.loads(answer)["ok"] if answer else None


def percentiles(times):
    times = sorted(times)
    return "%.1f %.1f %d" % (1000 * times[len(times) // 2], 1000 * times[int(len(times) * .99)], len(times))


def flood(underway):
    """All at once, none closed: slow writers, never-readers, garbage, silence."""
    kept, refused = [], 0
    for i in range(10000):
        s = connect()
        s.setblocking(False)
        try:
            if i % 4 == 0:
                s.send(b'{"v":1,"verb":"submit","args":{"toml":"' + b"x" * 100000)
            if i % 4 == 1:
                s.send(LS * 4000)
            if i % 4 == 2:
                s.send(os.urandom(60000) + b"\n")
        except GONE:
            pass
        kept.append(s)
        if i == 2000:
            open(underway, "w").close()
    for s in kept:
        try:
            refused += b"too many connections" in s.recv(4096)
        except GONE:
            pass
    print(refused)


def others(done, least=300):
    """Another user, meanwhile: a new connection for each question. Prints p50, p99 (ms), how many."""
    times = []
    while not os.path.exists(done) or len(times) < int(least):
        begin = time.monotonic()
        if ask(connect()) is not True:
            sys.exit("not served")
        times.append(time.monotonic() - begin)
    print(percentiles(times))


def order():
    """Many questions in one go: all answers, in order, also after a half close."""
    s = connect()
    s.sendall(b"".join(b'{"v":1,"verb":"status","args":{"run":"run-%d"}}\n' % (i % 5 + 1) for i in range(500)))
    s.shutdown(socket.SHUT_WR)
    names = [json.loads(line)["data"]["name"] for line in s.makefile("rb")]
    assert names == ["run-%d" % (i % 5 + 1) for i in range(500)], len(names)


def slow():
    """A frame that never ends, an answer that is never read: both go after 10 s."""
    a, b = connect(), connect()
    a.sendall(b'{"v":1,')
    b.setblocking(False)
    try:
        while True:
            b.send(LS * 100)
    except BlockingIOError:
        pass
    a.settimeout(40)
    assert a.recv(1) == b"", "the slow writer was not closed"
    begin = time.monotonic()
    b.settimeout(1)
    while time.monotonic() - begin < 30:
        try:
            b.send(b"\n")
            time.sleep(0.05)
        except TimeoutError:
            continue
        except GONE:
            return
    sys.exit("the peer that never reads was not closed")


def read_answers(s):
    """How many lines came, of answers that fill the socket; they are not parsed: lbd is what is timed."""
    count = 0
    try:
        count = s.recv(1 << 20).count(b"\n")
    except GONE:
        pass
    return count


def greedy(seconds):
    """One user with many connections, each with more questions than are ever answered."""
    mine = [connect() for _ in range(6)]
    for s in mine:
        s.setblocking(False)
    end, count = time.monotonic() + seconds, 0
    while time.monotonic() < end:
        for s in mine:
            try:
                s.send(LS * 20)
            except GONE:
                pass
            count += read_answers(s)
        time.sleep(0.001)
    return count


def modest(seconds):
    """One user with one connection and one question at a time."""
    end, count, s = time.monotonic() + seconds, 0, connect()
    while time.monotonic() < end:
        assert ask(s) is True
        count += 1
    return count


def many(gid, seconds=5, users=20):
    """So many users at once, all but two of them greedy. Prints what the modest ones got of answers, and
    the least and the most of the greedy ones."""
    children = []
    for i in range(users):
        ends = os.pipe()
        if os.fork() == 0:
            os.setgroups([int(gid)])
            os.setgid(53000 + i)
            os.setuid(53000 + i)
            got = (modest if i < 2 else greedy)(seconds)
            os.write(ends[1], struct.pack("q", got))
            os._exit(0)
        os.close(ends[1])
        children.append(ends[0])
    got = [struct.unpack("q", os.read(end, 8) or struct.pack("q", -1))[0] for end in children]
    print(min(got[:2]), min(got[2:]), max(got[2:]))


def fill(s, data):
    """As much of it as the socket takes."""
    try:
        while s.send(data) > 0:
            pass
    except GONE:
        pass


def press(kind, underway, done):
    """One user's 60 connections that keep lbd reading and never ask anything: nothing but line ends; or a frame
    that is nearly as long as one may be, and then byte by byte; or small garbage."""
    mine = [connect() for _ in range(16 if kind == "drip" else 60)]
    for s in mine:
        try:
            s.sendall(b"x" * (900000 if kind == "drip" else 0))
        except GONE:
            pass            # given up already, where all is slow; made anew below
        s.setblocking(False)
    open(underway, "w").close()
    while not os.path.exists(done):
        for i, s in enumerate(mine):
            try:
                if kind == "drip":
                    s.send(b"x")
                else:
                    fill(s, {"newlines": b"\n", "garbage": b"x\n"}[kind] * 65536)
                read_answers(s)
            except GONE:
                s.close()
                try:
                    mine[i] = connect()
                    mine[i].setblocking(False)
                except OSError:
                    pass
        time.sleep(0.0001)


def files(run):
    """lbd has no descriptor left: who is inside is served and obeyed, who comes is told, and it passes."""
    inside = connect()
    assert ask(inside) is True
    crowd = [connect() for _ in range(60)]
    told = 0
    for s in crowd:
        s.settimeout(0.2)
        try:
            told += b"no file descriptor left" in s.recv(4096)
        except (TimeoutError, ConnectionResetError):
            pass
    assert told > 0, "nobody was told"
    assert ask(inside) is True, "who was inside is not served"
    assert ask(inside, b'{"v":1,"verb":"kill","args":{"run":"%s"}}\n' % run.encode()) is True, "nor obeyed"
    for s in crowd:
        s.close()
    begin = time.monotonic()
    while time.monotonic() - begin < 5:
        try:
            if ask(connect()) is True:
                return
        except GONE:
            pass
    sys.exit("who came afterwards was not served")


{"flood": flood, "others": others, "order": order, "slow": slow, "many": many, "press": press,
 "files": files}[WHAT](*sys.argv[3:])
