#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""pictures.py KIND COMMAND [ARG…] - runs it on a terminal of 80x30 characters of 10x20 dots that answers as one
with KIND (sixel, kitty, none; silent: none and no answer) would. Prints what was asked ("kitty", "attributes"), a line
for each picture, its kind and size, then the picture, small: c curve, u undone, . nothing; then the text
beside the pictures with escape sequences as \\e."""
import base64, fcntl, os, pty, re, select, struct, sys, termios, time, zlib

KIND, ARGV = sys.argv[1], sys.argv[2:]
CURVE, UNDONE = (51, 136, 221), (136, 136, 136)
ACROSS, DOWN = 35, 8  # of the small picture


def sixel(data):
    """{(x, y): (r, g, b)} and the size of the sixels between "ESC P … q" and ST."""
    dots, colors, color, x, y = {}, {}, 0, 0, 0
    size = tuple(map(int, re.match(r'"1;1;(\d+);(\d+)', data).groups()))
    for token in re.finditer(r'"[\d;]+|#(\d+)(?:;2;(\d+);(\d+);(\d+))?|(?:!(\d+))?([?-~])|(\$)|(-)', data):
        number, r, g, b, run, char, home, down = token.groups()
        if number and r:
            colors[int(number)] = tuple(round(int(v) * 2.55) for v in (r, g, b))
        elif number:
            color = int(number)
        elif home:
            x = 0
        elif down:
            x, y = 0, y + 6
        elif char:
            for _ in range(int(run or 1)):
                for bit in range(6):
                    if ord(char) - 63 >> bit & 1:
                        dots[x, y + bit] = colors[color]
                x += 1
    assert all(x < size[0] and y < size[1] for x, y in dots), size
    return dots, size


def kitty(chunks):
    keys = dict(pair.split("=") for pair in chunks[0][0].split(","))
    assert all("m=1" in head for head, _ in chunks[:-1]) and "m=0" in chunks[-1][0]
    assert all(len(body) <= 4096 and len(body) % 4 == 0 for _, body in chunks)
    assert keys["a"] == "T" and keys["f"] == "32" and keys["o"] == "z" and keys["q"] == "2" and keys["C"] == "1"
    data = zlib.decompress(base64.b64decode("".join(body for _, body in chunks)))
    size = int(keys["s"]), int(keys["v"])
    assert len(data) == size[0] * size[1] * 4
    at = [tuple(data[i:i + 4]) for i in range(0, len(data), 4)]
    return {(i % size[0], i // size[0]): rgba[:3] for i, rgba in enumerate(at) if rgba[3]}, size


def small(dots, size):
    rows = [["."] * ACROSS for _ in range(DOWN)]
    for (x, y), color in dots.items():
        near = min((CURVE, UNDONE), key=lambda c: sum(abs(a - b) for a, b in zip(c, color)))
        assert max(abs(a - b) for a, b in zip(near, color)) <= 3, color
        row, column = y * DOWN // size[1], x * ACROSS // size[0]
        rows[row][column] = "c" if near == CURVE or rows[row][column] == "c" else "u"
    return "\n".join("".join(row) for row in rows)


pid, fd = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 80, 800, 600))
    os.execvp(ARGV[0], ARGV)
out, asked = b"", []
limit = time.monotonic() + 60
while time.monotonic() < limit:
    if select.select([fd], [], [], 0.2)[0]:
        try:
            got = os.read(fd, 65536)
        except OSError:
            break
        if b"\x1b_Gi=31" in got:
            asked.append("kitty")
            if KIND == "kitty":
                os.write(fd, b"\x1b_Gi=31;OK\x1b\\")
        if b"\x1b[c" in got:
            asked.append("attributes")
            if KIND != "silent":
                os.write(fd, b"\x1b[?62;4;22c" if KIND == "sixel" else b"\x1b[?62;22c")
        out += got
status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
text = out.decode()
print("asked", *asked)
text = text.replace("\x1b_Gi=31,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\", "").replace("\x1b[c", "")
for data in re.findall(r"\x1bP0;1q(.*?)\x1b\\", text, re.S):
    dots, size = sixel(data)
    print("sixel %dx%d" % size, small(dots, size), sep="\n")
text = re.sub(r"\x1bP0;1q.*?\x1b\\", "[picture]", text, flags=re.S)
chunks = []
for head, body in re.findall(r"\x1b_G([^;]*);(.*?)\x1b\\", text, re.S):
    chunks.append((head, body))
    if "m=0" in head:
        dots, size = kitty(chunks)
        print("kitty %dx%d" % size, small(dots, size), sep="\n")
        chunks = []
assert not chunks
text = re.sub(r"(\x1b_G.*?\x1b\\)+", "[picture]", text, flags=re.S)
print(text.replace("\r\n", "\n").replace("\x1b", "\\e"))
sys.exit(status)
