// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The socket family. A socket's face comes with its first send or bind and
 * goes with the socket; the face's port points to the socket, whose memory
 * outlives every reader of the port (SOCK_RCU_FREE).
 *
 * ns->face, ns->face_id, ns->bindings and ns->prefix change under nn->control;
 * options under the lock of the socket, read with READ_ONCE.
 */
#include <asm/ioctls.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/poll.h>
#include <linux/sockios.h>
#include <net/tcp_states.h>

#include "nnet.h"

static struct proto nnet_proto = {
	.name = "NNET",
	.owner = THIS_MODULE,
	.obj_size = sizeof(struct nnet_sock),
};

/* Answers an Interest with what the socket published. */
static bool nnet_sock_answer(struct nnet_sock *ns, struct nnet_face *face,
			     const struct sk_buff *interest)
{
	struct sk_buff *data, *skb;
	struct nnet_view v;

	if (!READ_ONCE(ns->pub.count) ||
	    nnet_interest_parse(interest->data, interest->len, &v))
		return false;
	data = nnet_publish_find(ns, &v);
	if (!data)
		return false;
	skb = skb_clone(data, GFP_ATOMIC);
	kfree_skb(data);
	if (!skb)
		return false;
	memset(NNET_CB(skb), 0, sizeof(struct nnet_cb));
	NNET_CB(skb)->face = face->id;
	nnet_face_received(face, skb);
	nnet_forward(face->nn, skb);
	sk_wake_async(&ns->sk, SOCK_WAKE_SPACE, POLL_OUT);
	ns->sk.sk_write_space(&ns->sk);
	return true;
}

static void nnet_sock_count(struct nnet_sock *ns, const struct sk_buff *skb)
{
	if (NNET_CB(skb)->flags & NNET_CB_NACK)
		atomic64_inc(&ns->in_nacks);
	else if (skb->data[0] == NNET_T_INTEREST)
		atomic64_inc(&ns->in_interests);
	else
		atomic64_inc(&ns->in_data);
}

static bool nnet_sock_wants(const struct nnet_sock *ns,
			    const struct sk_buff *skb)
{
	bool interest = skb->data[0] == NNET_T_INTEREST &&
			!(NNET_CB(skb)->flags & NNET_CB_NACK);

	if (ns->protocol == NNET_PROTO_INTEREST)
		return interest;
	if (ns->protocol == NNET_PROTO_DATA)
		return !interest;
	return true;
}

static void nnet_sock_queue(struct nnet_sock *ns, struct sk_buff *skb)
{
	if (!sock_queue_rcv_skb(&ns->sk, skb))
		return;
	atomic64_inc(&ns->dropped);
	nnet_count(ns->nn, NNET_C_U_QUEUE_FULL);
	kfree_skb(skb);
}

/* The handler of a socket's face. */
static void nnet_sock_send(struct nnet_face *face, struct nnet_port *port,
			   struct sk_buff *skb)
{
	struct nnet_sock *ns =
		container_of(port, struct nnet_sock_port, port)->ns;
	struct nnet_cb cb = *NNET_CB(skb);
	bool interest = skb->data[0] == NNET_T_INTEREST &&
			!(cb.flags & NNET_CB_NACK);

	nnet_sock_count(ns, skb);
	if (interest && nnet_sock_answer(ns, face, skb)) {
		NNET_CB(skb)->flags |= NNET_CB_FROM_CACHE;
		if (READ_ONCE(ns->status))
			nnet_sock_queue(ns, skb);
		else
			consume_skb(skb);
		return;
	}
	if (!interest && nnet_sequence_receive(ns, skb))
		return;
	if (!nnet_sock_wants(ns, skb)) {
		consume_skb(skb);
		return;
	}
	if (face->lp) {
		if (skb_cow_head(skb, NNET_LINK_HEADROOM)) {
			nnet_count(ns->nn, NNET_C_U_NO_MEMORY);
			kfree_skb(skb);
			return;
		}
		nnet_link_header(skb, &cb);
	}
	nnet_sock_queue(ns, skb);
}

static void nnet_sock_port_free(struct nnet_port *port)
{
	kfree(container_of(port, struct nnet_sock_port, port));
}

/* A copy for the sockets that see every packet. */
void nnet_tap(struct nnet_net *nn, struct sk_buff *skb)
{
	struct sk_buff *clone;
	struct nnet_sock *ns;

	hlist_for_each_entry_rcu(ns, &nn->taps, tap) {
		clone = skb_clone(skb, GFP_ATOMIC);
		if (clone) {
			*NNET_CB(clone) = *NNET_CB(skb);
			nnet_sock_queue(ns, clone);
		}
	}
}

