#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Java programs as people run them, Debian's: Tomcat serving a JSP, Lucene indexing and searching, a build by Maven. Stacks reach a root, have names, and
of two frames that follow each other the outer one has a call of the inner one in its bytecode.

Arguments: only these versions or programs.
"""
import glob
import http.client
import random

from clients import under_clients
from collector import free_port
from java_loads import *
from java_oracle import *
from pythons import packages
from support import *

FOLDER = os.path.join(HERE, "jvm_programs")
SECONDS = 20
HZ = 499
LEAST = 1000  # stacks with Java
WHOLE = 0.99
NAMED_PROGRAM = 0.995  # when classes are unloaded, interpreted methods that were first met just before have no name (docs/java.md)
CLIENTS = 3
CLASSES = 300  # of the built program
PACKAGES = ["tomcat10-common", "libtomcat10-java", "libeclipse-jdt-core-java", "liblucene8-java", "maven", "libmaven-compiler-plugin-java", "libmaven-resources-plugin-java", "junit5"]
SERVER_XML = """<Server port="-1"><Service name="Catalina"><Connector port="{port}" address="127.0.0.1" protocol="HTTP/1.1"/>
<Engine name="Catalina" defaultHost="localhost"><Host name="localhost" appBase="webapps"/></Engine></Service></Server>"""
WEB_XML = """<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="5.0"><servlet><servlet-name>jsp</servlet-name>
<servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class></servlet>
<servlet-mapping><servlet-name>jsp</servlet-name><url-pattern>*.jsp</url-pattern></servlet-mapping></web-app>"""
POM = """<project><modelVersion>4.0.0</modelVersion><groupId>com.acme</groupId><artifactId>built</artifactId><version>1</version>
<properties><maven.compiler.source>8</maven.compiler.source><maven.compiler.target>8</maven.compiler.target>
<project.build.sourceEncoding>UTF-8</project.build.sourceEncoding></properties></project>"""

tap = Tap("java_programs")
need(tap)
only = [a for a in sys.argv[1:] if not a.startswith("-")]


def write(text, *names):
    file = os.path.join(scratch, *names)
    os.makedirs(os.path.dirname(file), exist_ok=True)
    with open(file, "w", encoding="utf-8") as f:
        f.write(text)
    return file


def jars(*patterns):
    return [jar for pattern in patterns for jar in sorted(glob.glob(f"{root}/usr/share/{pattern}"))]


def tomcat(home):
    """Its command, and what asks it."""
    base, port = path("tomcat"), free_port()
    write(SERVER_XML.format(port=port), "tomcat", "conf", "server.xml")
    write(WEB_XML, "tomcat", "webapps", "ROOT", "WEB-INF", "web.xml")
    os.makedirs(f"{base}/temp", exist_ok=True)
    shutil.copy(f"{FOLDER}/index.jsp", f"{base}/webapps/ROOT/index.jsp")

    def ask(dice):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
        connection.request("GET", f"/index.jsp?n={dice.randrange(1000)}")
        answer = connection.getresponse()
        answer.read()
        return answer.status

    installed = f"{root}/usr/share/tomcat10"
    command = [f"{home}/bin/java", f"-Dcatalina.home={installed}", f"-Dcatalina.base={base}", f"-Djava.io.tmpdir={base}/temp", "-cp",
               f"{installed}/bin/bootstrap.jar:{installed}/bin/tomcat-juli.jar", "org.apache.catalina.startup.Bootstrap", "start"]
    return command, ask, jars("tomcat10/lib/*.jar", "tomcat10/bin/*.jar")


def lucene(home):
    own = jars("java/lucene-core-8*.jar", "java/lucene-analyzers-common-8*.jar")
    folder = path("search")
    done = run("javac", "-source", "8", "-target", "8", "-g", "-cp", ":".join(own), "-d", folder, f"{FOLDER}/Search.java")
    if done.returncode:
        tap.note(done.stderr[-500:])
    return [f"{home}/bin/java", "-Xmx256m", "-cp", ":".join([folder, *own]), "Search"], None, [folder, *own]


def class_of(i):
    others = [n for n in (i - 1, i - 7, i // 2) if 0 <= n < i]
    calls = "".join(f"        total += new C{n}().count(text + {n}, depth - 1);\n" for n in dict.fromkeys(others))
    lines = "".join(f"        if (depth % {k + 3} == {k}) seen.computeIfAbsent(\"k{k}\" + text.length(), x -> new ArrayList<>()).add(depth * {k});\n" for k in range(12))
    return f"""package com.acme;
