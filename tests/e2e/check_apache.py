#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Interpreters inside Apache's workers under a bounded load: mod_php with 40 scripts that have nothing in common, DokuWiki under mod_php, and a
handler of mod_perl. No frame has a name of another request's script, and the interpreter's chain of each sample is whole."""
import http.client
from collections import Counter

import pythons
from clients import under_clients
from collector import free_port
from fpm import chains, script
from php_oracle import LOOP, frames_of, is_flagged, is_outside
from pythons import packages
from support import *

FOLDER = os.path.join(HERE, "servers")
SUITE = "bookworm"
PACKAGES = ["apache2", "libapache2-mod-php", "libapache2-mod-perl2", "dokuwiki", "perl"]
SECONDS = 20 if SAMPLED else 60
HZ = 997
SCRIPTS = 40
CLIENTS = 3
WORKERS = 3
LEAST = 300
START = 30 * WORKERS  # ticks before a session knows what was there before it (check_php.py)
MANY = 1000 if SAMPLED else 10000  # samples in 40 scripts
WHOLE = 0.99
LINES = """ServerRoot {home}
ServerName localhost
DefaultRuntimeDir {home}
PidFile {home}/pid
ErrorLog {home}/log
Mutex file:{home}
Listen 127.0.0.1:{port}
LoadModule mpm_prefork_module {modules}/mod_mpm_prefork.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule alias_module {modules}/mod_alias.so
LoadModule mime_module {modules}/mod_mime.so
TypesConfig {home}/types
StartServers {workers}
MinSpareServers {workers}
MaxSpareServers {workers}
MaxRequestWorkers {workers}
User www-data
Group www-data
DocumentRoot {home}
"""
PHP = """LoadModule php_module {php}
PHPIniDir {home}
<FilesMatch "\\.php$">
SetHandler application/x-httpd-php
</FilesMatch>
Alias /wiki /usr/share/dokuwiki
"""
PERL = """LoadModule perl_module {modules}/mod_perl.so
PerlSwitches -I{folder}
PerlModule Shop
<Location /perl>
SetHandler modperl
PerlResponseHandler Shop
</Location>
"""

tap = Tap("apache")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def root_of_apache():
    with packages.Lock():
        files = packages.Suite(SUITE, "amd64").fetch(PACKAGES, with_dependencies=True)
        root = packages.unpacked(f"roots/{SUITE}-apache", files)
        pythons.prepare(root)
    for name, line in ("passwd", "root:x:0:0::/root:/bin/sh\nwww-data:x:33:33::/var/www:/bin/false\n"), ("group", "root:x:0:\nwww-data:x:33:\n"):
        with open(f"{root}/etc/{name}", "w") as f:
            f.write(line)
    return root


class Apache:
    """Apache's prefork server in the suite's folder, with what @more says."""

    def __init__(self, root, name, more, scripts=()):
        self.name, self.home, self.port = name, path("apache"), free_port()
        os.makedirs(self.home)
        os.chmod(self.home, 0o755)
        php = next((f for f in sorted(os.listdir(f"{root}/usr/lib/apache2/modules")) if re.fullmatch(r"libphp[\d.]*\.so", f)), "")
        words = {"home": self.home, "port": self.port, "modules": "/usr/lib/apache2/modules", "workers": WORKERS, "folder": FOLDER, "php": f"/usr/lib/apache2/modules/{php}"}
        with open(f"{self.home}/conf", "w") as f:
            f.write((LINES + more).format(**words))
        for file, text in {"types": "text/plain txt\n", "php.ini": php_ini(root), **dict(scripts)}.items():
            with open(f"{self.home}/{file}", "w") as f:
                f.write(text)
        installed = pythons.Python("0", "", "/usr/sbin/apache2", root)
        self.process = start(*installed.command([self.home, FOLDER], "-D", "FOREGROUND", "-f", f"{self.home}/conf"),
                             env={"PATH": "/usr/sbin:/usr/bin"}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                             start_new_session=True)  # at its end it signals its group

    def ask(self, where):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        connection.request("GET", where, headers={"Connection": "close"})
        answer = connection.getresponse()
        return answer.status, answer.read()

    def answers(self, where, words=b""):
        """@words: what the answer must have."""
        for _ in range(200):
            with contextlib.suppress(OSError, http.client.HTTPException):
                status, body = self.ask(where)
                if status == 200:
                    return words in body
            if self.process.poll() is not None:
                return False
            time.sleep(0.1)
        return False

    def under_load(self, choose):
        """Profile of its workers while clients ask for what @choose says."""
        file = path("apache.pb.gz")
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as f:
            pids = [o for pid in f.read().split() for o in ("-p", pid)]
        recorder = start(HEARTH, "record", "-F", HZ, "-q", *pids, "-d", SECONDS, "-o", file, stderr=subprocess.PIPE, text=True)
        said, good, other = under_clients(recorder, lambda dice: self.ask(choose(dice))[0], CLIENTS, SECONDS + 90)
        tap.ok(recorder.returncode == 0 and good > 20, f"{self.name}: it is asked", f"{good} answers, others: {dict(other)}; {said[-200:]}")
        return Profile(file, system_names=True)

    def end(self):
        with contextlib.suppress(OSError), open(f"{self.home}/log") as f:
            for line in [x for x in f if "[notice]" not in x and ":notice]" not in x][:4]:
                tap.note("    " + line.strip()[:300])
        self.process.terminate()
        for line in self.process.communicate(timeout=30)[1].decode(errors="replace").splitlines()[:4]:
            tap.note("    " + line[:300])
        shutil.rmtree(self.home)


def php_ini(root):
    """The extensions that Debian ships, as its package scripts would have switched them on."""
    folder = f"{root}/usr/lib/php"
    found = sorted(f for _, _, files in os.walk(folder) for f in files if f.endswith(".so"))
    first = [f for f in found if f in ("xml.so", "mysqlnd.so", "pdo.so")]
    return "opcache.enable=0\n" + "".join(f"extension={f}\n" for f in first + [f for f in found if f not in first and f != "opcache.so"])


def check_names(root):
    name = "mod_php, 40 scripts"
    apache = Apache(root, name, PHP, {f"s{i}.php": script(i) for i in range(SCRIPTS)}.items())
    if tap.ok(apache.answers("/s0.php"), f"{name}: it answers"):
        profile = apache.under_load(lambda dice: f"/s{dice.randrange(SCRIPTS)}.php")
        frames = wrong = whole = flagged = stacks = unnamed = missing = 0
        faults = Counter()
        for sample in profile.samples:
            stack = frames_of(sample)
            unnamed += sample.count * sum(1 for n, m in zip(sample.names, sample.modules) if m == "[php]" and n.startswith("["))
            if not stack:
                missing += sample.count * (not is_outside(sample))
                continue
            stacks += sample.count
            frames += sample.count * len(stack)
            number = re.search(r"/s(\d+)\.php$", stack[0][1])
            number = number and number[1]
            allowed = chains(number)
            names = {n for chain in allowed for n in chain}
            odd = sum(1 for n, file, *_ in stack if n not in names or not file.endswith(f"/s{number}.php"))
            wrong += sample.count * odd
            if tuple(f[0] for f in stack) in allowed and not odd:
                whole += sample.count * (not is_flagged(sample))
                flagged += sample.count * is_flagged(sample)
            else:
                faults[" > ".join(f"{f[0]} {f[1].rpartition('/')[2]}" for f in stack) + f" ({sample.end})"] += sample.count
        tap.ok(stacks >= MANY and not wrong, f"{name}: no wrong name", f"{wrong} of {frames} frames, {stacks} samples, {unnamed} without a name")
        judged = stacks + missing
        tap.ok(whole + min(missing, START) + 1 >= 0.999 * judged, f"{name}: chains are whole", f"{100 * whole / max(judged, 1):.2f} % of {judged}, {flagged} flagged, {missing} without their frames")
        for what, count in faults.most_common(4):
            tap.note(f"    {count} times {what[:300]}")
    apache.end()


def fault_of(sample, frames, root, order):
    """What is wrong with a chain, or None. @order: {name: those that may call it}."""
    missing = [n for n in sample.names if n.startswith(("[Lost Symbol]", "[missing", "[Truncated"))]
    if missing or sample.end.startswith("cut:runtime"):
        return missing[0] if missing else sample.end
    if not root(*frames[0]):
        return f"begins with {' '.join(frames[0])}"
    for (caller, _), (callee, _) in zip(frames, frames[1:]):
        if callee in order and caller not in order[callee]:
            return f"{caller} calls {callee}"
    return None


def check_chain(apache, where, words, choose, module, loop, is_root, order, deep):
    name = apache.name
    if tap.ok(apache.answers(where, words), f"{name}: it answers"):
        profile = apache.under_load(choose)
        judged = whole = depth = outside = frames_seen = 0
        faults = Counter()
        for sample in profile.samples:
            frames = [(n, p[0]) for n, m, p in zip(sample.names, sample.modules, sample.places) if m.startswith(module)]
            if not frames and is_outside(sample, (loop,)):
                outside += sample.count
                continue
            judged += sample.count
            if not frames:
                faults[f"no frames of it ({sample.end})"] += sample.count
                continue
            frames_seen += sample.count * len(frames)
            depth = max(depth, len(frames))
            why = fault_of(sample, frames, is_root, order)
            whole += sample.count * (why is None)
            if why:
                faults[why] += sample.count
        tap.ok(judged >= LEAST and whole >= WHOLE * judged and depth >= deep, f"{name}: the interpreter's chain is whole",
               f"{100 * whole / max(judged, 1):.2f} % of {judged} samples, {frames_seen} frames, up to {depth}; {outside} outside of it")
        for what, count in faults.most_common(6):
            tap.note(f"    {count} times {what[:300]}")
    apache.end()


PERL_ORDER = {"Shop::deep": {"Shop::handler", "Shop::deep"}, "Shop::odd": {"(eval)"}, "Shop::price": {"Shop::deep", "Shop::odd", "Shop::handler", "Shop::__ANON__"},
              "Shop::__ANON__": {"Shop::handler"}}
WIKI_ORDER = {"act_dispatch": {"<main>"}, "p_wiki_xhtml": {"html_show", "Show::tplContent", "dokuwiki\\Action\\Show::tplContent", "dokuwiki\\Ui\\PageView::show"}}
try:
    root = root_of_apache()
except packages.Unavailable as e:
    tap.skip("Apache", str(e))
    tap.finish()
if not only or "names" in only:
    check_names(root)
if not only or "wiki" in only:
    check_chain(Apache(root, "DokuWiki under mod_php", PHP), "/wiki/doku.php?id=wiki:syntax", b"dokuwiki__content",
                lambda dice: f"/wiki/doku.php?id=wiki:{dice.choice(['syntax', 'welcome', 'dokuwiki'])}&do={dice.choice(['show', 'index', 'search', 'edit', 'recent'])}&purge=true&q=wiki",
                "[php", LOOP, lambda name, file: file.startswith("/usr/share/dokuwiki/") and (name == "<main>" or name.endswith("Shutdown")), WIKI_ORDER, 12)
if not only or "perl" in only:
    check_chain(Apache(root, "mod_perl", PERL), "/perl/deep/5", b"", lambda dice: f"/perl/{dice.choice(['deep', 'check', 'sort', 'text'])}/{dice.randrange(100)}",
                "[perl", "Perl_runops_standard", lambda name, file: name in ("Shop::handler", "(eval)"), PERL_ORDER, 50)
tap.finish()