/* Gives a socket its face. Context: nn->control held. */
int nnet_sock_attach_locked(struct nnet_sock *ns)
{
	struct nnet_sock_port *port;
	struct nnet_face *face;
	int err;

	if (ns->face)
		return 0;
	port = kzalloc(sizeof(*port), GFP_KERNEL_ACCOUNT);
	face = port ? nnet_face_new(ns->nn, NNET_KIND_SOCKET,
				    GFP_KERNEL_ACCOUNT) : NULL;
	if (!face) {
		kfree(port);
		return -ENOMEM;
	}
	port->port.send = nnet_sock_send;
	port->port.free = nnet_sock_port_free;
	port->ns = ns;
	face->local = true;
	face->lp = ns->lp;
	face->local_fields = ns->lp && ns->local_fields;
	if (!nnet_admin(ns->nn)) {
		nnet_user_get(ns->user);
		face->user = ns->user;
	}
	err = nnet_face_register(face, &port->port, 0);
	if (err) {
		kfree(port);
		return err;
	}
	WRITE_ONCE(ns->face_id, face->id);
	smp_store_release(&ns->face, face);
	return 0;
}

int nnet_sock_attach(struct nnet_sock *ns)
{
	int err;

	if (smp_load_acquire(&ns->face))
		return 0;
	mutex_lock(&ns->nn->control);
	err = nnet_sock_attach_locked(ns);
	mutex_unlock(&ns->nn->control);
	return err;
}

/**
 * nnet_sock_submit() - a packet of a socket enters the network layer
 * @ns: the socket, attached
 * @skb: the packet, its control block filled but for the face; taken
 *
 * Return: whether it was a Data that somebody had asked for.
 */
bool nnet_sock_submit(struct nnet_sock *ns, struct sk_buff *skb)
{
	struct nnet_face *face = ns->face;
	bool asked;

	atomic64_inc(skb->data[0] == NNET_T_DATA ? &ns->out_data :
						   &ns->out_interests);
	NNET_CB(skb)->face = ns->face_id;
	local_bh_disable();
	nnet_face_received(face, skb);
	asked = nnet_forward(ns->nn, skb);
	local_bh_enable();
	return asked;
}

static void nnet_sock_destruct(struct sock *sk)
{
	struct nnet_sock *ns = nnet_sk(sk);

	skb_queue_purge(&sk->sk_receive_queue);
	skb_queue_purge(&sk->sk_error_queue);
	nnet_sequence_free(ns);
	kfree(ns->option_name);
	kfree(ns->prefix);
	nnet_user_put(ns->user);
}

static int nnet_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct nnet_sock *ns;
	struct nnet_net *nn;
	u32 id = 0;

	if (!sk)
		return 0;
	ns = nnet_sk(sk);
	nn = ns->nn;
	nnet_sequence_close(ns);
	mutex_lock(&nn->control);
	nnet_bpt_del_all(nn, &ns->bindings);
	if (ns->face) {
		id = nnet_face_detach(ns->face);
		if (ns->face->routed)
			nnet_fib_sweep(nn);
	}
	mutex_unlock(&nn->control);
	if (id)
		nnet_face_drain(ns->face, id);
	if (!hlist_unhashed(&ns->tap)) {
		spin_lock_bh(&nn->face_lock);
		hlist_del_rcu(&ns->tap);
		spin_unlock_bh(&nn->face_lock);
	}
	/* Here, for there may be many, and what is left is for a softirq. */
	nnet_publish_remove(ns, NULL, 0);
	sk_stop_timer(sk, &ns->pub.timer);
	sock_orphan(sk);
	sock->sk = NULL;
	skb_queue_purge(&sk->sk_receive_queue);
	sock_put(sk);
	return 0;
}

static int nnet_recv_raw(struct nnet_sock *ns, struct msghdr *msg,
			 struct sk_buff *skb, size_t len, int flags)
{
	DECLARE_SOCKADDR(struct sockaddr_nnet *, a, msg->msg_name);
	size_t n = min_t(size_t, len, skb->len);
	int err;

	if (n < skb->len)
		msg->msg_flags |= MSG_TRUNC;
	err = skb_copy_datagram_msg(skb, 0, msg, n);
	if (err)
		return err;
	if (a) {
		memset(a, 0, sizeof(*a));
		a->snn_family = nnet_family;
		a->snn_face = NNET_CB(skb)->face;
		msg->msg_namelen = sizeof(*a);
	}
	if (!ns->lp && (NNET_CB(skb)->flags & NNET_CB_NACK)) {
		u32 type = NNET_NACK, reason = NNET_CB(skb)->reason;

		put_cmsg(msg, SOL_NNET, NNET_CM_TYPE, sizeof(type), &type);
		put_cmsg(msg, SOL_NNET, NNET_CM_REASON, sizeof(reason),
			 &reason);
	}
	if (NNET_CB(skb)->flags & NNET_CB_FROM_CACHE) {
		u32 one = 1;

		put_cmsg(msg, SOL_NNET, NNET_CM_SATISFIED, sizeof(one), &one);
	}
	return flags & MSG_TRUNC ? skb->len : n;
}

