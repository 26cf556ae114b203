#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Servers as people run them, under a bounded load: Sinatra under Puma (threads, and forked workers), Mojolicious, Symfony under php-fpm; and git's Perl. The interpreter's
chain of each sample is whole: no mark that frames are missing, it begins where the server's threads begin, and where the
application runs, what called it stands before it in order."""
import http.client
from collections import Counter

import fpm
import phps
import pythons
from clients import under_clients
from collector import free_port
from php_oracle import is_outside
from pythons import packages
from support import *

FOLDER = os.path.join(HERE, "servers")
SECONDS = 5 if QUICK else 20
HZ = 499
CLIENTS = 3
LEAST = 60 if QUICK else 600  # samples with frames of the interpreter
WHOLE = 0.99
MARKS = ("[Lost Symbol]", "[missing", "[Truncated")
START = 30  # ticks of each process before a session knows what was there before it (check_php.py)
LOOPS = {"[ruby": ("ruby_run_node",), "[perl": ("Perl_runops_standard",), "[php": ("execute_ex",)}  # what runs a program

tap = Tap("servers")
need(tap)


class Server:
    """@command: in the suite's folder, with PORT and FOLDER filled in. @roots: outermost frames (name, or the end of its file);
    @application: file that its functions are of; @chain: what stands before one of them, in order."""

    def __init__(self, name, command, paths, module, roots, application, chain):
        self.name, self.command, self.paths = name, command, paths
        self.module, self.roots, self.application, self.chain = module, roots, application, chain

    def start(self, root, port):
        command = [c.replace("PORT", str(port)).replace("FOLDER", FOLDER) for c in self.command]
        installed = pythons.Python("0", "", command[0], root)
        return start(*installed.command([FOLDER], *command[1:]), env={"PATH": "/usr/sbin:/usr/bin", "HOME": "/tmp"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)

    def ask(self, port, path_of, timeout=10):
        """The status of an answer."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
        connection.request("GET", path_of)
        answer = connection.getresponse()
        answer.read()
        return answer.status


class FpmServer(Server):
    """One whose front controller php-fpm runs for each request, with opcache as people have it. @command: the version of PHP, the script."""

    def start(self, root, port):
        version, script = self.command
        php = phps.Php(version, "", f"/usr/sbin/php-fpm{version}", root)
        phps.add_nobody(root)
        with open(f"{FOLDER}/{script}") as f:
            text = f.read()
        shutil.rmtree(path("fpm"), ignore_errors=True)  # that of the suite before
        modules = [o for name in ("ctype", "iconv", "tokenizer") for o in ("-d", f"extension={name}")]
        process, self.where = fpm.serve(php, {"index.php": text}, 2, ["-d", f"extension_dir={php.extensions()}", "-d", "zend_extension=opcache", *modules])
        return process

    def ask(self, port, path_of, timeout=10):
        answer = fpm.request(self.where, os.path.join(os.path.dirname(self.where), "index.php"), uri=path_of.encode(), name=b"/index.php")
        head = answer.partition(b"\r\n\r\n")[0]
        if b"content-type:" not in head.lower():
            return 500
        status = re.search(rb"Status: (\d+)", head)
        return int(status[1]) if status else 200


def root_of(suite):
    """A Debian suite with all of the servers."""
    with packages.Lock():
        files = packages.Suite(suite, "amd64").fetch(PACKAGES, with_dependencies=True)
        root = packages.unpacked(f"roots/{suite}-servers", files)
        pythons.prepare(root)
    return root


def answers(server, port, process):
    for _ in range(200):
        with contextlib.suppress(OSError, http.client.HTTPException):
            if server.ask(port, server.paths[0].replace("N", "1")) == 200:
                return True
        if process.poll() is not None:
            return False
        time.sleep(0.1)
    return False


