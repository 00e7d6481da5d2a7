// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The netlink family: what spec/netlink/nnet.yaml promises. Policies and the
 * table of operations are generated from it; the operations are here.
 */
#include <linux/module.h>
#include <linux/rtnetlink.h>
#include <net/ipv6.h>

#include "nnet.h"
#include "generated/nnet_nl_ops.h"

static struct genl_family nnet_nl_family;

static struct nnet_net *nnet_nl_net(struct genl_info *info)
{
	return nnet_pernet(genl_info_net(info));
}

#define nnet_nl_missing(info, what) \
	({ NL_SET_ERR_MSG((info)->extack, what " is missing"); -EINVAL; })

static struct sk_buff *nnet_nl_reply(struct genl_info *info, u8 cmd,
				     void **header)
{
	struct sk_buff *msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg)
		return NULL;
	*header = genlmsg_put_reply(msg, info, &nnet_nl_family, 0, cmd);
	return msg;
}

static int nnet_nl_reply_u32(struct genl_info *info, u8 cmd, u16 attr, u32 v)
{
	struct sk_buff *msg;
	void *header;

	msg = nnet_nl_reply(info, cmd, &header);
	if (!msg)
		return -ENOMEM;
	if (nla_put_u32(msg, attr, v)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

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
					  mtu, id);
	return err;
}

static int nnet_nl_udp_new(struct nnet_net *nn, struct genl_info *info, u16 mtu,
			   u32 *id)
{
	struct nlattr *address = info->attrs[NNET_A_ADDRESS];
	struct sockaddr_in6 remote = { .sin6_family = AF_INET6 };

	if (!address || nla_len(address) != 16)
		return nnet_nl_missing(info, "address");
	if (!info->attrs[NNET_A_PORT])
		return nnet_nl_missing(info, "port");
	nla_memcpy(&remote.sin6_addr, address, 16);
	remote.sin6_port = htons(nla_get_u16(info->attrs[NNET_A_PORT]));
	if (info->attrs[NNET_A_IFINDEX])
		remote.sin6_scope_id =
			nla_get_u32(info->attrs[NNET_A_IFINDEX]);
	return nnet_udp_face_new(nn, &remote, mtu, id);
}

int nnet_nl_face_new(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	u16 mtu = 0;
	u32 id = 0;
	int err;

	if (!info->attrs[NNET_A_FACE_KIND])
		return nnet_nl_missing(info, "face-kind");
	if (info->attrs[NNET_A_MTU])
		mtu = nla_get_u16(info->attrs[NNET_A_MTU]);
	if (mtu && mtu < 128) {
		NL_SET_ERR_MSG(info->extack, "mtu is below 128");
		return -EINVAL;
	}
	err = nnet_up(nn);
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
	return err ?: nnet_nl_reply_u32(info, NNET_CMD_FACE_NEW,
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
		nnet_fib_forget_face(nn, id);
		nnet_face_release(face);
	}
	mutex_unlock(&nn->control);
	rtnl_unlock();
	return err;
}

int nnet_nl_face_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nnet_face *face;
	int err = 0;

	if (!info->attrs[NNET_A_FACE_ID])
		return nnet_nl_missing(info, "face-id");
	mutex_lock(&nn->control);
	face = nnet_nl_face(nn, nla_get_u32(info->attrs[NNET_A_FACE_ID]));
	if (!face) {
		err = -ENODEV;
	} else {
		if (info->attrs[NNET_A_MTU])
			WRITE_ONCE(face->mtu,
				   nla_get_u16(info->attrs[NNET_A_MTU]));
		if (info->attrs[NNET_A_LOCAL_FIELDS])
			WRITE_ONCE(face->local_fields,
				   !!nla_get_u8(info->attrs[NNET_A_LOCAL_FIELDS]));
	}
	mutex_unlock(&nn->control);
	return err;
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

