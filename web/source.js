// SPDX-License-Identifier: Apache-2.0
// Where profiles come from. A source has:
//   meta            { title, types: [{name, unit, scale, nanoseconds}...], kinds: [name...] }
//   overview()      a promise of a first, pruned picture of type 0, or null
//   startWorker()   a worker that runs aside.js's runWorker(), or null
//   open(index)     a promise of the profile of meta.types[index], as decodeProfile() gives it; asked again it is the same
//   offered         groups that it can make beyond what the frames have (transforms.js); with them:
//   grouped         those that the profile has
//   regroup(list)   a promise of the same source with these
// Embedded blocks of the page itself are one, a file that somebody dropped is another (file.js), a collector the third.
import { readProfile } from './data.js';
import { decodeAside, startWorker } from './decoder.js';

/**
 * The data blocks of a page that has its profile in itself.
 * @implements {Source}
 */
export class EmbeddedSource {
	/** script: the page's own text, for workers; may be empty. `ended`: a promise of the end of the document. */
	constructor(doc, script, ended) {
		this.doc = doc;
		this.script = script;
		this.ended = ended;
		this.worker = this.startWorker(); // before the data has arrived
		this.opened = new Map();
		this.meta = JSON.parse(doc.getElementById('meta').textContent);
	}

	startWorker() {
		return this.script ? startWorker(this.script) : null;
	}

	overview() {
		const text = this.doc.getElementById('overview').textContent;
		return text ? readProfile(text) : null;
	}

	open(index) {
		if (!this.opened.has(index)) this.opened.set(index, this.read(index));
		return this.opened.get(index);
	}

	async read(index) {
		await this.ended;
		const block = this.doc.getElementById(index ? 'data-' + index : 'data');
		const text = block.textContent;
		block.textContent = '';
		return decodeAside(index ? this.startWorker() : this.worker, text);
	}
}
