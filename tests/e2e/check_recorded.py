#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A kept recording of Python and native samples gives the same stacks as when it was made (tests/golden/recorded.col).
HEARTH_GOLDEN_UPDATE=1 makes the golden file anew."""
import os
import struct

from support import Tap, hearth, path

GOLDEN = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "golden", "recorded.col")
VERSION, SAMPLE, NAME = 3, 1, 7
KERNEL, USER, RUNTIME, ACTIVATION = 1, 2, 5, 6
RETURN, ENTRY, GAP = 1, 4, 8
PYTHON, PID, START = 1, 4242, 1000
COMPLETE, READ_FAILED = 0, 2
WHOLE, LIMIT, BAD_CHAIN, IN_GAP = 1, 4, 5, 6
tap = Tap("recorded")


def padded(data):
    return data + bytes(-len(data) % 8)


def record(kind, body):
    body = padded(body)
    return struct.pack("<HHIQ", kind, VERSION, 16 + len(body), 5) + body


def name(key, file, function, first_line):
    """struct abi_name with a struct abi_python_name: ASCII texts, and a line table of 3.12: ten units on the first line."""
    texts = [file.encode(), function.encode(), bytes([0xf9, 0x00])]
    sizes = [len(t) for t in texts]
    data = struct.pack("<QiIIIHHHBBBBB5x", 0, first_line, *sizes, *sizes, 1, 1, 1, 12, 3) + b"".join(padded(t) for t in texts)
    return record(NAME, struct.pack("<QQQIIIHBB", START, key, key + 1, PID, 1, len(data), 0, PYTHON, 0) + data)


def frame(kind, a, flags=0, extra=0):
    runtime = kind in (RUNTIME, ACTIVATION)
    return struct.pack("<BBHIQQ", kind, flags, PYTHON if runtime else 0, extra, a, a + 1 if kind == RUNTIME else 0)


def sample(kernel, user, runtime, end, runtime_end, thread=b"main"):
    frames = [frame(KERNEL, a) for a in kernel] + [frame(USER, a, RETURN if i else 0, 10 * i) for i, a in enumerate(user)]
    head = struct.pack("<QQQIIIHHHBBIQHBBI16s16s", START, 0, 0, PID, PID, 0, len(frames), len(kernel), 0, end, 0, 1, 0x7ffc00000000,
                       len(runtime), runtime_end, 0, 0, b"made up", thread)
    return record(SAMPLE, head + b"".join(frames) + b"".join(runtime))


def recording():
    yield b"hearthrc" + struct.pack("<II", 1, 0)
    yield name(0x5000, "/srv/app.py", "main", 10)
    yield name(0x6000, "/srv/app.py", "Worker.run", 20)
    yield name(0x7000, "/usr/lib/python3.12/json/decoder.py", "JSONDecoder.decode", 300)
    run, main, decode = frame(RUNTIME, 0x6000, extra=4), frame(RUNTIME, 0x5000, ENTRY), frame(RUNTIME, 0x7000)
    native = [0x400000, 0x401000, 0x402000]
    for count, made in ((5, ((), native, [], COMPLETE, 0)), (3, ((), native, [run, main], COMPLETE, WHOLE)),
                        (2, ((), native, [decode, run, main], COMPLETE, WHOLE, b"pool;1")),
                        (2, ((), native[:1], [run, main], READ_FAILED, LIMIT)),
                        (1, ((), native, [frame(RUNTIME, 0x6000, GAP), main], COMPLETE, IN_GAP)),
                        (1, ((), native, [decode, frame(ACTIVATION, 0x7ffc00000018), main], COMPLETE, WHOLE)),
                        (1, ((), native, [frame(RUNTIME, 0x9000, ENTRY)], COMPLETE, BAD_CHAIN))):
        for _ in range(count):
            yield sample(*made)


with open(path("kept.rec"), "wb") as f:
    f.write(b"".join(recording()))
done = hearth("record", "-q", "--sampler", "recorded", "--recording", path("kept.rec"), "-o", path("kept.col"))
tap.ok(done.returncode == 0, "the recording is replayed", done.stderr[-300:])
with open(path("kept.col")) as f:
    found = "".join(sorted(line + "\n" for line in f.read().splitlines() if not line.startswith("#")))
if os.environ.get("HEARTH_GOLDEN_UPDATE"):
    with open(GOLDEN, "w") as f:
        f.write(found)
with open(GOLDEN) as f:
    kept = f.read()
tap.ok(found == kept, "stacks, names, lines and counts are the kept ones", found)
tap.ok(sum(int(line.rsplit(" ", 1)[1]) for line in kept.splitlines()) == 15, "no sample is missing")
tap.finish()