static void *nnet_nl_row(struct sk_buff *msg, struct netlink_callback *cb,
			 u8 cmd)
{
	return genlmsg_put(msg, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			   &nnet_nl_family, NLM_F_MULTI, cmd);
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
	return skb->len;
}

/* The name of a request; the empty name when it is absent. */
static int nnet_nl_name(struct genl_info *info, const u8 **name, u16 *len)
{
	struct nlattr *a = info->attrs[NNET_A_NAME];
	u16 n;

	*name = a ? nla_data(a) : NULL;
	*len = a ? nla_len(a) : 0;
	if (a && nnet_name_check(*name, *len, &n)) {
		NL_SET_ERR_MSG(info->extack, "malformed name");
		return -EINVAL;
	}
	return 0;
}

int nnet_nl_fib_add(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	u32 cost = 0, face;
	const u8 *name;
	u16 len;
	int err;

	if (!info->attrs[NNET_A_FACE_ID])
		return nnet_nl_missing(info, "face-id");
	face = nla_get_u32(info->attrs[NNET_A_FACE_ID]);
	if (info->attrs[NNET_A_COST])
		cost = nla_get_u32(info->attrs[NNET_A_COST]);
	err = nnet_nl_name(info, &name, &len) ?: nnet_up(nn);
	if (err)
		return err;
	mutex_lock(&nn->control);
	err = nnet_fib_add(nn, name, len, face, cost);
	mutex_unlock(&nn->control);
	if (err == -ENODEV)
		NL_SET_ERR_MSG(info->extack, "no such face");
	return err;
}

int nnet_nl_fib_del(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	const u8 *name;
	u16 len;
	int err;

	if (!info->attrs[NNET_A_FACE_ID])
		return nnet_nl_missing(info, "face-id");
	err = nnet_nl_name(info, &name, &len) ?: nnet_up(nn);
	if (err)
		return err;
	mutex_lock(&nn->control);
	err = nnet_fib_del(nn, name, len,
			   nla_get_u32(info->attrs[NNET_A_FACE_ID]));
	mutex_unlock(&nn->control);
	return err;
}

static int nnet_nl_fib_put(struct sk_buff *skb, struct netlink_callback *cb,
			   const struct nnet_fib_entry *e)
{
	const struct nnet_hops *hops = rcu_dereference(e->hops);
	u32 n = 0, rows = hops ? hops->n : 1;
	void *header;

	for (n = cb->args[2]; n < rows; n++) {
		header = nnet_nl_row(skb, cb, NNET_CMD_FIB_GET);
		if (!header)
			break;
		if (nla_put(skb, NNET_A_NAME, e->name_len, e->name) ||
		    (e->strategy &&
		     nla_put_u8(skb, NNET_A_STRATEGY, e->strategy)) ||
		    (hops &&
		     (nla_put_u32(skb, NNET_A_FACE_ID, hops->hop[n].face) ||
		      nla_put_u32(skb, NNET_A_COST, hops->hop[n].cost)))) {
			genlmsg_cancel(skb, header);
			break;
		}
		genlmsg_end(skb, header);
	}
	cb->args[2] = n < rows ? n : 0;
	return n < rows ? -EMSGSIZE : 0;
}

int nnet_nl_fib_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nnet_net *nn = nnet_pernet(sock_net(skb->sk));
	struct nnet_fib_entry *e;
	long i, n = 0;

	if (!smp_load_acquire(&nn->up))
		return 0;
	rcu_read_lock();
	for (i = cb->args[0]; i <= nn->fib.mask; i++) {
		n = 0;
		hlist_for_each_entry_rcu(e, &nn->fib.heads[i], node) {
			if (n++ < cb->args[1])
				continue;
			if (nnet_nl_fib_put(skb, cb, e)) {
				n--;
				goto full;
			}
		}
		cb->args[1] = 0;
		n = 0;
	}
full:
	rcu_read_unlock();
	cb->args[0] = i;
	cb->args[1] = n;
	return skb->len;
}

