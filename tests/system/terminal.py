#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""terminal.py COLUMNSxLINES COMMAND [ARG…] - a terminal that a test reads and types on. Orders come by
standard input, one a line:

    wait REGEX [SECONDS]   until the screen shows it; else says so, prints the screen, and ends with 1
    key TEXT               types it (Python's escapes)
    size COLUMNSxLINES     the window changes
    screen [FILE]          prints the screen, or writes it there
    rest SECONDS           prints how many bytes came meanwhile
    ended [SECONDS]        waits for the end of the command, prints its exit status, and ends, too

The screen has no blanks at the ends of its lines, and no empty lines at its end.
"""
import fcntl, os, pty, re, select, signal, struct, sys, termios, time

import pyte

PATIENCE = int(os.environ.get("LB_PATIENCE", "4"))


class Terminal:
    def __init__(self, size, argv):
        self.columns, self.lines = size
        self.screen = pyte.Screen(self.columns, self.lines)
        self.stream = pyte.ByteStream(self.screen)
        self.bytes = 0
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", self.lines, self.columns, 0, 0))
            os.execvp(argv[0], argv)
        self.resize(size)

    def resize(self, size):
        self.columns, self.lines = size
        self.screen.resize(self.lines, self.columns)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", self.lines, self.columns, 0, 0))

    def hear(self, seconds):
        """Takes what comes within so long; False once the command is gone."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            data = b""
        self.bytes += len(data)
        self.stream.feed(data)
        return bool(data)

    def text(self):
        lines = [line.rstrip() for line in self.screen.display]
        return "\n".join(lines).rstrip("\n") + "\n"

    def end(self, seconds):
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                self.status = os.waitstatus_to_exitcode(status)
                return True
            self.hear(0.05)
        return False


def size_of(text):
    columns, lines = text.split("x")
    return int(columns), int(lines)


def obey(terminal, order, rest):
    if order == "wait":
        match = re.fullmatch(r"(.*?)(?:\s+(\d+))?", rest)
        limit = time.monotonic() + float(match[2] or 20) * PATIENCE
        while not re.search(match[1], terminal.text(), re.M):
            if time.monotonic() > limit or not terminal.hear(0.1):
                sys.stdout.write(f"never shown: {match[1]}\n{terminal.text()}")
                return 1
    elif order == "key":
        os.write(terminal.fd, rest.encode().decode("unicode_escape").encode("latin-1"))
    elif order == "size":
        terminal.resize(size_of(rest))
    elif order == "screen" and rest:
        with open(rest, "w") as file:
            file.write(terminal.text())
    elif order == "screen":
        sys.stdout.write(terminal.text())
    elif order == "rest":
        before, limit = terminal.bytes, time.monotonic() + float(rest)
        while time.monotonic() < limit and terminal.hear(0.1):
            pass
        print(terminal.bytes - before)
    elif order == "ended":
        if not terminal.end(float(rest or 20) * PATIENCE):
            print("it has not ended")
            return 1
        print(terminal.status)
    else:
        print(f"unknown order: {order}")
        return 2
    sys.stdout.flush()
    return 0


def main():
    terminal = Terminal(size_of(sys.argv[1]), sys.argv[2:])
    status = 0
    for line in sys.stdin:
        order, _, rest = line.strip().partition(" ")
        if order and not order.startswith("#"):
            status = obey(terminal, order, rest)
        if status or terminal.status is not None:
            break
    if terminal.status is None:
        os.kill(terminal.pid, signal.SIGKILL)
        os.waitpid(terminal.pid, 0)
    return status


sys.exit(main())
