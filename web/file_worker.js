// SPDX-License-Identifier: Apache-2.0
// The worker that reads one file that somebody chose. Only this file's policy allows WebAssembly (src/collector/api_view.c).
import { runReader } from './readers.js';

runReader();
