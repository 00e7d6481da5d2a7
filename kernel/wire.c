// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The NDN packet format 0.3 and NDNLPv2, read in place.
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

/**
 * nnet_tl_get() - read type and length of an element
 * @p: where; moved to the element's value
 * @end: end of what may be read
 * @type: the type, not 0
 * @len: octets of the value, which lie before @end
 *
 * Return: 0, or -EINVAL.
 */
int nnet_tl_get(const u8 **p, const u8 *end, u32 *type, u32 *len)
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

static bool nnet_critical(u32 type)
{
	return type <= 31 || (type & 1);
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

static enum nnet_lp_error nnet_lp_nack(struct nnet_cb *cb, const u8 *p, u32 len)
{
	const u8 *end = p + len;
	u32 type, size;
	u64 n;

	cb->flags |= NNET_CB_NACK;
	while (p < end) {
		if (nnet_tl_get(&p, end, &type, &size))
			return NNET_LP_MALFORMED;
		if (type == NNET_T_REASON) {
			if (nnet_nni_get(p, size, &n))
				return NNET_LP_MALFORMED;
			cb->reason = n == 50 || n == 100 || n == 150 ? n : 0;
		}
		p += size;
	}
	return NNET_LP_OK;
}

static enum nnet_lp_error nnet_lp_policy(struct nnet_cb *cb, const u8 *p,
					 u32 len)
{
	const u8 *end = p + len;
	u32 type, size;
	u64 n;

	if (nnet_tl_get(&p, end, &type, &size) || type != NNET_T_POLICY_TYPE ||
	    nnet_nni_get(p, size, &n) || n != 1)
		return NNET_LP_MALFORMED;
	cb->flags |= NNET_CB_NO_CACHE | NNET_CB_CACHE_POLICY;
	return NNET_LP_OK;
}

static enum nnet_lp_error nnet_lp_field(struct nnet_lp *lp, u32 type,
					const u8 *p, u32 len)
{
	struct nnet_cb *cb = &lp->cb;
	u64 n = 0;

	switch (type) {
	case NNET_T_SEQUENCE:
		if (len != 8)
			return NNET_LP_MALFORMED;
		lp->sequence = get_unaligned_be64(p);
		lp->has_sequence = true;
		return NNET_LP_OK;
	case NNET_T_FRAG_INDEX:
	case NNET_T_FRAG_COUNT:
		if (nnet_nni_get(p, len, &n))
			return NNET_LP_MALFORMED;
		n = min_t(u64, n, U16_MAX);
		if (type == NNET_T_FRAG_INDEX)
			lp->index = n;
		else
			lp->count = n;
		return NNET_LP_OK;
	case NNET_T_TOKEN:
		if (!len || len > NNET_TOKEN_MAX)
			return NNET_LP_MALFORMED;
		cb->token_len = len;
		memcpy(cb->token, p, len);
		return NNET_LP_OK;
	case NNET_T_NACK:
		return nnet_lp_nack(cb, p, len);
	case NNET_T_NEXT_FACE:
		if (nnet_nni_get(p, len, &n))
			return NNET_LP_MALFORMED;
		cb->next_face = n > U32_MAX ? U32_MAX : n;
		cb->flags |= NNET_CB_NEXT_FACE;
		return NNET_LP_OK;
	case NNET_T_IN_FACE:
		return nnet_nni_get(p, len, &n) ? NNET_LP_MALFORMED : NNET_LP_OK;
	case NNET_T_CACHE_POLICY:
		return nnet_lp_policy(cb, p, len);
	case NNET_T_MARK:
		if (nnet_nni_get(p, len, &n))
			return NNET_LP_MALFORMED;
		cb->mark = min_t(u64, n, 255);
		return NNET_LP_OK;
	case NNET_T_ACK:
	case NNET_T_TX_SEQUENCE:
		return len == 8 ? NNET_LP_OK : NNET_LP_MALFORMED;
	case NNET_T_NON_DISCOVERY:
		cb->flags |= NNET_CB_NON_DISCOVERY;
		return len ? NNET_LP_MALFORMED : NNET_LP_OK;
	case NNET_T_ANNOUNCEMENT:
		cb->flags |= NNET_CB_ANNOUNCEMENT;
		return NNET_LP_OK;
	}
	if (type >= 800 && type <= 959 && !(type & 3))
		return NNET_LP_OK;
	return NNET_LP_UNKNOWN_CRITICAL;
}

/**
 * nnet_lp_parse() - read the link header of a frame
 * @p: the frame: an LpPacket, or a bare Interest or Data
 * @len: its octets
 * @lp: what it says
 *
 * Fields ascend by type and only Ack repeats; the Fragment is last.
 *
 * Return: NNET_LP_OK, or why not.
 */
enum nnet_lp_error nnet_lp_parse(const u8 *p, unsigned int len,
				 struct nnet_lp *lp)
{
	const u8 *start = p, *end = p + len;
	enum nnet_lp_error err;
	u32 type, size, last = 0;

	memset(lp, 0, sizeof(*lp));
	lp->count = 1;
	if (nnet_tl_get(&p, end, &type, &size) || p + size != end)
		return NNET_LP_MALFORMED;
	if (type != NNET_T_LP) {
		lp->fragment = start;
		lp->fragment_len = len;
		return NNET_LP_OK;
	}
	while (p < end) {
		if (nnet_tl_get(&p, end, &type, &size))
			return NNET_LP_MALFORMED;
		if (lp->fragment)
			return NNET_LP_MALFORMED;
		if (type == NNET_T_FRAGMENT) {
			if (!size)
				return NNET_LP_MALFORMED;
			lp->fragment = p;
			lp->fragment_len = size;
		} else {
			if (type < last || (type == last && type != NNET_T_ACK))
				return NNET_LP_MALFORMED;
			last = type;
			err = nnet_lp_field(lp, type, p, size);
			if (err)
				return err;
		}
		p += size;
	}
	if (!lp->fragment)
		return NNET_LP_IDLE;
	if (lp->index >= lp->count || lp->count > NNET_FRAGMENTS_MAX ||
	    (lp->count > 1 && !lp->has_sequence))
		return NNET_LP_FRAG_INVALID;
	return NNET_LP_OK;
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
