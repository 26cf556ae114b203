#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""PHP's tables against the code of real files: each build is known, none is when it says it is of another version (its layout is then
another one than its version's) or when one of the functions that are looked at is overwritten. Such a program still runs: hearth refuses it, says so
once, and shows no frame of PHP."""
import phps
from phps import packages
from support import *

TOOL = os.path.join(os.path.dirname(HEARTH), "tests", "runtime", "php_tool")
MARK = b"X-Powered-By: PHP/"
FUNCTIONS = ["zend_get_executed_lineno", "zend_get_executed_filename_ex", "pass_two"]
# What the code is compared with (src/runtime/php/versions/layouts.c): versions in one row have the same.
ALIKE = [["7.0"], ["7.1", "7.2"], ["7.3"], ["7.4"], ["8.0", "8.1"], ["8.2"], ["8.3"], ["8.4"], ["8.5"]]
PACKAGES = ["php{}-cli", "php{}-fpm", "php{}-cgi", "libphp{}-embed", "libapache2-mod-php{}"]
SUITES = {"bullseye": "7.4", "bookworm": "8.2", "trixie": "8.4"}

tap = Tap("php_tables")
need(tap, "readelf")
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def found_in(file):
    """(version, what it is, known or why not)."""
    line = run(TOOL, file).stdout.strip().removeprefix(f"{file}: version ")
    return line.split(", ", 2) if line.count(", ") >= 2 else ("", "", line)


def changed(file, changes):
    """A copy with other bytes at some places."""
    copy = path("changed")
    with open(file, "rb") as f:
        data = bytearray(f.read())
    for at, new in changes:
        data[at:at + len(new)] = new
    with open(copy, "wb") as f:
        f.write(data)
    os.chmod(copy, 0o755)
    return copy


def other_version(file, version):
    with open(file, "rb") as f:
        data = f.read()
    out, at = [], data.find(MARK)
    while at >= 0:
        out.append((at + len(MARK), version.encode()))
        at = data.find(MARK, at + 1)
    return changed(file, out)


def place_of(file, function):
    """(offset, size) of a function in the file."""
    symbols = run("readelf", "--dyn-syms", "-sW", file).stdout
    found = re.search(rf"([0-9a-f]+) +(\d+) FUNC .* {function}(?:@.*)?$", symbols, re.M)
    address = int(found[1], 16)
    for at, virtual, size in re.findall(r"LOAD +0x([0-9a-f]+) 0x([0-9a-f]+) 0x[0-9a-f]+ 0x([0-9a-f]+)", run("readelf", "-lW", file).stdout):
        if int(virtual, 16) <= address < int(virtual, 16) + int(size, 16):
            return address - int(virtual, 16) + int(at, 16), int(found[2])
    raise RuntimeError(f"{function} lies in no segment")


def check_file(name, file):
    version, threads, state = found_in(file)
    if not tap.ok(state == "known", f"{name}: its code agrees with the table", f"{version}, {threads}, {state}"):
        return
    mine = ".".join(version.split(".")[:2])
    taken = []
    for row in ALIKE:
        for other in row:
            said = found_in(other_version(file, other))[2]
            if mine not in row and "() is not that of version " + other not in said:
                taken.append(f"{other}: {said}")
    tap.ok(not taken, f"{name}: that says it is of another version is refused", taken)
    taken = []
    for function in FUNCTIONS:
        at, size = place_of(file, function)
        said = found_in(changed(file, [(at, bytes(size))]))[2]
        if f"{function}() is not that of version {mine}" != said:
            taken.append(f"{function}: {said}")
    tap.ok(not taken, f"{name}: with another function is refused", taken)


def check_refused(php):
    """What runs is not laid out as it says."""
    other = "8.4" if php.version != "8.4" else "8.2"
    copy = other_version(php.program, other)
    code = "function spin($n) { $x = 0; for ($i = 0; $i < $n; $i++) $x += $i; return $x; } $e = microtime(true) + 6; while (microtime(true) < $e) spin(10000);"
    processes = [start(program, "-n", "-r", code) for program in (copy, copy, php.program)]
    file = path("refused.pb.gz")
    done = run(HEARTH, "record", "-F", 997, *[o for p in processes for o in ("-p", p.pid)], "-d", 2, "-o", file)
    for process in processes:
        process.kill()
        process.wait()
    said = [line.strip() for line in done.stdout.splitlines() if "is not that of version" in line]
    tap.ok(done.returncode == 0 and len(said) == 1 and f"version {other}" in said[0], f"{php.name} that says it is {other}: refused, said once", said or done.stdout[-300:])
    profile = Profile(file)
    *strange, real = [[s for s in profile.of(p)] for p in processes]
    shown = [total([s for s in samples if "[php]" in s.modules]) for samples in strange]
    ticks = [total(samples) for samples in strange]
    tap.ok(min(ticks) >= 100 and not any(shown), f"{php.name} that says it is {other}: no frames of PHP", f"{shown} of {ticks} samples")
    with_php = total([s for s in real if "spin" in s.names])
    tap.ok(with_php >= 0.8 * total(real) > 80, f"{php.name} beside it: has its frames", f"{with_php} of {total(real)} samples")


def files_of(folder):
    for at, _, names in sorted(os.walk(folder)):
        for name in sorted(names):
            file = os.path.join(at, name)
            if re.fullmatch(r"php(-fpm|-cgi)?\d\.\d|libphp\d?\.?\d?\.so", name) and not os.path.islink(file) and os.path.getsize(file) > 1 << 20:
                yield file


def packaged(suite, architecture, names):
    """Their files, unpacked; nothing of them runs."""
    with packages.Lock():
        files = packages.Suite(suite, architecture).fetch(names, with_dependencies=False)
        return packages.unpacked(f"roots/{suite}-{architecture}-php-files", files)


def wanted(what):
    return not only or what in only


installed = phps.of_machine()
if wanted("installed"):
    for php in [*installed, phps.fpm_of_machine()]:
        if php:
            check_file(os.path.basename(php.program), php.program)
if wanted("refused"):
    for php in installed[:1]:
        check_refused(php)
    if not installed:
        tap.skip("a file that says it is of another version", "no interpreter")
if not QUICK and wanted("suites"):
    for suite, version in SUITES.items():
        for architecture, names in ("amd64", PACKAGES), ("arm64", PACKAGES[:1]):
            try:
                folder = packaged(suite, architecture, [name.format(version) for name in names])
            except packages.Unavailable as e:
                tap.skip(f"PHP of {suite}, {architecture}", str(e))
                continue
            for file in files_of(folder):
                check_file(f"{suite}, {architecture}, {os.path.relpath(file, folder)}", file)
if not QUICK and wanted("threads"):
    try:
        check_file("8.4 for threads", phps.threaded()[0])
    except packages.Unavailable as e:
        tap.skip("8.4 for threads", str(e))
tap.finish()