def under_load(server, port, pid):
    """Profile of the server and its children while clients ask it, and how many answers there were."""
    file = path("server.pb.gz")
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-p", pid, *children(pid), "-d", SECONDS, "-o", file, stderr=subprocess.PIPE, text=True)
    said, good, other = under_clients(recorder, lambda dice: server.ask(port, dice.choice(server.paths).replace("N", str(dice.randrange(100)))), CLIENTS, SECONDS + 60)
    tap.ok(recorder.returncode == 0 and good > 20, f"{server.name}: it is asked", f"{good} answers, others: {dict(other)}; {said[-200:]}")
    return Profile(file, system_names=True)


def children(pid):
    out = []
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as f:
            for child in f.read().split():
                out += ["-p", child]
    return out


def stands_in(chain, names):
    rest = iter(names)
    return all(any(name == want for name in rest) for want in chain)


def fault(server, sample, frames):
    """What is wrong with it, or None."""
    names = [name for name, _ in frames]
    missing = [n for n in sample.names if n.startswith(MARKS)]
    if missing:
        at = sample.names.index(missing[0])
        return f"{missing[0]} in {sample.pid}: {' > '.join(sample.names[max(at - 2, 0):at + 3])}"
    if sample.end.startswith("cut:runtime"):
        return sample.end
    if not (names[0] in server.roots or any(frames[0][1].endswith(r) for r in server.roots)):
        return f"begins with {names[0]} {frames[0][1]}"
    own = next((i for i, (_, file) in enumerate(frames) if i and file.endswith(server.application)), None)
    if own is not None and not stands_in(server.chain, names[:own]):
        return "not called by " + " > ".join(server.chain) + ": " + " > ".join(names[:own])
    return None


def check(server, root):
    port = free_port()
    process = server.start(root, port)
    if tap.ok(answers(server, port, process), f"{server.name}: it answers"):
        judge(server, under_load(server, port, process.pid).samples)
    process.terminate()
    try:
        said = process.communicate(timeout=20)[1]
    except subprocess.TimeoutExpired:
        process.kill()
        said = process.communicate()[1]
    for line in (said or b"").decode(errors="replace").splitlines()[:5]:
        tap.note(f"    {line}")