static int nnet_recvmsg(struct socket *sock, struct msghdr *msg, size_t len,
			int flags)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	struct sk_buff *skb;
	int err;

	if (flags & MSG_OOB)
		return -EOPNOTSUPP;
	if (sock->type == SOCK_SEQPACKET && READ_ONCE(ns->seq))
		return nnet_sequence_recv(ns, msg, len, flags);
	skb = skb_recv_datagram(sock->sk, flags, &err);
	if (!skb)
		return err;
	if (sock->type == SOCK_RAW)
		err = nnet_recv_raw(ns, msg, skb, len, flags);
	else
		err = nnet_message_tell(ns, msg, skb, len, flags);
	skb_free_datagram(sock->sk, skb);
	return err;
}

static __poll_t nnet_poll(struct file *file, struct socket *sock,
			  poll_table *wait)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	__poll_t mask = datagram_poll(file, sock, wait);

	if (sock->type != SOCK_SEQPACKET)
		return mask;
	if (READ_ONCE(ns->seq))
		return nnet_sequence_poll(ns);
	if (!nnet_publish_writable(ns))
		mask &= ~(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
	return mask;
}

static int nnet_ioctl(struct socket *sock, unsigned int cmd, unsigned long arg)
{
	struct sock *sk = sock->sk;
	struct nnet_sock *ns = nnet_sk(sk);
	struct sk_buff *skb;
	int n = 0;

	switch (cmd) {
	case SIOCINQ:
		spin_lock_bh(&sk->sk_receive_queue.lock);
		skb = skb_peek(&sk->sk_receive_queue);
		if (skb)
			n = skb->len;
		spin_unlock_bh(&sk->sk_receive_queue.lock);
		break;
	case SIOCOUTQ:
		spin_lock_bh(&ns->pub.lock);
		n = min_t(u64, ns->pub.bytes, INT_MAX);
		spin_unlock_bh(&ns->pub.lock);
		break;
	default:
		return -ENOIOCTLCMD;
	}
	return put_user(n, (int __user *)arg);
}

static const struct proto_ops nnet_ops = {
	.owner = THIS_MODULE,
	.release = nnet_release,
	.bind = nnet_bind,
	.connect = nnet_connect,
	.socketpair = sock_no_socketpair,
	.accept = sock_no_accept,
	.getname = nnet_getname,
	.poll = nnet_poll,
	.ioctl = nnet_ioctl,
	.gettstamp = sock_gettstamp,
	.listen = sock_no_listen,
	.shutdown = sock_no_shutdown,
	.setsockopt = nnet_setsockopt,
	.getsockopt = nnet_getsockopt,
	.sendmsg = nnet_sendmsg,
	.recvmsg = nnet_recvmsg,
	.mmap = sock_no_mmap,
};

static int nnet_create(struct net *net, struct socket *sock, int protocol,
		       int kern)
{
	struct nnet_net *nn = nnet_pernet(net);
	struct nnet_user *user;
	struct nnet_sock *ns;
	struct sock *sk;
	int err;

	if (sock->type != SOCK_RAW && sock->type != SOCK_DGRAM &&
	    sock->type != SOCK_SEQPACKET)
		return -ESOCKTNOSUPPORT;
	if (protocol < 0 || protocol > NNET_PROTO_DATA ||
	    (protocol && sock->type != SOCK_RAW))
		return -EPROTONOSUPPORT;
	if (protocol == NNET_PROTO_ALL &&
	    !ns_capable(net->user_ns, CAP_NET_RAW))
		return -EPERM;
	err = nnet_up(nn);
	if (err)
		return err;
	user = nnet_user_current(nn);
	if (!user)
		return -ENOMEM;
	sk = sk_alloc(net, nnet_family, GFP_KERNEL, &nnet_proto, kern);
	if (!sk) {
		nnet_user_put(user);
		return -ENOMEM;
	}
	sock_init_data(sock, sk);
	sock_set_flag(sk, SOCK_RCU_FREE);
	sock->ops = &nnet_ops;
	sk->sk_protocol = protocol;
	/* There is no peer: nobody to hang up, and a provider waits for Interests. */
	sk->sk_state = TCP_ESTABLISHED;
	/* What it sends is kept for others; its memory is its control group's. */
	sk->sk_allocation = GFP_KERNEL_ACCOUNT;
	sk->sk_destruct = nnet_sock_destruct;
	ns = nnet_sk(sk);
	ns->nn = nn;
	ns->user = user;
	ns->protocol = protocol;
	ns->lifetime = NNET_LIFETIME_DEFAULT;
	INIT_LIST_HEAD(&ns->bindings);
	nnet_publish_init(ns);
	if (protocol == NNET_PROTO_ALL) {
		spin_lock_bh(&nn->face_lock);
		hlist_add_head_rcu(&ns->tap, &nn->taps);
		spin_unlock_bh(&nn->face_lock);
	}
	return 0;
}

static struct net_proto_family nnet_sockets = {
	.create = nnet_create,
	.owner = THIS_MODULE,
};

int nnet_socket_init(void)
{
	int err = proto_register(&nnet_proto, 1);

	if (err)
		return err;
	nnet_sockets.family = nnet_family;
	err = sock_register(&nnet_sockets);
	if (err)
		proto_unregister(&nnet_proto);
	return err;
}

void nnet_socket_exit(void)
{
	sock_unregister(nnet_family);
	proto_unregister(&nnet_proto);
}
