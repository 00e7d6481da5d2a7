// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets made of what a program says in control messages, and told it in
 * them. No state.
 */
#include <linux/random.h>

#include "nnet.h"

static int nnet_cmsg_u32(const struct cmsghdr *c, u32 *v)
{
	if (c->cmsg_len != CMSG_LEN(sizeof(*v)))
		return -EINVAL;
	memcpy(v, CMSG_DATA(c), sizeof(*v));
	return 0;
}

static int nnet_cmsg_octets(const struct cmsghdr *c, const u8 **p, u16 *len)
{
	size_t n = c->cmsg_len - sizeof(*c);

	if (n > NNET_PACKET_MAX)
		return -EMSGSIZE;
	*p = CMSG_DATA(c);
	*len = n;
	return 0;
}

static int nnet_cmsg(const struct cmsghdr *c, struct nnet_message *m)
{
	u16 n;
	int err;

	switch (c->cmsg_type) {
	case NNET_CM_NAME:
		err = nnet_cmsg_octets(c, &m->name, &m->name_len);
		return err ?: nnet_name_check(m->name, m->name_len, &n);
	case NNET_CM_TYPE:
		m->has_type = true;
		return nnet_cmsg_u32(c, &m->type);
	case NNET_CM_LIFETIME:
		return nnet_cmsg_u32(c, &m->lifetime);
	case NNET_CM_FRESHNESS:
		return nnet_cmsg_u32(c, &m->freshness);
	case NNET_CM_FLAGS:
		return nnet_cmsg_u32(c, &m->flags);
	case NNET_CM_HOPLIMIT:
		m->has_hop = true;
		err = nnet_cmsg_u32(c, &m->hop_limit);
		return err ?: m->hop_limit > 255 ? -EINVAL : 0;
	case NNET_CM_CONTENT_TYPE:
		return nnet_cmsg_u32(c, &m->content_type);
	case NNET_CM_FINAL_BLOCK:
		err = nnet_cmsg_octets(c, &m->final, &m->final_len);
		return err ?: nnet_name_check(m->final, m->final_len, &n) ?:
			n == 1 ? 0 : -EINVAL;
	case NNET_CM_SIGINFO:
		return nnet_cmsg_octets(c, &m->sig_info, &m->sig_info_len);
	case NNET_CM_SIGVALUE:
		return nnet_cmsg_octets(c, &m->sig_value, &m->sig_value_len);
	case NNET_CM_NONCE:
		m->has_nonce = true;
		return nnet_cmsg_u32(c, &m->nonce);
	case NNET_CM_REASON:
		return nnet_cmsg_u32(c, &m->reason);
	case NNET_CM_PUBLISH:
		m->has_publish = true;
		return nnet_cmsg_u32(c, &m->publish);
	case NNET_CM_MARK:
		return nnet_cmsg_u32(c, &m->mark);
	}
	return -EINVAL;
}

/**
 * nnet_message_read() - read the control messages of a send
 * @msg: the message
 * @m: what they say; points into them
 *
 * Return: 0, -EINVAL, -EMSGSIZE.
 */
int nnet_message_read(struct msghdr *msg, struct nnet_message *m)
{
	struct cmsghdr *c;
	int err;

	memset(m, 0, sizeof(*m));
	for_each_cmsghdr(c, msg) {
		if (!CMSG_OK(msg, c))
			return -EINVAL;
		if (c->cmsg_level != SOL_NNET)
			continue;
		err = nnet_cmsg(c, m);
		if (err)
			return err;
	}
	return 0;
}

static unsigned int nnet_nni_tlv(u32 type, u64 v)
{
	return nnet_tl_size(type, nnet_nni_size(v));
}

static struct sk_buff *nnet_packet_new(u32 type, unsigned int len, gfp_t gfp)
{
	struct sk_buff *skb;

