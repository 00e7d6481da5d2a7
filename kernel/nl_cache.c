// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The content store and the pending Interests over netlink.
 */
#include "netlink.h"

/*
 * Who administrates a namespace only stays below what the host lets one have.
 * Return: 0 or -EPERM.
 */
static int nnet_nl_below(struct sk_buff *skb, struct genl_info *info, u16 attr,
			 u64 most)
{
	struct nlattr *a = info->attrs[attr];

	if (!a || (nla_len(a) == 8 ? nla_get_u64(a) : nla_get_u32(a)) <= most ||
	    netlink_capable(skb, CAP_NET_ADMIN))
		return 0;
	NL_SET_ERR_MSG(info->extack,
		       "more than the host lets a namespace have");
	return -EPERM;
}

static int nnet_nl_cs_limits(struct sk_buff *skb, struct genl_info *info)
{
	return nnet_nl_below(skb, info, NNET_A_CAPACITY, nnet_ns_packets) ?:
	       nnet_nl_below(skb, info, NNET_A_BYTES_MAX, nnet_ns_bytes);
}

int nnet_nl_cs_config(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nlattr **a = info->attrs;
	struct nnet_cs *cs = &nn->cs;
	int err = nnet_nl_cs_limits(skb, info) ?: nnet_up(nn);

	if (err)
		return err;
	if (a[NNET_A_UNSOLICITED] &&
	    nla_get_u8(a[NNET_A_UNSOLICITED]) > NNET_UNSOLICITED_ALL)
		return nnet_nl_refused(info, -EINVAL);
	mutex_lock(&nn->control);
	spin_lock_bh(&cs->lock);
	if (a[NNET_A_CAPACITY])
		cs->packets_max = nla_get_u32(a[NNET_A_CAPACITY]);
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
	while (nnet_cs_shrink(nn, NNET_CS_EVICT_MAX))
		cond_resched();
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
	struct nnet_cs_sums s;
	struct sk_buff *msg;
	void *header;
	int err = nnet_up(nn);

	if (err)
		return err;
	msg = nnet_nl_reply(info, NNET_CMD_CS_GET, &header);
	if (!msg)
		return -ENOMEM;
	nnet_cs_sum(nn, &s);
	if (nla_put_u32(msg, NNET_A_CAPACITY, s.packets_max) ||
	    nla_put_u64_64bit(msg, NNET_A_BYTES_MAX, s.bytes_max,
			      NNET_A_PAD) ||
	    nla_put_u8(msg, NNET_A_ADMIT, READ_ONCE(cs->admit)) ||
	    nla_put_u8(msg, NNET_A_SERVE, READ_ONCE(cs->serve)) ||
	    nla_put_u8(msg, NNET_A_UNSOLICITED, READ_ONCE(cs->unsolicited)) ||
	    nla_put_u32(msg, NNET_A_PACKETS, s.packets) ||
	    nla_put_u64_64bit(msg, NNET_A_BYTES, s.bytes, NNET_A_PAD)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

int nnet_nl_pit_set(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nlattr **a = info->attrs;
	int err = nnet_nl_below(skb, info, NNET_A_PIT_MAX, nnet_ns_pit) ?:
		  nnet_nl_below(skb, info, NNET_A_BYTES_MAX,
				nnet_ns_pit_bytes) ?:
		  nnet_up(nn);

	if (err)
		return err;
	if (!a[NNET_A_PIT_MAX] && !a[NNET_A_BYTES_MAX])
		return nnet_nl_missing(info, "pit-max");
	if (a[NNET_A_PIT_MAX])
		WRITE_ONCE(nn->pit.max, nla_get_u32(a[NNET_A_PIT_MAX]));
	if (a[NNET_A_BYTES_MAX])
		WRITE_ONCE(nn->pit.octets_max,
			   min_t(u64, nla_get_u64(a[NNET_A_BYTES_MAX]),
				 LONG_MAX / 4));
	return 0;
}

int nnet_nl_pit_info(struct sk_buff *skb, struct genl_info *info)
{
	struct nnet_net *nn = nnet_nl_net(info);
	struct nnet_pit *pit = &nn->pit;
	struct sk_buff *msg;
	void *header;
	int err = nnet_up(nn);

	if (err)
		return err;
	msg = nnet_nl_reply(info, NNET_CMD_PIT_INFO, &header);
	if (!msg)
		return -ENOMEM;
	if (nla_put_u32(msg, NNET_A_PIT_MAX, pit->max) ||
	    nla_put_u64_64bit(msg, NNET_A_BYTES_MAX, pit->octets_max,
			      NNET_A_PAD) ||
	    nla_put_u32(msg, NNET_A_ENTRIES, atomic_read(&pit->count)) ||
	    nla_put_u64_64bit(msg, NNET_A_BYTES, atomic_long_read(&pit->octets),
			      NNET_A_PAD)) {
		nlmsg_free(msg);
		return -EMSGSIZE;
	}
	genlmsg_end(msg, header);
	return genlmsg_reply(msg, info);
}

int nnet_nl_pit_erase(struct sk_buff *skb, struct genl_info *info)
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
	return nnet_nl_reply_u32(info, NNET_CMD_PIT_ERASE, NNET_A_COUNT,
				 nnet_pit_erase(nn, name, len, max));
}

static int nnet_nl_pit_put(struct sk_buff *skb, struct netlink_callback *cb,
			   struct nnet_pending *e)
{
	void *header = nnet_nl_row(skb, cb, NNET_CMD_PIT_GET);
	long left = READ_ONCE(e->timer.expires) - jiffies;
	int err;

	if (!header)
		return -EMSGSIZE;
	err = nla_put(skb, NNET_A_NAME, e->name_len, e->name) ?:
		      nla_put_u32(skb, NNET_A_COUNT, READ_ONCE(e->ins)) ?:
		      nla_put_u32(skb, NNET_A_FLAGS, e->flags & NNET_V_KEY) ?:
		      nla_put_u32(skb, NNET_A_LIFETIME,
				  jiffies_to_msecs(max(left, 0L)));
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
	bool full = false;
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
				full = true;
				goto out;
			}
		}
		cb->args[1] = 0;
		n = 0;
	}
out:
	rcu_read_unlock();
	cb->args[0] = i;
	cb->args[1] = n;
	return nnet_nl_dumped(skb, full);
}