import java.util.*;
import java.util.stream.*;
public class C{i} implements Comparable<C{i}> {{
    private final Map<String, List<Integer>> seen = new TreeMap<>();
    public long count(String text, int depth) {{
        long total = 0;
        if (depth <= 0)
            return text.length();
{calls}{lines}        return total + seen.values().stream().flatMap(List::stream).filter(x -> x > {i}).collect(Collectors.summingInt(x -> x + {i}));
    }}
    @Override public int compareTo(C{i} other) {{
        return Integer.compare(seen.size(), other.seen.size());
    }}
}}
"""


def maven(home):
    for i in range(CLASSES):
        write(class_of(i), "build", "src", "main", "java", "com", "acme", f"C{i}.java")
    pom = write(POM, "build", "pom.xml")
    installed, repository = f"{root}/usr/share/maven", f"{root}/usr/share/maven-repo"
    worlds = jars("maven/boot/plexus-classworlds*.jar")
    command = [f"{home}/bin/java", "-cp", ":".join(worlds), f"-Dclassworlds.conf={installed}/bin/m2.conf", f"-Dmaven.home={installed}", f"-Dmaven.conf={root}/etc/maven",
               f"-Dmaven.multiModuleProjectDirectory={path('build')}",
               "org.codehaus.plexus.classworlds.launcher.Launcher", "-o", "-B", f"-Dmaven.repo.local={repository}", "-f", pom, "compile"]
    return command, None, jars("maven/lib/*.jar", "java/*.jar")  # of two classes of one name its own


def answers(ask, process):
    for _ in range(400):
        with contextlib.suppress(OSError, http.client.HTTPException):
            if ask(random.Random(1)) == 200:
                return True
        if process.poll() is not None:
            return False
        time.sleep(0.1)
    return False


def recorded(what, ends, command, ask, file):
    """Runs the program under a recorder of the whole machine that is there before it; @ends: until it ends by itself, and well. Returns the
    process, None when something went wrong."""
    recorder = start(HEARTH, "record", "-F", HZ, "--window", WINDOW, "-q", "-o", file, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    with open(path("said"), "w") as out:
        process = start(*command, stdout=out, stderr=out)
    said = ""
    if ask and answers(ask, process):
        _, good, other = under_clients(start("sleep", SECONDS), ask, CLIENTS, SECONDS + 60)
        said = f"{good} answers, others: {dict(other)}"
    elif not ask:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=300 if ends else SECONDS)
    status = process.poll()
    process.kill()
    process.wait()
    recorder.send_signal(signal.SIGINT)
    text = recorder.communicate(timeout=120)[1]
    fine = recorder.returncode == 0 and status == (0 if ends else None) and bool(said or not ask)
    with open(path("said")) as f:
        tap.ok(fine, f"{what}: it runs, hearth record ends well", said if fine else f"{status} {text[-200:]} {f.read()[-300:]}")
    return process if fine else None


def check(what, program, ends, home, folder):
    command, ask, libraries = program(home)
    process = recorded(what, ends, command, ask, path("program.pb.gz"))
    if not process:
        return
    profiles = windows_of(path("program.pb.gz"))
    tally, _, _ = judged(profiles, process, home, ":".join([folder, *libraries]))
    judge_tally(tap, what, tally, LEAST, HZ, WHOLE, NAMED_PROGRAM, UNKNOWN_PROGRAM)
    if 3 * tally.java < tally.samples:
        others = Counter()
        for s in [s for p in profiles for s in p.of(process)]:
            if MODULE not in s.modules:
                others[s.end, s.labels.get("thread"), " < ".join(s.names[:-4:-1])] += s.count
        tap.note(f"{what}: without Java: {others.most_common(8)}; {[p.counters for p in profiles]}")


PROGRAMS = {"Tomcat": (tomcat, "java.management"), "Lucene": (lucene, None), "Maven": (maven, "jdk.compiler")}  # and the module that it wants: small JVMs lack some

folder, found = compiled(), jvms.homes()
if not folder or not found:
    tap.skip("everything", "no JDK")
    tap.finish()
try:
    with packages.Lock():
        root = packages.unpacked("roots/java-programs", packages.Suite("bookworm", "amd64").fetch(PACKAGES, with_dependencies=True))
except packages.Unavailable as e:
    tap.skip("everything", str(e))
    tap.finish()
for version in [v for v in found if str(v) in only] or some_of(found):
    modules = re.findall(r"^[\w.]+", run(f"{found[version]}/bin/java", "--list-modules").stdout, re.M)
    for name, (program, module) in PROGRAMS.items():
        if module in [None, *modules] and (name in only or not PROGRAMS.keys() & set(only)):
            check(f"{version} {name}", program, name == "Maven", found[version], folder)
tap.finish()
