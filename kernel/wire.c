// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * TLV elements, numbers, names and the hashes of names.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>
#include <linux/ctype.h>

#include "compat.h"
#include "wire.h"

/* A number of a TLV's type or length: the shortest form or none. */
static int nnet_var_get(const u8 **p, const u8 *end, u32 *v)
{
	const u8 *at = *p;

	if (at >= end)
		return -EINVAL;
	if (*at < 253) {
		*v = *at;
		*p = at + 1;
		return 0;
	}
	if (*at == 253) {
		if (end - at < 3)
			return -EINVAL;
		*v = get_unaligned_be16(at + 1);
		*p = at + 3;
		return *v < 253 ? -EINVAL : 0;
	}
	if (*at == 254) {
		if (end - at < 5)
			return -EINVAL;
		*v = get_unaligned_be32(at + 1);
		*p = at + 5;
		return *v < 65536 ? -EINVAL : 0;
	}
	return -EINVAL;
}

/* nnet_tl_get() for every length of type and length. */
int nnet_tl_get_long(const u8 **p, const u8 *end, u32 *type, u32 *len)
{
	if (nnet_var_get(p, end, type) || nnet_var_get(p, end, len))
		return -EINVAL;
	if (!*type || *len > end - *p)
		return -EINVAL;
	return 0;
}

/**
 * nnet_nni_get() - read a non-negative integer of 1, 2, 4 or 8 octets
 * @p: its octets
 * @len: how many
 * @v: the number
 *
 * Return: 0, or -EINVAL.
 */
int nnet_nni_get(const u8 *p, u32 len, u64 *v)
{
	switch (len) {
	case 1:
		*v = *p;
		return 0;
	case 2:
		*v = get_unaligned_be16(p);
		return 0;
	case 4:
		*v = get_unaligned_be32(p);
		return 0;
	case 8:
		*v = get_unaligned_be64(p);
		return 0;
	}
	return -EINVAL;
}

static unsigned int nnet_var_size(u32 v)
{
	return v < 253 ? 1 : v < 65536 ? 3 : 5;
}

/* Octets of an element with its type and length. */
unsigned int nnet_tl_size(u32 type, u32 len)
{
	return nnet_var_size(type) + nnet_var_size(len) + len;
}

unsigned int nnet_nni_size(u64 v)
{
	return v < 256 ? 1 : v < 65536 ? 2 : v <= U32_MAX ? 4 : 8;
}

static u8 *nnet_var_put(u8 *p, u32 v)
{
	if (v < 253) {
		*p++ = v;
	} else if (v < 65536) {
		*p++ = 253;
		put_unaligned_be16(v, p);
		p += 2;
	} else {
		*p++ = 254;
		put_unaligned_be32(v, p);
		p += 4;
	}
	return p;
}

u8 *nnet_tl_put(u8 *p, u32 type, u32 len)
{
	return nnet_var_put(nnet_var_put(p, type), len);
}

/* An element that holds a number. */
u8 *nnet_nni_put(u8 *p, u32 type, u64 v)
{
	unsigned int n = nnet_nni_size(v);

	p = nnet_tl_put(p, type, n);
	switch (n) {
	case 1:
		*p = v;
		break;
	case 2:
		put_unaligned_be16(v, p);
		break;
	case 4:
		put_unaligned_be32(v, p);
		break;
	default:
		put_unaligned_be64(v, p);
	}
	return p + n;
}

/**
 * nnet_name_check() - whether octets are the value of a Name
 * @name: the octets
 * @len: how many
 * @components: how many components they are
 *
 * Return: 0, or -EINVAL.
 */
int nnet_name_check(const u8 *name, unsigned int len, u16 *components)
{
	const u8 *p = name, *end = name + len;
	u32 type, n, params = 0;
	u16 count = 0;

	while (p < end) {
		if (nnet_tl_get(&p, end, &type, &n))
			return -EINVAL;
		if (type > 65535 || (type <= 2 && n != 32))
			return -EINVAL;
		if (type == NNET_T_PARAMS_DIGEST && params++)
			return -EINVAL;
		p += n;
		count++;
	}
	*components = count;
	return 0;
}

/**
 * nnet_name_compare() - the canonical order of names
 * @a: value of a Name
 * @a_len: its octets
 * @b: value of another
 * @b_len: its octets
 *
 * Types and lengths have one form each and larger ones come later in it too, so
 * the order is that of octets; what a name opens comes behind it.
 *
 * Return: below, at or above 0.
 */
int nnet_name_compare(const u8 *a, u16 a_len, const u8 *b, u16 b_len)
{
	int by_octets = memcmp(a, b, min(a_len, b_len));

	return by_octets ?: (int)a_len - b_len;
}

/**
 * nnet_key_make() - hash a name and all its prefixes in one pass
 * @key: the secret of this boot
 * @name: value of a Name that nnet_name_check() let pass
 * @len: its octets
 * @k: the hashes
 *
 * The hash of a prefix is SipHash of its last component under a key made of
 * the secret and the hash of the prefix before it.
 */
void nnet_key_make(const siphash_key_t *key, const u8 *name, unsigned int len,
		   struct nnet_key *k)
{
	const u8 *p = name, *end = name + len, *start;
	siphash_key_t chain = *key;
	u64 h = key->key[1];
	u32 type, size;

	k->n = 0;
	k->deep = 0;
	k->end[0] = 0;
	k->h[0] = h;
	k->parent = h;
	k->parent_len = 0;
	while (p < end) {
		start = p;
		if (nnet_tl_get(&p, end, &type, &size))
			break;
		p += size;
		k->parent = h;
		k->parent_len = start - name;
		chain.key[0] = key->key[0] ^ h;
		h = siphash(start, p - start, &chain);
		k->n++;
		if (k->n <= NNET_DEPTH_MAX) {
			k->deep = k->n;
			k->end[k->n] = p - name;
			k->h[k->n] = h;
		}
	}
	k->full = h;
}

static int nnet_component_show(char *buf, size_t size, u32 type, const u8 *p,
			       u32 len)
{
	bool dots = true;
	int at = 0;
	u32 i;

	if (type != NNET_T_COMPONENT)
		at += scnprintf(buf + at, size - at, "%u=", type);
	for (i = 0; i < len; i++) {
		if (p[i] != '.')
			dots = false;
		if (isascii(p[i]) && (isalnum(p[i]) || strchr("-._~", p[i])) &&
		    p[i])
			at += scnprintf(buf + at, size - at, "%c", p[i]);
		else
			at += scnprintf(buf + at, size - at, "%%%02X", p[i]);
	}
	if (dots)
		at += scnprintf(buf + at, size - at, "...");
	return at;
}

/* The canonical URI of a name, cut where the buffer ends. */
int nnet_name_show(char *buf, size_t size, const u8 *name, unsigned int len)
{
	const u8 *p = name, *end = name + len;
	u32 type, n;
	int at = 0;

	if (!len)
		return scnprintf(buf, size, "/");
	while (p < end && !nnet_tl_get(&p, end, &type, &n)) {
		at += scnprintf(buf + at, size - at, "/");
		at += nnet_component_show(buf + at, size - at, type, p, n);
		p += n;
	}
	return at;
}
