# SPDX-License-Identifier: Apache-2.0
"""What the long forms share (long_java.py, long_nodejs.py): loads that are sampled at two rates at once until there are enough stacks, and what was
measured, which is kept until the program of this folder differs, so that a run which was broken off goes on."""
import glob
import hashlib
import sys

from support import *

RATES = 99, 997
WALL_SECONDS = 240


def tree(figures):
    """What is measured, and by what: the program, the loads and oracles of this folder, and which figures are kept."""
    found = hashlib.sha256(repr(figures).encode())
    beside = [p for p in sorted(glob.glob(os.path.join(HERE, "**"), recursive=True)) if re.search(r"/(java|nodejs)/.*\.(java|m?js|cjs)$|/(java|node|long|judge)\w*\.py$", p)]
    for file in [HEARTH, *beside]:
        with open(file, "rb") as f:
            found.update(f.read())
    return found.hexdigest()


def kept(file, figures):
    """What earlier runs measured; --again forgets it."""
    try:
        with open(file, encoding="utf-8") as f:
            rows = json.load(f)
    except (OSError, ValueError):
        rows = {}
    now = tree(figures)
    return rows if rows.get("tree") == now and "--again" not in sys.argv else {"tree": now}


def measured(tap, file, figures, jobs, measure):
    """For each job (version, load): its name and {rate: figures} of measure(version, load), which says why there are none otherwise."""
    rows = kept(file, figures)
    for at, (version, load) in enumerate(jobs):
        name = f"{version} {load}"
        print(f"# {at + 1} of {len(jobs)}: {name}, load {os.getloadavg()[0]:.1f}", file=sys.stderr, flush=True)
        result = rows.get(name) or measure(version, load)
        if isinstance(result, str):
            tap.ok(False, f"{name}: hearth record ends well", result)
            continue
        rows[name] = result
        with open(file, "w", encoding="utf-8") as f:
            json.dump(rows, f)
        yield name, version, load, result


def judge(tap, name, f, rows):
    """@rows: (is it so, what, figures) of one rate's figures @f; when one is not, what was odd is noted."""
    if not all([tap.ok(fine, f"{name}: {what}", figures) for fine, what, figures in rows]):
        for line in f["odd"]:
            tap.note(f"    {line}")


def wait_for(process, cpu_seconds):
    """Until its busiest thread has had so many seconds of CPU, at most WALL_SECONDS."""
    end = time.monotonic() + WALL_SECONDS
    while process.poll() is None and busiest_seconds(process.pid) < cpu_seconds and time.monotonic() < end:
        time.sleep(0.5)


def cells(row, shares):
    """Columns of a table: for each of @shares (part, whole, digits) its share at both rates."""
    both = [row[str(rate)] for rate in RATES]
    return [", ".join(f"{100 * f[part] / max(f[whole], 1):.{digits}f} %" for f in both) for part, whole, digits in shares]
