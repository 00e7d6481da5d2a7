// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * What programs send: whole packets (RAW), messages (DGRAM), segments of an
 * object (SEQPACKET).
 */
#include <linux/net.h>

#include "nnet.h"

/* One whole packet as the program made it. */
static struct sk_buff *nnet_raw_packet(struct nnet_sock *ns, struct msghdr *msg,
				       size_t len, bool nonblock)
{
	size_t max = NNET_PACKET_MAX + (ns->lp ? NNET_LINK_HEADROOM : 0);
	struct sk_buff *skb;
	const u8 *p;
	u32 type, n;
	int err;

	if (!len)
		return ERR_PTR(-EINVAL);
	if (len > max)
		return ERR_PTR(-EMSGSIZE);
	skb = sock_alloc_send_skb(&ns->sk, NNET_LINK_HEADROOM + len, nonblock,
				  &err);
	if (!skb)
		return ERR_PTR(err);
	skb_reserve(skb, NNET_LINK_HEADROOM);
	if (memcpy_from_msg(skb_put(skb, len), msg, len)) {
		kfree_skb(skb);
		return ERR_PTR(-EFAULT);
	}
	p = skb->data;
	if (nnet_tl_get(&p, p + len, &type, &n) || p - skb->data + n != len ||
	    (!ns->lp && type != NNET_T_INTEREST && type != NNET_T_DATA)) {
		kfree_skb(skb);
		return ERR_PTR(-EINVAL);
	}
	skb_orphan(skb);
	memset(NNET_CB(skb), 0, sizeof(struct nnet_cb));
	__skb_header_release(skb);
	return skb;
}

/* A frame with link header from a RAW socket that asked for them. */
static void nnet_raw_link(struct nnet_sock *ns, struct sk_buff *skb)
{
	atomic64_inc(&ns->out_interests);
	local_bh_disable();
	rcu_read_lock();
	nnet_link_receive(ns->face, skb, NULL);
	rcu_read_unlock();
	local_bh_enable();
}

static int nnet_send_raw(struct nnet_sock *ns, struct msghdr *msg, size_t len,
			 const struct nnet_message *m)
{
	struct sk_buff *skb = nnet_raw_packet(ns, msg, len,
					      msg->msg_flags & MSG_DONTWAIT);
	int err;

	if (IS_ERR(skb))
		return PTR_ERR(skb);
	if (ns->lp) {
		nnet_raw_link(ns, skb);
		return len;
	}
	if (m->has_publish) {
		err = nnet_publish_add(ns, skb, m->publish);
		if (err) {
			kfree_skb(skb);
			return err;
		}
	}
	/* What nobody asked for is dropped there, and published all the same. */
	nnet_sock_submit(ns, skb);
	return len;
}

static int nnet_send_dgram(struct nnet_sock *ns, struct msghdr *msg, size_t len,
			   struct nnet_message *m)
{
	DECLARE_SOCKADDR(struct sockaddr_nnet *, a, msg->msg_name);
	struct sk_buff *skb;
	u16 n;
	int err;

	if (!m->name && a) {
		if (msg->msg_namelen <
			    (int)offsetof(struct sockaddr_nnet, snn_name) ||
		    a->snn_family != nnet_family ||
		    a->snn_name_len > NNET_ADDR_NAME_MAX ||
		    offsetof(struct sockaddr_nnet, snn_name) + a->snn_name_len >
			    msg->msg_namelen ||
		    nnet_name_check(a->snn_name, a->snn_name_len, &n))
			return -EINVAL;
		m->name = a->snn_name;
		m->name_len = a->snn_name_len;
	}
	if (!m->lifetime)
		m->lifetime = READ_ONCE(ns->lifetime);
	skb = nnet_message_build(m, msg, len);
	if (IS_ERR(skb))
		return PTR_ERR(skb);
	if (m->has_publish && skb->data[0] == NNET_T_DATA) {
		err = nnet_publish_add(ns, skb, m->publish);
		if (err) {
			kfree_skb(skb);
			return err;
		}
	}
	nnet_sock_submit(ns, skb);
	return len;
}

