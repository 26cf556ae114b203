/* SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0 */
/* Which method lies at an address, where memory of methods is freed: classes were unloaded, or may be redefined, or the
 * JVM does not count those that it unloads (-XX:-UsePerfData).
 *
 * Symbols of class, name and signature, each with its hash of 16 bits that a Symbol keeps, say what it is called; and,
 * of the class, the end of its name: that hash is a random number of each Symbol (symbol.cpp), and where classes come
 * and go the Symbol of another one lies at the same address, one in 65,536 times with the same number. ConstMethod and
 * ConstantPool are another one's after each redefinition, and say which lines it has. */
#pragma once

#include "walk/walk.h"

/* One round of W. Stafford's variant 13 of the finalizer of MurmurHash3. */
WALK_FN __u64 java_identity_mix(__u64 hash, __u64 word)
{
	hash ^= word;
	hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
	hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
	return hash ^ hash >> 31;
}

/** java_identity_end_at - where eight bytes are to be read for java_identity_end(): @body: address of the Symbol's text
 */
WALK_FN __u64 java_identity_end_at(__u64 body, __u16 length)
{
	return body + (length > 8 ? length - 8U : 0);
}

/** java_identity_end - the last bytes of a text and its length, of the eight bytes that lie there */
WALK_FN __u64 java_identity_end(__u64 word, __u16 length)
{
	if (length < 8)
		word &= (1ULL << length * 8) - 1;
	return java_identity_mix(word, length);
}

/** java_identity_name - low bits of the cookie, of what all three symbols, in that order, were mixed to, from
 * java_identity_end() of the first on: addresses, each with its hash in bits 48 to 63 */
WALK_FN __u64 java_identity_name(__u64 hash)
{
	return ABI_JAVA_FULL | (hash & (ABI_JAVA_FULL - 1));
}

/** java_identity_key - of a method: which one of that name, by ConstMethod and ConstantPool */
WALK_FN __u64 java_identity_key(__u64 method, __u64 constant, __u64 pool)
{
	return method | java_identity_mix(java_identity_mix(0, constant), pool) << ABI_JAVA_COOKIE_BITS;
}
