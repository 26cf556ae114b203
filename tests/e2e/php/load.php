<?php
// SPDX-License-Identifier: Apache-2.0
// A load whose every line says what it may call: the names in front of a "(" and those behind "// calls". php_oracle.py
// reads that. Argument: seconds.

class Node implements IteratorAggregate, Countable
{
    public $items = [];

    public function __construct(int $n)
    {
        for ($i = 0; $i < $n; $i++) {
            $this->items[] = $i * 7 % 31;
        }
    }

    public function __destruct()
    {
        $this->items = null;
    }

    public function __get($name)
    {
        $s = 0;
        for ($i = 0; $i < 40; $i++) {
            $s += $i ^ strlen($name);
        }
        return $s;
    }

    public function __call($name, $arguments)
    {
        return spin(30) + count($arguments);
    }

    public static function __callStatic($name, $arguments)
    {
        return spin(20);
    }

    #[\ReturnTypeWillChange]
    public function getIterator()
    {
        return new ArrayIterator($this->items); // calls ArrayIterator::__construct
    }

    #[\ReturnTypeWillChange]
    public function count()
    {
        return spin(15);
    }
}

function spin(int $n): int
{
    $s = 0;
    for ($i = 0; $i < $n; $i++) {
        $s = ($s * 31 + $i) & 0xffff;
    }
    return $s;
}

function fib(int $n): int
{
    return $n < 2 ? $n : fib($n - 1) + fib($n - 2);
}

function inner(int $n)
{
    for ($i = 0; $i < $n; $i++) {
        yield spin($i);
    }
}

function outer(int $n)
{
    yield from inner($n);
    yield 1;
}

function sums(int $n): int
{
    $s = 0;
    foreach (outer($n) as $x) { // calls inner
        $s += $x;
    }
    return $s;
}

function thrower(int $n): int
{
    if ($n == 0) {
        throw new RuntimeException('end'); // calls Exception::__construct
    }
    return thrower($n - 1);
}

function catches(): int
{
    try {
        return thrower(12);
    } catch (RuntimeException $e) {
        return spin(20);
    } finally {
        spin(5);
    }
}

function callbacks(): int
{
    $a = range(1, 60);
    $b = array_map(function ($x) {
        return spin($x % 20);
    }, $a); // calls array_map
    usort($b, function ($x, $y) {
        return $x <=> $y;
    }); // calls usort
    return array_sum($b);
}

function evals(): int
{
    return eval('return spin(25);'); // calls <main>
}

function texts(): string
{
    $t = json_encode(range(0, 200));
    $d = json_decode($t, true);
    return preg_replace_callback('/[0-9]+/', function ($m) {
        return strrev($m[0]);
    }, implode(',', $d)); // calls preg_replace_callback
}

function magic(): int
{
    $n = new Node(30); // calls Node::__construct
    $s = $n->something + $n->anything(1, 2) + Node::nothing(); // calls Node::__get Node::__call Node::__callStatic
    foreach ($n as $x) { // calls Node::getIterator
        $s += $x;
    }
    return $s + count($n); // calls Node::count Node::__destruct
}

function includes(): int
{
    return include __DIR__ . '/included.php'; // calls <main>
}

$end = microtime(true) + (float)$argv[1];
$total = 0;
while (microtime(true) < $end) {
    $total += fib(12);
    $total += sums(30);
    $total += catches();
    $total += callbacks();
    $total += evals();
    $total += strlen(texts());
    $total += magic();
    $total += includes();
}
echo $total > 0 ? "done\n" : "nothing\n";
