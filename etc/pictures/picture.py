#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""picture.py COLUMNSxLINES SECONDS FILE.svg COMMAND [ARG…] - runs a command on a terminal for so long, and
draws what stands there then as an SVG that needs nothing else. `make pictures` calls it."""
import html, os, pty, select, signal, struct, sys, termios, fcntl, time

import pyte

WIDTH, HEIGHT, MARGIN = 8.4, 17, 12  # of a character; around all
COLORS = {"green": "#7ec97e", "red": "#ff7b72", "brown": "#e3b341", "yellow": "#e3b341", "default": "#d0d7de"}


def watch(columns, lines, seconds, argv):
    screen = pyte.Screen(columns, lines)
    stream = pyte.ByteStream(screen)
    pid, fd = pty.fork()
    if pid == 0:
        time.sleep(0.2)  # the size is set by then
        os.execvp(argv[0], argv)
    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if select.select([fd], [], [], 0.1)[0]:
            try:
                stream.feed(os.read(fd, 65536))
            except OSError:
                break
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return screen


def spans(row, columns):
    """(first column, text, style) of neighbours that look alike."""
    out = []
    for x in range(columns):
        char = row[x]
        style = (char.fg, char.bold, char.reverse)
        if out and out[-1][2] == style:
            out[-1][1] += char.data
        else:
            out.append([x, char.data, style])
    return out


def draw(screen):
    width = screen.columns * WIDTH + 2 * MARGIN
    height = screen.lines * HEIGHT + 2 * MARGIN
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img" '
           'font-family="ui-monospace,DejaVu Sans Mono,Menlo,Consolas,monospace" font-size="14">')
    yield "<title>lbctl top: all runs on one screen</title>"
    yield f'<rect width="{width:.0f}" height="{height:.0f}" rx="8" fill="#0d1117"/>'
    for y in range(screen.lines):
        for x, text, (color, bold, reverse) in spans(screen.buffer[y], screen.columns):
            left, top = MARGIN + x * WIDTH, MARGIN + y * HEIGHT
            ink = COLORS.get(color, COLORS["default"])
            if reverse:
                yield f'<rect x="{left:.1f}" y="{top}" width="{len(text) * WIDTH:.1f}" height="{HEIGHT}" fill="{ink}"/>'
                ink = "#0d1117"
            if text.strip():
                weight = ' font-weight="bold"' if bold else ""
                lead = len(text) - len(text.lstrip())
                text = text.strip()
                yield (f'<text x="{left + lead * WIDTH:.1f}" y="{top + 13}" fill="{ink}"{weight} xml:space="preserve" '
                       f'textLength="{len(text) * WIDTH:.1f}">{html.escape(text)}</text>')
    yield "</svg>"


columns, lines = map(int, sys.argv[1].split("x"))
picture = watch(columns, lines, float(sys.argv[2]), sys.argv[4:])
with open(sys.argv[3], "w", encoding="utf-8") as file:
    file.write("\n".join(draw(picture)) + "\n")
