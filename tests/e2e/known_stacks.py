# SPDX-License-Identifier: Apache-2.0
"""Whether a sample is exactly a known stack. A chain lists functions from main (or the thread's first) to the leaf."""

BELOW_MAIN = 4  # _start and what the libc puts between it and main
LIBC = "(libc)"  # in a chain: one frame or more of any library


def plain(name):
    """The part of a function that gcc moved away is the function; arguments and Go's calling convention do not matter."""
    return name.replace(" [clone .cold]", "").split(".cold")[0].split("(")[0].removesuffix(".abi0")


def is_library(module):
    return module.startswith(("/usr/lib", "/lib")) or module == "[vdso]"


def follows(frames, chain):
    """Whether frames (name, module), root first, are the beginning of chain."""
    at = 0  # in chain
    inside = False  # LIBC has had a frame
    for name, module in frames:
        if at < len(chain) and chain[at] == LIBC:
            if is_library(module):
                inside = True
                continue
            if not inside:
                return False
            at, inside = at + 1, False
        if at >= len(chain) or plain(name) != chain[at]:
            return False
        at += 1
    return True


def is_exact(sample, chains, roots=("_start", "runtime.goexit")):
    """From a root through at most BELOW_MAIN frames, then a beginning of a chain. Kernel frames on top do not count.
    roots: what main and main.* may stand on; None: anything."""
    frames = [(n, m) for n, m in zip(sample.names, sample.modules) if not m.startswith("[kernel")]
    first = next((i for i, (n, _) in enumerate(frames) if plain(n) == chains[0][0]), None)
    if first is None or not 1 <= first <= BELOW_MAIN:
        return False
    if roots and chains[0][0].startswith("main") and plain(frames[0][0]) not in roots:
        return False
    return any(follows(frames[first:], chain) for chain in chains)
