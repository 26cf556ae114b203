/* SPDX-License-Identifier: Apache-2.0 */
/* Where Perl keeps things, by the headers that it is compiled with (-I CORE): a line "name number" each. Names in
 * capitals are those of abi/perl.h without ABI_PERL_, the others those of src/runtime/perl/versions/layouts.c.
 * -DUNTHREADED: the same headers without threads. */
#define PERL_CORE
#define PERLIO_NOT_STDIO 0
#include "EXTERN.h"
#include "perl.h"
#undef printf
#include <stddef.h>
#include <stdio.h>

#define IN(name, type, field)               \
	{                                   \
		name, offsetof(type, field) \
	}

static const struct {
	const char *name;
	unsigned long number;
} all[] = {
#ifdef MULTIPLICITY
	IN("interp_cop", struct interpreter, Icurcop),
	{ "INTERP_INFO", offsetof(struct interpreter, Icurstackinfo) - offsetof(struct interpreter, Icurcop) },
#endif
	{ "context", sizeof(PERL_CONTEXT) },
	IN("context_cv", PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.cv),
	IN("context_cv", PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_format.cv),
	IN("info_type", PERL_SI, si_type),
	IN("INFO_CONTEXTS", PERL_SI, si_cxstack),
	IN("INFO_PREVIOUS", PERL_SI, si_prev),
	IN("INFO_INDEX", PERL_SI, si_cxix),
	IN("INFO_MAX", PERL_SI, si_cxmax),
	IN("CONTEXT_OLDCOP", PERL_CONTEXT, cx_u.cx_blk.blku_oldcop),
	IN("CONTEXT_RETOP", PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_sub.retop),
	IN("CONTEXT_RETOP", PERL_CONTEXT, cx_u.cx_blk.blk_u.blku_eval.retop),
	IN("OP_FUNCTION", struct cop, op_ppaddr),
	IN("COP_LINE", struct cop, cop_line),
#ifdef USE_ITHREADS
	IN("COP_FILE", struct cop, cop_file),
#else
	IN("COP_FILE", struct cop, cop_filegv),
#endif
	IN("COP_SEQ", struct cop, cop_seq),
	{ "HEAD_BYTES", sizeof(struct sv) },
	IN("HEAD_FLAGS", struct sv, sv_flags),
	IN("HEAD_ARRAY", struct sv, sv_u),
	{ "TYPE_GV", SVt_PVGV },
	{ "TYPE_HV", SVt_PVHV },
	{ "TYPE_CV", SVt_PVCV },
	{ "TYPE_FORMAT", SVt_PVFM },
	{ "CV_NAMED", CVf_NAMED },
	IN("CV_STASH", struct xpvcv, xcv_stash),
	IN("CV_START", struct xpvcv, xcv_start_u),
	IN("CV_ROOT", struct xpvcv, xcv_root_u),
	IN("CV_GV", struct xpvcv, xcv_gv_u),
	IN("CV_FILE", struct xpvcv, xcv_file),
	IN("CV_SEQ", struct xpvcv, xcv_outside_seq),
	IN("CV_FLAGS", struct xpvcv, xcv_flags),
	IN("GV_NAME", struct xpvgv, xiv_u),
	IN("GV_STASH", struct xpvgv, xnv_u),
	IN("HV_MAX", struct xpvhv, xhv_max),
	{ "HV_BYTES", sizeof(struct xpvhv) },
	IN("AUX_NAME", struct xpvhv_aux, xhv_name_u),
	IN("AUX_COUNT", struct xpvhv_aux, xhv_name_count),
	IN("HEK_LENGTH", struct hek, hek_len),
	IN("HEK_TEXT", struct hek, hek_key),
};

int main(void)
{
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
		printf("%s %lu\n", all[i].name, all[i].number);
	return 0;
}
