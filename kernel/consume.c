// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * SEQPACKET, the consumer: what its calls do. The window is in sequence.c.
 */
#include <linux/poll.h>

#include "sequence.h"

/**
 * nnet_sequence_connect() - begin to fetch an object
 * @ns: a SEQPACKET socket with a face
 * @name: the object: what comes before the segment number
 * @len: its octets
 * @decimal: segment numbers are decimal text
 *
 * Context: lock_sock held.
 * Return: 0, -EISCONN, -ENOMEM, -ENAMETOOLONG.
 */
int nnet_sequence_connect(struct nnet_sock *ns, const u8 *name, u16 len,
			  bool decimal)
{
	struct nnet_sequence *q;

	if (ns->seq)
		return -EISCONN;
	if (len > NNET_NAME_MAX)
		return -ENAMETOOLONG;
	q = kvzalloc(sizeof(*q), GFP_KERNEL_ACCOUNT);
	if (!q)
		return -ENOMEM;
	q->name = kmalloc(2 * len + NNET_Q_NUMBER_MAX, GFP_KERNEL_ACCOUNT);
	if (!q->name) {
		kvfree(q);
		return -ENOMEM;
	}
	memcpy(q->name, name, len);
	q->asked = q->name + len;
	q->ns = ns;
	q->name_len = len;
	q->decimal = decimal;
	q->final = U64_MAX;
	q->cwnd = 2 * NNET_Q_UNIT;
	q->ssthresh = NNET_Q_MAX * NNET_Q_UNIT;
	q->fixed = ns->window;
	q->rto = 1000000;
	spin_lock_init(&q->lock);
	timer_setup(&q->timer, nnet_q_timeout, 0);
	INIT_WORK(&q->work, nnet_q_work);
	smp_store_release(&ns->seq, q);
	nnet_q_kick(q);
	return 0;
}

/* Stops timers and work; pending Interests run out by themselves. */
void nnet_sequence_close(struct nnet_sock *ns)
{
	struct nnet_sequence *q = ns->seq;

	if (!q)
		return;
	spin_lock_bh(&q->lock);
	q->closed = true;
	spin_unlock_bh(&q->lock);
	cancel_work_sync(&q->work);
	del_timer_sync(&q->timer);
}

/* Nobody can reach the socket any more. */
void nnet_sequence_free(struct nnet_sock *ns)
{
	struct nnet_sequence *q = ns->seq;
	u32 i;

	if (!q)
		return;
	for (i = 0; i < NNET_Q_MAX; i++)
		kfree_skb(q->slot[i].skb);
	kfree(q->name);
	kvfree(q);
}

static bool nnet_q_ready(struct nnet_sequence *q)
{
	bool ready;

	spin_lock_bh(&q->lock);
	ready = nnet_q(q, q->base)->state == NNET_Q_HERE || q->err ||
		q->base > q->final;
	spin_unlock_bh(&q->lock);
	return ready;
}

static int nnet_q_wait(struct nnet_sequence *q, bool nonblock)
{
	struct sock *sk = &q->ns->sk;
	long left = sock_rcvtimeo(sk, nonblock);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	add_wait_queue(sk_sleep(sk), &wait);
	while (!nnet_q_ready(q)) {
		if (!left) {
			err = -EAGAIN;
			break;
		}
		if (signal_pending(current)) {
			err = sock_intr_errno(left);
			break;
		}
		left = wait_woken(&wait, TASK_INTERRUPTIBLE, left);
	}
	remove_wait_queue(sk_sleep(sk), &wait);
	return err;
}

/* The next segment in order, taken out; NULL with *err 0 at the end. */
static struct sk_buff *nnet_q_next(struct nnet_sequence *q, u64 *segment,
				   bool *last, int *err)
{
	struct nnet_q_slot *s;
	struct sk_buff *skb = NULL;

	spin_lock_bh(&q->lock);
	s = nnet_q(q, q->base);
	if (s->state == NNET_Q_HERE) {
		skb = s->skb;
		*segment = q->base;
		*last = q->base == q->final;
		memset(s, 0, sizeof(*s));
		q->base++;
		*err = 0;
	} else if (q->base > q->final) {
		*err = 0;
	} else {
		*err = q->err ?: -EAGAIN;
	}
	nnet_q_kick(q);
	spin_unlock_bh(&q->lock);
	return skb;
}

/**
 * nnet_sequence_recv() - the next segment
 * @ns: the socket
 * @msg: where to
 * @len: room
 * @flags: of recvmsg()
 *
 * Return: octets of the segment; 0 after the last; -ETIMEDOUT, -EHOSTUNREACH
 * when a segment is lost for good; -EAGAIN.
 */
int nnet_sequence_recv(struct nnet_sock *ns, struct msghdr *msg, size_t len,
		       int flags)
{
	struct nnet_sequence *q = ns->seq;
	struct sk_buff *skb;
	bool last = false;
	u64 segment = 0;
	int err;

	if (flags & MSG_PEEK)
		return -EOPNOTSUPP;
	do {
		err = nnet_q_wait(q, flags & MSG_DONTWAIT);
		if (err)
			return err;
		skb = nnet_q_next(q, &segment, &last, &err);
	} while (!skb && err == -EAGAIN);
	if (!skb)
		return err;
	err = nnet_message_tell(ns, msg, skb, len, flags);
	nnet_message_segment(msg, segment);
	if (last)
		msg->msg_flags |= MSG_EOR;
	consume_skb(skb);
	return err;
}

__poll_t nnet_sequence_poll(struct nnet_sock *ns)
{
	struct nnet_sequence *q = ns->seq;
	__poll_t mask = 0;

	if (nnet_q_ready(q))
		mask |= EPOLLIN | EPOLLRDNORM;
	if (q->err)
		mask |= EPOLLERR;
	return mask;
}

void nnet_sequence_stats(struct nnet_sock *ns, struct nnet_sock_stats *s)
{
	struct nnet_sequence *q = smp_load_acquire(&ns->seq);

	s->window = ns->window;
	if (!q)
		return;
	spin_lock_bh(&q->lock);
	s->window = nnet_q_window(q);
	s->in_flight = q->flying;
	s->srtt_us = q->srtt;
	s->rto_us = q->rto;
	s->retransmitted = q->retransmitted;
	spin_unlock_bh(&q->lock);
}

/* Fixes the window, or frees it with 0. Context: lock_sock held. */
int nnet_sequence_window(struct nnet_sock *ns, u32 window)
{
	if (window > NNET_Q_MAX)
		return -EINVAL;
	ns->window = window;
	if (ns->seq)
		WRITE_ONCE(ns->seq->fixed, window);
	return 0;
}

u64 nnet_sequence_final(struct nnet_sock *ns)
{
	struct nnet_sequence *q = smp_load_acquire(&ns->seq);

	return q ? READ_ONCE(q->final) : U64_MAX;
}
