// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Interest and Data of the NDN packet format 0.3, read in place.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "compat.h"
#include "wire.h"

static bool nnet_critical(u32 type)
{
	return type <= 31 || (type & 1);
}

static bool nnet_first_is(const struct nnet_view *v, const char *word)
{
	size_t n = strlen(word);

	return v->name_len >= n + 2 && v->name[0] == NNET_T_COMPONENT &&
	       v->name[1] == n && !memcmp(v->name + 2, word, n);
}

/* Reads the Name that opens a packet; *p is moved behind it. */
static int nnet_name_parse(const u8 **p, const u8 *end, struct nnet_view *v)
{
	const u8 *last;
	u32 type, len;
	u16 n;

	if (nnet_tl_get(p, end, &type, &len) || type != NNET_T_NAME)
		return -EINVAL;
	if (nnet_name_check(*p, len, &n))
		return -EINVAL;
	v->name = *p;
	v->name_len = len;
	*p += len;
	last = *p - 34;
	/*
	 * 34 octets may also be the end of a longer component; the walk in
	 * nnet_key_make() tells where components begin, so look there.
	 */
	if (n && len >= 34 && last[0] == NNET_T_DIGEST && last[1] == 32) {
		const u8 *q = v->name;

		while (q < last) {
			nnet_tl_get(&q, *p, &type, &len);
			q += len;
		}
		if (q == last)
			v->flags |= NNET_V_DIGEST;
	}
	if (nnet_first_is(v, "localhost"))
		v->flags |= NNET_V_LOCALHOST;
	else if (nnet_first_is(v, "localhop"))
		v->flags |= NNET_V_LOCALHOP;
	return n;
}

static bool nnet_has_params_digest(const struct nnet_view *v)
{
	const u8 *p = v->name, *end = p + v->name_len;
	u32 type, len;

	while (p < end && !nnet_tl_get(&p, end, &type, &len)) {
		if (type == NNET_T_PARAMS_DIGEST)
			return true;
		p += len;
	}
	return false;
}

static int nnet_hint_check(const u8 *p, unsigned int len)
{
	const u8 *end = p + len;
	u32 type, n;
	u16 c;

	if (!len)
		return -EINVAL;
	while (p < end) {
		if (nnet_tl_get(&p, end, &type, &n))
			return -EINVAL;
		if (type == NNET_T_NAME) {
			if (nnet_name_check(p, n, &c))
				return -EINVAL;
		} else if (nnet_critical(type)) {
			return -EINVAL;
		}
		p += n;
	}
	return 0;
}

static int nnet_interest_order(u32 type)
{
	switch (type) {
	case NNET_T_PREFIX: return 1;
	case NNET_T_FRESH: return 2;
	case NNET_T_HINT: return 3;
	case NNET_T_NONCE: return 4;
	case NNET_T_LIFETIME: return 5;
	case NNET_T_HOP: return 6;
	case NNET_T_PARAMS: return 7;
	case NNET_T_ISIG_INFO: return 8;
	case NNET_T_ISIG_VALUE: return 9;
	}
	return 0;
}

static int nnet_interest_field(struct nnet_view *v, const u8 *packet, u32 type,
			       const u8 *p, u32 len)
{
	u64 n;

	switch (type) {
	case NNET_T_PREFIX:
		v->flags |= NNET_V_PREFIX;
		return len ? -EINVAL : 0;
	case NNET_T_FRESH:
		v->flags |= NNET_V_FRESH;
		return len ? -EINVAL : 0;
	case NNET_T_HINT:
		v->hint = p;
		v->hint_len = len;
		return nnet_hint_check(p, len);
	case NNET_T_NONCE:
		if (len != 4)
			return -EINVAL;
		v->flags |= NNET_V_NONCE;
		v->nonce = get_unaligned_be32(p);
		v->nonce_at = p - packet;
		return 0;
	case NNET_T_LIFETIME:
		if (nnet_nni_get(p, len, &n))
			return -EINVAL;
		v->lifetime = min_t(u64, n, NNET_LIFETIME_MAX);
		return 0;
	case NNET_T_HOP:
		if (len != 1)
			return -EINVAL;
		v->flags |= NNET_V_HOP;
		v->hop = *p;
		v->hop_at = p - packet;
		return 0;
	case NNET_T_PARAMS:
		v->params = p;
		v->params_len = len;
		return 0;
	}
	return 0;
}

