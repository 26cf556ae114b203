#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth profile -E: numbered pictures that make a video, in which the hottest function's box is as wide as its share."""
import collections
import json
import os
import re
import shutil
import struct
import subprocess
import tempfile
import zlib

from support import HEARTH, ROOT, Tap, hearth_for_everybody, need, path, run, start, unprivileged, workload

tap = Tap("frames")
need(tap)
BAR, BOTTOM, SIDE = 16, 34, 10


def png(name):
    """Width, height, rows of RGB bytes; only what render_png() writes."""
    with open(name, "rb") as f:
        data = f.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    at, body, size = 8, b"", None
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        part = data[at + 8:at + 8 + length]
        assert struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] == zlib.crc32(kind + part)
        if kind == b"IHDR":
            size = struct.unpack(">IIBBBBB", part)
            assert size[2:] == (8, 2, 0, 0, 0)
        if kind == b"IDAT":
            body += part
        at += 12 + length
    width, height = size[:2]
    raw = zlib.decompress(body)
    row = 1 + 3 * width
    assert len(raw) == row * height and all(raw[y * row] == 0 for y in range(height))
    return width, height, [raw[y * row + 1:(y + 1) * row] for y in range(height)]


def colour_of(name):
    """As the page has it, by the page's own module."""
    script = f"""import {{ COLOURS, Colours }} from '{ROOT}/web/colour.js';
const frames = {{ count: 1, own: 1, shared: {{}}, module: [0], kind: () => 'native', name: () => {json.dumps(name)}, moduleName: () => '' }};
console.log(COLOURS[new Colours(frames, 'kind').of(0)]);"""
    done = run("node", "--input-type=module", "-e", script)
    hue, saturation, lightness = (float(x) for x in re.findall(r"[\d.]+", done.stdout))
    a = saturation / 100 * min(lightness / 100, 1 - lightness / 100)

    def channel(n):
        k = (n + hue / 30) % 12
        return round(255 * (lightness / 100 - a * max(-1, min(k - 3, 9 - k, 1))))
    return channel(0), channel(8), channel(4)


