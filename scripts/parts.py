# SPDX-License-Identifier: Apache-2.0
"""The parts of make test-extra (tests/parts.toml): what each depends on, which hold for this tree, which CI has to run.

A part's inputs are the files below its declared paths, its own checks, the files that nobody declares, and its entry in
the table. Their digest is the part's key. A result and the record in git both name that key: who has the same key has the
same inputs, in any clone, shallow or not, whatever the history looks like.
"""
import hashlib
import json
import os
import platform
import subprocess
import sys
import tomllib

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
TABLE = "tests/parts.toml"
RECORD = "tests/parts.record"
ROOM_SECONDS = 2400  # of parts that took this long whole, the one in rotation among them


class Refused(Exception):
    """What the caller has to change before anything can run; its text is one line for people."""


def git(*args, root=ROOT):
    done = subprocess.run(["git", "-C", root, *args], capture_output=True, text=True, errors="surrogateescape")
    if done.returncode:
        raise Refused(f"git {args[0]}: {done.stderr.strip()}")
    return done.stdout


def matches(path, declared):
    """Does a declared path (a file, a folder with a slash at its end, a folder's own files with /. at its end, a beginning with *) cover @path?"""
    if declared.endswith("/."):
        return os.path.dirname(path) == declared[:-2]
    if declared.endswith("*"):
        return path.startswith(declared[:-1])
    return path.startswith(declared) if declared.endswith("/") else path == declared


class Part:
    def __init__(self, name, row, groups):
        self.name, self.row = name, row
        self.about = row["about"]
        self.builds = row.get("builds", [])
        self.checks = row.get("checks", [])  # "NAME" or "NAME ARGUMENTS"
        self.steps = row.get("steps", [])
        self.no_quick = row.get("no_quick", [])
        self.skips = row.get("skips", 0)  # how many results of a whole run may be skipped
        self.with_peer = row.get("with_peer", [])  # checks that may skip all they have: they need a peer that no registry has
        self.paths = [f"tests/e2e/check_{check.split()[0]}.py" for check in self.checks]
        for path in row["paths"]:
            self.paths += groups[path[1:]] if path.startswith("@") else [path]

    @property
    def names(self):
        """The end-to-end checks of the part."""
        return list(dict.fromkeys(check.split()[0] for check in self.checks))

    def covers(self, path):
        return any(matches(path, declared) for declared in self.paths)


class Table:
    """tests/parts.toml. Raises Refused when it does not fit the checks that there are."""

    def __init__(self, root=ROOT):
        self.root = root
        try:
            with open(os.path.join(root, TABLE), "rb") as f:
                rows = tomllib.load(f)
            groups = self.groups_of(rows.get("groups", {}))
            self.builds, self.test = rows["builds"], rows["test"]
            self.parts = {name: Part(name, row, groups) for name, row in rows["parts"].items()}
        except (OSError, tomllib.TOMLDecodeError, KeyError) as e:
            raise Refused(f"{TABLE}: {type(e).__name__} {e}")
        self.check()

    @staticmethod
    def groups_of(rows):
        """A group may name groups above it."""
        groups = {}
        for name, paths in rows.items():
            groups[name] = [p for path in paths for p in (groups[path[1:]] if path.startswith("@") else [path])]
        return groups

    def check(self):
        there = {f[6:-3] for f in os.listdir(os.path.join(self.root, "tests/e2e")) if f.startswith("check_") and f.endswith(".py")}
        listed = [name for part in self.parts.values() for name in part.names]
        unlisted = sorted(there - set(listed))
        if unlisted:
            raise Refused(f"{TABLE}: no part lists the check {', '.join(unlisted)}: add it to the one it belongs to")
        missing = sorted(set(listed + self.test.get("side_by_side", []) + self.test.get("in_pairs", [])) - there)
        if missing:
            raise Refused(f"{TABLE}: there is no tests/e2e/check_{missing[0]}.py")
        for part in self.parts.values():
            for path in part.paths:
                if path.count("*") > path.endswith("*") or path.startswith("@"):
                    raise Refused(f"{TABLE}: {part.name}: {path}: a star stands at the end, a group in paths of a part or of a later group")
            if not isinstance(part.skips, int) or part.skips < 0:
                raise Refused(f"{TABLE}: {part.name}: skips is {part.skips!r}, no number")
            for build in part.builds:
                if build not in self.builds:
                    raise Refused(f"{TABLE}: {part.name}: there is no build {build}")

    def part(self, name):
        if name not in self.parts:
            raise Refused(f"there is no part {name}; there are: {' '.join(self.parts)}")
        return self.parts[name]

    def quick_checks(self):
        """The checks that make test runs in their quick form."""
        none = {name for part in self.parts.values() for name in part.no_quick}
        return sorted({name for part in self.parts.values() for name in part.names} - none)

    def declared(self, path):
        return any(matches(path, p) for p in self.test["paths"]) or any(part.covers(path) for part in self.parts.values())


