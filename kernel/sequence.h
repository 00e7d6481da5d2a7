/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * A SEQPACKET consumer: sequence.c has the window, consume.c the calls.
 * Everything is under q->lock, which the data path takes with bottom halves
 * off.
 */
#ifndef _NNET_SEQUENCE_H
#define _NNET_SEQUENCE_H

#include "nnet.h"

enum {
	NNET_Q_MAX		= 1024,	/* segments in the ring, largest window */
	NNET_Q_TRIES		= 8,
	NNET_Q_PASSED		= 3,
	NNET_Q_FAST_US		= 15000,
	NNET_Q_RTO_MIN_US	= 200000,
	NNET_Q_RTO_MAX_US	= 4000000,
	NNET_Q_UNIT		= 256,	/* fractions of a segment in cwnd */
	NNET_Q_NUMBER_MAX	= 32,	/* octets of a segment's component */
	NNET_Q_SPACE		= 2048,	/* receive buffer that a segment takes */
};

enum nnet_q_state {
	NNET_Q_IDLE,
	NNET_Q_FLYING,
	NNET_Q_LOST,
	NNET_Q_HERE,
};

struct nnet_q_slot {
	u8 state;
	u8 tries;
	u8 passed;
	struct sk_buff *skb;
	ktime_t sent;
};

struct nnet_sequence {
	struct nnet_sock *ns;
	spinlock_t lock;
	bool closed;
	bool decimal;
	int err;
	u8 *name;
	u8 *asked;		/* behind @name: the one that the work asks for */
	u16 name_len;
	u64 base;		/* the next for the program */
	u64 next;		/* the first never asked for */
	u64 final;		/* ~0: not known */
	u64 recover;		/* no second cut below this segment */
	u32 flying;
	u32 lost;
	u32 cwnd;		/* in units */
	u32 ssthresh;
	u32 fixed;
	u32 srtt;		/* microseconds */
	u32 rttvar;
	u32 rto;
	u64 retransmitted;
	struct timer_list timer;
	struct work_struct work;
	struct nnet_q_slot slot[NNET_Q_MAX];
};

static inline struct nnet_q_slot *nnet_q(struct nnet_sequence *q, u64 segment)
{
	return &q->slot[segment % NNET_Q_MAX];
}

u32 nnet_q_window(const struct nnet_sequence *q);
void nnet_q_kick(struct nnet_sequence *q);
void nnet_q_work(struct work_struct *work);
void nnet_q_timeout(struct timer_list *t);

#endif /* _NNET_SEQUENCE_H */