	if (nnet_tl_size(type, len) > NNET_PACKET_MAX)
		return ERR_PTR(-EMSGSIZE);
	skb = alloc_skb(NNET_LINK_HEADROOM + nnet_tl_size(type, len), gfp);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	skb_reserve(skb, NNET_LINK_HEADROOM);
	nnet_tl_put(skb_put(skb, nnet_tl_size(type, len) - len), type, len);
	memset(NNET_CB(skb), 0, sizeof(struct nnet_cb));
	__skb_header_release(skb);
	return skb;
}

static u8 *nnet_octets_put(u8 *p, u32 type, const u8 *v, unsigned int len)
{
	p = nnet_tl_put(p, type, len);
	memcpy(p, v, len);
	return p + len;
}

static struct sk_buff *nnet_interest_build(const struct nnet_message *m,
					   struct msghdr *msg, size_t len,
					   gfp_t gfp)
{
	bool lifetime = m->lifetime && m->lifetime != NNET_LIFETIME_DEFAULT;
	unsigned int size = nnet_tl_size(NNET_T_NAME, m->name_len) + 6;
	struct sk_buff *skb;
	u8 *p;

	size += (m->flags & NNET_CAN_BE_PREFIX ? 2 : 0) +
		(m->flags & NNET_MUST_BE_FRESH ? 2 : 0) +
		(lifetime ? nnet_nni_tlv(NNET_T_LIFETIME, m->lifetime) : 0) +
		(m->has_hop ? 3 : 0) +
		(len ? nnet_tl_size(NNET_T_PARAMS, len) : 0);
	skb = nnet_packet_new(NNET_T_INTEREST, size, gfp);
	if (IS_ERR(skb))
		return skb;
	p = skb_put(skb, size);
	p = nnet_octets_put(p, NNET_T_NAME, m->name, m->name_len);
	if (m->flags & NNET_CAN_BE_PREFIX)
		p = nnet_tl_put(p, NNET_T_PREFIX, 0);
	if (m->flags & NNET_MUST_BE_FRESH)
		p = nnet_tl_put(p, NNET_T_FRESH, 0);
	p = nnet_tl_put(p, NNET_T_NONCE, 4);
	put_unaligned_be32(m->has_nonce ? m->nonce : get_random_u32(), p);
	p += 4;
	if (lifetime)
		p = nnet_nni_put(p, NNET_T_LIFETIME, m->lifetime);
	if (m->has_hop)
		p = nnet_nni_put(p, NNET_T_HOP, m->hop_limit);
	if (len) {
		p = nnet_tl_put(p, NNET_T_PARAMS, len);
		if (memcpy_from_msg(p, msg, len)) {
			kfree_skb(skb);
			return ERR_PTR(-EFAULT);
		}
	}
	return skb;
}

static unsigned int nnet_meta_size(const struct nnet_message *m)
{
	return (m->content_type ?
			nnet_nni_tlv(NNET_T_CONTENT_TYPE, m->content_type) : 0) +
	       (m->freshness ?
			nnet_nni_tlv(NNET_T_FRESHNESS, m->freshness) : 0) +
	       (m->final_len ? nnet_tl_size(NNET_T_FINAL, m->final_len) : 0);
}

/* SignatureInfo of no signature: SignatureType 200. */
static const u8 nnet_null_signature[] = { NNET_T_SIG_INFO, 3, NNET_T_SIG_TYPE,
					  1, 200 };

static struct sk_buff *nnet_data_build(const struct nnet_message *m,
				       struct msghdr *msg, size_t len)
{
	const u8 *info = m->sig_info ?: nnet_null_signature;
	unsigned int info_len = m->sig_info ? m->sig_info_len :
					      sizeof(nnet_null_signature);
	unsigned int meta = nnet_meta_size(m), size;
	struct sk_buff *skb;
	u8 *p;

