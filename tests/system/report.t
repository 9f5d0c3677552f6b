#!/bin/sh
# SPDX-License-Identifier: MIT
# lbctl plot and lbctl report: a run that was killed and went back to a checkpoint, a group, the
# week; the page as a parser and, where it is installed, a browser without a screen see it.
. "$(dirname "$0")/lib.sh"
LANG=C.UTF-8
export LANG
unset LC_ALL

# Steps with losses; dies in its first launch five steps after its checkpoint, which are worse than
# those that come instead.
cat >"$T/trainer" <<'END'
#!/bin/sh
step=0
[ -z "${LB_RESUME_FROM:-}" ] || step=${LB_RESUME_FROM##*-}
while [ "$step" -lt 30 ]; do
	step=$((step + 1)) whole=2
	[ "$LB_LAUNCH" != 1 ] || [ "$step" -le 10 ] || whole=3
	echo "step $step/30 loss $whole.$((99 - step)) tokens/s: 1000"
	[ "$step" != 10 ] || { mkdir "$LB_CHECKPOINT_DIR/.new" && echo x >"$LB_CHECKPOINT_DIR/.new/model.pt" &&
		mv "$LB_CHECKPOINT_DIR/.new" "$LB_CHECKPOINT_DIR/step-10"; }
	[ "$step" != 15 ] || [ "$LB_LAUNCH" != 1 ] || kill -9 $$
	sleep 0.02
done
END
chmod +x "$T/trainer"
printf '[poll]\ninterval = "200ms"\n' >"$LB_HOME/lbd.toml"
lbd_start
# Both from a repository, with an edit in between.
mkdir "$T/code"
cd "$T/code" || exit 1
git init -q . && echo 'rate = 1' >train.py && git add train.py &&
	git -c user.name=a -c user.email=a@b commit -q -m begin
lbctl submit --name first --set run.group=duo --set watch.usage_every=200ms --set 'checkpoint.pattern="step-{step}"' -- "$T/trainer" >/dev/null
echo 'rate = 2' >train.py
lbctl submit --name 'second' --set run.group=duo -- sh -c 'echo "step 1/2 loss 3.0"; exit 3' >/dev/null
run_reaches first completed 40
wait_for '[ "$(run_state second)" = failed ] || [ "$(run_state second)" = backoff ]' 40

# --- plot -----------------------------------------------------------------------------------
exits 0 "plot" lbctl plot first second
like "$out" '^first  loss; 1 return to a checkpoint, 5 steps made again' "what was made again is said"
like "$out" 'step 30$' "over all attempts"
like "$out" '⡀|⣀|⠤|⠁' "in braille"
unlike "$(lbctl plot first | od -An -c)" ' 033 ' "without escape sequences where nobody looks on"
unlike "$(LC_ALL=C lbctl plot first)" '[^ -~]' "in ASCII where that is all there is"
exits 3 "of a run that is there" lbctl plot nobody
exits 0 "of all that a pattern means" lbctl plot 'f*' duo@group
is "$(printf '%s\n' "$out" | grep -Eo '^(first|second)  loss' | tr '\n' ' ')" "first  loss second  loss " \
	"each once, the oldest first"
exits 3 "of none" lbctl plot 'nobody-*'
like "$err" 'nobody-\*: no such runs' "which is said"

# A terminal that shows pictures, and others; the pictures are decoded.
pictures() { # KIND TERM [NAME=VALUE]…
	kind=$1 term=$2
	shift 2
	python3 "$src/tests/system/pictures.py" "$kind" env -u KITTY_WINDOW_ID -u TMUX TERM="$term" "$@" "$B/lbctl" plot first
}
begins() { printf '%s\n' "$1" | sed -n '1,10p'; }
curve='700x300
...........uuuuuu..................
...........u.......................
...........u.......................
...........u.......................
...........u.......................
..........uu.......................
cccccccccccucccccc.................
.................cccccccccccccccccc'
seen=$(pictures sixel xterm-256color)
is "$(begins "$seen")" "asked attributes
sixel $curve" "where the terminal says that it takes sixels: those, with the curve, and what was undone in another colour"
like "$(printf '%s\n' "$seen" | tail -n +20)" '^  3.8800 \|  .*' "beside the scale"
like "$seen" 'step 30$' "and above the steps"
like "$seen" '\\e7\\e\[16A\\e\[11G\[picture\]\\e8' "at the place of the curve"
is "$(begins "$(pictures kitty xterm-kitty)")" "asked kitty attributes
kitty $curve" "kitty has its own way"
is "$(begins "$(pictures kitty xterm KITTY_WINDOW_ID=1)")" "asked kitty attributes
kitty $curve" "also where only a variable tells that it is one"
is "$(pictures sixel tmux-256color KITTY_WINDOW_ID=1 | sed -n 1,2p)" "asked attributes
sixel 700x300" "but not within tmux, which is asked, too"
for kind in none silent; do
	seen=$(pictures "$kind" xterm)
	like "$seen" '^asked attributes$' "$kind: asked"
	like "$seen" '⡀|⣀|⠤|⠁' "$kind: braille"
	unlike "$seen" 'picture|\\e[^[]' "$kind: and no picture"
done
seen=$(pictures sixel dumb)
is "$(printf '%s\n' "$seen" | grep -c '\\e')$(begins "$seen" | sed -n 1p)" "0asked" "one that is dumb is not even asked"

# --- report ---------------------------------------------------------------------------------
cat >"$T/parse.py" <<'END'
# Every element that is opened is closed, in order; nothing is fetched; what is to be there is.
import html.parser, sys
VOID = {"meta", "br", "line", "rect", "polyline"}
class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.text, self.seen = [], [], {}
    def handle_starttag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
        for name, value in attrs:
            assert name != "src" and not (name == "href" and not value.startswith("#")), (tag, name, value)
        if tag not in VOID:
            self.open.append(tag)
    def handle_startendtag(self, tag, attrs):
        self.seen[tag] = self.seen.get(tag, 0) + 1
    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, (tag, self.getpos())
    def handle_data(self, data):
        self.text.append(data)
page = Page()
data = open(sys.argv[1], encoding="utf-8").read()
page.feed(data)
page.close()
assert not page.open, page.open
assert len(data) < 10**6
for words in sys.argv[2:]:
    assert words in "".join(page.text), words
print(page.seen.get("svg", 0), page.seen.get("polyline", 0))
END
exits 0 "report of a run" lbctl report first -o "$T/first.html"
exits 0 "it is whole, and says what happened" python3 "$T/parse.py" "$T/first.html" first completed crash \
	'steps that were made again' 'productive' 'checkpoint of step' 'GPU-hours' 'checkpoint.pattern' 'lemon score'
curves=${out%% *}
ok "with curves, and a stretch that was made again" [ "${curves:-0}" -ge 2 ]
exits 0 "of a pattern" lbctl report '*' -o "$T/all.html"
exits 0 "it has them all, beside the first" python3 "$T/parse.py" "$T/all.html" first second 'Compared with first'
exits 0 "of a group" lbctl report duo -o "$T/duo.html"
exits 0 "with the settings, and the code, that differ" python3 "$T/parse.py" "$T/duo.html" first second \
	'setting that differs' 'Compared with first: code differs' '-rate = 1' '+rate = 2' 'lemon score' 'CPUs used'
exits 0 "of a group as orders name it" sh -c 'lbctl report duo@group -o - >"$T/same.html"'
exits 0 "the same, on standard output" python3 "$T/parse.py" "$T/same.html" first second 'setting that differs'
ok "and no file of that name" [ ! -e - ]
exits 0 "of the week" lbctl report --week -o "$T/week.html"
exits 0 "with all runs" python3 "$T/parse.py" "$T/week.html" first second owner
exits 0 "of everybody" lbctl report --team -o "$T/team.html"
exits 2 "not of nothing" lbctl report -o "$T/none.html"
exits 2 "and not to nowhere" lbctl report first
exits 3 "a run that is not there is said" lbctl report nobody -o "$T/none.html"
ok "and no page is left then" [ ! -e "$T/none.html" ]
exits 9 "a folder that is not there, too" lbctl report first -o "$T/absent/x.html"
mkfifo "$T/pipe"
cat "$T/pipe" >"$T/piped" &
exits 0 "a page for a pipe" lbctl report first -o "$T/pipe"
ok "is no file in its place" [ -p "$T/pipe" ]
wait_for 'grep -q "</html>" "$T/piped"' 10
passed "goes into it"
ok "of whoever keeps files to himself" sh -c 'umask 077 && lbctl report first -o "$T/mine.html"'
is "$(stat -c %a "$T/mine.html")" 600 "a page is for him alone"

# --- in a browser ---------------------------------------------------------------------------
browse() {
	timeout 120 chromium --headless --no-sandbox --disable-gpu --disable-dev-shm-usage --user-data-dir="$T/browser" \
		--window-size=1000,1400 "$@" "file://$T/first.html" >"$T/browser.log" 2>&1
}
if command -v chromium >/dev/null; then
	browse --screenshot="$T/light.png"
	browse --force-dark-mode --enable-features=WebContentsForceDark --screenshot="$T/dark.png"
	browse --print-to-pdf="$T/page.pdf"
	ok "a browser shows it, light" [ -s "$T/light.png" ]
	ok "and dark" [ -s "$T/dark.png" ]
	ok "which is another picture" sh -c "! cmp -s '$T/light.png' '$T/dark.png'"
	is "$(head -c 5 "$T/page.pdf")" "%PDF-" "and prints it"
else
	diag "chromium is not installed: the page was not opened in a browser"
fi
done_testing
