<?php
// SPDX-License-Identifier: Apache-2.0
// The functions of tests/e2e/php/load.php, round by round, each of which is timed: spied.php LOAD. Says "ready" and ends when its input
// does. Then it writes three 64-bit numbers a round: when it ended (monotonic clock), its wall time, and its CPU time, in nanoseconds.
// Every line says what it may call, as load.php's do.

function cpu_ns(): int
{
    $used = getrusage();
    return ($used['ru_utime.tv_sec'] + $used['ru_stime.tv_sec']) * 1000000000 + ($used['ru_utime.tv_usec'] + $used['ru_stime.tv_usec']) * 1000;
}

$load = $argv[1];
$argv[1] = 0; // what load.php calls by itself ends at once
ob_start();
include $load; // calls <main>
ob_end_clean();
stream_set_blocking(STDIN, false);
$rounds = '';
echo "ready\n";
$wall = hrtime(true);
$cpu = cpu_ns();
while (fgets(STDIN) !== false || !feof(STDIN)) {
    $total += fib(12);
    $total += sums(30);
    $total += catches();
    $total += callbacks();
    $total += evals();
    $total += strlen(texts());
    $total += magic();
    $total += includes();
    $wall_before = $wall;
    $cpu_before = $cpu;
    $wall = hrtime(true);
    $cpu = cpu_ns();
    $rounds .= pack('q3', $wall, $wall - $wall_before, $cpu - $cpu_before);
}
echo $rounds;
