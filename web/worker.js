// SPDX-License-Identifier: Apache-2.0
// The worker of pages that a collector serves.
import { runWorker } from './aside.js';

runWorker();
postMessage({ started: true });
