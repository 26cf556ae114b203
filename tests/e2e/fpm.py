# SPDX-License-Identifier: Apache-2.0
"""php-fpm with scripts of a test, and requests to it."""
import os
import socket
import struct
import time

from support import path, start


def fcgi_record(kind, content):
    return struct.pack(">BBHHBB", 1, kind, 1, len(content), 0, 0) + content


def size_of(text):
    return bytes([len(text)]) if len(text) < 128 else struct.pack(">I", len(text) | 1 << 31)


def request(where, file, uri=b"/x.php", query=b"", name=b"/index.php"):
    """One request by FastCGI. Source: FastCGI 1.0, sections 3 and 6. @uri: None: the web server does not tell; @name: SCRIPT_NAME."""
    pairs = {b"SCRIPT_FILENAME": file.encode(), b"REQUEST_METHOD": b"GET", b"SCRIPT_NAME": name, b"QUERY_STRING": query[1:], b"SERVER_PROTOCOL": b"HTTP/1.1"}
    if uri is not None:
        pairs[b"REQUEST_URI"] = uri + query
    records = b"".join(fcgi_record(4, size_of(k) + size_of(v) + k + v) for k, v in pairs.items())
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(where)
        s.sendall(fcgi_record(1, struct.pack(">HB5x", 1, 0)) + records + fcgi_record(4, b"") + fcgi_record(5, b""))
        return b"".join(iter(lambda: s.recv(65536), b""))


def serve(fpm, scripts, workers=1, options=()):
    """php-fpm (a phps.Php) with no more than what is in @options, so without opcache. @scripts: their texts by name. Return: its process and where
    it listens, or twice None."""
    folder = path("fpm")
    os.makedirs(folder)
    os.chmod(folder, 0o755)
    for name, text in scripts.items():
        with open(f"{folder}/{name}", "w") as f:
            f.write(text)
    where = f"{folder}/socket"
    with open(f"{folder}/fpm.conf", "w") as f:
        f.write(f"[global]\nerror_log = {folder}/log\ndaemonize = no\n[shop]\nuser = nobody\ngroup = nogroup\nlisten = {where}\nlisten.mode = 0666\n"
                f"pm = static\npm.max_children = {workers}\nsecurity.limit_extensions =\n")
    process = start(*fpm.command([folder], "-y", f"{folder}/fpm.conf", "-n", "-R", *options))
    for _ in range(100):
        if os.path.exists(where):
            return process, where
        time.sleep(0.05)
    return None, None


def script(number):
    """Functions of one script: no other has a name, a line or a file of it."""
    a, b, gap = f"alpha{number}", f"Beta{number}", "\n" * (number % 7)
    return (f"<?php\n{gap}class {b} {{\n    public function work{number}($n) {{ $s = 0; for ($i = 0; $i < $n; $i++) {{ $s = ($s * 7 + $i) & 0xffff; }} return $s; }}\n}}\n"
            f"function {a}($n) {{ $o = new {b}; return $o->work{number}($n); }}\n"
            f"$f{number} = function ($n) {{ return {a}($n); }};\n"
            f"echo {a}(9000) + $f{number}(9000);\n")


def chains(number):
    """All that a script of script() can have: from the outermost frame on."""
    a, b = f"alpha{number}", f"Beta{number}::work{number}"
    return {chain for head in (("<main>",), ("<main>", "{closure}")) for chain in (head, head + (a,), head + (a, b))}
