// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Faces over netlink.
 */
#include <linux/rtnetlink.h>
#include <net/ipv6.h>

#include "netlink.h"

static int nnet_nl_ether_new(struct nnet_net *nn, struct genl_info *info,
			     u16 mtu, u32 *id)
{
	struct net_device *dev;
	int err = -ENODEV;

	if (!info->attrs[NNET_A_IFINDEX])
		return nnet_nl_missing(info, "ifindex");
	if (!info->attrs[NNET_A_PEER] ||
	    nla_len(info->attrs[NNET_A_PEER]) != ETH_ALEN)
		return nnet_nl_missing(info, "peer");
	dev = __dev_get_by_index(nn->net,
				 nla_get_u32(info->attrs[NNET_A_IFINDEX]));
	if (!dev)
		NL_SET_ERR_MSG(info->extack, "no such device");
	else if (!(dev->flags & IFF_UP))
		NL_SET_ERR_MSG(info->extack, "the device is down");
	else
		err = nnet_ether_face_new(nn, dev,
					  nla_data(info->attrs[NNET_A_PEER]),
					  mtu, false, id);
	return err;
}

static int nnet_nl_udp_new(struct nnet_net *nn, struct genl_info *info, u16 mtu,
			   u32 *id)
{
	struct nlattr *address = info->attrs[NNET_A_ADDRESS];
	struct sockaddr_in6 remote = { .sin6_family = AF_INET6 };
	int err;

	if (!address || nla_len(address) != 16)
		return nnet_nl_missing(info, "address");
	if (!info->attrs[NNET_A_PORT])
		return nnet_nl_missing(info, "port");
	nla_memcpy(&remote.sin6_addr, address, 16);
	remote.sin6_port = htons(nla_get_u16(info->attrs[NNET_A_PORT]));
	if (info->attrs[NNET_A_IFINDEX])
		remote.sin6_scope_id =
			nla_get_u32(info->attrs[NNET_A_IFINDEX]);
	err = nnet_udp_face_new(nn, &remote, mtu, false, id);
	if (err == -EDESTADDRREQ)
		NL_SET_ERR_MSG(info->extack,
			       "a link-local address needs its device");
	else if (err == -ENETDOWN && remote.sin6_scope_id)
		NL_SET_ERR_MSG(info->extack, "the device is down");
	return err;
}

/* The largest frame that a request asks for; unchanged when it asks for none. */
static int nnet_nl_mtu(struct genl_info *info, u16 *mtu)
{
	u16 asked;

	if (!info->attrs[NNET_A_MTU])
		return 0;
	asked = nla_get_u16(info->attrs[NNET_A_MTU]);
	if (asked && asked < NNET_FACE_MTU_MIN) {
		NL_SET_ERR_MSG(info->extack, "mtu is below 128");
		return -EINVAL;
	}
	*mtu = asked;
	return 0;
}

int nnet_nl_face_new(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	u16 mtu = 0;
	u32 id = 0;
	int err;

	if (!info->attrs[NNET_A_FACE_KIND])
		return nnet_nl_missing(info, "face-kind");
	err = nnet_nl_mtu(info, &mtu) ?: nnet_up(nn);
	if (err)
		return err;
	rtnl_lock();
	mutex_lock(&nn->control);
	switch (nla_get_u8(info->attrs[NNET_A_FACE_KIND])) {
	case NNET_FACE_KIND_ETHER:
		err = nnet_nl_ether_new(nn, info, mtu, &id);
		break;
	case NNET_FACE_KIND_UDP:
		err = nnet_nl_udp_new(nn, info, mtu, &id);
		break;
	default:
		NL_SET_ERR_MSG(info->extack, "faces are made of ether or udp");
		err = -EINVAL;
	}
	mutex_unlock(&nn->control);
	rtnl_unlock();
	/* What is there already is what was asked for. */
	if (err == -EEXIST)
		err = 0;
	if (err)
		return nnet_nl_refused(info, err);
	return nnet_nl_reply_u32(info, NNET_CMD_FACE_NEW,
					NNET_A_FACE_ID, id);
}

/* A registered face of a number. Context: nn->control held. */
static struct nnet_face *nnet_nl_face(struct nnet_net *nn, u32 id)
{
	struct nnet_slot *slot = nn->up ? nnet_slot(nn, id) : NULL;
	struct nnet_face *face;

	if (!slot)
		return NULL;
	face = rcu_dereference_protected(slot->face,
					 lockdep_is_held(&nn->control));
	return face && face->id == id ? face : NULL;
}

