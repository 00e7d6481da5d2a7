// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * SEQPACKET, the consumer: a window of Interests for the segments of one
 * object, retransmission, order by name, end of the object.
 *
 * Everything is under q->lock, which the data path takes with bottom halves
 * off. Interests are sent by a work item, never from the data path: an answer
 * from the cache would otherwise come back into the sender. Timers and work
 * stop when the socket closes (q->closed), and the memory goes with the
 * socket's, after all readers of its port.
 *
 * The laws: slow start and AIMD from a window of 2; RFC 6298 with Karn's rule;
 * a segment that three later ones overtook, or whose time is over, is asked
 * for again with a new nonce, eight times; one cut for each round trip.
 */
#include <linux/ktime.h>
#include <linux/random.h>

#include "sequence.h"

u32 nnet_q_window(const struct nnet_sequence *q)
{
	u32 space = READ_ONCE(q->ns->sk.sk_rcvbuf) / NNET_Q_SPACE;
	u32 w = q->fixed ?: q->cwnd / NNET_Q_UNIT;

	return clamp_t(u32, w, 1, clamp_t(u32, space, 1, NNET_Q_MAX));
}

static unsigned int nnet_q_name(const struct nnet_sequence *q, u64 segment,
				u8 *buf)
{
	char text[24];
	int n;

	memcpy(buf, q->name, q->name_len);
	if (!q->decimal)
		return nnet_nni_put(buf + q->name_len, NNET_T_SEGMENT,
				    segment) - buf;
	n = scnprintf(text, sizeof(text), "%llu", segment);
	buf[q->name_len] = NNET_T_COMPONENT;
	buf[q->name_len + 1] = n;
	memcpy(buf + q->name_len + 2, text, n);
	return q->name_len + 2 + n;
}

/* The number that a component means, typed or decimal. */
static bool nnet_q_number(const u8 *p, unsigned int len, u64 *segment)
{
	const u8 *end = p + len;
	u32 type, n;
	u64 v = 0;

	if (nnet_tl_get(&p, end, &type, &n) || p + n != end)
		return false;
	if (type == NNET_T_SEGMENT)
		return !nnet_nni_get(p, n, segment);
	if (type != NNET_T_COMPONENT || !n || n > 18)
		return false;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9')
			return false;
		v = v * 10 + *p - '0';
	}
	*segment = v;
	return true;
}

/* The next segment to ask for; takes it. Context: q->lock held. */
static bool nnet_q_take(struct nnet_sequence *q, u64 *segment)
{
	u32 window = nnet_q_window(q);
	struct nnet_q_slot *s;
	u64 n;

	if (q->closed || q->err || q->flying >= window)
		return false;
	for (n = q->base; q->lost && n < q->next; n++) {
		s = nnet_q(q, n);
		if (s->state != NNET_Q_LOST)
			continue;
		if (n > q->final) {
			s->state = NNET_Q_IDLE;
			q->lost--;
			continue;
		}
		q->lost--;
		q->retransmitted++;
		goto take;
	}
	n = q->next;
	if (n > q->final || n >= q->base + min_t(u32, NNET_Q_MAX,
			READ_ONCE(q->ns->sk.sk_rcvbuf) / NNET_Q_SPACE ?: 1))
		return false;
	q->next++;
	s = nnet_q(q, n);
	s->tries = 0;
take:
	s->state = NNET_Q_FLYING;
	s->passed = 0;
	s->tries++;
	s->sent = ktime_get();
	q->flying++;
	*segment = n;
	return true;
}

static void nnet_q_arm(struct nnet_sequence *q)
{
	if (!q->closed && !timer_pending(&q->timer))
		mod_timer(&q->timer, jiffies + usecs_to_jiffies(q->rto / 4) +
					     1);
}