	size = nnet_tl_size(NNET_T_NAME, m->name_len) +
	       (meta ? nnet_tl_size(NNET_T_META, meta) : 0) +
	       nnet_tl_size(NNET_T_CONTENT, len) + info_len +
	       nnet_tl_size(NNET_T_SIG_VALUE, m->sig_value_len);
	skb = nnet_packet_new(NNET_T_DATA, size, GFP_KERNEL_ACCOUNT);
	if (IS_ERR(skb))
		return skb;
	p = skb_put(skb, size);
	p = nnet_octets_put(p, NNET_T_NAME, m->name, m->name_len);
	if (meta)
		p = nnet_tl_put(p, NNET_T_META, meta);
	if (m->content_type)
		p = nnet_nni_put(p, NNET_T_CONTENT_TYPE, m->content_type);
	if (m->freshness)
		p = nnet_nni_put(p, NNET_T_FRESHNESS, m->freshness);
	if (m->final_len)
		p = nnet_octets_put(p, NNET_T_FINAL, m->final, m->final_len);
	p = nnet_tl_put(p, NNET_T_CONTENT, len);
	if (memcpy_from_msg(p, msg, len)) {
		kfree_skb(skb);
		return ERR_PTR(-EFAULT);
	}
	p += len;
	memcpy(p, info, info_len);
	p += info_len;
	nnet_octets_put(p, NNET_T_SIG_VALUE, m->sig_value, m->sig_value_len);
	return skb;
}

/**
 * nnet_message_build() - make a packet
 * @m: what it says
 * @msg: where its content is
 * @len: octets of the content
 *
 * Without NNET_CM_TYPE, no content means an Interest and content a Data.
 *
 * Return: the packet, or -EINVAL, -EMSGSIZE, -ENOMEM, -EFAULT.
 */
struct sk_buff *nnet_message_build(const struct nnet_message *m,
				   struct msghdr *msg, size_t len)
{
	u32 type = m->has_type ? m->type : len ? NNET_DATA : NNET_INTEREST;
	struct sk_buff *skb;
	struct nnet_view v;

	if (len > NNET_PACKET_MAX)
		return ERR_PTR(-EMSGSIZE);
	if (!m->name || !m->name_len)
		return ERR_PTR(-EDESTADDRREQ);
	if (type == NNET_DATA)
		skb = nnet_data_build(m, msg, len);
	else if (type == NNET_INTEREST || type == NNET_NACK)
		skb = nnet_interest_build(m, msg, len, GFP_KERNEL_ACCOUNT);
	else
		return ERR_PTR(-EINVAL);
	if (IS_ERR(skb))
		return skb;
	if (type == NNET_NACK) {
		NNET_CB(skb)->flags = NNET_CB_NACK;
		NNET_CB(skb)->reason = m->reason;
	}
	NNET_CB(skb)->mark = min(m->mark, 255U);
	/* What the program gave may not be what it should: signature, digest. */
	if (type == NNET_DATA ? nnet_data_parse(skb->data, skb->len, &v) :
				nnet_interest_parse(skb->data, skb->len, &v)) {
		kfree_skb(skb);
		return ERR_PTR(-EINVAL);
	}
	return skb;
}

/* An Interest of the kernel's own making. */
struct sk_buff *nnet_interest_make(const u8 *name, u16 len, u32 flags,
				   u32 lifetime, u32 nonce, gfp_t gfp)
{
	struct nnet_message m = {
		.name = name,
		.name_len = len,
		.flags = flags,
		.lifetime = lifetime,
		.nonce = nonce,
		.has_nonce = true,
	};

	return nnet_interest_build(&m, NULL, 0, gfp);
}

static void nnet_put_u32(struct msghdr *msg, int type, u32 v)
{
	put_cmsg(msg, SOL_NNET, type, sizeof(v), &v);
}

static void nnet_put_octets(struct msghdr *msg, int type, const u8 *p, u16 len)
{
	if (len)
		put_cmsg(msg, SOL_NNET, type, len, (void *)p);
}

static void nnet_tell_data(struct msghdr *msg, const struct nnet_view *v)
{
	if (v->freshness)
		nnet_put_u32(msg, NNET_CM_FRESHNESS, v->freshness);
	if (v->content_type)
		nnet_put_u32(msg, NNET_CM_CONTENT_TYPE, v->content_type);
	nnet_put_octets(msg, NNET_CM_FINAL_BLOCK, v->final, v->final_len);
	nnet_put_octets(msg, NNET_CM_SIGINFO, v->sig_info, v->sig_info_len);
	nnet_put_octets(msg, NNET_CM_SIGVALUE, v->sig_value, v->sig_value_len);
}

