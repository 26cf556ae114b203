<?php
// SPDX-License-Identifier: Apache-2.0
// Waits where it says: frames of functions, methods, closures, generators, callbacks of extensions, eval() and a file that is included.

/** What debug_backtrace() says of callers, and the line where it waits. */
function park()
{
    $stack = [["park", __FILE__, __LINE__ + 9]];
    $trace = debug_backtrace(DEBUG_BACKTRACE_IGNORE_ARGS);
    foreach ($trace as $i => $called) {
        $by = $trace[$i + 1] ?? ["function" => "<main>"];
        $name = in_array($by["function"], ["include", "eval"]) ? "<main>" : (isset($by["class"]) ? $by["class"] . "::" : "") . $by["function"];
        $stack[] = [$name, $called["file"] ?? "<internal>", $called["line"] ?? 0];
    }
    echo "STACKS ", json_encode($stack), "\n";
    fflush(STDOUT);
    sleep(1000);
}

class Shop
{
    public function __call($name, $arguments)
    {
        return self::deep(30);
    }

    private static function deep($n)
    {
        if ($n) {
            return self::deep($n - 1);
        }
        return array_map(function ($x) {
            foreach (produce() as $y) {
                return $y;
            }
        }, [1]);
    }
}

function produce()
{
    yield usort_one();
}

function usort_one()
{
    $a = [2, 1];
    usort($a, function ($x, $y) {
        return eval("return\n\npark();");
    });
}

if (!defined("INSIDE")) {
    define("INSIDE", 1);
    (function () {
        include __DIR__ . "/included.php";
    })();
}
