#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""hearth java attach: commands for live JVMs, also of another user and in a container; and those that must not be asked.

--quick: the newest JDK alone. ASYNC_PROFILER: its library, which is loaded, too.
"""
import glob
import tempfile

from java_oracle import *
from support import *

NOBODY = 65534
tap = Tap("java attach")
need(tap)


def compiled():
    compiler = next(iter(sorted(glob.glob("/usr/lib/jvm/*/bin/javac"))), None)
    # Not below /tmp: a container has its own.
    folder = tempfile.mkdtemp(dir="/var/tmp", prefix="hearth-java-")
    os.chmod(folder, 0o755)
    if not compiler or run(compiler, "-source", "8", "-target", "8", "-d", folder, f"{SOURCES}/Names.java").returncode:
        return None
    return folder


def jvm(home, *options, command=(), **how):
    """A JVM that says when it is up, and its number."""
    process = start(*command, f"{home}/bin/java", *options, "-cp", folder, "Names", stdout=subprocess.PIPE, text=True, **how)
    process.stdout.readline()
    return process


def lives(process):
    return process.poll() is None


def attach(pid, *words, options=(), **how):
    return run(HEARTH, "java", *options, "attach", pid, *words, timeout=120, **how)


def said(done):
    return f"exit {done.returncode} {(done.stdout[-150:] + done.stderr[-200:]).strip()}"


def check_commands(version, home):
    process = jvm(home, "-Dhearth.test=yes")
    for turn in "opens its socket", "has one":
        done = attach(process.pid)
        tap.ok(done.returncode == 0 and "-Dhearth.test=yes" in done.stdout and "java_command: Names" in done.stdout, f"{version}: VM.command_line, {turn}",
               said(done))
    done = attach(process.pid, "Thread.print", "-l")
    tap.ok(done.returncode == 0 and '"a name of more than fifteen bytes"' in done.stdout, f"{version}: Thread.print -l", f"{len(done.stdout)} bytes {done.stderr}")
    done = attach(process.pid, "No.such")
    tap.ok(done.returncode == 1 and "refuses" in done.stderr and "Unknown diagnostic command" in done.stdout, f"{version}: an unknown command fails", said(done))
    done = attach(process.pid, options=["--library", "/no/such/library.so"])
    tap.ok(done.returncode == 1 and "refuses" in done.stderr, f"{version}: a library that is not there fails", said(done))
    if version >= 17:
        done = attach(process.pid, "Compiler.perfmap")
        file = f"/tmp/perf-{process.pid}.map"
        lines = open(file).read().splitlines() if os.path.exists(file) else []
        tap.ok(done.returncode == 0 and len(lines) > 100, f"{version}: Compiler.perfmap", f"{len(lines)} lines {said(done)}")
        if lines:
            os.unlink(file)
    check_recording(version, home, process)
    tap.ok(lives(process), f"{version}: it lives")
    process.kill()
    process.wait()


def check_recording(version, home, process):
    if version < 11 or not os.path.exists(f"{home}/lib/jfr"):
        return
    file = path("a.jfr")
    done = [attach(process.pid, "JFR.start", "name=a", "settings=profile"), attach(process.pid, "JFR.dump", "name=a", f"filename={file}"),
            attach(process.pid, "JFR.stop", "name=a")]
    begins = open(file, "rb").read(4) if os.path.exists(file) else b""
    tap.ok(not any(d.returncode for d in done) and begins == b"FLR\0", f"{version}: JFR.start, JFR.dump, JFR.stop", " ".join(map(said, done)))


def check_another_users(version, home):
    """A JVM of a user who may not read everything: one below somebody's home cannot be his."""
    if run("test", "-x", f"{home}/bin/java", user=NOBODY, group=NOBODY, extra_groups=[]).returncode:
        tap.skip(f"{version}: another user's", f"nobody may not start {home}/bin/java")
        return
    process = jvm(home, user=NOBODY, group=NOBODY, extra_groups=[], cwd="/")
    done = attach(process.pid)
    tap.ok(done.returncode == 0 and "java_command" in done.stdout, f"{version}: another user's", said(done))
    done = attach(process.pid, user=NOBODY, group=NOBODY, extra_groups=[])
    tap.ok(done.returncode == 0, f"{version}: one's own without root", said(done))
    process.kill()
    process.wait()


