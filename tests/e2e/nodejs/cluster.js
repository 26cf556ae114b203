// SPDX-License-Identifier: Apache-2.0
// Four workers of a cluster and a child, each a process of its own. Arguments: seconds.
'use strict';

const { fork } = require('child_process');
const cluster = require('cluster');

let s = 0;
function inner(n) {
	for (let i = 0; i < 3000; i++)
		s = (s * 31 + i + n) % 1000003;
	return s;
}

function outer(n) {
	return inner(n) + 1;
}

const end = Date.now() + 1000 * Number(process.argv[2]);
const isChild = process.argv[3] === 'child';
if (cluster.isMaster && !isChild) {
	fork(__filename, [process.argv[2], 'child']);
	for (let i = 0; i < 4; i++)
		cluster.fork();
} else {
	while (Date.now() < end)
		outer(1);
	process.exit();
}
