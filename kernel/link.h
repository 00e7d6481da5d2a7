/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/* link.c: NDNLPv2 on a face. */
#ifndef _NNET_LINK_H
#define _NNET_LINK_H

#include "face.h"

void nnet_link_receive(struct nnet_face *face, struct sk_buff *skb,
		       const u8 *source);
void nnet_link_header(struct sk_buff *skb, const struct nnet_cb *cb);
typedef int (*nnet_frame_fn)(void *ctx, struct sk_buff *skb);
void nnet_link_send(struct nnet_face *face, struct sk_buff *skb,
		    unsigned int mtu, unsigned int headroom, nnet_frame_fn out,
		    void *ctx);
void nnet_link_flush(struct nnet_face *face);

#endif /* _NNET_LINK_H */
