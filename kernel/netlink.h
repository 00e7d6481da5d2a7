/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* What the operations of the netlink family share. */
#ifndef _NNET_NETLINK_H
#define _NNET_NETLINK_H

#include "nnet.h"
#include "generated/nnet_nl_ops.h"

#define nnet_nl_missing(info, what) \
	({ NL_SET_ERR_MSG((info)->extack, what " is missing"); -EINVAL; })

static inline struct nnet_net *nnet_nl_net(struct genl_info *info)
{
	return nnet_pernet(genl_info_net(info));
}

struct sk_buff *nnet_nl_reply(struct genl_info *info, u8 cmd, void **header);
int nnet_nl_reply_u32(struct genl_info *info, u8 cmd, u16 attr, u32 v);
void *nnet_nl_row(struct sk_buff *msg, struct netlink_callback *cb, u8 cmd);
int nnet_nl_dumped(const struct sk_buff *skb, bool full);
int nnet_nl_refused(struct genl_info *info, int err);
int nnet_nl_name(struct genl_info *info, const u8 **name, u16 *len);

#endif /* _NNET_NETLINK_H */