def check_container(version, home):
    outer = jvm(home, command=["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", 'mount -t tmpfs tmpfs /tmp && exec "$0" "$@"'])
    with open(f"/proc/{outer.pid}/task/{outer.pid}/children") as f:
        inner = int(f.read().split()[0])
    done = attach(inner)
    tap.ok(done.returncode == 0 and "java_command" in done.stdout, f"{version}: in a container", said(done))
    with open(f"/proc/{inner}/status") as f:
        tap.ok("NSpid:\t%d\t1\n" % inner in f.read(), f"{version}: which numbers it 1")
    tap.ok(not os.path.exists("/tmp/.java_pid1"), f"{version}: nothing is left outside of it")
    outer.kill()
    outer.wait()
    process = jvm(home)
    done = attach(process.pid, user=NOBODY, group=NOBODY, extra_groups=[])
    tap.ok(done.returncode == 77, f"{version}: root's is not for others", said(done))
    process.kill()
    process.wait()


def check_refused(version, home):
    # With -Xrs SIGQUIT would end it; it opens its socket by itself.
    for option, words, status in ("-Xrs", "jvm_args: -Xrs", 0), ("-XX:+DisableAttachMechanism", "DisableAttachMechanism", 1):
        process = jvm(home, option)
        done = attach(process.pid)
        time.sleep(0.2)
        tap.ok(done.returncode == status and words in done.stdout + done.stderr and lives(process), f"{version} {option}: answered or refused, and lives", said(done))
        process.kill()
        process.wait()
    # Stopped, it answers nothing.
    process = jvm(home)
    process.send_signal(signal.SIGSTOP)
    done = attach(process.pid, options=["--timeout", 2])
    tap.ok(done.returncode == 1 and "has not opened its socket" in done.stderr, f"{version} stopped: the time is over", said(done))
    left = glob.glob(f"/proc/{process.pid}/cwd/.attach_pid*")
    tap.ok(not left, f"{version} stopped: no file is left", left)
    for number in signal.SIGINT, signal.SIGTERM, signal.SIGKILL:
        asking = start(HEARTH, "java", "attach", process.pid, start_new_session=True)
        files = f"/proc/{process.pid}/cwd/.attach_pid*"
        end = time.monotonic() + 10
        while not glob.glob(files) and time.monotonic() < end:
            time.sleep(0.02)
        was = glob.glob(files)
        os.killpg(asking.pid, number) if number == signal.SIGINT else asking.send_signal(number)
        asking.wait()
        time.sleep(0.3)
        tap.ok(was and not glob.glob(files), f"{version} stopped: no file is left by {number.name}", was)
    process.send_signal(signal.SIGCONT)
    process.kill()
    process.wait()


def check_no_jvm():
    process = start("sleep", 600)
    done = attach(process.pid)
    tap.ok(done.returncode == 1 and "no JVM" in done.stderr and lives(process), "a process that is none is not touched", said(done))
    for words in ["attach"], ["detach", 1], ["attach", "x"], ["attach", 0], ["--library", "relative.so", "attach", 1], ["--library-options", "x", "attach", 1]:
        done = run(HEARTH, "java", *words)
        tap.ok(done.returncode == 2, f"hearth java {' '.join(map(str, words))} is wrong usage", said(done))


def check_library(version, home, library):
    process = jvm(home)
    done = attach(process.pid, options=["--library", library, "--library-options", f"version,file={path('version')}"])
    tap.ok(done.returncode == 0 and lives(process), f"{version}: async-profiler's library is loaded", said(done))
    process.kill()
    process.wait()


folder, found = compiled(), jvms.homes()
check_no_jvm()
if not folder or not found:
    tap.skip("everything else", "no JDK")
    tap.finish()
for version in [max(found)] if QUICK else some_of(found):
    check_commands(version, found[version])
    check_container(version, found[version])
    check_refused(version, found[version])
    if os.environ.get("ASYNC_PROFILER"):
        check_library(version, found[version], os.environ["ASYNC_PROFILER"])
public = {version: home for version, home in found.items() if home.startswith("/usr/")} or found
check_another_users(max(public), public[max(public)])
shutil.rmtree(folder)
tap.finish()