/**
 * nnet_interest_parse() - read an Interest
 * @p: its octets, from its type on
 * @len: how many, all of them the Interest
 * @v: what it says
 *
 * Return: 0, or -EINVAL.
 */
int nnet_interest_parse(const u8 *p, unsigned int len, struct nnet_view *v)
{
	const u8 *packet = p, *end = p + len;
	int last = 0, order, n;
	u32 type, size;

	memset(v, 0, sizeof(*v));
	v->lifetime = NNET_LIFETIME_DEFAULT;
	if (nnet_tl_get(&p, end, &type, &size) || type != NNET_T_INTEREST ||
	    size != end - p || len > NNET_PACKET_MAX)
		return -EINVAL;
	n = nnet_name_parse(&p, end, v);
	if (n <= 0)
		return -EINVAL;
	v->after_name = p - packet;
	while (p < end) {
		if (nnet_tl_get(&p, end, &type, &size))
			return -EINVAL;
		order = nnet_interest_order(type);
		if (order > last) {
			if (nnet_interest_field(v, packet, type, p, size))
				return -EINVAL;
			last = order;
		} else if (nnet_critical(type)) {
			return -EINVAL;
		}
		p += size;
	}
	return nnet_has_params_digest(v) == !!v->params ? 0 : -EINVAL;
}

static int nnet_meta_parse(struct nnet_view *v, const u8 *p, u32 len)
{
	const u8 *end = p + len;
	u32 type, size, last = 0, inner;
	const u8 *q;
	u64 n;

	while (p < end) {
		if (nnet_tl_get(&p, end, &type, &size))
			return -EINVAL;
		if (type < NNET_T_CONTENT_TYPE || type > NNET_T_FINAL) {
			if (nnet_critical(type))
				return -EINVAL;
			p += size;
			continue;
		}
		if (type <= last)
			return -EINVAL;
		last = type;
		if (type == NNET_T_FINAL) {
			q = p;
			if (nnet_tl_get(&q, p + size, &type, &inner) ||
			    q + inner != p + size)
				return -EINVAL;
			v->final = p;
			v->final_len = size;
		} else {
			if (nnet_nni_get(p, size, &n))
				return -EINVAL;
			n = min_t(u64, n, U32_MAX);
			if (type == NNET_T_FRESHNESS)
				v->freshness = n;
			else
				v->content_type = n;
		}
		p += size;
	}
	return 0;
}

/**
 * nnet_data_parse() - read a Data
 * @p: its octets, from its type on
 * @len: how many, all of them the Data
 * @v: what it says
 *
 * Return: 0, or -EINVAL.
 */
int nnet_data_parse(const u8 *p, unsigned int len, struct nnet_view *v)
{
	const u8 *packet = p, *end = p + len;
	u32 type, size, last = 0;

	memset(v, 0, sizeof(*v));
	if (nnet_tl_get(&p, end, &type, &size) || type != NNET_T_DATA ||
	    size != end - p || len > NNET_PACKET_MAX)
		return -EINVAL;
	if (nnet_name_parse(&p, end, v) < 0)
		return -EINVAL;
	v->after_name = p - packet;
	while (p < end) {
		if (nnet_tl_get(&p, end, &type, &size))
			return -EINVAL;
		if (type < NNET_T_META || type > NNET_T_SIG_VALUE ||
		    type <= last) {
			if (nnet_critical(type))
				return -EINVAL;
			p += size;
			continue;
		}
		last = type;
		switch (type) {
		case NNET_T_META:
			if (nnet_meta_parse(v, p, size))
				return -EINVAL;
			break;
		case NNET_T_CONTENT:
			v->content = p;
			v->content_len = size;
			break;
		case NNET_T_SIG_INFO:
			v->sig_info = p;
			v->sig_info_len = size;
			break;
		default:
			v->sig_value = p;
			v->sig_value_len = size;
		}
		p += size;
	}
	return v->sig_info && v->sig_value ? 0 : -EINVAL;
}