def boxes(picture, colour):
    """(level, left, width) of every bar of a colour; its second row of pixels has no text."""
    width, height, rows = picture
    found = []
    for level in range((height - 2 * BOTTOM) // BAR):
        y = height - BOTTOM - BAR * (level + 1) + 1
        near = [all(abs(rows[y][3 * x + i] - colour[i]) <= 2 for i in range(3)) for x in range(width)]
        x = 0
        while x < width:
            begin = x
            while x < width and near[x]:
                x += 1
            if x > begin:
                found.append((level, begin, x - begin))
            x += 1
    return found


def frames(*options, folder=None, seconds=5):
    where = folder or tempfile.mkdtemp(dir=path(""))
    done = run(HEARTH, "profile", "-f", "-E", *options, seconds, cwd=where, timeout=90)
    made = os.path.join(where, "frames")
    return where, done, sorted(os.listdir(made)) if os.path.isdir(made) else []


spin = start(workload("spin"), "300")
where, done, names = frames("--frame-rate", "4")
if "without cairo" in done.stderr:
    tap.skip("everything", "this build has no pictures")
    tap.finish()
tap.ok(done.returncode == 0 and 19 <= len(names) <= 21 and names[0] == "flamegraph0000.png" and names[-1] == f"flamegraph{len(names) - 1:04d}.png",
       "5 s at four a second are twenty pictures", f"{len(names)} {done.stderr.strip()}")
folded = collections.Counter()
for line in done.stdout.splitlines():
    stack, count = line.rsplit(" ", 1)
    folded[stack] += int(count)
all_samples = sum(folded.values())
hot = max((c for s, c in folded.items() if s.startswith("spin;") and s.endswith(";spin_work")), default=0)
tap.ok(all_samples > 200 and hot > 20, "the report comes in the same run", f"{hot} of {all_samples} samples are the hot function's")
last = png(os.path.join(where, "frames", names[-1]))
tap.ok(last[:2] == (1024, 800), "pictures are as large as go-profile's", last[:2])
colour = colour_of("spin_work")
widest = max(boxes(last, colour), key=lambda b: b[2], default=(0, 0, 0))
share, wanted = 100 * widest[2] / (1024 - 2 * SIDE), 100 * hot / max(all_samples, 1)
tap.ok(abs(share - wanted) <= 3 and widest[2] > 20, "the hottest function's box has the page's colour and its share's width",
       f"{share:.1f} % of the picture, {wanted:.1f} % of the samples; {widest[2]} pixels at level {widest[0]}, rgb{colour}")
counts = [sum(w for _, _, w in boxes(png(os.path.join(where, "frames", n)), colour)) for n in names[4::4]]
tap.ok(all(counts), "the box is in every picture from the second second on", counts)
if shutil.which("ffmpeg"):
    video, back = os.path.join(where, "out.mp4"), os.path.join(where, "back.raw")
    made = run("ffmpeg", "-v", "error", "-framerate", "4", "-i", os.path.join(where, "frames/flamegraph%04d.png"), "-pix_fmt", "yuv420p", video)
    told = run("ffprobe", "-v", "error", "-show_entries", "format=duration", "-of", "csv=p=0", video)
    tap.ok(made.returncode == 0 and 4.7 <= float(told.stdout or 0) <= 5.3, "ffmpeg makes a video of 5 s of them", told.stdout.strip() + made.stderr)
    run("ffmpeg", "-v", "error", "-sseof", "-0.25", "-i", video, "-frames:v", "1", "-f", "rawvideo", "-pix_fmt", "rgb24", back)
    with open(back, "rb") as f:
        raw = f.read()
    y = 800 - BOTTOM - BAR * (widest[0] + 1) + 2
    near = [x for x in range(1024) if all(abs(raw[3 * (1024 * y + x) + i] - colour[i]) <= 24 for i in range(3))]
    tap.ok(len(near) >= widest[2] * 0.9, "and the box is in the video, too", f"{len(near)} pixels of {widest[2]}")
else:
    tap.skip("a video", "needs ffmpeg")

where, done, names = frames("--frame-rate", "10", "--frame-size", "640x300", "--frames-max", "7", "-g", "%d-of.png", seconds=3)
mine = [f for f in os.listdir(where) if f.endswith("-of.png")]
tap.ok(done.returncode == 0 and sorted(mine) == sorted(f"{i}-of.png" for i in range(7)) and png(os.path.join(where, "0-of.png"))[:2] == (640, 300),
       "size, number and names are as asked for", mine)
where, done, names = frames("--frame-rate", "30", seconds=3)
tap.ok(done.returncode == 0 and 85 <= len(names) <= 91, "thirty a second", f"{len(names)} {done.stderr.strip()}")


def hot_colours(*options):
    """What colours the box of spin_work has in the last five pictures; of one process it is as wide as the picture, at the level known from above."""
    where, done, names = frames("--frame-rate", "10", "-p", spin.pid, *options, seconds=3)
    tap.ok(done.returncode == 0 and len(names) > 10 and "Generating flame graph frames." in done.stderr.splitlines(), f"pictures of one process {' '.join(options)}",
           done.stderr.strip())
    y, seen = 800 - BOTTOM - BAR * (widest[0] + 1) + 1, []
    for name in names[-5:]:
        row = png(os.path.join(where, "frames", name))[2][y]
        # The box is most of the row: what it shares the row with is of the kernel and narrow.
        colour, width = collections.Counter(row[3 * x:3 * x + 3] for x in range(1024)).most_common(1)[0]
        seen.append(tuple(colour) if width > 700 else None)
    return seen


still, moving = hot_colours(), hot_colours("--shimmer")
tap.ok(len(still) == 5 and None not in still and all(max(abs(a - b) for a, b in zip(c, colour)) <= 2 for c in still), "a function keeps its colour from picture to picture", still)
tap.ok(None not in moving and len(moving) == 5 and all(a != b for a, b in zip(moving, moving[1:])), "--shimmer: its colour moves with each", moving)
for options, words in ((["-g", "x.png"], "-g"), (["-g", "%d%d.png"], "-g"), (["-g", "%s.png"], "-g"), (["-g", "%5"], "-g"), (["--frame-rate", "0"], "--frame-rate"),
                       (["--frame-rate", "x"], "--frame-rate"), (["--frame-size", "10x10"], "--frame-size"), (["--frames-max", "0"], "--frames-max")):
    _, done, names = frames(*options, seconds=1)
    tap.ok(done.returncode == 2 and words in done.stderr and len(done.stderr.splitlines()) == 1 and not names, f"{' '.join(options)} is refused", done.stderr.strip())
_, done, _ = frames("-g", "/proc/no/%d.png", seconds=1)
tap.ok(done.returncode == 1 and "/proc/no/" in done.stderr and not done.stdout, "a folder that cannot be made is said before sampling", done.stderr.strip())
closed = path("closed")
os.mkdir(closed, 0o555)
done = run(*unprivileged(hearth_for_everybody(), "profile", "-f", "-E", "-g", closed + "/%d.png", 1), timeout=30)
tap.ok(done.returncode == 1 and f"cannot write {closed}/0.png: Permission denied" in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout,
       "so is a folder that is not ours", f"{done.returncode} {done.stderr.strip()}")
if subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", closed], capture_output=True).returncode:
    tap.skip("a folder that cannot be written", "cannot mount a tmpfs")
else:
    _, done, _ = frames("-g", closed + "/%d.png", seconds=1)
    subprocess.run(["umount", closed], check=True)
    tap.ok(done.returncode == 1 and f"cannot write {closed}/0.png: Read-only" in done.stderr and len(done.stderr.splitlines()) == 1 and not done.stdout,
           "and one that cannot be written", f"{done.returncode} {done.stderr.strip()}")

linked, victim = path("linked"), path("victim")
os.makedirs(os.path.join(linked, "frames"))
with open(victim, "w") as f:
    f.write("somebody's")
first = os.path.join(linked, "frames", "flamegraph0000.png")
os.symlink(victim, first)
_, done, names = frames("--frame-rate", "4", folder=linked, seconds=2)
tap.ok(done.returncode == 0 and open(victim).read() == "somebody's" and not os.path.islink(first) and png(first), "a link in a picture's place is not followed", done.stderr.strip())

small = path("small")
os.mkdir(small)
if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=96k", "none", small], capture_output=True).returncode:
    tap.skip("a full disk", "cannot mount a tmpfs")
else:
    try:
        _, done, names = frames("--frame-rate", "10", folder=small, seconds=3)
        whole = [n for n in names if png(os.path.join(small, "frames", n))]
        tap.ok(done.returncode == 1 and done.stderr.count("No space left") == 1 and len(whole) == len(names) and ";" in done.stdout,
               "a full disk is said once; the report comes all the same, and no picture is cut", done.stderr.strip())
    finally:
        subprocess.run(["umount", small], check=True)
tap.finish()
