// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The netlink family: what spec/netlink/nnet.yaml promises. Policies and the
 * table of operations are generated from it; the operations are here and in
 * nl_face.c, nl_route.c, nl_cache.c.
 */
#include <linux/module.h>

#include "netlink.h"

static struct genl_family nnet_nl_family;

struct sk_buff *nnet_nl_reply(struct genl_info *info, u8 cmd,
				     void **header)
{
	struct sk_buff *msg = genlmsg_new(NLMSG_DEFAULT_SIZE, GFP_KERNEL);

	if (!msg)
		return NULL;
	*header = genlmsg_put_reply(msg, info, &nnet_nl_family, 0, cmd);
	return msg;
}

int nnet_nl_reply_u32(struct genl_info *info, u8 cmd, u16 attr, u32 v)
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

void *nnet_nl_row(struct sk_buff *msg, struct netlink_callback *cb,
			 u8 cmd)
{
	return genlmsg_put(msg, NETLINK_CB(cb->skb).portid, cb->nlh->nlmsg_seq,
			   &nnet_nl_family, NLM_F_MULTI, cmd);
}

/* A message of a dump has room for a row with the longest name. */
int nnet_nl_dump_start(struct netlink_callback *cb)
{
	cb->min_dump_alloc = NLMSG_ALIGN(NLMSG_HDRLEN + GENL_HDRLEN) +
			     nla_total_size(NNET_PACKET_MAX) + 256;
	return 0;
}

/*
 * What a dump returns. @full: a row did not fit; when it is the only one of its
 * message it never will, which must not look like the end of the table.
 */
int nnet_nl_dumped(const struct sk_buff *skb, bool full)
{
	return full && !skb->len ? -EMSGSIZE : skb->len;
}

/* The name of a request; the empty name when it is absent. */
int nnet_nl_name(struct genl_info *info, const u8 **name, u16 *len)
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

/*
 * Gives a refusal its words where its cause gave none: each errno of a table
 * has one meaning there. Return: @err.
 */
int nnet_nl_refused(struct genl_info *info, int err)
{
	struct netlink_ext_ack *extack = info->extack;

	if (!extack || extack->_msg)
		return err;
	switch (err) {
	case -EINVAL:
		NL_SET_ERR_MSG(extack, "a value is out of its range");
		break;
	case -ENAMETOOLONG:
		NL_SET_ERR_MSG(extack, "the prefix has more than 32 components");
		break;
	case -ENOBUFS:
		NL_SET_ERR_MSG(extack, "the table is full");
		break;
	case -ENOSPC:
		NL_SET_ERR_MSG(extack, "the prefix has 16 next hops already");
		break;
	case -ENODEV:
		NL_SET_ERR_MSG(extack, "no such face");
		break;
	case -ENOENT:
		NL_SET_ERR_MSG(extack, "no such route");
		break;
	case -EADDRINUSE:
		NL_SET_ERR_MSG(extack, "the UDP port is taken");
		break;
	case -EBUSY:
		NL_SET_ERR_MSG(extack, "UDP is open at another port");
		break;
	}
	return err;
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
	return nnet_nl_dumped(skb, i < NNET_C_COUNT);
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
	return nnet_nl_refused(info, err);
}

static int nnet_nl_region(struct nnet_net *nn, struct genl_info *info)
{
	const u8 *name;
	u8 *copy;
	u16 len;
	int err = nnet_nl_name(info, &name, &len);

	if (err)
		return err;
	if (nn->regions == NNET_REGIONS_MAX) {
		NL_SET_ERR_MSG(info->extack, "no room for another region");
		return -ENOSPC;
	}
	copy = kmemdup(name, len, GFP_KERNEL_ACCOUNT);
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
	return nnet_nl_refused(info, err);
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

/* Return: 0, or -EPERM when the sender is not the store. */
static int nnet_nl_is_store(struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);

	if (nn->up && READ_ONCE(nn->store.portid) == info->snd_portid)
		return 0;
	NL_SET_ERR_MSG(info->extack, "the sender is not the store");
	return -EPERM;
}

int nnet_nl_store_have(struct sk_buff *skb, struct genl_info *info)
{
	const u8 *name;
	u16 len;
	int err = nnet_nl_is_store(info) ?: nnet_nl_name(info, &name, &len);

	if (err)
		return err;
	if (!name)
		return nnet_nl_missing(info, "name");
	nnet_store_have(nnet_nl_net(info), name, len);
	return 0;
}

/* A packet that the store sent, as a buffer of its own. */
static struct sk_buff *nnet_nl_packet(struct genl_info *info)
{
	struct nlattr *a = info->attrs[NNET_A_PACKET];
	struct sk_buff *skb;
	int err;

	if (!a || !nla_len(a))
		return ERR_PTR(nnet_nl_missing(info, "packet"));
	err = nnet_nl_is_store(info);
	if (err)
		return ERR_PTR(err);
	skb = alloc_skb(NNET_LINK_HEADROOM + nla_len(a),
			GFP_KERNEL_ACCOUNT);
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
		NL_SET_ERR_MSG(info->extack, "the packet is no Data");
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

/*
 * Sends a packet to the store, an offer with how long it is still fresh.
 * Return: 0 or a negative errno.
 */
int nnet_netlink_store_send(struct nnet_net *nn, u32 portid, u8 cmd,
			    struct sk_buff *packet, u32 fresh_ms)
{
	struct sk_buff *msg;
	struct nlattr *a;
	void *header;

	msg = genlmsg_new(nla_total_size(packet->len) + nla_total_size(4),
			  GFP_ATOMIC);
	if (!msg)
		return -ENOMEM;
	header = genlmsg_put(msg, 0, 0, &nnet_nl_family, 0, cmd);
	a = header ? nla_reserve(msg, NNET_A_PACKET, packet->len) : NULL;
	if (!a) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	skb_copy_bits(packet, 0, nla_data(a), packet->len);
	if (cmd == NNET_CMD_STORE_OFFER &&
	    nla_put_u32(msg, NNET_A_LIFETIME, fresh_ms)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
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
#if LINUX_VERSION_CODE >= KERNEL_VERSION(6, 1, 0)
	.resv_start_op = NNET_CMD_FACE_NEW,
#endif
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
