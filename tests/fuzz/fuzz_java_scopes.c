/* SPDX-License-Identifier: Apache-2.0 */
/* Debug information of compiled code: u8 no byte is 0, u16 size of the PcDescs, u16 size of the scopes, both. Every
 * scope stands behind its sender, positions ascend. */
#include "fuzz.h"

#include "runtime/java/scopes.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct java_layout l = { .pc_desc_size = 16, .pc_desc_pc = 0, .pc_desc_scope = 4 };
	struct cur c = cur_of(data, size), pcs;
	struct java_scopes s;
	size_t pcs_size;

	l.flags = cur_u8(&c) & 1 ? JAVA_LAYOUT_NO_ZERO : 0;
	pcs_size = cur_le16(&c) % (UINT16_MAX + 1U);
	ignore(cur_le16(&c)); /* the rest is scopes */
	pcs = cur_sub(&c, MIN(pcs_size, cur_left(&c)));
	if (c.bad || java_scopes_parse(&l, pcs, c, &s) < 0)
		return 0;
	for (size_t i = 0; i < s.scope_count; i++)
		must(s.scopes[i].sender <= i);
	for (size_t i = 0; i < s.position_count; i++) {
		must(!i || s.positions[i - 1].pc <= s.positions[i].pc);
		must(s.positions[i].scope == UINT32_MAX || s.positions[i].scope < s.scope_count);
	}
	java_scopes_release(&s);
	return 0;
}
