# SPDX-License-Identifier: Apache-2.0
"""Instructions that this kernel's verifier looks at for the sampler's program, and how many of them each language runtime adds: the same
sources, compiled without the lines of bpf/runtimes.h that are about it. Needs clang and root."""
import os
import re
import shutil
import subprocess

from measure import *

FLAGS = ["-O2", "-g", "-target", "bpf", "-mcpu=v3", "-std=gnu17", "-w", "-fno-stack-protector", "-D__TARGET_ARCH_x86"]
# What is left out, and how many are wanted at most.
WANTED = [("java", 15000), ("nodejs", 6000), ("python", 5000), ("ruby", None), ("php", None), ("perl", None)]


def without(text, runtime):
    """bpf/runtimes.h without the lines that call a runtime's functions."""
    name = f"ABI_RUNTIME_{runtime.upper()}"
    text = re.sub(rf"\tcase {name}:\n\t\treturn \w+\(w\);\n", "", text)
    text = re.sub(rf"\tif \(runtimes_(has|in_line)\([^;\n]*{name}\)\)\n[^\n]*\n", "", text)
    text = re.sub(rf"\t\tif \(runtimes_has\([^;\n]*{name}\)\) *\\\n[^\n]*\\\n", "", text)
    text = re.sub(rf"\t\tif \({runtime}_names_begin\(w\)\) *\\\n[^\n]*\\\n", "", text)
    text = re.sub(rf"\tif \([^;\n]*range_count\)\n\t\t{runtime}_[^\n]*\n", "", text)
    code = text.replace(f'#include "{runtime}.h"', "")
    if re.search(rf"{name}|\b{runtime}_", code):
        raise RuntimeError(f"bpf/runtimes.h has other lines about {runtime}: bench_verified.py must learn them")
    return text


def verified(runtimes):
    """{program: instructions} without these."""
    folder = path("verified")
    shutil.rmtree(folder, ignore_errors=True)
    for name in ("abi", "bpf", "walk"):
        shutil.copytree(os.path.join(ROOT, name), os.path.join(folder, name))
    list_of_them = os.path.join(folder, "bpf", "runtimes.h")
    with open(list_of_them, encoding="utf-8") as f:
        text = f.read()
    for runtime in runtimes:
        text = without(text, runtime)
    with open(list_of_them, "w", encoding="utf-8") as f:
        f.write(text)
    object_file = os.path.join(folder, "sampler.bpf.o")
    subprocess.run(["clang", *FLAGS, f"-I{folder}", "-c", os.path.join(folder, "bpf", "sampler.bpf.c"), "-o", object_file], check=True)
    said = subprocess.run([path("verify"), object_file], capture_output=True, text=True, check=True).stdout
    return {m[1]: int(m[2]) for m in re.finditer(r"^(\w+) ok processed (\d+) insns", said, re.M)}


def bench_verified():
    head("Instructions that the verifier looks at, in sample_tick")
    if not shutil.which("clang") or os.geteuid():
        print("# needs clang and root")
        return
    subprocess.run(["cc", "-O1", "-o", path("verify"), os.path.join(ROOT, "tests", "kernels", "verify.c"), "-lbpf"], check=True)
    whole = verified([])["sample_tick"]
    row("all", str(whole), "", "", "the kernel's limit is 1,000,000")
    every = [name for name, _ in WANTED]
    for names, most in [*(([n], m) for n, m in WANTED), (["ruby", "php", "perl"], 12000), (every, None)]:
        more = whole - verified(names)["sample_tick"]
        row("  for " + (", ".join(names) if len(names) < len(every) else "all of them"), str(more), "", f"{more / whole:.0%}", f"at most {most:,}" if most else "")


PARTS = {"verified": bench_verified}