int nnet_nl_strategy_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	const u8 *name;
	u16 len;
	int err;

	if (!info->attrs[NNET_A_STRATEGY])
		return nnet_nl_missing(info, "strategy");
	err = nnet_nl_name(info, &name, &len) ?: nnet_up(nn);
	if (err)
		return err;
	mutex_lock(&nn->control);
	err = nnet_strategy_set(nn, name, len,
				nla_get_u8(info->attrs[NNET_A_STRATEGY]));
	mutex_unlock(&nn->control);
	return err;
}

int nnet_nl_cs_config(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nlattr **a = info->attrs;
	struct nnet_cs *cs = &nn->cs;
	int err = nnet_up(nn);

	if (err)
		return err;
	if (a[NNET_A_UNSOLICITED] &&
	    nla_get_u8(a[NNET_A_UNSOLICITED]) > NNET_UNSOLICITED_ALL)
		return -EINVAL;
	mutex_lock(&nn->control);
	spin_lock_bh(&cs->lock);
	if (a[NNET_A_CAPACITY])
		cs->packets_max = nla_get_u32(a[NNET_A_CAPACITY]);
	if (a[NNET_A_ENTRIES_MAX])
		cs->entries_max = nla_get_u32(a[NNET_A_ENTRIES_MAX]);
	if (a[NNET_A_BYTES_MAX])
		cs->bytes_max = nla_get_u64(a[NNET_A_BYTES_MAX]);
	if (a[NNET_A_ADMIT])
		cs->admit = nla_get_u8(a[NNET_A_ADMIT]);
	if (a[NNET_A_SERVE])
		cs->serve = nla_get_u8(a[NNET_A_SERVE]);
	if (a[NNET_A_UNSOLICITED])
		cs->unsolicited = nla_get_u8(a[NNET_A_UNSOLICITED]);
	if (a[NNET_A_IN_USER])
		nn->store.in_user = nla_get_u8(a[NNET_A_IN_USER]);
	spin_unlock_bh(&cs->lock);
	nnet_cs_shrink(nn);
	mutex_unlock(&nn->control);
	return 0;
}

int nnet_nl_cs_erase(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	u32 max = U32_MAX;
	const u8 *name;
	u16 len;
	int err;

	if (info->attrs[NNET_A_COUNT])
		max = nla_get_u32(info->attrs[NNET_A_COUNT]);
	err = nnet_nl_name(info, &name, &len) ?: nnet_up(nn);
	if (err)
		return err;
	return nnet_nl_reply_u32(info, NNET_CMD_CS_ERASE, NNET_A_COUNT,
				 nnet_cs_erase(nn, name, len, max));
}

