// SPDX-License-Identifier: Apache-2.0
// What is kept and what goes next, who may do what, and deleting a service.
import { byId, makeElement, shownName } from './around.js';
import { ApiError, askJson } from './api.js';
import { utcText } from './blocks.js';
import { formatCount, formatShare, formatValue, visibleText } from './format.js';
import { headRow } from './services_page.js';

const ROWS_MAX = 200;
const NAME_CHARS_MAX = 4096;
const HOUR_MS = 3600000;
const BOXES = /** @type {const} */ (['delete-box', 'revoke-box']);
const SCOPES = { ingest: 'ingest: send profiles', read: 'read: look at them', admin: 'admin: everything, deleting too' };

const sizeText = (bytes) => formatValue(bytes, { unit: 'bytes', scale: 1, nanoseconds: 0 });

const plural = (count, one, many) => `${formatCount(count)} ${count === 1 ? one : many}`;

/** Days are days of UTC, so times are too. */
const minuteText = (ms) => utcText(ms, 'minute');

function lengthText(ms) {
	const hours = ms / HOUR_MS;
	if (hours >= 48 && hours % 24 === 0) return `${formatCount(hours / 24)} d`;
	return hours >= 1 ? `${Number(hours.toFixed(1))} h` : `${Number((ms / 60000).toFixed(1))} min`;
}

/** What goes, of GET /api/v1/storage/service or of a DELETE, in words. */
export function deletedText({ profiles, sums, files, bytes }) {
	const parts = [];
	if (profiles || !sums) parts.push(plural(profiles, 'profile', 'profiles'));
	if (sums) parts.push(plural(sums, 'sum of a day', 'sums of days'));
	return `${parts.join(' and ')} in ${plural(files, 'file', 'files')}, about ${sizeText(bytes)}`;
}

/** The limits and how near they are: [what, option, limit, now]. */
export function limitRows({ retention, bytes, disk, days }) {
	const oldest = days.reduce((first, day) => Math.min(first, day.newest_ms ?? Infinity), Infinity);
	const free = retention.free ? sizeText(retention.free) : retention.free_auto ? 'as the disk has it' : 'none';
	return [
		['A day goes when its newest upload is older than', '--retention', retention.age_ms ? lengthText(retention.age_ms) : 'never', Number.isFinite(oldest) ? `oldest: ${minuteText(oldest)}` : ''],
		['Oldest days go when all files take more than', '--retention-size', retention.size ? sizeText(retention.size) : 'no limit',
			sizeText(bytes) + (retention.size ? `, ${formatShare(bytes, retention.size)}` : '')],
		['Oldest days go when the disk has less left than', '--retention-free', free + (disk?.lowered ? `, lowered to ${sizeText(disk.goal)}` : ''), disk ? `${sizeText(disk.free)} of ${sizeText(disk.size)}` : 'not known'],
		['The daily sums of a year go after', '--retention-daily', retention.daily_age_ms ? lengthText(retention.daily_age_ms) : 'never', ''],
	];
}

const REASONS = { age: 'too old', size: 'all files take too much', free: 'the disk has too little left' };

/** What retention will delete, as sentences. */
export function outlookLines({ days, years = [], next, over, stuck }) {
	const name = (entry) => (entry.day ? entry.day : `the daily sums of ${entry.year}`);
	const going = [...days, ...years].filter((entry) => entry.goes);
	const lines = going.map((entry) => `Goes within a minute: ${name(entry)} (${REASONS[entry.goes] ?? entry.goes}), ` +
		`${entry.profiles === undefined ? '' : plural(entry.profiles, 'profile', 'profiles') + ', '}${sizeText(entry.bytes)}.`);
	if (next && !going.some((entry) => entry.day === next.day && entry.year === next.year)) {
		const entry = [...days, ...years].find((one) => one.day === next.day && one.year === next.year);
		const what = entry ? `, ${entry.profiles === undefined ? '' : plural(entry.profiles, 'profile', 'profiles') + ', '}${sizeText(entry.bytes)}` : '';
		lines.push(`Next because of its age: ${name(next)}${what}, not before ${minuteText(next.not_before_ms)}.`);
	}
	if (!lines.length) lines.push('Nothing goes as things are.');
	if (over) lines.push('A limit cannot be kept: what may not go (today, or what others have on the disk) is more than it.');
	if (stuck) lines.push('A file could not be removed, so nothing more goes for room until the collector is started again.');
	return lines;
}

/** Whether what was typed is the name, or the name as it is shown. */
export function isTyped(typed, name) {
	return typed === name || (typed !== '' && typed === visibleText(name));
}

