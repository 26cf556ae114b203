// SPDX-License-Identifier: Apache-2.0
// picture.mjs PAGE.html OUT.png: what a person sees who opens the page. scripts/picture calls it.
import { launchBrowser } from './browser.js';

const [page, out] = process.argv.slice(2);
const browser = await launchBrowser();
const tab = await browser.newPage({ viewport: { width: 1400, height: 760 } });
await tab.goto('file://' + page);
await tab.waitForFunction(() => document.querySelector('canvas')?.width > 0);
await tab.waitForTimeout(1000);
await tab.screenshot({ path: out });
await browser.close();
