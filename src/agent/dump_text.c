/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/dump_process.h"
#include "codec/json.h"
#include "render/terminal.h"

static struct str text_of(const struct dump *d, uint32_t id)
{
	return intern_get(&d->strings, id);
}

/* Names are a stranger's. */
static void add_shown(struct buf *out, struct str text)
{
	terminal_add(out, text, 0);
}

static void add_frame(const struct dump *d, const struct dump_frame *f, struct buf *out)
{
	buf_adds(out, f->guessed ? STR("  ~ ") : STR("    "));
	add_shown(out, f->name ? text_of(d, f->name) : STR("[unknown]"));
	if (f->kind == DUMP_RUNTIME && f->file) {
		buf_adds(out, STR(" ("));
		add_shown(out, text_of(d, f->file));
		if (f->line || f->first_line)
			buf_addf(out, ":%d", f->line ? f->line : f->first_line);
		buf_addc(out, ')');
	} else if (f->kind == DUMP_KERNEL) {
		buf_adds(out, STR(" [kernel]"));
	} else if (f->module) {
		buf_adds(out, STR(" ["));
		add_shown(out, str_base(text_of(d, f->module)));
		buf_addc(out, ']');
	}
	buf_addc(out, '\n');
}

static void add_thread(const struct dump *d, const struct dump_thread *t, struct buf *out)
{
	buf_addf(out, "\nThread %u \"", t->tid);
	add_shown(out, text_of(d, t->name));
	buf_addf(out, "\" (%c)\n", t->state);
	for (size_t i = 0; i < t->count; i++)
		add_frame(d, &d->frames[t->first + i], out);
	for (size_t i = 0; i < t->remark_count; i++) {
		buf_adds(out, STR("    -- "));
		add_shown(out, text_of(d, t->remarks[i]));
		buf_addc(out, '\n');
	}
}

void dump_text(const struct dump *d, struct buf *out)
{
	buf_addf(out, "Process %u: ", d->pid);
	add_shown(out, text_of(d, d->comm));
	if (d->exe) {
		buf_adds(out, STR(" ("));
		add_shown(out, text_of(d, d->exe));
		buf_addc(out, ')');
	}
	if (d->version) {
		buf_adds(out, STR(", "));
		add_shown(out, text_of(d, d->title));
		buf_addc(out, ' ');
		add_shown(out, text_of(d, d->version));
	}
	buf_addc(out, '\n');
	if (d->stopped_ns)
		buf_addf(out, "Stopped for %.1f ms.\n", (double)d->stopped_ns / 1e6);
	if (d->remark) {
		add_shown(out, text_of(d, d->remark));
		buf_addc(out, '\n');
	}
	for (size_t i = 0; i < d->thread_count; i++)
		add_thread(d, &d->threads[i], out);
}

/* ---- JSON ---- */

static void add_member(struct json_out *j, struct str key, struct str value)
{
	if (!value.len)
		return;
	json_out_key(j, key);
	json_out_string(j, value);
}

static void add_number(struct json_out *j, struct str key, uint64_t value)
{
	json_out_key(j, key);
	json_out_u64(j, value);
}

static void add_frame_json(const struct dump *d, const struct dump_frame *f, struct json_out *j)
{
	const struct str kinds[] = {
		[DUMP_KERNEL] = STR("kernel"), [DUMP_NATIVE] = STR("native"), [DUMP_RUNTIME] = text_of(d, d->runtime)
	};

	json_out_begin(j, '{');
	add_member(j, STR("kind"), kinds[f->kind]);
	add_member(j, STR("name"), text_of(d, f->name));
	add_member(j, STR("file"), text_of(d, f->file));
	add_member(j, STR("module"), text_of(d, f->module));
	if (f->line > 0)
		add_number(j, STR("line"), (uint64_t)f->line);
	if (f->first_line > 0)
		add_number(j, STR("first_line"), (uint64_t)f->first_line);
	if (f->guessed) {
		json_out_key(j, STR("guessed"));
		json_out_raw(j, STR("true"));
	}
	json_out_end(j, '}');
}

static void add_thread_json(const struct dump *d, const struct dump_thread *t, struct json_out *j)
{
	json_out_begin(j, '{');
	add_number(j, STR("tid"), t->tid);
	add_member(j, STR("name"), text_of(d, t->name));
	add_member(j, STR("state"), str_n(&t->state, 1));
	json_out_key(j, STR("frames"));
	json_out_begin(j, '[');
	for (size_t i = 0; i < t->count; i++)
		add_frame_json(d, &d->frames[t->first + i], j);
	json_out_end(j, ']');
	json_out_key(j, STR("remarks"));
	json_out_begin(j, '[');
	for (size_t i = 0; i < t->remark_count; i++)
		json_out_string(j, text_of(d, t->remarks[i]));
	json_out_end(j, ']');
	json_out_end(j, '}');
}

void dump_json(const struct dump *d, struct buf *out)
{
	struct json_out j = { .out = out };

	json_out_begin(&j, '{');
	add_number(&j, STR("pid"), d->pid);
	add_member(&j, STR("comm"), text_of(d, d->comm));
	add_member(&j, STR("exe"), text_of(d, d->exe));
	if (d->runtime)
		add_member(&j, text_of(d, d->runtime), text_of(d, d->version));
	add_member(&j, STR("remark"), text_of(d, d->remark));
	if (d->stopped_ns)
		add_number(&j, STR("stopped_ns"), d->stopped_ns);
	json_out_key(&j, STR("threads"));
	json_out_begin(&j, '[');
	for (size_t i = 0; i < d->thread_count; i++)
		add_thread_json(d, &d->threads[i], &j);
	json_out_end(&j, ']');
	json_out_end(&j, '}');
	buf_addc(out, '\n');
}