/** The collector's own words where it has some: what failed here is its files, not a query. */
function wordsOf(problem) {
	return problem instanceof ApiError ? problem.words || problem.message : 'This could not be done: ' + problem.message;
}

function cell(text, className = '') {
	return makeElement('td', className, text);
}

function button(text, act, className = '') {
	const made = makeElement('button', className, text);
	made.type = 'button';
	made.addEventListener('click', act);
	return made;
}

function isShown() {
	return document.body.dataset.page === 'admin';
}

export class AdminPage {
	/** app: { show(), trouble(problem) } */
	constructor(app) {
		this.app = app;
		this.opened = 0; // dialogs so far: an answer to one that was closed is nobody's
		byId('delete-filter').addEventListener('input', () => this.fillServices());
		byId('made-done').addEventListener('click', () => this.hideSecret());
		byId('made-copy').addEventListener('click', () => this.copySecret());
		byId('make-token').addEventListener('submit', (event) => {
			event.preventDefault();
			this.makeToken();
		});
		byId('admin-in').addEventListener('click', () => byId('sign-in').showModal());
		byId('admin-out').addEventListener('click', () => this.signOut());
		byId('delete-name').addEventListener('input', () => this.checkTyped());
		for (const box of BOXES) {
			byId(box).querySelector('form').addEventListener('submit', (event) => {
				event.preventDefault();
				if (box === 'delete-box') this.deleteService();
				else this.revoke();
			});
			byId(box).querySelector('.cancel').addEventListener('click', () => byId(box).close());
		}
		for (const [scope, text] of Object.entries(SCOPES)) {
			const input = makeElement('input');
			input.type = 'checkbox';
			input.name = 'scope';
			input.value = scope;
			byId('make-scopes').append(makeElement('label', '', input, ' ' + text));
		}
		byId('days').tHead.replaceChildren(headRow([['Day'], ['Profiles', 'number'], ['Files', 'number files'], ['Size', 'number'], ['Newest upload', 'newest'], ['Goes']]));
		byId('limits').tHead.replaceChildren(headRow([['Limit'], ['Set to', 'number'], ['Now', 'number']]));
		byId('tokens').tHead.replaceChildren(headRow([['Token'], ['May'], ['Made', 'newest'], ['']]));
		byId('tokens').tHead.querySelector('th:last-child').append(makeElement('span', 'spoken', 'Revoke'));
	}

	async show(signal) {
		this.hideSecret();
		const [session, storage] = await Promise.all([askJson('session', {}, { signal }), askJson('storage', {}, { signal })]);
		this.session = session;
		this.storage = storage;
		const mayAsk = !session.needs_token || this.mayChange;
		this.tokens = mayAsk ? await askJson('tokens', {}, { signal }) : null;
		this.fill();
	}

	/** A secret does not outlast the look at it. */
	hide() {
		this.hideSecret();
		for (const box of BOXES) byId(box).close();
		byId('admin-done').textContent = '';
	}

	get mayChange() {
		return this.session.needs_token && this.session.scopes.includes('admin');
	}

	fill() {
		this.fillRule();
		this.fillStorage();
		this.fillTokens();
		this.fillServices();
	}

	/** Who may change what is kept, and why it is so. */
	fillRule() {
		const { session, tokens } = this;
		const command = makeElement('code', '', 'hearth token create --scope admin');
		let words;
		if (this.mayChange) {
			words = ['You may change what is kept: your token has the scope admin.'];
		} else if (session.needs_token) {
			words = [`Your token may only ${session.scopes.join(' and ') || 'nothing'}. Deleting and tokens need the scope admin: `, command, ' makes such a token.'];
		} else if (tokens && !tokens.possible) {
			words = ['This collector was told to ask for no tokens (--insecure-no-auth), so nothing can be changed here: anybody who reaches it could.'];
		} else {
			words = ['No token is asked for: the collector answers this machine only, and whoever reaches it may read and send. Deleting a service here and making tokens ',
				'takes a token with the scope admin all the same, since every program and every user of this machine reaches this address: ', command,
				', on this machine, makes the first one. From then on one is asked for by everything.'];
		}
		byId('admin-rule').replaceChildren(...words);
		byId('admin-in').hidden = !session.needs_token || this.mayChange;
		byId('admin-out').hidden = !session.needs_token;
		byId('admin-changes').hidden = !this.mayChange;
	}