def check_git(suite, root):
    """git send-email, which is Perl, says what it would do with so many patches."""
    folder = path(f"patches-{suite}")
    os.makedirs(folder)
    for i in range(PATCHES):
        body = "".join(f"+a line {i * k % 97} of the change\n" for k in range(200))
        with open(f"{folder}/{i:04}.patch", "w") as f:
            f.write(f"From {i:040x} Mon Sep 17 00:00:00 2001\nFrom: Shop <shop@example.org>\nDate: Mon, 1 Jan 2024 00:00:{i % 60:02} +0000\nSubject: [PATCH {i}] shop: change {i}\n\n"
                    f"Because.\n\nSigned-off-by: Someone <s{i}@example.org>\n---\n a | 200 +\n\ndiff --git a/a b/a\n--- a/a\n+++ b/a\n@@ -1 +1,200 @@\n{body}-- \n2.40\n")
    options = ["--dry-run", "--confirm=never", "--from=a@example.org", "--to=b@example.org", "--no-validate", "--quiet"]
    command = pythons.command("/usr/bin/perl", root, [folder], ["/usr/lib/git-core/git-send-email", *options, folder])
    file = path("git.pb.gz")
    recorder = start(HEARTH, "record", "-F", HZ, "-q", "-o", file, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    who = {f"GIT_{role}_{what}": value for role in ("AUTHOR", "COMMITTER") for what, value in (("NAME", "Shop"), ("EMAIL", "a@example.org"))}
    process = start(*command, env={"PATH": "/usr/sbin:/usr/bin", "HOME": "/tmp", **who}, stderr=subprocess.PIPE, text=True)
    said = process.communicate(timeout=300)[1]
    recorder.send_signal(signal.SIGINT)
    recorder.communicate(timeout=60)
    name = f"git send-email, {suite}"
    if tap.ok(process.returncode == 0 and recorder.returncode == 0, f"{name}: it runs", said[-300:]):
        judge(Server(name, [], [], "[perl", ("(main program)",), "git-send-email", []), Profile(file, system_names=True).of(process))


def judge(server, samples):
    whole = all_of_it = in_application = depth = outside = missing = 0
    faults = Counter()
    for sample in samples:
        frames = [(n, p[0]) for n, m, p in zip(sample.names, sample.modules, sample.places) if m.startswith(server.module)]
        if not frames and is_outside(sample, LOOPS[server.module]):
            outside += sample.count
            continue
        all_of_it += sample.count
        if not frames:
            missing += sample.count
            faults[f"no frames of it ({sample.end}): {' > '.join(sample.names[:2] + ['...'] + sample.names[-3:])}"] += sample.count
            continue
        depth = max(depth, len(frames))
        in_application += sample.count * any(f.endswith(server.application) for _, f in frames[1:])
        wrong = fault(server, sample, frames)
        whole += sample.count * (wrong is None)
        if wrong:
            faults[wrong[:300]] += sample.count
    tap.ok(all_of_it >= LEAST and in_application >= LEAST / 4 and whole + min(missing, START * len({s.pid for s in samples})) >= WHOLE * all_of_it, f"{server.name}: the interpreter's chain is whole",
           f"{100 * whole / max(all_of_it, 1):.2f} % of {all_of_it} samples, {in_application} of them in the application, up to {depth} frames; {outside} outside of it")
    for what, count in faults.most_common(6):
        tap.note(f"    {count} times {what}")


PUMA = ["/usr/bin/ruby", "/usr/bin/puma", "-q", "-b", "tcp://127.0.0.1:PORT", "-e", "production"]
SINATRA = {
    "paths": ["/deep/N", "/page", "/json", "/text", "/check/N"], "module": "[ruby",
    "roots": ("<main>", "/puma/thread_pool.rb", "/puma/reactor.rb", "/puma/server.rb", "/timeout.rb", "/puma/plugin.rb", "/puma/cluster/worker.rb", "/puma/cluster.rb"),
    "application": "config.ru", "chain": ["process_client", "handle_request", "call", "dispatch!", "route!", "route_eval"],
}
MOJOLICIOUS = {
    "command": ["/usr/bin/perl", "FOLDER/app.pl", "daemon", "-l", "http://127.0.0.1:PORT"],
    "paths": ["/deep/N", "/page", "/json", "/text", "/check/N", "/sort"], "module": "[perl", "roots": ("(main program)",), "application": "app.pl",
    "chain": ["Mojo::Server::Daemon::run", "Mojo::IOLoop::start", "Mojolicious::handler", "Mojolicious::dispatch", "Mojolicious::Routes::dispatch"],
}
SYMFONY = {
    "paths": ["/deep/N", "/page", "/json", "/sort", "/check/N"], "module": "[php", "roots": ("<main>",), "application": "index.php",
    "chain": ["<main>", "Symfony\\Component\\HttpKernel\\HttpKernel::handle", "Symfony\\Component\\HttpKernel\\HttpKernel::handleRaw"],
}
PHP = {"bookworm": "8.2", "trixie": "8.4"}
PACKAGES = ["ruby", "ruby-sinatra", "puma", "perl", "libmojolicious-perl", "php-fpm", "php-symfony-http-kernel", "php-symfony-routing", "php-twig", "git", "git-email", "libmailtools-perl"]
PATCHES = 200 if QUICK else 4000
only = [a for a in sys.argv[1:] if not a.startswith("-")]
for suite in ["bookworm"] if QUICK else ["bookworm", "trixie"]:
    try:
        root = root_of(suite)
    except packages.Unavailable as e:
        tap.skip(f"servers of {suite}", str(e))
        continue
    for server in [Server(f"Sinatra under Puma, {suite}", [*PUMA, "-t", "2:4", "FOLDER/config.ru"], **SINATRA),
                   Server(f"Sinatra under Puma's workers, {suite}", [*PUMA, "-w", "2", "-t", "1:2", "FOLDER/config.ru"], **SINATRA),
                   Server(f"Mojolicious, {suite}", **MOJOLICIOUS),
                   FpmServer(f"Symfony under php-fpm, {suite}", [PHP[suite], "symfony.php"], **SYMFONY)]:
        if not only or any(a in server.name for a in only):
            check(server, root)
    if not only or "git" in only:
        check_git(suite, root)
tap.finish()