int nnet_nl_cs_get(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nnet_cs *cs = &nn->cs;
	struct sk_buff *msg;
	void *header;
	int err = nnet_up(nn);

	if (err)
		return err;
	msg = nnet_nl_reply(info, NNET_CMD_CS_GET, &header);
	if (!msg)
		return -ENOMEM;
	if (nla_put_u32(msg, NNET_A_CAPACITY, cs->packets_max) ||
	    nla_put_u32(msg, NNET_A_ENTRIES_MAX, cs->entries_max) ||
	    nla_put_u64_64bit(msg, NNET_A_BYTES_MAX, cs->bytes_max,
			      NNET_A_PAD) ||
	    nla_put_u8(msg, NNET_A_ADMIT, cs->admit) ||
	    nla_put_u8(msg, NNET_A_SERVE, cs->serve) ||
	    nla_put_u8(msg, NNET_A_UNSOLICITED, cs->unsolicited) ||
	    nla_put_u32(msg, NNET_A_PACKETS, cs->packets) ||
	    nla_put_u32(msg, NNET_A_ENTRIES, cs->entries) ||
	    nla_put_u64_64bit(msg, NNET_A_BYTES, cs->bytes, NNET_A_PAD)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

int nnet_nl_bpt_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nnet_net *nn = nnet_pernet(sock_net(skb->sk));
	struct nnet_binding *b;
	void *header;
	long i, n = 0;

	if (!smp_load_acquire(&nn->up))
		return 0;
	rcu_read_lock();
	for (i = cb->args[0]; i <= nn->bpt.mask; i++) {
		n = 0;
		hlist_for_each_entry_rcu(b, &nn->bpt.heads[i], node) {
			if (n++ < cb->args[1])
				continue;
			header = nnet_nl_row(skb, cb, NNET_CMD_BPT_GET);
			if (!header ||
			    nla_put(skb, NNET_A_NAME, b->name_len, b->name) ||
			    nla_put_u32(skb, NNET_A_FACE_ID, b->face)) {
				if (header)
					genlmsg_cancel(skb, header);
				n--;
				goto full;
			}
			genlmsg_end(skb, header);
		}
		cb->args[1] = 0;
		n = 0;
	}
full:
	rcu_read_unlock();
	cb->args[0] = i;
	cb->args[1] = n;
	return skb->len;
}

int nnet_nl_pit_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	int err = nnet_up(nn);

	if (err)
		return err;
	if (!info->attrs[NNET_A_PIT_MAX])
		return nnet_nl_missing(info, "pit-max");
	WRITE_ONCE(nn->pit.max, nla_get_u32(info->attrs[NNET_A_PIT_MAX]));
	return 0;
}

static int nnet_nl_pit_put(struct sk_buff *skb, struct netlink_callback *cb,
			   struct nnet_pending *e)
{
	void *header = nnet_nl_row(skb, cb, NNET_CMD_PIT_GET);
	int err;

	if (!header)
		return -EMSGSIZE;
	err = nla_put(skb, NNET_A_NAME, e->name_len, e->name) ?:
		      nla_put_u32(skb, NNET_A_COUNT, e->ins);
	if (err)
		genlmsg_cancel(skb, header);
	else
		genlmsg_end(skb, header);
	return err;
}

int nnet_nl_pit_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nnet_net *nn = nnet_pernet(sock_net(skb->sk));
	struct nnet_pending *e;
	long i, n = 0;
	int err;

	if (!smp_load_acquire(&nn->up))
		return 0;
	rcu_read_lock();
	for (i = cb->args[0]; i <= nn->pit.table.mask; i++) {
		n = 0;
		hlist_for_each_entry_rcu(e, &nn->pit.table.buckets[i].head,
					 node) {
			if (n++ < cb->args[1] ||
			    !refcount_inc_not_zero(&e->ref))
				continue;
			err = nnet_nl_pit_put(skb, cb, e);
			nnet_pit_put(e);
			if (err) {
				n--;
				goto full;
			}
		}
		cb->args[1] = 0;
		n = 0;
	}
full:
	rcu_read_unlock();
	cb->args[0] = i;
	cb->args[1] = n;
	return skb->len;
}

int nnet_nl_stats_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nnet_net *nn = nnet_pernet(sock_net(skb->sk));
	void *header;
	long i;

	for (i = cb->args[0]; i < NNET_C_COUNT; i++) {
		header = nnet_nl_row(skb, cb, NNET_CMD_STATS_GET);
		if (!header)
			break;
		if (nla_put_string(skb, NNET_A_COUNTER_KIND,
				   nnet_counter_kind[i]) ||
		    nla_put_string(skb, NNET_A_COUNTER_WORD,
				   nnet_counter_word[i]) ||
		    nla_put_u64_64bit(skb, NNET_A_VALUE,
				      nnet_counter_sum(nn, i), NNET_A_PAD)) {
			genlmsg_cancel(skb, header);
			break;
		}
		genlmsg_end(skb, header);
	}
	cb->args[0] = i;
	return skb->len;
}

