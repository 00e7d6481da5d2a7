// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Routes, strategies and bindings over netlink.
 */
#include "netlink.h"

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
	if (!err)
		nnet_next_hop_added(nn, name, len, face);
	return nnet_nl_refused(info, err);
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
	return nnet_nl_refused(info, err);
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
	bool full = false;
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
	if (err == -EPERM)
		NL_SET_ERR_MSG(info->extack, "the root keeps a strategy");
	return nnet_nl_refused(info, err);
}

int nnet_nl_bpt_get(struct sk_buff *skb, struct netlink_callback *cb)
{
	struct nnet_net *nn = nnet_pernet(sock_net(skb->sk));
	struct nnet_binding *b;
	void *header;
	bool full = false;
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
				full = true;
				goto out;
			}
			genlmsg_end(skb, header);
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