/* Waits until there is room to publish. */
static int nnet_wait_room(struct nnet_sock *ns, u32 truesize, bool nonblock)
{
	long left = sock_sndtimeo(&ns->sk, nonblock);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	add_wait_queue(sk_sleep(&ns->sk), &wait);
	while (!nnet_publish_room(ns, truesize)) {
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
	remove_wait_queue(sk_sleep(&ns->sk), &wait);
	return err;
}

/* The next segment of the socket's object. Context: lock_sock held. */
static struct sk_buff *nnet_segment_build(struct nnet_sock *ns,
					  struct msghdr *msg, size_t len,
					  const struct nnet_message *said)
{
	u16 prefix = ns->prefix_len;
	struct nnet_message m = *said;
	struct sk_buff *skb;
	u8 *name, *p;

	name = kmalloc(prefix + 16, GFP_KERNEL_ACCOUNT);
	if (!name)
		return ERR_PTR(-ENOMEM);
	memcpy(name, ns->prefix, prefix);
	p = nnet_nni_put(name + prefix, NNET_T_SEGMENT, ns->next_segment);
	m.type = NNET_DATA;
	m.has_type = true;
	m.name = name;
	m.name_len = p - name;
	if (msg->msg_flags & MSG_EOR) {
		m.final = name + prefix;
		m.final_len = p - name - prefix;
	}
	skb = nnet_message_build(&m, msg, len);
	kfree(name);
	return skb;
}

/*
 * Publishes the next segment. Return: 0, or a negative errno; with -ENOBUFS
 * *truesize is what it needs.
 */
static int nnet_segment_publish(struct nnet_sock *ns, struct msghdr *msg,
				size_t len, const struct nnet_message *m,
				u32 *truesize)
{
	struct sk_buff *skb;
	int err;

	lock_sock(&ns->sk);
	skb = nnet_segment_build(ns, msg, len, m);
	if (IS_ERR(skb)) {
		release_sock(&ns->sk);
		return PTR_ERR(skb);
	}
	*truesize = skb->truesize;
	err = nnet_publish_add(ns, skb, m->publish);
	if (!err) {
		ns->next_segment++;
		/* Those who wait for it already get it now. */
		skb_get(skb);
		if (nnet_sock_submit(ns, skb))
			nnet_publish_served(ns, skb);
	}
	kfree_skb(skb);
	release_sock(&ns->sk);
	return err;
}

/* A segment of the object that the socket is bound to; waits for room. */
static int nnet_send_segment(struct nnet_sock *ns, struct msghdr *msg,
			     size_t len, const struct nnet_message *m)
{
	struct iov_iter content = msg->msg_iter;
	u32 truesize;
	int err;

	if (!ns->prefix)
		return -ENOTCONN;
	if (m->name || m->has_type)
		return -EINVAL;
	for (;;) {
		err = nnet_segment_publish(ns, msg, len, m, &truesize);
		if (err != -ENOBUFS)
			return err ?: len;
		err = nnet_wait_room(ns, truesize,
				     msg->msg_flags & MSG_DONTWAIT);
		if (err)
			return err;
		msg->msg_iter = content;
	}
}

int nnet_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	struct nnet_message m;
	int err;

	if (msg->msg_flags & MSG_OOB)
		return -EOPNOTSUPP;
	err = nnet_message_read(msg, &m) ?: nnet_sock_attach(ns);
	if (err)
		return err;
	if (sock->type == SOCK_RAW)
		return nnet_send_raw(ns, msg, len, &m);
	if (sock->type == SOCK_DGRAM)
		return nnet_send_dgram(ns, msg, len, &m);
	return nnet_send_segment(ns, msg, len, &m);
}