int nnet_nl_dispatch_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nlattr **a = info->attrs;
	int err = nnet_up(nn);

	if (err)
		return err;
	if (!a[NNET_A_DISPATCH_MODE])
		return nnet_nl_missing(info, "dispatch-mode");
	mutex_lock(&nn->control);
	err = nnet_dispatch_set(
		nn, nla_get_u8(a[NNET_A_DISPATCH_MODE]),
		a[NNET_A_DISPATCH_DEPTH] ?
			nla_get_u8(a[NNET_A_DISPATCH_DEPTH]) : 0,
		a[NNET_A_DISPATCH_THREADS] ?
			nla_get_u8(a[NNET_A_DISPATCH_THREADS]) : 0,
		a[NNET_A_DISPATCH_SEPARATE] &&
			nla_get_u8(a[NNET_A_DISPATCH_SEPARATE]));
	mutex_unlock(&nn->control);
	return err;
}

static int nnet_nl_region(struct nnet_net *nn, struct genl_info *info)
{
	const u8 *name;
	u8 *copy;
	u16 len;
	int err = nnet_nl_name(info, &name, &len);

	if (err)
		return err;
	if (nn->regions == NNET_REGIONS_MAX)
		return -ENOSPC;
	copy = kmemdup(name, len, GFP_KERNEL);
	if (!copy)
		return -ENOMEM;
	nn->region[nn->regions] = copy;
	nn->region_len[nn->regions] = len;
	smp_store_release(&nn->regions, nn->regions + 1);
	return 0;
}

int nnet_nl_net_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nlattr **a = info->attrs;
	int err = nnet_up(nn);

	if (err)
		return err;
	mutex_lock(&nn->control);
	if (a[NNET_A_AUTO_FACES])
		WRITE_ONCE(nn->auto_faces, !!nla_get_u8(a[NNET_A_AUTO_FACES]));
	if (a[NNET_A_PORT])
		err = nnet_udp_listen(nn, nla_get_u16(a[NNET_A_PORT]));
	if (!err && a[NNET_A_NAME])
		err = nnet_nl_region(nn, info);
	mutex_unlock(&nn->control);
	return err;
}

int nnet_nl_store_attach(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	u32 old;
	int err = nnet_up(nn);

	if (err)
		return err;
	mutex_lock(&nn->control);
	old = READ_ONCE(nn->store.portid);
	if (old && old != info->snd_portid) {
		NL_SET_ERR_MSG(info->extack, "another store is attached");
		err = -EBUSY;
	} else {
		err = nnet_store_attach(nn, info->snd_portid);
	}
	mutex_unlock(&nn->control);
	return err;
}

/* A packet that the store sent, as a buffer of its own. */
static struct sk_buff *nnet_nl_packet(struct genl_info *info)
{
	struct nlattr *a = info->attrs[NNET_A_PACKET];
	struct nnet_net *nn = nnet_nl_net(info);
	struct sk_buff *skb;

	if (!a || !nla_len(a))
		return ERR_PTR(nnet_nl_missing(info, "packet"));
	if (!nn->up || READ_ONCE(nn->store.portid) != info->snd_portid) {
		NL_SET_ERR_MSG(info->extack, "the sender is not the store");
		return ERR_PTR(-EPERM);
	}
	skb = alloc_skb(NNET_LINK_HEADROOM + nla_len(a), GFP_KERNEL);
	if (!skb)
		return ERR_PTR(-ENOMEM);
	skb_reserve(skb, NNET_LINK_HEADROOM);
	skb_put_data(skb, nla_data(a), nla_len(a));
	memset(NNET_CB(skb), 0, sizeof(struct nnet_cb));
	NNET_CB(skb)->face = NNET_FACE_STORE;
	__skb_header_release(skb);
	return skb;
}

int nnet_nl_store_data(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *packet = nnet_nl_packet(info);

	if (IS_ERR(packet))
		return PTR_ERR(packet);
	if (packet->data[0] != NNET_T_DATA) {
		kfree_skb(packet);
		return -EINVAL;
	}
	local_bh_disable();
	nnet_forward(nnet_nl_net(info), packet);
	local_bh_enable();
	return 0;
}

