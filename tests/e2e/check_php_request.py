#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""--php-request: each sample of a worker of php-fpm is labelled with its own request, whose path says which function the script
calls; nothing of a query string is anywhere; URIs that are hostile stay short, safe and apart."""
import socket
import time
import urllib.request

import phps
from clients import under_clients
from fpm import request, serve
from php_oracle import frames_of
from support import *

SECONDS = 4 if QUICK else 20
HZ = 997
SCRIPTS = 3
PATHS = 8  # of each script
WORKERS = 2

tap = Tap("php_request")
need(tap)


def script(number):
    work = "".join(f"function step{number}_{i}($n) {{ $s = 0; for ($j = 0; $j < $n; $j++) {{ $s = ($s * 7 + $j) & 0xffff; }} return $s; }}\n"
                   for i in range(PATHS))
    return f"<?php\n{work}$f = 'step{number}_' . substr(strtok($_SERVER['REQUEST_URI'], '?'), -1);\necho 'done ', $f(60000);\n"


def recorded(name, ask, *options, seconds=SECONDS):
    """hearth beside requests of several threads. Return: the profile, and how many were answered."""
    file = path(f"{name}.pb.gz")
    recorder = start(HEARTH, "record", "-F", HZ, "-q", *options, "-d", seconds, "-o", file, stderr=subprocess.PIPE, text=True)
    said, answers, other = under_clients(recorder, ask, WORKERS, seconds + 60)
    tap.ok(recorder.returncode == 0, f"{name}: hearth record ends well", f"{dict(other) or ''} {said[-300:]}".strip())
    return Profile(file), answers


def of_fpm(profile):
    return [s for s in profile.samples if any("/fpm/s" in f[1] for f in frames_of(s))]


def secrets_in(profile):
    return [s for s in profile.strings if "s3cr3t" in s]


def check_labels(where):
    def ask(choose):
        number, i = choose.randrange(SCRIPTS), choose.randrange(PATHS)
        return b"done" in request(where, path(f"fpm/s{number}.php"), f"/shop{number}/p{i}".encode(), f"?s3cr3t={i}".encode())

    profile, answers = recorded("php-fpm", ask, "--php-request")
    right = wrong = without = 0
    pairs = set()
    for s in of_fpm(profile):
        called = next((f[0] for f in frames_of(s) if f[0].startswith("step")), None)
        script_of = next(os.path.basename(f[1]) for f in frames_of(s) if "/fpm/s" in f[1])
        labels = s.labels.get("php_script", ""), s.labels.get("php_path", "")
        number = script_of[1:-4]
        if labels == ("", ""):
            without += s.count
            continue
        pairs.add(labels)
        fits = os.path.basename(labels[0]) == script_of and labels[1].startswith(f"/shop{number}/p")
        if called:
            fits = fits and labels[1] == f"/shop{number}/p{called[-1]}"
        right += s.count * fits
        wrong += s.count * (not fits)
        if not fits:
            tap.note(f"    {labels} at {frames_of(s)}")
    tap.ok(right >= (100 if QUICK else 2000) and not wrong, "no label is another request's", f"{wrong} of {right + wrong} samples, {answers} requests, {len(pairs)} labels")
    tap.ok(without <= 0.01 * right, "samples within a request have labels", f"{without} have none")
    tap.ok(not secrets_in(profile), "no query string is in the profile", secrets_in(profile)[:3])
    others = [s.labels for s in profile.samples if s.labels.get("php_script", "").startswith(path("fpm")) and not s.labels["comm"].startswith("php-fpm")]
    tap.ok(not others, "who does not answer requests has no label", others[:3])

    profile, _ = recorded("switched off", ask, seconds=3)
    labels = [k for s in profile.samples for k in s.labels if k.startswith("php_")]
    texts = [s for s in profile.strings if "/shop" in s]
    tap.ok(of_fpm(profile) and not labels and not texts, "without the option nothing is read", f"{total(of_fpm(profile))} samples; {labels[:3]} {texts[:3]}")


HOSTILE = {
    b"/" + b"a" * 60000: "/" + "a" * 102 + "...",
    b"/" + b"b" * 101 + b"\xc3\xa9" * 40: "/" + "b" * 101 + "...",
    b"/c\x01\x1b[31m\n;\xe2\x80\xa8": "/c%01%1B[31m%0A;%E2%80%A8",
    b"/d\xff\xfe\xc3": "/d%FF%FE%C3",
    b"/e\xc3\xa9 \xe2\x82\xac": "/e\u00e9 \u20ac",
    b"/f#s3cr3t": "/f",
    b"/g?s3cr3t=1": "/g",
    b"http://me:s3cr3t@host/h": "/h",
    b"*": "*",
}


def check_hostile(where):
    uris = list(HOSTILE)

    def ask(choose):
        return b"0" in request(where, path("fpm/hostile.php"), choose.choice(uris), b"?s3cr3t")

    profile, answers = recorded("hostile", ask, "--php-request", seconds=4 if QUICK else 10)
    found = {s.labels.get("php_path") for s in of_fpm_script(profile, "hostile.php")} - {None}
    tap.ok(found and found <= set(HOSTILE.values()), "hostile URIs", f"{sorted(found - set(HOSTILE.values()))} of {len(found)}, {answers} requests")
    tap.ok(found >= set(HOSTILE.values()), "each is there", sorted(set(HOSTILE.values()) - found))
    tap.ok(not secrets_in(profile), "nothing of a query string or an authority is in the profile", secrets_in(profile)[:3])


def check_without_uri(where):
    profile, _ = recorded("without a URI", lambda choose: b"0" in request(where, path("fpm/hostile.php"), None, b"?s3cr3t", b"/shop/script.php"),
                          "--php-request", seconds=3)
    found = {s.labels.get("php_path") for s in of_fpm_script(profile, "hostile.php")}
    tap.ok(found == {"/shop/script.php"}, "a web server that tells no URI: the script's name", found)


def of_fpm_script(profile, name):
    return [s for s in profile.samples if any(f[1].endswith(f"/fpm/{name}") for f in frames_of(s))]


def check(fpm):
    print(f"# php-fpm {fpm.name}", flush=True)
    scripts = {f"s{i}.php": script(i) for i in range(SCRIPTS)}
    scripts["hostile.php"] = "<?php\n$s = 0; for ($j = 0; $j < 100000; $j++) { $s = ($s * 7 + $j) & 0xffff; } echo '0';\n"
    process, where = serve(fpm, scripts, WORKERS)
    if tap.ok(process is not None, f"php-fpm {fpm.name} listens"):
        check_labels(where)
        check_hostile(where)
        check_without_uri(where)
        process.terminate()
        process.wait()
    shutil.rmtree(path("fpm"))


def check_unlabelled(php, file):
    """PHP's own server leaves what it answered behind in freed memory: nothing of it may be read."""
    name = f"{php.name}, built-in server"
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    process = start(*php.command([os.path.dirname(file)], "-n", "-S", f"127.0.0.1:{port}", "-t", os.path.dirname(file)), stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)

    def ask(choose):
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/{os.path.basename(file)}?s3cr3t={choose.random()}", timeout=10) as answer:
                return answer.read() == b"0"
        except OSError:
            time.sleep(0.05)
            return 0

    profile, answers = recorded(name, ask, "--php-request", seconds=4)
    process.terminate()
    process.wait()
    samples = [s for s in profile.samples if any(f[1].endswith("/" + os.path.basename(file)) for f in frames_of(s))]
    tap.ok(samples and answers, f"{name}: it was seen at work", f"{len(samples)} stacks, {answers} answers")
    labelled = [s.labels for s in profile.samples if s.pid == process.pid and any(k.startswith("php_") for k in s.labels)]
    tap.ok(not labelled, f"{name}: no sample has a label", labelled[:3])


