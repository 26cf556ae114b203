# SPDX-License-Identifier: Apache-2.0
"""A machine that does what people recognise, for scripts/picture and scripts/pictures. Needs root, the packages postgresql, golang-go and
python3-venv, PyPI for flask and gunicorn."""
import glob
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

from load import Load, write


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def reach(url, tries):
    """What @url answers, asked for every tenth of a second until it does; None after @tries."""
    for _ in range(tries):
        try:
            return urllib.request.urlopen(url).read()
        except OSError:
            time.sleep(0.1)
    return None


WEB, GO, SQL = free_ports(3)

SHOP = """
    import json
    from flask import Flask
    app = Flask(__name__)

    def price(item):
        return sum((item * step) % 97 for step in range(400))

    def render_basket(items):
        return json.dumps([{"item": item, "price": price(item)} for item in items])

    @app.route("/basket/<int:size>")
    def basket(size):
        return render_basket(range(size))
"""
SEARCH = """
    package main

    import (
        "fmt"
        "net/http"
        "sort"
        "strings"
    )

    func rank(words []string) []string {
        sort.Slice(words, func(i, j int) bool { return words[i] < words[j] })
        return words
    }

    func search(w http.ResponseWriter, r *http.Request) {
        var words []string
        for i := 0; i < 3000; i++ {
            words = append(words, fmt.Sprintf("word-%d-%s", (i*7919)%3001, r.URL.Path))
        }
        fmt.Fprintln(w, strings.Join(rank(words)[:10], " "))
    }

    func main() {
        http.HandleFunc("/search", search)
        http.ListenAndServe("127.0.0.1:PORT", nil)
    }
"""


class Scene(Load):
    """A Flask application under gunicorn, a Go server, PostgreSQL under pgbench and a compiler, with clients of the servers."""
    def web(self):
        write(f"{self.folder}/shop.py", SHOP)
        subprocess.run([sys.executable, "-m", "venv", f"{self.folder}/venv"], check=True)
        subprocess.run([f"{self.folder}/venv/bin/pip", "install", "-q", "flask", "gunicorn"], check=True)
        self.start(f"{self.folder}/venv/bin/gunicorn", "-b", f"127.0.0.1:{WEB}", "-w", "2", "shop:app")

    def go(self):
        write(f"{self.folder}/search.go", SEARCH, PORT=GO)
        subprocess.run(["go", "build", "-o", "search", "search.go"], cwd=self.folder, check=True,
                       env=dict(os.environ, GO111MODULE="off"))
        self.start(f"{self.folder}/search")

    def database(self, seconds):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))[-1]
        data = f"{self.folder}/data"
        os.mkdir(data)
        shutil.chown(data, "postgres")
        user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--init-groups"]
        subprocess.run([*user, f"{programs}/initdb", "-D", data, "-A", "trust"], check=True, stdout=subprocess.DEVNULL)
        self.start(*user, f"{programs}/postgres", "-D", data, "-p", str(SQL), "-k", data, "-h", "127.0.0.1")
        at = ["-h", "127.0.0.1", "-p", str(SQL), "-U", "postgres", "postgres"]
        for _ in range(100):
            if subprocess.run([f"{programs}/pg_isready", *at[:4]], stdout=subprocess.DEVNULL).returncode == 0:
                break
            time.sleep(0.1)
        subprocess.run([f"{programs}/pgbench", "-q", "-i", "-s", "5", *at], check=True, stderr=subprocess.DEVNULL)
        self.start(f"{programs}/pgbench", "-T", str(seconds), "-c", "2", "-S", *at)

    def family(self):
        """What was started, and what that has started."""
        found, parents = {process.pid for process in self.started}, {}
        for path in glob.glob("/proc/[0-9]*/stat"):
            try:
                with open(path, encoding="utf-8", errors="replace") as f:
                    parents[int(path.split("/")[2])] = int(f.read().rpartition(")")[2].split()[1])
            except OSError:
                pass  # it has ended
        while more := {pid for pid, parent in parents.items() if parent in found} - found:
            found |= more
        return sorted(found)

    def clients(self, seconds):
        """Bounded callers of both servers: a few requests, then a rest, so that nobody fills a CPU alone."""
        write(f"{self.folder}/client.py", """
            import sys, time, urllib.request
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                for _ in range(20):
                    urllib.request.urlopen(sys.argv[1]).read()
                time.sleep(0.05)""", SECONDS=seconds)
        for url in (f"http://127.0.0.1:{WEB}/basket/40", f"http://127.0.0.1:{GO}/search"):
            reach(url, 100)
            self.start(sys.executable, f"{self.folder}/client.py", url)

    def begin(self, seconds):
        """All of them, until stop() or for about this long."""
        self.web()
        self.go()
        self.database(seconds)
        self.compiler(seconds)
        self.clients(seconds)
        time.sleep(3)
