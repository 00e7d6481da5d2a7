/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the files of the path share: forward.c (entrance and exit), interest.c,
 * strategy.c, data.c, nack.c.
 *
 * Context everywhere: bottom halves off, RCU read side.
 */
#ifndef _NNET_FORWARD_H
#define _NNET_FORWARD_H

#include "nnet.h"

/* An Interest on its way in. */
struct nnet_incoming {
	struct nnet_net *nn;
	struct sk_buff *skb;
	struct nnet_view v;
	struct nnet_key key;
	struct nnet_cb cb;
	bool local;		/* of the face it came from */
	bool multi;
	u8 hop;			/* HopLimit as it came */
};

/* Where an Interest goes. */
struct nnet_decision {
	u32 face[NNET_HOPS_MAX];
	u8 n;
	u8 nack;		/* reason of the Nack that it gets instead */
	bool store;		/* the store is asked first */
	enum nnet_counter verdict;
};

/* interest.c */
void nnet_interest(struct nnet_incoming *i);
void nnet_interest_out(const struct nnet_incoming *i,
		       const struct nnet_decision *d);
void nnet_record_of(struct nnet_record *r, const struct nnet_incoming *i);

/* strategy.c */
void nnet_decide(const struct nnet_incoming *i, struct nnet_pending *e,
		 struct nnet_decision *d);
void nnet_decide_by_strategy(const struct nnet_incoming *i,
			     struct nnet_pending *e, struct nnet_decision *d);

/* data.c */
bool nnet_data(struct nnet_net *nn, struct sk_buff *skb, bool local);

/* nack.c */
void nnet_refuse(const struct nnet_incoming *i, u8 reason);
void nnet_nack_in(struct nnet_incoming *i);
void nnet_nack_down(struct nnet_pending *e, u8 reason, u32 only);

#endif /* _NNET_FORWARD_H */
