// SPDX-License-Identifier: Apache-2.0
// Results that are kept: the sheet that keeps what is shown, and the page that a link to one opens.
import { ApiError, ask, askJson } from './api.js';
import { byId, makeElement, shownName } from './around.js';
import { utcSpan, utcText } from './blocks.js';
import { choiceButton, sampleChoices, totalText } from './choices.js';
import { DEFAULT_SELECTION, formatSelection, whoseText } from './selection.js';
import { ServerSource } from './server.js';
import { formatCount } from './format.js';
import { formatHash, parseHash, withoutPlace } from './state.js';
import { groupsToAsk } from './transforms.js';

const GONE = 'This snapshot is not there: it was deleted, or the link is not complete.';
const NO_SAMPLE = 'This snapshot has no such sample type. Choose one that it has.';
const NEEDS_ADMIN = 'This needs a token of scope admin.';

function wordsOf(problem) {
	return problem.status === 403 ? NEEDS_ADMIN : problem.message;
}

/** The sheet behind the button of the profile page. */
class KeepSheet {
	/** app: { viewer, profile } */
	constructor(app) {
		this.app = app;
		this.sheet = byId('keep-sheet');
		byId('keep').addEventListener('click', () => this.open());
		byId('keep-close').addEventListener('click', () => this.sheet.close());
		byId('keep-link').addEventListener('click', () => this.sheet.close()); // the page behind it is where the link leads
		byId('keep-copy').addEventListener('click', () => this.copy());
		this.sheet.addEventListener('keydown', (event) => event.stopPropagation()); // they are none of the graph's
		this.sheet.querySelector('form').addEventListener('submit', (event) => {
			event.preventDefault();
			this.keep();
		});
	}

	/** The selection with the times of the picture, so that what is kept is what is seen. All of its sample types are kept. */
	params() {
		const { sample, ...params } = this.app.profile.partParams();
		const { from_ms: from, to_ms: to } = this.app.viewer.source.answer;
		return { ...params, from, to };
	}

	open() {
		const { source } = this.app.viewer;
		if (!source?.answer) return;
		const { service, from, to } = this.params();
		const whose = whoseText(this.app.selection);
		byId('keep-what').textContent = [service ? shownName(service, 200) : 'All services', ...(whose ? [`only ${shownName(whose, 200)}`] : []), utcSpan(from, to)].join(', ');
		byId('keep-name').value = '';
		byId('keep-trouble').textContent = '';
		this.showLink('');
		this.sheet.showModal();
		byId('keep-name').focus();
	}

	showLink(hash) {
		byId('keep-form').hidden = hash !== '';
		byId('keep-done').hidden = hash === '';
		byId('keep-copy').textContent = 'Copy';
		if (hash) Object.assign(byId('keep-link'), { href: hash, textContent: location.origin + location.pathname + hash });
	}

	/** What is on the screen besides the data goes into the link: view, steps, search. Labels of profiles are not in a snapshot. */
	linkTo(id) {
		const { viewer, selection, profile } = this.app;
		const isOfProfiles = ({ op, text }) => op === 'group' && text !== 'thread' && profile.offered.includes(text);
		const steps = viewer.state.steps.filter((step) => !isOfProfiles(step));
		const view = formatHash({ ...withoutPlace(viewer.state), steps, focus: -1, focusName: '' });
		return formatSelection({ ...DEFAULT_SELECTION, page: 'snapshot', snapshot: id, sample: selection.sample }, view);
	}

	async keep() {
		if (this.isBusy) return;
		this.isBusy = true;
		byId('keep-trouble').textContent = '';
		try {
			const { id } = await askJson('snapshots', this.params(), { method: 'POST', body: { title: byId('keep-name').value.trim() } });
			this.showLink(this.linkTo(id));
			byId('keep-copy').focus();
		} catch (problem) {
			byId('keep-trouble').textContent = wordsOf(problem);
		}
		this.isBusy = false;
	}

	async copy() {
		try {
			await navigator.clipboard.writeText(byId('keep-link').textContent);
			byId('keep-copy').textContent = 'Copied';
		} catch {
			getSelection().selectAllChildren(byId('keep-link')); // for the browser's own way to copy
		}
	}
}

export class SnapshotPage {
	/** app: { selection, viewer, profile, go(change) } */
	constructor(app) {
		this.app = app;
		this.sheet = new KeepSheet(app);
		this.remove = byId('snapshot-delete');
		this.remove.addEventListener('click', () => this.delete());
		this.remove.addEventListener('blur', () => this.arm(false));
	}

	params() {
		const { snapshot, sample } = this.app.selection;
		return { snapshot, sample };
	}

	grouped() {
		return groupsToAsk(parseHash(this.app.address.read()).steps);
	}

	async show(signal) {
		const { snapshot } = this.app.selection;
		byId('snapshot-note').hidden = true;
		if (!/^[0-9a-f]{32}$/.test(snapshot)) throw new ApiError(404, GONE);
		const source = ServerSource.open('flame', this.params(), { signal, grouped: this.grouped(), offered: ['thread'] });
		source.catch(() => {}); // said below, unless the snapshot is not there
		try {
			this.fill(await askJson('snapshots/' + snapshot, {}, { signal })); // also its sample types, when the graph is of none of them
			await this.app.profile.showSource(await source, null, this.params());
		} catch (problem) {
			throw problem.status === 404 ? new ApiError(404, problem.words?.includes('no sample type') ? NO_SAMPLE : GONE) : problem;
		}
	}

	/** The line that says what it is, and when it was taken. */
	fill(facts) {
		const title = facts.title ? shownName(facts.title, 400) : 'without a title';
		this.arm(false);
		byId('profile-title').textContent = facts.service ? shownName(facts.service, 300) : 'All services';
		byId('snapshot-title').textContent = title;
		byId('snapshot-what').replaceChildren(makeElement('code', '', shownName(facts.selection ?? '', 600)), ' ', utcSpan(facts.from_ms, facts.to_ms),
			`, taken ${utcText(facts.created_ms)} of ${formatCount(facts.profiles)} ${facts.profiles === 1 ? 'profile' : 'profiles'}. `,
			makeElement('span', 'quiet', 'It stays as it is when they are gone.'));
		byId('snapshot-note').hidden = false;
		document.title = `hearth: ${facts.title ? title : 'snapshot'}`;
		const { sample } = this.app.selection;
		const buttons = sampleChoices(facts.samples ?? []).map((s) => choiceButton(s.name, totalText(s.total, s.unit, 0),
			s.text === (sample || facts.default), () => this.app.go({ sample: s.text })));
		byId('samples').replaceChildren(byId('samples').firstElementChild, ...buttons);
	}

	/** Deleting takes two clicks. */
	arm(isArmed) {
		this.isArmed = isArmed;
		this.remove.textContent = isArmed ? 'Delete for good?' : 'Delete';
	}

	async delete() {
		if (!this.isArmed) {
			this.arm(true);
			return;
		}
		this.arm(false);
		try {
			await ask('snapshots/' + this.app.selection.snapshot, {}, { method: 'DELETE' });
			this.app.viewer.toast('Deleted');
			this.app.go({ page: 'services' });
		} catch (problem) {
			this.app.trouble(new ApiError(problem.status, problem.status === 404 ? GONE : wordsOf(problem)));
		}
	}
}