int nnet_nl_store_miss(struct sk_buff *skb, struct genl_info *info)
{
	struct sk_buff *packet = nnet_nl_packet(info);

	if (IS_ERR(packet))
		return PTR_ERR(packet);
	local_bh_disable();
	nnet_store_missed(nnet_nl_net(info), packet);
	local_bh_enable();
	return 0;
}

/* Sends a packet to the store. Return: 0 or a negative errno. */
int nnet_netlink_store_send(struct nnet_net *nn, u32 portid, u8 cmd,
			    struct sk_buff *packet)
{
	struct sk_buff *msg;
	struct nlattr *a;
	void *header;

	msg = genlmsg_new(nla_total_size(packet->len), GFP_ATOMIC);
	if (!msg)
		return -ENOMEM;
	header = genlmsg_put(msg, 0, 0, &nnet_nl_family, 0, cmd);
	a = header ? nla_reserve(msg, NNET_A_PACKET, packet->len) : NULL;
	if (!a) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	skb_copy_bits(packet, 0, nla_data(a), packet->len);
	genlmsg_end(msg, header);
	return genlmsg_unicast(nn->net, msg, portid);
}

/* Tells listeners that a face came or went. Context: may sleep. */
void nnet_netlink_face_event(struct nnet_net *nn, const struct nnet_face *face,
			     u32 id, bool created)
{
	struct sk_buff *msg;
	void *header;

	if (!genl_has_listeners(&nnet_nl_family, nn->net,
				NNET_GROUP_INDEX_FACES))
		return;
	msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);
	if (!msg)
		return;
	header = genlmsg_put(msg, 0, 0, &nnet_nl_family, 0,
			     NNET_CMD_FACE_EVENT);
	if (!header || nla_put_u32(msg, NNET_A_FACE_ID, id) ||
	    nla_put_u8(msg, NNET_A_FACE_KIND, face->kind) ||
	    nla_put_u64_64bit(msg, NNET_A_VALUE, created, NNET_A_PAD)) {
		nlmsg_free(msg);
		return;
	}
	genlmsg_end(msg, header);
	genlmsg_multicast_netns(&nnet_nl_family, nn->net, msg, 0,
				NNET_GROUP_INDEX_FACES, GFP_KERNEL);
}

/* The store closed its socket. */
static int nnet_nl_notify(struct notifier_block *nb, unsigned long event,
			  void *ptr)
{
	struct netlink_notify *n = ptr;
	struct nnet_net *nn;

	if (event != NETLINK_URELEASE || n->protocol != NETLINK_GENERIC)
		return NOTIFY_DONE;
	nn = nnet_pernet(n->net);
	cmpxchg(&nn->store.portid, n->portid, 0);
	return NOTIFY_DONE;
}

static struct notifier_block nnet_nl_notifier = {
	.notifier_call = nnet_nl_notify,
};

static struct genl_family nnet_nl_family __ro_after_init = {
	.name = NNET_NL_NAME,
	.version = NNET_NL_VERSION,
	.maxattr = NNET_A_MAX,
	.policy = nnet_nl_policy,
	.netnsok = true,
	.parallel_ops = true,
	.module = THIS_MODULE,
	.ops = nnet_nl_ops,
	.n_ops = ARRAY_SIZE(nnet_nl_ops),
	.mcgrps = nnet_nl_groups,
	.n_mcgrps = ARRAY_SIZE(nnet_nl_groups),
	.resv_start_op = NNET_CMD_FACE_NEW,
};

int __init nnet_netlink_init(void)
{
	int err = genl_register_family(&nnet_nl_family);

	if (err)
		return err;
	err = netlink_register_notifier(&nnet_nl_notifier);
	if (err)
		genl_unregister_family(&nnet_nl_family);
	return err;
}

void nnet_netlink_exit(void)
{
	netlink_unregister_notifier(&nnet_nl_notifier);
	genl_unregister_family(&nnet_nl_family);
}
