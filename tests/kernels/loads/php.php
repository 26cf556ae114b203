<?php
// SPDX-License-Identifier: Apache-2.0
// known_outer > known_middle, eight times > known_leaf, where nearly all time goes. Writes a file when the first round is done.
function known_leaf()
{
    $total = 0;
    for ($i = 0; $i < 50000; $i++)
        $total += $i & 7;
    return $total;
}

function known_middle($depth)
{
    return $depth > 1 ? known_middle($depth - 1) : known_leaf();
}

function known_outer()
{
    return known_middle(8);
}

known_outer();
file_put_contents($argv[1], "");
while (known_outer());
