<?php
// SPDX-License-Identifier: Apache-2.0
// load.php sleep|work SECONDS: outer - middle - wait_here or burn, for that long. sleep prints how many nanoseconds it waited by
// its own clock, and how often.
function wait_here()
{
	usleep(10000);
}

function burn()
{
	$x = 1;
	for ($i = 0; $i < 20000; $i++)
		$x = $x * 31 % 65521;
	return $x;
}

function middle($kind)
{
	return $kind === 'sleep' ? wait_here() : burn();
}

function outer($kind)
{
	$start = hrtime(true);
	middle($kind);
	return hrtime(true) - $start;
}

[, $kind, $seconds] = $argv;
$waited = $times = 0;
$stop = hrtime(true) + $seconds * 1e9;
while (hrtime(true) < $stop) {
	$waited += outer($kind);
	$times++;
}
echo "$waited $times\n";
