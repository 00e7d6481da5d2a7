// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * NDNLPv2: the fields of a link header, read in place.
 */
#include <linux/errno.h>
#include <linux/kernel.h>
#include <linux/string.h>

#include "compat.h"
#include "wire.h"

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
		/* Others write short ones; what is no number is as good as absent. */
		lp->has_sequence = !nnet_nni_get(p, len, &lp->sequence);
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
