#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what attaching says of live interpreters with their debug information, read by gdb.

check_layouts.py ATTACH_TOOL: one TAP line per interpreter, those of ~/.pyenv/versions (HEARTH_PYTHONS names another
folder). What src/runtime/python/versions/layouts.c has as data and what 3.13 says of itself must both be what the compiler wrote.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import time

NONE = 0xFFFF
FOLDER = os.environ.get("HEARTH_PYTHONS", os.path.expanduser("~/.pyenv/versions"))
tool = sys.argv[1]
failed = 0


def say(good, what):
    global failed
    failed += not good
    print(("ok " if good else "not ok ") + f"layouts: {what}", flush=True)


def at(kind, field):
    return f"(long)&((({kind} *)0)->{field})"


def size(kind):
    return f"(long)sizeof({kind})"


def wanted(minor, major):
    """Field of the layout -> gdb expression, or a number. (major, minor) as compared below."""
    version = (major, minor)
    thread, interp, code = "PyThreadState", "PyInterpreterState", "PyCodeObject"
    head = {(3, 11): "threads.head", (3, 12): "threads.head", (3, 13): "threads.head"}.get(version, "tstate_head")
    fields = {
        "thread_next": at(thread, "next"),
        "thread_id": at(thread, "thread_id"),
        "interp_next": at(interp, "next"),
        "interp_threads": at(interp, head),
        "code_filename": at(code, "co_filename"),
        "code_name": at(code, "co_name"),
        "code_first_line": at(code, "co_firstlineno"),
        "code_lines": at(code, "co_lnotab" if version < (3, 10) else "co_linetable"),
        "bytes_length": at("PyVarObject", "ob_size"),
        "version_major": major,
        "version_minor": minor,
    }
    if version <= (3, 10):
        frame = "PyFrameObject" if version < (3, 11) else "struct _frame"
        fields |= {
            "thread_frame": at(thread, "frame"),
            "cframe_frame": NONE,
            "frame_back": at(frame, "f_back"),
            "frame_code": at(frame, "f_code"),
            "frame_last": at(frame, "f_lasti"),
            "code_qualname": NONE,
            "code_bytes": NONE,
            "last_unit": 2 if version == (3, 10) else 1,
        }
    else:
        frame = "_PyInterpreterFrame"
        fields |= {
            "frame_back": at(frame, "previous"),
            "frame_code": at(frame, "f_code" if version < (3, 13) else "f_executable"),
            "frame_last": at(frame, "prev_instr" if version < (3, 13) else "instr_ptr"),
            "frame_entry": at(frame, "is_entry" if version == (3, 11) else "owner"),
            "code_qualname": at(code, "co_qualname"),
            "code_bytes": at(code, "co_code_adaptive"),
            "thread_native_id": at(thread, "native_thread_id"),
        }
        if version < (3, 13):
            fields |= {
                "thread_frame": at(thread, "cframe"),
                "cframe_frame": at("_PyCFrame", "current_frame"),
                "cframe_previous": at("_PyCFrame", "previous"),
            }
        else:
            fields |= {"thread_frame": at(thread, "current_frame"), "cframe_frame": NONE}
        if version >= (3, 12):
            fields["entry_value"] = "(long)FRAME_OWNED_BY_CSTACK"
    if major == 2:
        fields |= {"bytes_data": at("PyStringObject", "ob_sval"), "string_ascii": at("PyStringObject", "ob_sval")}
    else:
        fields |= {
            "string_length": at("PyASCIIObject", "length"),
            "string_state": at("PyASCIIObject", "state"),
            "string_ascii": size("PyASCIIObject"),
            "string_compact": size("PyCompactUnicodeObject"),
            "bytes_data": at("PyBytesObject", "ob_sval"),
        }
    return fields


def places(minor, major):
    """Differences of addresses that attaching found: name -> (expression, the fields of the tool's line that it uses)."""
    if (3, 7) <= (major, minor) <= (3, 11):
        return {"holder - interpreters": "(long)&_PyRuntime.gilstate.tstate_current - (long)&_PyRuntime.interpreters.head"}
    if major == 2 or minor == 6:
        return {"holder - interpreters": "(long)&_PyThreadState_Current - (long)&interp_head"}
    return {}


def ask_gdb(library, expressions):
    command = ["gdb", "-batch", "-nx"]
    for e in expressions:
        command += ["-ex", f"print/d {e}"]
    out = subprocess.run(command + [library], capture_output=True, text=True, timeout=300)
    values = re.findall(r"^\$\d+ = (-?\d+)$", out.stdout, re.M)
    return [int(v) for v in values] if len(values) == len(expressions) else out.stderr.strip().splitlines()[-1:]


def attach(python):
    child = subprocess.Popen([python, "-c", "import time; time.sleep(60)"])
    try:
        for _ in range(50):
            time.sleep(0.1)
            out = subprocess.run([tool, str(child.pid)], capture_output=True, text=True, timeout=60).stdout
            if "\nlayout " in out:
                return out
        return None
    finally:
        child.kill()
        child.wait()


def check(folder):
    name = os.path.basename(folder)
    libraries = glob.glob(os.path.join(folder, "lib", "libpython[23].*.so.1.0"))
    if not libraries:
        print(f"ok layouts: {name} # SKIP has no shared library")
        return
    major, minor = (int(n) for n in name.split(".")[:2])
    out = attach(os.path.join(folder, "bin", f"python{major}.{minor}"))
    if not out:
        say(False, f"{name}: cannot be attached to")
        return
    words = re.search(r"^layout (.*)$", out, re.M)[1].split()
    layout = dict(zip(words[::2], (int(w) for w in words[1::2])))
    line = dict(re.findall(r" (holder|interpreters) (?:0x)?([0-9a-f]+)", out))
    fields = wanted(minor, major)
    constants = {k: v for k, v in fields.items() if isinstance(v, int)}
    asked = {k: v for k, v in fields.items() if not isinstance(v, int)} | places(minor, major)
    values = ask_gdb(libraries[0], asked.values())
    if len(values) != len(asked):
        print(f"ok layouts: {name} # SKIP no debug information for it: {values}")
        return
    truth = constants | dict(zip(asked, values))
    layout["holder - interpreters"] = int(line["holder"], 16) - int(line["interpreters"], 16)
    wrong = [f"{k} {layout[k]} is {v}" for k, v in truth.items() if layout[k] != v]
    say(not wrong, f"{name}: {len(truth)} values equal" if not wrong else f"{name}: {'; '.join(wrong)}")


if not shutil.which("gdb"):
    print("ok layouts: everything # SKIP needs gdb")
    sys.exit(0)
found = sorted(glob.glob(os.path.join(FOLDER, "[23].*")))
for f in found:
    check(f)
if not found:
    print(f"ok layouts: everything # SKIP no interpreters in {FOLDER}")
sys.exit(failed > 0)
