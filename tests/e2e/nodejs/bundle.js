// SPDX-License-Identifier: Apache-2.0
// A production build by webpack, minified. Arguments: the folder that webpack is in, that of the sources, that of the output.
'use strict';

const path = require('path');
const [packages, source, out] = process.argv.slice(2);
const webpack = require(path.join(packages, 'node_modules', 'webpack'));

webpack({ mode: 'production', context: source, entry: './index.js', output: { path: out, filename: 'main.js' } }, (error, stats) => {
	if (error || stats.hasErrors())
		throw error || new Error(stats.toString());
	console.log('BUILT', stats.compilation.modules.size);
});