class Tree:
    """The files of a commit."""

    def __init__(self, root=ROOT, commit="HEAD"):
        self.root = root
        self.commit = git("rev-parse", commit, root=root).strip()
        self.id = git("rev-parse", commit + "^{tree}", root=root).strip()
        self.files = {}
        for row in git("ls-tree", "-r", "-z", commit, root=root).split("\0"):
            if row:
                about, path = row.split("\t", 1)
                self.files[path] = about

    def inputs(self, table, part):
        """{path: mode, type and blob} of what the part depends on."""
        return {p: about for p, about in self.files.items() if part.covers(p) or not table.declared(p)}

    def key(self, table, part):
        text = json.dumps([part.row, sorted(self.inputs(table, part).items())], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:32]

    def dirty(self):
        """Files that differ from the commit, untracked ones too; the record may be new."""
        rows = git("status", "--porcelain", "--untracked-files=normal", root=self.root).splitlines()
        return [row[3:] for row in rows if row[3:] != RECORD]

    def rotation(self):
        """A number that changes with commits: HEARTH_ROTATION, else how many there are, else (shallow) from the commit's id."""
        forced = os.environ.get("HEARTH_ROTATION", "")
        if forced:
            if not forced.isdigit():
                raise Refused(f"HEARTH_ROTATION is {forced!r}, no number")
            return int(forced)
        if git("rev-parse", "--is-shallow-repository", root=self.root).strip() == "true":
            return int(self.commit[:8], 16)
        return int(git("rev-list", "--count", self.commit, root=self.root))


# ---- results of whole parts, outside of git ----


def machine():
    return f"{platform.machine()} {platform.release()}"


def cache_folder(name):
    """A folder for what need not be found out twice on this machine."""
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "hearth-tests", name)


def results_folder():
    return cache_folder("parts")


def result_of(part, key):
    """What the part's last whole run with these inputs on this kernel came to, or None."""
    try:
        with open(os.path.join(results_folder(), f"{part.name}-{key}.json")) as f:
            result = json.load(f)
    except (OSError, ValueError):
        return None
    return result if result.get("machine") == machine() else None


def why_not(part, result):
    """Why a part does not hold, or "": nothing failed, something passed, no check or step skipped all that it has, and no more was
    skipped than the table allows. What was skipped was not tested, and a machine that lacks something shows nothing by that."""
    if not result:
        return "not run"
    if result["failed"]:
        return "FAILED"
    whole = [check for check in result.get("skipped_whole", []) if check not in part.with_peer]
    if whole:
        return f"skipped whole: {', '.join(whole)}"
    if not result["passed"]:
        return "nothing passed"
    if result["skipped"] > part.skips:
        return f"too much skipped: {result['skipped']}, {TABLE} allows {part.skips}"
    return ""


def holds(part, result):
    return not why_not(part, result)


def forget_result(part, key):
    try:
        os.unlink(os.path.join(results_folder(), f"{part.name}-{key}.json"))
    except FileNotFoundError:
        pass


