/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* bpt.c: the binding prefix table. */
#ifndef _NNET_BPT_H
#define _NNET_BPT_H

#include <linux/list.h>
#include <linux/rcupdate.h>

#include "wire.h"

struct nnet_net;
struct nnet_user;

struct nnet_binding {
	struct hlist_node node;
	struct list_head of_sock;
	struct rcu_head rcu;
	u64 hash;
	struct nnet_user *user;	/* whose share it takes; NULL: nobody's */
	u32 face;
	u8 depth;
	u16 name_len;
	u8 name[];
};

struct nnet_bpt {
	struct hlist_head *heads;
	u32 mask;
	u32 count;
	u32 depth_count[NNET_DEPTH_MAX + 1];
	unsigned long depths;
};

int nnet_bpt_init(struct nnet_net *nn);
void nnet_bpt_exit(struct nnet_net *nn);
int nnet_bpt_add(struct nnet_net *nn, const u8 *name, u16 len, u32 face,
		 struct nnet_user *user, struct list_head *of_sock);
int nnet_bpt_del(struct nnet_net *nn, const u8 *name, u16 len,
		 struct list_head *of_sock);
void nnet_bpt_del_all(struct nnet_net *nn, struct list_head *of_sock);
u32 nnet_bpt_lookup(struct nnet_net *nn, const u8 *name,
		    const struct nnet_key *key);

#endif /* _NNET_BPT_H */
