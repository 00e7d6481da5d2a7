/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* Written by kernel/tools/nlgen.py from spec/netlink/nnet.yaml; not by hand. */
#ifndef _NNET_NL_OPS_H
#define _NNET_NL_OPS_H

#include <net/genetlink.h>

#include "nnet_nl.h"

int nnet_nl_face_new(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_face_del(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_face_set(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_face_get(struct sk_buff *skb,
		struct netlink_callback *cb);
int nnet_nl_fib_add(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_fib_del(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_fib_get(struct sk_buff *skb,
		struct netlink_callback *cb);
int nnet_nl_strategy_set(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_cs_config(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_cs_erase(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_cs_get(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_bpt_get(struct sk_buff *skb,
		struct netlink_callback *cb);
int nnet_nl_pit_set(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_pit_get(struct sk_buff *skb,
		struct netlink_callback *cb);
int nnet_nl_stats_get(struct sk_buff *skb,
		struct netlink_callback *cb);
int nnet_nl_dispatch_set(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_net_set(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_store_attach(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_store_data(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_store_miss(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_pit_info(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_pit_erase(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_store_have(struct sk_buff *skb, struct genl_info *info);
int nnet_nl_dump_start(struct netlink_callback *cb);

extern const struct nla_policy nnet_nl_policy[NNET_A_END];
extern const struct genl_ops nnet_nl_ops[23];
extern const struct genl_multicast_group nnet_nl_groups[1];

enum {
	NNET_GROUP_INDEX_FACES,
};

#endif /* _NNET_NL_OPS_H */
