/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* dispatch.c: packets handed to threads. */
#ifndef _NNET_DISPATCH_H
#define _NNET_DISPATCH_H

#include <linux/seq_file.h>
#include <linux/skbuff.h>

struct nnet_net;

struct nnet_dispatch_conf {
	u8 mode;	/* NNET_DISPATCH_* */
	u8 depth;
	u8 threads;
	bool separate;
};

void nnet_dispatch(struct nnet_net *nn, struct sk_buff *skb);
int nnet_dispatch_set(struct nnet_net *nn, u8 mode, u8 depth, u8 threads,
		      bool separate);
void nnet_dispatch_show(struct seq_file *m, struct nnet_net *nn);
void nnet_dispatch_flush(struct nnet_net *nn);
void nnet_dispatch_leave(struct nnet_net *nn);
void nnet_dispatch_exit(void);

#endif /* _NNET_DISPATCH_H */
