// SPDX-License-Identifier: Apache-2.0
// pictures.mjs URL FOLDER: each page of a collector in both themes, of its most costly service. scripts/pictures calls it.
import { rmSync, writeFileSync } from 'node:fs';
import { launchBrowser, openSite, pageShown } from './browser.js';

const [url, folder] = process.argv.slice(2);
const ask = async (path, options) => (await fetch(url + 'api/v1/' + path, options)).json();

const { services } = await ask('services?from=now-5m');
const service = encodeURIComponent((services.find((s) => s.kind === 'application') ?? services[0]).service);
const kept = await ask(`snapshots?service=${service}&from=now-5m`, { method: 'POST', body: JSON.stringify({ title: 'before the release' }) });
const file = `${folder}/profile.pb.gz`;
writeFileSync(file, Buffer.from(await (await fetch(`${url}api/v1/export?service=${service}&from=now-5m&as=pprof`)).arrayBuffer()));
const PAGES = {
	services: '#/services?from=now-5m',
	profile: `#/profile?service=${service}&from=now-5m`,
	compare: `#/compare?service=${service}&from=now-1m&base=before`,
	heat: '#/heat?from=now-5m&rows=service',
	seconds: '#/heat?from=now-2m&rows=subsecond',
	hosts: `#/hosts?from=now-5m`,
	live: '#/live',
	files: '#/files',
	snapshot: `#/snapshot?id=${kept.id}`,
	admin: '#/admin',
};

const browser = await launchBrowser();
for (const colorScheme of ['light', 'dark']) {
	for (const [name, hash] of Object.entries(PAGES)) {
		const { page, context } = await openSite(browser, url, hash, { colorScheme, viewport: { width: 1200, height: 680 } });
		await pageShown(page, name === 'seconds' ? 'heat' : name);
		if (name === 'files') await page.setInputFiles('#file', file);
		await page.waitForTimeout(name === 'live' ? 12000 : 1000); // a picture that has moved; what is drawn later
		await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png` });
		await context.close();
	}
}
await browser.close();
rmSync(file);