	fillStorage() {
		const { storage } = this;
		const facts = [['profiles', formatCount(storage.profiles)], ['services', formatCount(storage.service_count)], ['days', formatCount(new Set(storage.days.map((day) => day.day)).size)],
			['all files', sizeText(storage.bytes)]];
		if (storage.disk) facts.push(['left on the disk', sizeText(storage.disk.free)]);
		facts.push(['engine', storage.engine]);
		byId('kept').replaceChildren(...facts.map(([name, value]) => makeElement('div', '', makeElement('dt', '', name), makeElement('dd', '', value))));
		byId('limits').tBodies[0].replaceChildren(...limitRows(storage).map(([what, option, limit, now]) =>
			makeElement('tr', '', makeElement('td', '', what + ' ', makeElement('code', '', option)), cell(limit, 'number'), cell(now, 'number'))));
		byId('outlook').replaceChildren(...outlookLines(storage).map((line) => makeElement('li', '', line)));
		byId('days').tBodies[0].replaceChildren(...[...storage.days].reverse().map((day) => makeElement('tr', '', cell(day.day + (day.open ? ', open' : '')),
			cell(formatCount(day.profiles), 'number'), cell(formatCount(day.files), 'number files'), cell(sizeText(day.bytes), 'number'), cell(day.newest_ms ? minuteText(day.newest_ms) : '', 'newest'), cell(REASONS[day.goes] ?? ''))),
		...(storage.years ?? []).map((year) => makeElement('tr', '', cell(`daily sums of ${year.year}`), cell('', 'number'), cell(formatCount(year.files), 'number files'), cell(sizeText(year.bytes), 'number'), cell('', 'newest'),
			cell(REASONS[year.goes] ?? ''))));
		byId('odd').hidden = !storage.odd_count;
		byId('odd').querySelector('summary').textContent = plural(storage.odd_count, 'file is', 'files are') + ' out of service';
		byId('odd').querySelector('ul').replaceChildren(...storage.odd.map(({ file, why }) => makeElement('li', '', `${shownName(file, 200)}: ${shownName(why, 500)}`)));
	}

	/* Tokens */

	fillTokens() {
		const { tokens } = this;
		if (!tokens) return;
		byId('tokens').tBodies[0].replaceChildren(...tokens.tokens.map((token) => {
			const revoke = button('Revoke…', () => this.askRevoke(token), 'edged');
			revoke.setAttribute('aria-label', `Revoke ${shownName(token.name || token.id, 100)}`);
			const name = makeElement('td', 'name', token.name ? shownName(token.name, 200) + ' ' : '', makeElement('span', 'kind', token.id + (token.own ? ', yours' : '')));
			return makeElement('tr', '', name, cell(token.scopes.join(', ')), cell(minuteText(token.created_ms), 'newest'), makeElement('td', 'number', revoke));
		}));
		byId('make-token').hidden = !tokens.writable;
		byId('tokens-fixed').hidden = tokens.writable;
	}

	/** Says how something ended, or what went wrong, where a screen reader hears it. */
	say(text, isProblem = false) {
		byId('admin-done').textContent = text;
		byId('admin-done').classList.toggle('problem', isProblem);
	}

	async makeToken() {
		const form = byId('make-token');
		const scopes = [...form.querySelectorAll('input[name=scope]:checked')].map((input) => input.value);
		byId('make-trouble').textContent = scopes.length ? '' : 'Choose what it may do.';
		if (!scopes.length || this.isMaking) return;
		this.isMaking = true;
		try {
			const made = await askJson('tokens', {}, { method: 'POST', body: { name: byId('make-name').value, scopes } });
			if (!isShown()) return;
			form.reset();
			this.tokens = await askJson('tokens');
			this.fillTokens();
			byId('made').hidden = false;
			byId('made-secret').textContent = made.token;
			byId('made-title').textContent = `The token ${shownName(made.name || made.id, 100)}`;
			byId('made-secret').focus();
			getSelection().selectAllChildren(byId('made-secret'));
		} catch (problem) {
			byId('make-trouble').textContent = wordsOf(problem);
		} finally {
			this.isMaking = false;
		}
	}

	hideSecret() {
		const wasShown = !byId('made').hidden;
		byId('made-secret').textContent = '';
		byId('made').hidden = true;
		if (wasShown && isShown()) byId('make-name').focus();
	}

	async copySecret() {
		getSelection().selectAllChildren(byId('made-secret'));
		try {
			await navigator.clipboard.writeText(byId('made-secret').textContent);
			this.say('The token is in the clipboard.');
		} catch {
			this.say('The browser does not let this page copy; the token is marked.');
		}
	}

	askRevoke(token) {
		const isLast = token.scopes.includes('admin') && this.tokens.tokens.filter((t) => t.scopes.includes('admin')).length === 1;
		this.revoked = token;
		byId('revoke-what').textContent = `${shownName(token.name || 'without a name', 200)}, ${token.id}: ${token.scopes.join(', ')}. Who uses it is refused from then on.` +
			(token.own ? ' You are signed in with it.' : '') +
			(isLast ? ' It is the last one with the scope admin: nothing can be changed here until hearth token create, on the collector\'s machine, makes another.' : '');
		byId('revoke-trouble').textContent = '';
		byId('revoke-box').showModal();
	}

