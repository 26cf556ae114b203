#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Small files that stand for gigabytes: every command that reads files stays within its limit, and says what raises it."""
import signal

from support import *

tap = Tap("memory")
need(tap, root=False)
TOTAL = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
MIB = 1 << 20
FRAMES = 40_000_000 if not QUICK else 8_000_000


def number(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))


def field(key, value):
    if isinstance(value, int):
        return number(key * 8) + number(value)
    return number(key * 8 + 2) + number(len(value)) + value


def pprof(name, samples, functions=1):
    """One file; the location n is of the function "f", all at their own address."""
    head = field(1, field(1, 1) + field(2, 2)) + b"".join(field(6, s) for s in (b"", b"samples", b"count", b"f"))
    head += field(5, field(1, 1) + field(2, 3))
    head += b"".join(field(4, field(1, n) + field(3, n) + field(4, field(1, 1))) for n in range(1, functions + 1))
    with open(path(name), "wb") as f:
        f.write(gzip.compress(head + samples, 6))
    return path(name)


one = field(2, field(1, b"\x01") + field(2, b"\x01"))
files = {
    "a stack without end": pprof("deep.pb.gz", field(2, field(1, b"\x01" * FRAMES) + field(2, b"\x01"))),
    "samples without end": pprof("wide.pb.gz", one * (FRAMES // 8)),
    "many stacks": pprof("stacks.pb.gz", b"".join(field(2, field(1, bytes([1 + i % 100]) + b"\x01" * (i % 997)) + field(2, b"\x01"))
                                                for i in range(FRAMES // 1000)), functions=100),
}
COMMANDS = {
    "report": lambda file: ["report", file],
    "dump": lambda file: ["dump", file],
    "html": lambda file: ["convert", "-q", file, "-o", path("out.html")],
    "window": lambda file: ["convert", "-q", file, "-o", path("out.hwin")],
    "view": lambda file: ["view", "-q", "--no-browser", file],
    "merge": lambda file: ["merge", "-q", file, file, "-o", path("out.pb.gz")],
}


def measured(args, seconds=120):
    """Returns (status, stderr, peak of its memory, seconds). What serves a file is ended as soon as it says where."""
    begin = time.monotonic()
    errors = path("stderr")
    said, out = os.pipe()
    pid = os.fork()
    if pid == 0:
        err = os.open(errors, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(out if args[0] == "view" else os.open("/dev/null", os.O_WRONLY), 1)
        os.dup2(err, 2)
        signal.alarm(seconds)
        os.execv(HEARTH, [HEARTH] + [str(a) for a in args])
    os.close(out)
    if os.read(said, 1000):
        os.kill(pid, signal.SIGINT)
    _, status, usage = os.wait4(pid, 0)
    os.close(said)
    with open(errors, errors="replace") as f:
        return os.waitstatus_to_exitcode(status), f.read(), usage.ru_maxrss * 1024, time.monotonic() - begin


sanitized = b"__asan_init" in open(HEARTH, "rb").read()
refused = 0
for what, file in files.items():
    size = os.path.getsize(file)
    for name, command in COMMANDS.items():
        for limit in (32, 128):
            status, said, peak, took = measured(command(file) + ["--memory-limit", f"{limit}M"])
            well = status == 0 or (status == 1 and said.count("\n") == 1 and "--memory-limit" in said)
            refused += status == 1
            tap.ok(well and (sanitized or peak < (limit + 48) * MIB) and took < 60,
                   f"{name} of {what} ({size >> 10} kB) within {limit} MiB: done, or refused in one line",
                   f"exit {status}, {peak / MIB:.0f} MiB, {took:.1f} s {said.strip()[-150:]}")
            tap.ok("Argument list" not in said, "and the reason is the right one", said[:200])
    status, said, peak, took = measured(["report", file])
    tap.ok(status in (0, 1) and peak < max(TOTAL / 4, 128 * MIB) + 48 * MIB, f"report of {what} takes at most a quarter of the memory",
           f"exit {status}, {peak / MIB:.0f} MiB of {TOTAL >> 20}, {took:.1f} s")
tap.ok(refused > 3 or sanitized, "some of it was too much", refused)
status, said, _, _ = measured(["report", "--memory-limit", "1", files["many stacks"]])
tap.ok(status == 2, "a limit that nothing fits into is a usage error", said.strip())
os.environ["HEARTH_MEMORY_LIMIT"] = "32M"
status, said, peak, _ = measured(["report", files["samples without end"]])
tap.ok(sanitized or (status == 1 and "32 MiB" in said), "the environment's HEARTH_MEMORY_LIMIT", said.strip())
tap.finish()