int nnet_nl_face_del(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct net_device *dev;
	struct nnet_face *face;
	bool routed;
	int err = 0;
	u32 id;

	if (!info->attrs[NNET_A_FACE_ID])
		return nnet_nl_missing(info, "face-id");
	id = nla_get_u32(info->attrs[NNET_A_FACE_ID]);
	rtnl_lock();
	mutex_lock(&nn->control);
	face = nnet_nl_face(nn, id);
	if (!face) {
		err = -ENODEV;
	} else if (face->kind != NNET_KIND_ETHER &&
		   face->kind != NNET_KIND_UDP) {
		NL_SET_ERR_MSG(info->extack, "a socket's face ends with it");
		err = -EPERM;
	} else {
		dev = face->kind == NNET_KIND_ETHER && face->multi ?
			      __dev_get_by_index(nn->net, face->ifindex) :
			      NULL;
		if (dev && !is_broadcast_ether_addr(face->peer))
			dev_mc_del(dev, face->peer);
		nnet_netlink_face_event(nn, face, id, false);
		routed = face->routed;
		nnet_face_release(face);
		if (routed)
			nnet_fib_sweep(nn);
	}
	mutex_unlock(&nn->control);
	rtnl_unlock();
	return nnet_nl_refused(info, err);
}

int nnet_nl_face_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nnet_face *face;
	u16 mtu;
	int err;

	if (!info->attrs[NNET_A_FACE_ID])
		return nnet_nl_missing(info, "face-id");
	mutex_lock(&nn->control);
	face = nnet_nl_face(nn, nla_get_u32(info->attrs[NNET_A_FACE_ID]));
	mtu = face ? face->mtu : 0;
	err = face ? nnet_nl_mtu(info, &mtu) : -ENODEV;
	if (!err) {
		WRITE_ONCE(face->mtu, mtu);
		if (info->attrs[NNET_A_LOCAL_FIELDS])
			WRITE_ONCE(face->local_fields,
				   !!nla_get_u8(info->attrs[NNET_A_LOCAL_FIELDS]));
	}
	mutex_unlock(&nn->control);
	return nnet_nl_refused(info, err);
}

static u32 nnet_nl_face_flags(const struct nnet_face *face)
{
	return face->local | face->multi << 1 | face->local_fields << 2 |
	       face->lp << 3;
}

static int nnet_nl_face_put(struct sk_buff *msg, const struct nnet_face *face)
{
	struct nnet_face_stats s;

	if (nla_put_u32(msg, NNET_A_FACE_ID, face->id) ||
	    nla_put_u8(msg, NNET_A_FACE_KIND, face->kind) ||
	    nla_put_u16(msg, NNET_A_MTU, face->mtu) ||
	    nla_put_u32(msg, NNET_A_FLAGS, nnet_nl_face_flags(face)))
		return -EMSGSIZE;
	if (face->kind == NNET_KIND_ETHER &&
	    (nla_put_u32(msg, NNET_A_IFINDEX, face->ifindex) ||
	     nla_put(msg, NNET_A_PEER, ETH_ALEN, face->peer)))
		return -EMSGSIZE;
	if (face->kind == NNET_KIND_UDP && face->ifindex &&
	    nla_put_u32(msg, NNET_A_IFINDEX, face->ifindex))
		return -EMSGSIZE;
	if (face->kind == NNET_KIND_UDP &&
	    (nla_put(msg, NNET_A_ADDRESS, 16, &face->remote.sin6_addr) ||
	     nla_put_u16(msg, NNET_A_PORT, ntohs(face->remote.sin6_port))))
		return -EMSGSIZE;
	nnet_face_sum(face, &s);
	if (nla_put_u64_64bit(msg, NNET_A_IN_INTERESTS, s.in_interests,
			      NNET_A_PAD) ||
	    nla_put_u64_64bit(msg, NNET_A_IN_DATA, s.in_data, NNET_A_PAD) ||
	    nla_put_u64_64bit(msg, NNET_A_IN_NACKS, s.in_nacks, NNET_A_PAD) ||
	    nla_put_u64_64bit(msg, NNET_A_IN_BYTES, s.in_bytes, NNET_A_PAD) ||
	    nla_put_u64_64bit(msg, NNET_A_OUT_INTERESTS, s.out_interests,
			      NNET_A_PAD) ||
	    nla_put_u64_64bit(msg, NNET_A_OUT_DATA, s.out_data, NNET_A_PAD) ||
	    nla_put_u64_64bit(msg, NNET_A_OUT_NACKS, s.out_nacks, NNET_A_PAD) ||
	    nla_put_u64_64bit(msg, NNET_A_OUT_BYTES, s.out_bytes, NNET_A_PAD))
		return -EMSGSIZE;
	return 0;
}

int nnet_nl_face_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nnet_net *nn = nnet_pernet(sock_net(skb->sk));
	struct nnet_face *face;
	void *header;
	long i;

	if (!smp_load_acquire(&nn->up))
		return 0;
	rcu_read_lock();
	for (i = cb->args[0]; i < NNET_FACES_MAX; i++) {
		face = rcu_dereference(nn->slots[i].face);
		if (!face || !READ_ONCE(face->id))
			continue;
		header = nnet_nl_row(skb, cb, NNET_CMD_FACE_GET);
		if (!header)
			break;
		if (nnet_nl_face_put(skb, face)) {
			genlmsg_cancel(skb, header);
			break;
		}
		genlmsg_end(skb, header);
	}
	rcu_read_unlock();
	cb->args[0] = i;
	return nnet_nl_dumped(skb, i < NNET_FACES_MAX);
}
