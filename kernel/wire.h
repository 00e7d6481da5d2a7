/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * The NDN packet format 0.3 and the link headers of NDNLPv2, read in place.
 *
 * No locks: everything here works on octets that the caller owns. Pointers of
 * a view point into the packet and live as long as it does.
 */
#ifndef _NNET_WIRE_H
#define _NNET_WIRE_H

#include <linux/types.h>
#include <linux/siphash.h>

enum nnet_tlv {
	NNET_T_DIGEST		= 1,
	NNET_T_PARAMS_DIGEST	= 2,
	NNET_T_INTEREST		= 5,
	NNET_T_DATA		= 6,
	NNET_T_NAME		= 7,
	NNET_T_COMPONENT	= 8,
	NNET_T_NONCE		= 10,
	NNET_T_LIFETIME		= 12,
	NNET_T_FRESH		= 18,
	NNET_T_META		= 20,
	NNET_T_CONTENT		= 21,
	NNET_T_SIG_INFO		= 22,
	NNET_T_SIG_VALUE	= 23,
	NNET_T_CONTENT_TYPE	= 24,
	NNET_T_FRESHNESS	= 25,
	NNET_T_FINAL		= 26,
	NNET_T_SIG_TYPE		= 27,
	NNET_T_HINT		= 30,
	NNET_T_PREFIX		= 33,
	NNET_T_HOP		= 34,
	NNET_T_PARAMS		= 36,
	NNET_T_ISIG_INFO	= 44,
	NNET_T_ISIG_VALUE	= 46,
	NNET_T_SEGMENT		= 50,
	NNET_T_FRAGMENT		= 80,
	NNET_T_SEQUENCE		= 81,
	NNET_T_FRAG_INDEX	= 82,
	NNET_T_FRAG_COUNT	= 83,
	NNET_T_TOKEN		= 98,
	NNET_T_LP		= 100,
	NNET_T_NACK		= 800,
	NNET_T_REASON		= 801,
	NNET_T_IN_FACE		= 812,
	NNET_T_NEXT_FACE	= 816,
	NNET_T_CACHE_POLICY	= 820,
	NNET_T_POLICY_TYPE	= 821,
	NNET_T_MARK		= 832,
	NNET_T_ACK		= 836,
	NNET_T_TX_SEQUENCE	= 840,
	NNET_T_NON_DISCOVERY	= 844,
	NNET_T_ANNOUNCEMENT	= 848,
};

enum {
	NNET_PACKET_MAX		= 8800,	/* octets of a network-layer packet */
	NNET_DEPTH_MAX		= 32,	/* components of a prefix in a table */
	NNET_TOKEN_MAX		= 32,
	NNET_LIFETIME_DEFAULT	= 4000,	/* ms */
	NNET_LIFETIME_MAX	= 3600000,	/* ms: longer ones are cut */
	NNET_FRAGMENTS_MAX	= 400,
};

/* Flags of a view and of a pending Interest. */
enum {
	NNET_V_PREFIX		= 1,	/* CanBePrefix */
	NNET_V_FRESH		= 2,	/* MustBeFresh */
	NNET_V_NONCE		= 4,
	NNET_V_HOP		= 8,
	NNET_V_DIGEST		= 16,	/* the name ends with an implicit digest */
	NNET_V_LOCALHOST	= 32,
	NNET_V_LOCALHOP		= 64,
	/* These three are part of the key of a pending Interest. */
	NNET_V_KEY		= NNET_V_PREFIX | NNET_V_FRESH,
};

/**
 * struct nnet_view - a packet, read
 * @name: value of its Name
 * @name_len: octets of @name
 * @flags: NNET_V_*
 * @hint: value of the ForwardingHint, NULL without
 * @nonce_at: offset of the Nonce's value in the packet
 * @hop_at: offset of the HopLimit's value
 * @after_name: offset of what follows the Name
 *
 * The fields from @content on are those of Data.
 */
struct nnet_view {
	const u8 *name;
	const u8 *hint;
	const u8 *params;
	u16 name_len;
	u16 hint_len;
	u16 params_len;
	u16 flags;
	u16 nonce_at;
	u16 hop_at;
	u16 after_name;
	u8 hop;
	u32 nonce;
	u32 lifetime;