	async revoke() {
		const token = this.revoked;
		try {
			await askJson('tokens', { id: token.id }, { method: 'DELETE' });
			byId('revoke-box').close();
			this.say(`The token ${shownName(token.name || token.id, 100)} is revoked.`);
			await this.app.show();
			byId('make-name').focus(); // its button has gone
		} catch (problem) {
			byId('revoke-trouble').textContent = wordsOf(problem);
		}
	}

	async signOut() {
		try {
			await askJson('session', {}, { method: 'DELETE' });
			this.app.show();
		} catch (problem) {
			this.say(wordsOf(problem), true);
		}
	}

	/* Deleting a service */

	fillServices() {
		if (!this.mayChange) return;
		const { services, service_count: count } = this.storage;
		const filter = byId('delete-filter').value;
		const wanted = filter.toLowerCase();
		const found = services.filter((name) => name.toLowerCase().includes(wanted) || visibleText(name).toLowerCase().includes(wanted));
		// Of more services than are listed, one can still be named.
		if (filter && count > services.length && !found.includes(filter)) found.unshift(filter);
		byId('delete-list').replaceChildren(...found.slice(0, ROWS_MAX).map((name) => {
			const remove = button('Delete…', () => this.askDelete(name), 'edged');
			remove.setAttribute('aria-label', `Delete ${shownName(name, 200)}`);
			return makeElement('li', '', makeElement('span', 'name', shownName(name, 200)), remove);
		}));
		const more = found.length - ROWS_MAX + (filter ? 0 : count - services.length);
		const words = more > 0 && found.length ? `${formatCount(Math.max(more, 1))} more: filter them.` : found.length ? '' : filter ? 'No service has this in its name.' : 'Nothing is stored.';
		byId('delete-more').textContent = words;
	}

	async askDelete(name) {
		const mine = ++this.opened;
		this.doomed = name;
		const shown = visibleText(name.slice(0, NAME_CHARS_MAX)).slice(0, NAME_CHARS_MAX);
		byId('delete-what').textContent = shown + (name.length > NAME_CHARS_MAX ? `… (${formatCount(name.length)} characters)` : '');
		byId('delete-amount').textContent = 'Looking how much there is…';
		byId('delete-trouble').textContent = '';
		byId('delete-name').value = '';
		this.setDeleting(false);
		byId('delete-box').showModal();
		byId('delete-name').focus();
		try {
			const found = await askJson('storage/service', { service: name });
			if (mine !== this.opened) return;
			byId('delete-amount').textContent = `${deletedText(found)} go, for good. Other services and snapshots stay. Agents that still send it bring it back.` +
				(found.aside ? ` ${plural(found.aside, 'file', 'files')} could not be read.` : '');
		} catch (problem) {
			if (mine === this.opened) byId('delete-amount').textContent = problem.status === 404 ? 'Nothing is stored of it any more.' : wordsOf(problem);
		}
	}

	checkTyped() {
		byId('delete-go').disabled = this.isDeleting || !isTyped(byId('delete-name').value, this.doomed);
	}

	setDeleting(isDeleting) {
		this.isDeleting = isDeleting;
		byId('delete-name').readOnly = isDeleting;
		byId('delete-box').setAttribute('aria-busy', String(isDeleting));
		byId('delete-state').textContent = isDeleting ? 'It is being deleted. Large days take minutes; it goes on when this is closed.' : '';
		this.checkTyped();
	}

	async deleteService() {
		const name = this.doomed;
		const mine = this.opened;
		if (this.isDeleting || !isTyped(byId('delete-name').value, name)) return;
		this.setDeleting(true);
		byId('delete-trouble').textContent = '';
		try {
			const gone = await askJson('services', { service: name }, { method: 'DELETE' });
			const left = gone.aside ? ` ${plural(gone.aside, 'file', 'files')} could not be read; what it has in them stays.` : '';
			this.say(`${shownName(name, 200)} is deleted: ${deletedText(gone)}.${left}`);
			if (mine === this.opened) byId('delete-box').close();
			if (!isShown()) return;
			await this.app.show();
			byId('delete-filter').focus(); // its button has gone
		} catch (problem) {
			if (mine === this.opened && byId('delete-box').open) byId('delete-trouble').textContent = wordsOf(problem);
			else this.say(`${shownName(name, 200)}: ${wordsOf(problem)}`, true);
		}
		if (mine === this.opened) this.setDeleting(false);
	}
}