void nnet_q_work(struct work_struct *work)
{
	struct nnet_sequence *q =
		container_of(work, struct nnet_sequence, work);
	struct nnet_sock *ns = q->ns;
	struct sk_buff *skb;
	u64 segment;
	bool more;

	for (;;) {
		spin_lock_bh(&q->lock);
		more = nnet_q_take(q, &segment);
		if (q->flying)
			nnet_q_arm(q);
		spin_unlock_bh(&q->lock);
		if (!more)
			break;
		skb = nnet_interest_make(q->asked,
					 nnet_q_name(q, segment, q->asked), 0,
					 READ_ONCE(ns->lifetime),
					 get_random_u32(), GFP_KERNEL);
		/* Without memory its time runs out and it is asked again. */
		if (!IS_ERR(skb))
			nnet_sock_submit(ns, skb);
		cond_resched();
	}
}

void nnet_q_kick(struct nnet_sequence *q)
{
	if (!q->closed)
		queue_work(nnet_wq, &q->work);
}

static void nnet_q_fail(struct nnet_sequence *q, int err)
{
	struct sock *sk = &q->ns->sk;

	q->err = err;
	sk->sk_err = -err;
	sk_error_report(sk);
}

/* Halves the window, once for each round trip. Context: q->lock held. */
static void nnet_q_cut(struct nnet_sequence *q, u64 segment, bool timeout)
{
	if (segment < q->recover)
		return;
	q->recover = q->next;
	q->ssthresh = max_t(u32, q->cwnd / 2, 2 * NNET_Q_UNIT);
	q->cwnd = timeout ? NNET_Q_UNIT : q->ssthresh;
}

/* A segment did not come. Context: q->lock held. */
static void nnet_q_lose(struct nnet_sequence *q, u64 segment, bool timeout)
{
	struct nnet_q_slot *s = nnet_q(q, segment);

	s->state = NNET_Q_LOST;
	q->flying--;
	q->lost++;
	/* Beyond the end there is nothing, and nobody is to blame. */
	if (segment > q->final)
		return;
	if (s->tries >= NNET_Q_TRIES)
		nnet_q_fail(q, -ETIMEDOUT);
	else
		nnet_q_cut(q, segment, timeout);
}

void nnet_q_timeout(struct timer_list *t)
{
	struct nnet_sequence *q = from_timer(q, t, timer);
	ktime_t limit = ktime_sub_us(ktime_get(), q->rto);
	bool any = false;
	u64 n;

	spin_lock(&q->lock);
	for (n = q->base; n < q->next && !q->closed && !q->err; n++) {
		struct nnet_q_slot *s = nnet_q(q, n);

		if (s->state == NNET_Q_FLYING && ktime_before(s->sent, limit)) {
			nnet_q_lose(q, n, true);
			any = true;
		}
	}
	if (any)
		q->rto = min_t(u32, q->rto * 2, NNET_Q_RTO_MAX_US);
	if (q->flying && !q->err)
		nnet_q_arm(q);
	if (any)
		nnet_q_kick(q);
	spin_unlock(&q->lock);
}

/* RFC 6298 for a segment that was asked for once. */
static void nnet_q_sample(struct nnet_sequence *q, const struct nnet_q_slot *s)
{
	u32 rtt = clamp_t(s64, ktime_us_delta(ktime_get(), s->sent), 1,
			  NNET_Q_RTO_MAX_US);
	u32 delta;

	if (s->tries != 1)
		return;
	if (!q->srtt) {
		q->srtt = rtt;
		q->rttvar = rtt / 2;
	} else {
		delta = rtt > q->srtt ? rtt - q->srtt : q->srtt - rtt;
		q->rttvar += (s32)(delta - q->rttvar) / 4;
		q->srtt += (s32)(rtt - q->srtt) / 8;
	}
	q->rto = clamp_t(u32, q->srtt + 4 * q->rttvar, NNET_Q_RTO_MIN_US,
			 NNET_Q_RTO_MAX_US);
}

static void nnet_q_grow(struct nnet_sequence *q)
{
	if (q->cwnd < q->ssthresh)
		q->cwnd += NNET_Q_UNIT;
	else
		q->cwnd += max_t(u32, NNET_Q_UNIT * NNET_Q_UNIT / q->cwnd, 1);
	q->cwnd = min_t(u32, q->cwnd, NNET_Q_MAX * NNET_Q_UNIT);
}