static void nnet_tell_interest(struct msghdr *msg, const struct nnet_view *v,
			       const struct nnet_cb *cb)
{
	nnet_put_u32(msg, NNET_CM_LIFETIME, v->lifetime);
	nnet_put_u32(msg, NNET_CM_NONCE, v->nonce);
	nnet_put_u32(msg, NNET_CM_FLAGS,
		     (v->flags & NNET_V_PREFIX ? NNET_CAN_BE_PREFIX : 0) |
		     (v->flags & NNET_V_FRESH ? NNET_MUST_BE_FRESH : 0));
	if (v->flags & NNET_V_HOP)
		nnet_put_u32(msg, NNET_CM_HOPLIMIT, v->hop);
	if (cb->flags & NNET_CB_NACK)
		nnet_put_u32(msg, NNET_CM_REASON, cb->reason);
	if (cb->flags & NNET_CB_FROM_CACHE)
		nnet_put_u32(msg, NNET_CM_SATISFIED, 1);
}

static void nnet_tell_address(struct nnet_sock *ns, struct msghdr *msg,
			      const struct nnet_view *v, u32 face)
{
	DECLARE_SOCKADDR(struct sockaddr_nnet *, a, msg->msg_name);

	if (!a)
		return;
	memset(a, 0, sizeof(*a));
	a->snn_family = nnet_family;
	a->snn_face = face;
	if (v->name_len > NNET_ADDR_NAME_MAX) {
		a->snn_flags = NNET_ADDR_TRUNC;
	} else {
		a->snn_name_len = v->name_len;
		memcpy(a->snn_name, v->name, v->name_len);
	}
	msg->msg_namelen = sizeof(*a);
}

/**
 * nnet_message_tell() - give a received packet to a program
 * @ns: its socket
 * @msg: where to
 * @skb: the packet; stays the caller's
 * @len: room for content
 * @flags: of recvmsg()
 *
 * Return: octets of the content, or of it all with MSG_TRUNC.
 */
int nnet_message_tell(struct nnet_sock *ns, struct msghdr *msg,
		      struct sk_buff *skb, size_t len, int flags)
{
	const struct nnet_cb *cb = NNET_CB(skb);
	bool data = skb->data[0] == NNET_T_DATA;
	unsigned int n, copied;
	struct nnet_view v;
	const u8 *content;
	int err;

	if (data ? nnet_data_parse(skb->data, skb->len, &v) :
		   nnet_interest_parse(skb->data, skb->len, &v))
		return -EBADMSG;
	content = data ? v.content : v.params;
	n = data ? v.content_len : v.params_len;
	copied = min_t(size_t, n, len);
	if (copied < n)
		msg->msg_flags |= MSG_TRUNC;
	err = copied ? skb_copy_datagram_msg(skb, content - skb->data, msg,
					     copied) : 0;
	if (err)
		return err;
	nnet_tell_address(ns, msg, &v, cb->face);
	nnet_put_u32(msg, NNET_CM_TYPE, data ? NNET_DATA :
		     cb->flags & NNET_CB_NACK ? NNET_NACK : NNET_INTEREST);
	nnet_put_octets(msg, NNET_CM_NAME, v.name, v.name_len);
	nnet_put_u32(msg, NNET_CM_FACE, cb->face);
	if (cb->mark)
		nnet_put_u32(msg, NNET_CM_MARK, cb->mark);
	if (data)
		nnet_tell_data(msg, &v);
	else
		nnet_tell_interest(msg, &v, cb);
	if (ns->whole)
		nnet_put_octets(msg, NNET_CM_PACKET, skb->data, skb->len);
	return flags & MSG_TRUNC ? n : copied;
}

void nnet_message_segment(struct msghdr *msg, u64 segment)
{
	put_cmsg(msg, SOL_NNET, NNET_CM_SEGMENT, sizeof(segment), &segment);
}
