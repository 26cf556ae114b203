# SPDX-License-Identifier: Apache-2.0
"""Programs for bench_runtimes.py, in each language: a function that calls itself as often as the argument says and then computes for ever, and
a chain of different functions, each of which calls the next, whose last one reads 32 MiB again and again, so that no cache keeps
anything of the frames from one tick to the next."""
AREA = 32 << 20

# ---- a function that calls itself ----

C = """
#include <stdlib.h>
__attribute__((noinline, noclone)) static long down(long n) {
    volatile long x = n;
    if (n) x += down(n - 1);
    else for (;;) x = x * 31 + 1;
    return x;
}
int main(int c, char **v) { return c > 1 ? (int)down(atol(v[1])) : 1; }
"""
JAVA = """
public class Deep {
    static volatile long x;
    static long down(int n) {
        if (n > 0) return down(n - 1) + n;
        for (long end = System.nanoTime() + 20_000_000L; System.nanoTime() < end;) for (int i = 0; i < 1000; i++) x = x * 31 + 1;
        return x;
    }
    public static void main(String[] a) { for (;;) down(Integer.parseInt(a[0])); }
}
"""
NODE = """
let x = 1;
function down(n) {
    if (n) return down(n - 1) + n;
    for (const end = Date.now() + 20; Date.now() < end;) for (let i = 0; i < 1000; i++) x = (x * 31 + 1) | 0;
    return x;
}
for (;;) down(+process.argv[2]);
"""
RUBY = """
def down(n)
  return down(n - 1) + n if n > 0
  x = 1
  i = 0
  x = x * 31 % 65_521 while (i += 1) < 1_000_000_000
  x
end
down(ARGV[0].to_i)
"""
PHP = "<?php function down($n) { if ($n) return down($n - 1) + $n; for ($x = 1;;) $x = $x * 31 % 65521; } down((int)$argv[1]);"
PERL = "no warnings; sub down { my ($n) = @_; return down($n - 1) + $n if $n; my $x = 1; $x = $x * 31 % 65521 while 1 } down($ARGV[0]);"
PYTHON = """
import sys
def down(n):
    if n:
        return down(n - 1) + n
    x = 1
    while True:
        x = x * 31 % 65521
down(int(sys.argv[1]))
"""


# ---- chains of different functions ----


def chain(first, line, count, last=""):
    """The text of f0, of f1 to f@count, each of which calls the one before, and of what starts the last one."""
    return "\n".join([first, *(line.replace("NEXT", str(n - 1)).replace("N", str(n)) for n in range(1, count + 1)), last.replace("N", str(count))])


def c_chain(count):
    return chain(f"""#include <stdlib.h>
#include <string.h>
static char *volatile area;
static volatile long go = 1;
__attribute__((noinline, noclone)) static long f0(void) {{ long sum = 0; while (go) sum += memchr(area, 1, {AREA}) != 0; return sum; }}""",
                 "__attribute__((noinline, noclone)) static long fN(void) { volatile long x = N; x += fNEXT(); return x; }", count,
                 f"int main(void) {{ area = malloc({AREA}); if (!area) return 1; memset(area, 2, {AREA}); return (int)fN(); }}")


def java_chain(count):
    return chain(f"""public class Chain {{
    static byte[] area = new byte[{AREA}];
    static boolean warm = true;
    static int f0() {{
        int sum = 1;
        if (warm) return sum;
        for (long end = System.nanoTime() + 500_000_000L; System.nanoTime() < end;) for (int i = 0; i < area.length; i += 64) sum += area[i];
        return sum;
    }}""", "    static int fN() { return fNEXT() + N; }", count, """    public static void main(String[] a) {
        for (int i = 0; i < 100_000; i++) fN();
        warm = false;
        for (;;) fN();
    }
}""")


def node_chain(count):
    return chain(f"""const area = Buffer.alloc({AREA}, 2);
let warm = true;
function f0() {{
    if (warm) return 1;
    let found = 0;
    for (const end = Date.now() + 500; Date.now() < end;) found += area.indexOf(1);
    return found;
}}""", "function fN() { return (fNEXT() + N) | 0; }", count, "for (let i = 0; i < 100_000; i++) fN();\nwarm = false;\nfor (;;) fN();")


def python_chain(count):
    return chain(f"area = b'\\2' * {AREA}\ndef f0():\n    while True:\n        area.find(b'\\1')", "def fN():\n    return fNEXT() + N", count, "fN()")


def ruby_chain(count):
    return chain(f'$area = "\\2" * {AREA}\ndef f0\n  $area.index("\\1") while true\nend', "def fN\n  fNEXT() + N\nend", count, "fN()")


def ruby_classes(count):
    """The same warm, each function in a class of its own; "new" stands between two of them."""
    return chain("class K0\n  def go\n    x = 1\n    i = 0\n    x = x * 31 % 65_521 while (i += 1) < 1_000_000_000\n    x\n  end\nend",
                 "class KN\n  def go\n    KNEXT.new.go + N\n  end\nend", count, "KN.new.go")


RUBY_CLASS = """
class K
  def go(n)
    return K.new.go(n - 1) + n if n > 0
    x = 1
    i = 0
    x = x * 31 % 65_521 while (i += 1) < 1_000_000_000
    x
  end
end
K.new.go(ARGV[0].to_i)
"""


def php_chain(count):
    return chain(f'<?php $area = str_repeat("\\2", {AREA}); function f0() {{ global $area; for (;;) strpos($area, "\\1"); }}',
                 "function fN() { return fNEXT() + N; }", count, "fN();")


def perl_chain(count):
    return chain(f'our $area = "\\2" x {AREA}; sub f0 {{ index($area, "\\1") while 1 }}', "sub fN { return fNEXT() + N }", count, "fN();")