def write_result(part, key, result):
    """Only a part that came to its end has a result: the file appears at once."""
    os.makedirs(results_folder(), exist_ok=True)
    file = os.path.join(results_folder(), f"{part.name}-{key}.json")
    with open(file + ".new", "w") as f:
        json.dump({**result, "part": part.name, "key": key, "machine": machine()}, f)
    os.replace(file + ".new", file)


# ---- the record in git ----


class Record:
    """tests/parts.record: for which inputs each part last passed whole, and on which tree."""

    def __init__(self, root=ROOT):
        self.root, self.rows = root, {}  # part -> (key, commit, tree, what it came to)
        try:
            with open(os.path.join(root, RECORD)) as f:
                lines = [line.rstrip("\n").split(" ", 5) for line in f if line.startswith("part ")]
        except FileNotFoundError:
            return
        self.rows = {line[1]: tuple(line[2:]) for line in lines if len(line) == 6}

    def key(self, name):
        return self.rows[name][0] if name in self.rows else None

    def seconds(self, name):
        """What the part took whole; 0 when it is not recorded."""
        return int(self.rows[name][3].split(" ", 1)[0]) if name in self.rows else 0

    def held(self, name):
        """(commit, tree) on which the part last held, or None when it never did or the tree is not in this clone."""
        row = self.rows.get(name)
        return row[1:3] if row and self.has_tree(row[2]) else None

    def has_tree(self, name):
        """Is this tree in this clone? A shallow one may lack it."""
        return subprocess.run(["git", "-C", self.root, "cat-file", "-e", name + "^{tree}"], capture_output=True).returncode == 0

    def changed(self, name, tree):
        """The paths that differ from the tree on which the part held, or None when it is not there."""
        held = self.held(name)
        return held and [p for p in git("diff", "--name-only", "--no-renames", "-z", held[1], tree.id, root=self.root).split("\0") if p]

    def write(self, table, keys, results):
        """Parts whose @results hold get new rows; one that does not hold with the inputs of its row loses it, the others keep theirs."""
        for name, r in results.items():
            if r and not holds(table.parts[name], r) and self.key(name) == keys[name]:
                del self.rows[name]
            elif holds(table.parts[name], r):
                self.rows[name] = (keys[name], r["commit"], r["tree"], f"{r['seconds']:.0f} s, {r['passed']} passed, {r['skipped']} skipped")
        with open(os.path.join(self.root, RECORD + ".new"), "w") as f:
            f.write("# Written by make test-extra: where each part last held, whole: inputs, commit, tree; to be committed. .ci/run reads it.\n")
            for name in keys:
                if name in self.rows:
                    f.write(" ".join(["part", name, *self.rows[name]]) + "\n")
        os.replace(os.path.join(self.root, RECORD + ".new"), os.path.join(self.root, RECORD))


def select(table, tree, record, rotation):
    """{part name: why CI runs it}: those whose inputs differ from the record, and one more in rotation, which leaves room: after many
    others a short one."""
    why = {}
    for part in table.parts.values():
        if record.key(part.name) == tree.key(table, part):
            continue
        changed = record.changed(part.name, tree)
        if not record.key(part.name):
            why[part.name] = "no record of it"
            continue
        own = [p for p in changed or [] if part.covers(p)]
        foreign = [p for p in changed or [] if not table.declared(p)]
        some = own or foreign
        if not some:
            why[part.name] = "its inputs changed"
            continue
        more = f" and {len(some) - 2} more" if len(some) > 2 else ""
        why[part.name] = f"{'changed' if own else 'changed, and no part declares it'}: {', '.join(some[:2])}{more}"
    rest = [name for name in table.parts if name not in why]
    if rest:
        room = ROOM_SECONDS - sum(map(record.seconds, why))
        rest = [name for name in rest if record.seconds(name) <= room] or [min(rest, key=record.seconds)]
        why[rest[rotation % len(rest)]] = f"in rotation ({rotation})"
    return why


def refuse(error):
    print(f"{os.path.basename(sys.argv[0])}: {error}", file=sys.stderr)
    sys.exit(1)
