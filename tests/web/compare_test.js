// SPDX-License-Identifier: Apache-2.0
// What a selection is compared with: in an address, in a request and in words.
import { test } from 'node:test';
import assert from 'node:assert/strict';
import { ApiError, apiUrl } from '../../web/api.js';
import { compareParams, compareProblem, earlier, readLabels, readSnapshot, sideText, typedLabels, whatText } from '../../web/compare.js';
import { parseLabels } from '../../web/labels.js';
import { DEFAULT_SELECTION, formatSelection, parseSelection } from '../../web/selection.js';

test('a base of its own, in an address and in a request', () => {
	const compare = { ...DEFAULT_SELECTION, page: 'compare', service: 'api', labels: [['v', '2']], from: 'now-1h', base: 'own' };
	const odd = 'a&b=c#<i>\u202e,%';
	for (const own of [{}, { baseService: '' }, { baseService: odd }, { baseLabels: [] }, { baseLabels: [[odd, 'x,y=z%2C'], ['b', '']] }, { baseFrom: 'now-2h', baseTo: '2026-11-22T12:00' }, { baseTo: '' },
		{ baseSnapshot: 'f'.repeat(32) }, { isSwapped: true }, { baseLabels: [['v', '1'], ['v', '2'], ['zone', 'eu', '!=']] }, { baseService: 'web', baseLabels: [['a', 'b']], baseFrom: '1795000000', baseTo: 'now', isSwapped: true }]) {
		assert.deepEqual(parseSelection(formatSelection({ ...compare, ...own })), { ...compare, ...own });
	}
	for (const [query, got] of [['base=mine', { base: '1d' }], ['base=own&base-snapshot=' + 'x'.repeat(500), { base: 'own', baseSnapshot: 'x'.repeat(64) }], ['base-service=' + 'x'.repeat(5000), { base: '1d' }],
		['base=own&base-labels=%E0%A4%A', { base: 'own', baseLabels: [] }], ['swap=yes', {}]]) assert.deepEqual(parseSelection('#/compare?' + query), { ...DEFAULT_SELECTION, page: 'compare', ...got });
	const range = [3600000, 7200000];
	const whose = { process: '', program: '', thread: '', 'thread-name': '' };
	const asked = (own) => {
		const { type, sample, ...rest } = compareParams({ ...compare, ...own }, range);
		for (const key of Object.keys(whose)) delete rest[key];
		return Object.fromEntries(Object.entries(rest).filter(([, value]) => value !== undefined));
	};
	const now = { service: 'api', labels: 'v=2', from: 'now-1h', to: 'now' };
	const base = (more) => ({ 'base-service': 'api', 'base-labels': 'v=2', 'base-from': 'now-1h', 'base-to': 'now', ...more });
	assert.deepEqual(asked({}), { ...now, ...base({}) }, 'what is not chosen is as in the selection');
	assert.deepEqual(asked({ baseService: '', baseLabels: [], baseFrom: 'now-3h' }), { ...now, ...base({ 'base-service': '', 'base-labels': '', 'base-from': 'now-3h' }) });
	assert.deepEqual(asked({ baseSnapshot: 'abc', baseService: 'web' }), { ...now, 'base-snapshot': 'abc' });
	assert.deepEqual(asked({ baseService: 'web', isSwapped: true }), { ...now, service: 'web', ...base({}) });
	assert.deepEqual(asked({ baseSnapshot: 'abc', isSwapped: true }), { snapshot: 'abc', ...base({}) });
	const within = [4000000, 4000500];
	assert.deepEqual([asked({ within }).within, asked({ within })['base-within'], asked({ within, baseFrom: 'now-3h' })['base-within']], ['4000000-4000500', '4000000-4000500', undefined]);
	assert.deepEqual(asked({ base: 'before' }), { ...now, from: 3600000, to: 7200000, ...base({ 'base-from': 0, 'base-to': 3600000 }) });
	const part = [4000000, 5000000];
	assert.deepEqual(asked({ base: 'before', part }), { ...now, from: 4000000, to: '4999999999999', ...base({ 'base-from': 3000000, 'base-to': '3999999999999' }) });
	assert.deepEqual([apiUrl('compare', asked({ baseService: '', baseLabels: [] })).includes('base-service=&base-labels=&'), apiUrl('x', { labels: '', 'base-from': null })], [true, '/api/v1/x']);
});

test('times, labels and links that somebody has typed', () => {
	for (const [text, ms, want] of [['now-1h', 86400000, 'now-25h'], ['now', 86400000, 'now-24h'], ['now-15m', 900000, 'now-30m'], ['-90s', 90000, 'now-3m'], ['now-1d', 1000, 'now-86401s'], ['now', 0, 'now'],
		['2026-11-22T12:00:00Z', 3600000, '2026-11-22T11:00:00.000Z'], ['2026-11-22T12:00', 0, '2026-11-22T12:00:00.000Z'], ['2026-11-22T12:00:00+02:00', 0, '2026-11-22T10:00:00.000Z'],
		['yesterday', 1, null], ['', 1, null], ['1795000000', 1, null], ['2026-99-99T12:00', 0, null]]) assert.equal(earlier(text, ms), want, text);
	assert.deepEqual(readLabels(' host = node-a , v=2,'), [['host', 'node-a'], ['v', '2']]);
	assert.deepEqual([readLabels(''), readLabels('a'), readLabels('=b'), readLabels('a=b=c')], [[], null, null, [['a', 'b=c']]]);
	for (const text of ['{host=~"a|b", zone!="x, y}"}', '{"odd name"="\\"",b!~"c.*"}', '{}']) assert.deepEqual(readLabels(text), parseLabels(text), text);
	for (const text of ['{', '{a}', '{a=b}', '{a="b" c="d"}', '{a="b"} x', '{a="b",,c="d"}', '{="x"}']) assert.equal(readLabels(text), null, text);
	const several = [['v', '1'], ['v', '2'], ['zone', 'eu', '!=']];
	assert.deepEqual(readLabels(typedLabels(several)), several);
	assert.equal(whatText('api', several), 'api, v 1 or 2, zone not eu');
	const id = '0123456789abcdef'.repeat(2);
	for (const [text, want] of [[id, id], [` ${id} `, id], [`http://x/#/snapshot?sample=cpu&id=${id}&view=table`, id], [`#/snapshot?id=${id.slice(1)}`, ''], ['x', ''], [id.toUpperCase(), '']]) assert.equal(readSnapshot(text), want);
	assert.equal(sideText({ service: 'a\u202e', labels: [['k', '<b>']] }, null, null), 'a\\u{202e}, k=<b>');
	assert.match(sideText({ snapshot: id }, [0, 1000], /** @type {any} */ ({ title: 'before', selection: 'cpu{}' })), /^snapshot “before”, .*–/);
	const sides = { base: { snapshot: id }, now: { service: '', labels: [], from: 'now-1h', to: 'now', span: null } };
	const said = (status, words) => compareProblem(new ApiError(status, 'as it is', words), sides);
	assert.match(said(404, 'the base: there is no such snapshot: it was deleted'), /^The base is a snapshot that is not there/);
	assert.equal(said(404, 'nothing found'), 'What is compared with the base has nothing: all services, now-1h – now.');
	assert.equal(said(404, 'the base: these profiles have no sample type "x"'), 'The base has nothing of this sample type: snapshot.');
	assert.equal(said(409, 'the base counts in "x"'), 'as it is');
});
