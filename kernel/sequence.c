// SPDX-License-Identifier: GPL-2.0 OR MIT
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
#include <linux/poll.h>
#include <linux/random.h>

#include "nnet.h"

enum {
	NNET_Q_MAX		= 1024,	/* segments in the ring, largest window */
	NNET_Q_TRIES		= 8,
	NNET_Q_PASSED		= 3,
	NNET_Q_FAST_US		= 15000,
	NNET_Q_RTO_MIN_US	= 200000,
	NNET_Q_RTO_MAX_US	= 4000000,
	NNET_Q_UNIT		= 256,	/* fractions of a segment in cwnd */
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

static struct nnet_q_slot *nnet_q(struct nnet_sequence *q, u64 segment)
{
	return &q->slot[segment % NNET_Q_MAX];
}

static u32 nnet_q_window(const struct nnet_sequence *q)
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

static void nnet_q_work(struct work_struct *work)
{
	struct nnet_sequence *q =
		container_of(work, struct nnet_sequence, work);
	struct nnet_sock *ns = q->ns;
	struct sk_buff *skb;
	u64 segment;
	bool more;
	u8 *name;

	name = kmalloc(q->name_len + 32, GFP_KERNEL);
	if (!name)
		return;
	for (;;) {
		spin_lock_bh(&q->lock);
		more = nnet_q_take(q, &segment);
		if (q->flying)
			nnet_q_arm(q);
		spin_unlock_bh(&q->lock);
		if (!more)
			break;
		skb = nnet_interest_make(name, nnet_q_name(q, segment, name), 0,
					 READ_ONCE(ns->lifetime),
					 get_random_u32(), GFP_KERNEL);
		/* Without memory its time runs out and it is asked again. */
		if (!IS_ERR(skb))
			nnet_sock_submit(ns, skb);
		cond_resched();
	}
	kfree(name);
}

static void nnet_q_kick(struct nnet_sequence *q)
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

static void nnet_q_timeout(struct timer_list *t)
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
	q = kvzalloc(sizeof(*q), GFP_KERNEL);
	if (!q)
		return -ENOMEM;
	q->name = kmemdup(name, len, GFP_KERNEL);
	if (!q->name) {
		kvfree(q);
		return -ENOMEM;
	}
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