/*
 * Earlier segments in flight were overtaken. Only the first asking is judged
 * so, and not before the strategy would let a retransmission pass; later ones
 * have their time.
 */
static void nnet_q_overtake(struct nnet_sequence *q, u64 segment)
{
	ktime_t early = ktime_sub_us(ktime_get(), NNET_Q_FAST_US);
	u64 n;

	for (n = q->base; n < segment; n++) {
		struct nnet_q_slot *s = nnet_q(q, n);

		if (s->state == NNET_Q_FLYING && s->tries == 1 &&
		    ktime_before(s->sent, nnet_q(q, segment)->sent) &&
		    s->passed < NNET_Q_PASSED)
			s->passed++;
		if (s->state == NNET_Q_FLYING && s->passed >= NNET_Q_PASSED &&
		    ktime_before(s->sent, early))
			nnet_q_lose(q, n, false);
	}
}

/* Context: q->lock held. Return: whether the packet was taken. */
static bool nnet_q_data(struct nnet_sequence *q, struct sk_buff *skb,
			const struct nnet_view *v, u64 segment)
{
	struct nnet_q_slot *s = nnet_q(q, segment);
	u64 final;

	if (segment < q->base || segment >= q->next ||
	    s->state == NNET_Q_HERE || s->state == NNET_Q_IDLE)
		return false;
	if (s->state == NNET_Q_FLYING)
		q->flying--;
	else
		q->lost--;
	nnet_q_sample(q, s);
	s->state = NNET_Q_HERE;
	s->skb = skb;
	if (NNET_CB(skb)->mark)
		nnet_q_cut(q, segment, false);
	else
		nnet_q_grow(q);
	if (v->final_len && nnet_q_number(v->final, v->final_len, &final))
		q->final = final;
	nnet_q_overtake(q, segment);
	return true;
}

static void nnet_q_nack(struct nnet_sequence *q, u8 reason, u64 segment)
{
	struct nnet_q_slot *s = nnet_q(q, segment);

	if (segment < q->base || segment >= q->next ||
	    s->state != NNET_Q_FLYING)
		return;
	/* Its time runs out as if it were lost; a loop needs another nonce. */
	if (reason == 50)
		nnet_q_cut(q, segment, false);
	if (reason == 150 && s->tries >= 3 && segment <= q->final)
		nnet_q_fail(q, -EHOSTUNREACH);
}

/**
 * nnet_sequence_receive() - a Data or Nack for a socket
 * @ns: the socket
 * @skb: the packet; taken when it is for the sequence
 *
 * Return: whether it was.
 */
bool nnet_sequence_receive(struct nnet_sock *ns, struct sk_buff *skb)
{
	struct nnet_sequence *q = smp_load_acquire(&ns->seq);
	bool data = skb->data[0] == NNET_T_DATA, kept = false, ready;
	struct nnet_view v;
	u64 segment;

	if (!q)
		return false;
	if ((data ? nnet_data_parse(skb->data, skb->len, &v) :
		    nnet_interest_parse(skb->data, skb->len, &v)) ||
	    v.name_len <= q->name_len ||
	    memcmp(v.name, q->name, q->name_len) ||
	    !nnet_q_number(v.name + q->name_len, v.name_len - q->name_len,
			   &segment)) {
		kfree_skb(skb);
		return true;
	}
	spin_lock(&q->lock);
	if (!q->closed && data)
		kept = nnet_q_data(q, skb, &v, segment);
	else if (!q->closed)
		nnet_q_nack(q, NNET_CB(skb)->reason, segment);
	ready = nnet_q(q, q->base)->state == NNET_Q_HERE;
	if (!q->closed)
		nnet_q_kick(q);
	spin_unlock(&q->lock);
	if (ready)
		ns->sk.sk_data_ready(&ns->sk);
	if (!kept)
		kfree_skb(skb);
	return true;
}