	const u8 *content;
	const u8 *final;
	const u8 *sig_info;
	const u8 *sig_value;
	u16 content_len;
	u16 final_len;
	u16 sig_info_len;
	u16 sig_value_len;
	u32 content_type;
	u32 freshness;
};

/**
 * struct nnet_key - the keyed hashes of a name and its prefixes
 * @n: components of the name
 * @deep: prefixes in @end and @h, at most NNET_DEPTH_MAX
 * @end: octets of each prefix, @end[0] is 0
 * @h: hash of each prefix
 * @full: hash of the whole name
 * @parent: hash of the name without its last component
 * @parent_len: octets of that
 */
struct nnet_key {
	u16 n;
	u16 deep;
	u16 parent_len;
	u16 end[NNET_DEPTH_MAX + 1];
	u64 full;
	u64 parent;
	u64 h[NNET_DEPTH_MAX + 1];
};

/* What NDNLPv2 said about a packet; in skb->cb while it waits anywhere. */
struct nnet_cb {
	u32 face;		/* where it came from */
	u32 next_face;		/* NextHopFaceId, 0 without */
	u8 flags;		/* NNET_CB_* */
	u8 reason;		/* of a Nack */
	u8 mark;		/* congestion mark, at most 255 */
	u8 token_len;
	u8 token[NNET_TOKEN_MAX];
};

enum {
	NNET_CB_NACK		= 1,
	NNET_CB_NO_CACHE	= 2,
	NNET_CB_ANNOUNCEMENT	= 4,
	NNET_CB_NON_DISCOVERY	= 8,
	NNET_CB_CACHE_POLICY	= 16,
	NNET_CB_NEXT_FACE	= 32,
	NNET_CB_FROM_CACHE	= 64,
};

/* A link header, read. */
struct nnet_lp {
	struct nnet_cb cb;
	const u8 *fragment;
	u16 fragment_len;
	u16 index;
	u16 count;
	bool has_sequence;
	u64 sequence;
};

enum nnet_lp_error {
	NNET_LP_OK,
	NNET_LP_MALFORMED,
	NNET_LP_UNKNOWN_CRITICAL,
	NNET_LP_EMPTY,
	NNET_LP_IDLE,
	NNET_LP_FRAG_INVALID,
};

int nnet_tl_get_long(const u8 **p, const u8 *end, u32 *type, u32 *len);
int nnet_nni_get(const u8 *p, u32 len, u64 *v);
unsigned int nnet_tl_size(u32 type, u32 len);
unsigned int nnet_nni_size(u64 v);
u8 *nnet_tl_put(u8 *p, u32 type, u32 len);
u8 *nnet_nni_put(u8 *p, u32 type, u64 v);

int nnet_name_check(const u8 *name, unsigned int len, u16 *components);
int nnet_name_compare(const u8 *a, u16 a_len, const u8 *b, u16 b_len);
int nnet_interest_parse(const u8 *p, unsigned int len, struct nnet_view *v);
int nnet_data_parse(const u8 *p, unsigned int len, struct nnet_view *v);
enum nnet_lp_error nnet_lp_parse(const u8 *p, unsigned int len,
				 struct nnet_lp *lp);
void nnet_key_make(const siphash_key_t *key, const u8 *name, unsigned int len,
		   struct nnet_key *k);
int nnet_name_show(char *buf, size_t size, const u8 *name, unsigned int len);

/**
 * nnet_tl_get() - read type and length of an element
 * @p: where; moved to the element's value
 * @end: end of what may be read
 * @type: the type, not 0
 * @len: octets of the value, which lie before @end
 *
 * Here for the elements that nearly all are: an octet each.
 *
 * Return: 0, or -EINVAL.
 */
static inline int nnet_tl_get(const u8 **p, const u8 *end, u32 *type, u32 *len)
{
	const u8 *at = *p;

	if (end - at < 2 || at[0] > 252 || at[1] > 252)
		return nnet_tl_get_long(p, end, type, len);
	*type = at[0];
	*len = at[1];
	*p = at + 2;
	return !*type || *len > end - *p ? -EINVAL : 0;
}

#endif /* _NNET_WIRE_H */
