<?php
// SPDX-License-Identifier: Apache-2.0
// Fibers in fibers, as load.php says of its lines. Argument: seconds.

function spin(int $n): int
{
    $s = 0;
    for ($i = 0; $i < $n; $i++) {
        $s = ($s * 31 + $i) & 0xffff;
    }
    return $s;
}

function leaf(int $n): int
{
    Fiber::suspend(spin(400)); // calls Fiber::suspend
    return spin($n);
}

function within(int $n): int
{
    $f = new Fiber('leaf'); // calls Fiber::__construct
    $f->start(500); // calls Fiber::start
    $s = spin(300);
    $f->resume(); // calls Fiber::resume
    return $s + $f->getReturn(); // calls Fiber::getReturn
}

$end = microtime(true) + (float)$argv[1];
while (microtime(true) < $end) {
    $fiber = new Fiber('within'); // calls Fiber::__construct
    $fiber->start(3); // calls Fiber::start
    spin(100);
}