def check_program(php, file):
    """php on the command line: the script alone, also of a process that has nothing else to do any more."""
    name = f"{php.name}, command line"
    process = start(*php.command([os.path.dirname(file)], "-n", file), stdout=subprocess.DEVNULL)
    profile, _ = recorded(name, lambda choose: time.sleep(0.1) or 1, "--php-request", seconds=3)
    process.terminate()
    process.wait()
    found = {(s.labels.get("php_script"), s.labels.get("php_path")) for s in profile.samples if any(f[1] == file for f in frames_of(s))}
    tap.ok(found == {(file, None)}, f"{name}: the script, no path", found)


def check_cli(php):
    os.makedirs(path("cli"))
    os.chmod(path("cli"), 0o755)
    loop = "$s = 0; for ($j = 0; $j < 100000; $j++) { $s = ($s * 7 + $j) & 0xffff; }"
    for file, text in ("page.php", f"<?php {loop} echo '0';\n"), ("run.php", f"<?php while (true) {{ {loop} }}\n"):
        with open(path(f"cli/{file}"), "w") as f:
            f.write(text)
    check_unlabelled(php, path("cli/page.php"))
    check_program(php, path("cli/run.php"))
    shutil.rmtree(path("cli"))


def check_without_labels():
    """What is personal data is not read for nothing, or not without a word."""
    for files, warned in (["x.html"], True), (["x.col", "x.folded.gz"], True), (["x.html", "x.pb.gz"], False), (["x.otlp"], False):
        outputs = [word for file in files for word in ("-o", path(file))]
        said = record(tap, 0.2, "--php-request", "-q", "-p", os.getpid(), *outputs).stderr
        tap.ok(("no output has a place for labels" in said) == warned, f"{' '.join(files)}: {'no place for labels, and a warning' if warned else 'no warning'}", said)
    done = hearth("agent", "-o", path("agent"), "--php-request")
    tap.ok(done.returncode == 2 and done.stderr.count("\n") == 1 and "hearth record" in done.stderr, "the agent refuses it and says where it is", done.stderr)


check_without_labels()
fpms = [phps.fpm_of_machine()]
for suite in [] if QUICK else phps.SUITES:
    try:
        fpms.append(phps.fpm_of_suite(suite))
    except phps.packages.Unavailable as e:
        tap.skip(f"php-fpm of {suite}", str(e))
if not any(fpms):
    tap.skip("php-fpm", "not installed")
for fpm in filter(None, fpms):
    check(fpm)
for php in phps.of_machine() or [None]:
    if php:
        check_cli(php)
    else:
        tap.skip("php", "not installed")
tap.finish()
