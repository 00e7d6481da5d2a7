/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* store.c: the cache behind the cache. */
#ifndef _NNET_STORE_H
#define _NNET_STORE_H

#include <linux/skbuff.h>

#include "wire.h"

struct nnet_net;

struct nnet_store {
	u32 portid;		/* of the user-space store, 0 without */
	bool in_user;		/* every Data goes there and none is kept */
	unsigned long *filter;
};

void nnet_store_init(struct nnet_net *nn);
void nnet_store_exit(struct nnet_net *nn);
int nnet_store_attach(struct nnet_net *nn, u32 portid);
void nnet_store_offer(struct nnet_net *nn, struct sk_buff *data, u32 fresh_ms);
void nnet_store_have(struct nnet_net *nn, const u8 *name, u16 len);
bool nnet_store_wanted(struct nnet_net *nn, const struct nnet_view *v,
		       const struct nnet_key *key);
bool nnet_store_ask(struct nnet_net *nn, struct sk_buff *interest);

#endif /* _NNET_STORE_H */
