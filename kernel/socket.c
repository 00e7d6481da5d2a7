// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The socket family. A socket's face comes with its first send or bind and
 * goes with the socket; the face's port points to the socket, whose memory
 * outlives every reader of the port (SOCK_RCU_FREE).
 *
 * ns->face, ns->face_id, ns->bindings and ns->prefix change under nn->control;
 * options under the lock of the socket, read with READ_ONCE.
 */
#include <linux/module.h>
#include <linux/net.h>
#include <linux/poll.h>

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
static int nnet_sock_attach_locked(struct nnet_sock *ns)
{
	struct nnet_sock_port *port;
	struct nnet_face *face;
	int err;

	if (ns->face)
		return 0;
	port = kzalloc(sizeof(*port), GFP_KERNEL);
	face = port ? nnet_face_new(ns->nn, NNET_KIND_SOCKET, GFP_KERNEL) :
		      NULL;
	if (!face) {
		kfree(port);
		return -ENOMEM;
	}
	port->port.send = nnet_sock_send;
	port->port.free = nnet_sock_port_free;
	port->ns = ns;
	face->local = true;
	face->lp = ns->lp;
	face->local_fields = ns->lp;
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
	nnet_publish_exit(&ns->pub);
	nnet_sequence_free(ns);
	kfree(ns->option_name);
	kfree(ns->prefix);
}

static int nnet_release(struct socket *sock)
{
	struct sock *sk = sock->sk;
	struct nnet_sock *ns;
	struct nnet_net *nn;

	if (!sk)
		return 0;
	ns = nnet_sk(sk);
	nn = ns->nn;
	nnet_sequence_close(ns);
	mutex_lock(&nn->control);
	nnet_bpt_del_all(nn, &ns->bindings);
	if (ns->face) {
		nnet_fib_forget_face(nn, ns->face_id);
		nnet_face_release(ns->face);
	}
	mutex_unlock(&nn->control);
	if (!hlist_unhashed(&ns->tap)) {
		spin_lock_bh(&nn->face_lock);
		hlist_del_rcu(&ns->tap);
		spin_unlock_bh(&nn->face_lock);
	}
	sock_orphan(sk);
	sock->sk = NULL;
	skb_queue_purge(&sk->sk_receive_queue);
	sock_put(sk);
	return 0;
}

/* The name that an address gives. Context: lock_sock held. */
static int nnet_address_name(struct nnet_sock *ns, const struct sockaddr *addr,
			     int len, const struct sockaddr_nnet **out,
			     const u8 **name, u16 *name_len)
{
	const struct sockaddr_nnet *a = (const struct sockaddr_nnet *)addr;
	u16 n;

	if (len < (int)offsetof(struct sockaddr_nnet, snn_name) ||
	    a->snn_family != nnet_family)
		return len < 2 || a->snn_family == nnet_family ?
			       -EINVAL : -EAFNOSUPPORT;
	if (a->snn_version || a->snn_pad[0] || a->snn_pad[1])
		return -EINVAL;
	*out = a;
	if (a->snn_flags & NNET_ADDR_EXTERNAL) {
		if (!ns->option_name || a->snn_name_len)
			return -EINVAL;
		*name = ns->option_name;
		*name_len = ns->option_name_len;
	} else {
		if (a->snn_name_len > NNET_ADDR_NAME_MAX ||
		    offsetof(struct sockaddr_nnet, snn_name) +
				    a->snn_name_len > len)
			return -EINVAL;
		*name = a->snn_name;
		*name_len = a->snn_name_len;
	}
	return nnet_name_check(*name, *name_len, &n) ?: n ? 0 : -EINVAL;
}

/* Whether a route leads Interests for a prefix to the applications. */
static bool nnet_has_route(struct nnet_net *nn, const u8 *name, u16 len)
{
	struct nnet_hops *hops;
	struct nnet_key key;
	bool found = false;
	u32 n;

	nnet_key_make(&nnet_secret, name, len, &key);
	rcu_read_lock();
	hops = nnet_fib_lookup(nn, name, &key);
	for (n = 0; hops && n < hops->n; n++)
		found |= hops->hop[n].face == NNET_FACE_LOCAL;
	rcu_read_unlock();
	return found;
}

static bool nnet_reserved(const u8 *name, u16 len)
{
	static const u8 local[] = "\x08\x09localhost", hop[] = "\x08\x08localhop";

	return (len >= 11 && !memcmp(name, local, 11)) ||
	       (len >= 10 && !memcmp(name, hop, 10));
}

/* Context: nn->control and lock_sock held. */
static int nnet_bind_name(struct nnet_sock *ns, const u8 *name, u16 len,
			  bool strict)
{
	struct nnet_net *nn = ns->nn;
	struct nnet_binding *b;
	bool route = nnet_has_route(nn, name, len);
	unsigned int n = 0;
	u8 *copy;
	int err;

	list_for_each_entry(b, &ns->bindings, of_sock)
		n++;
	if (n && !ns->multibind)
		return -EISCONN;
	if (n >= NNET_BINDINGS_SOCK_MAX)
		return -ENOBUFS;
	if (nnet_reserved(name, len) &&
	    !ns_capable(nn->net->user_ns, CAP_NET_ADMIN))
		return -EACCES;
	if (!route && (strict || ns->strict))
		return -EADDRNOTAVAIL;
	err = nnet_sock_attach_locked(ns);
	if (err)
		return err;
	copy = n ? NULL : kmemdup(name, len, GFP_KERNEL);
	if (!n && !copy)
		return -ENOMEM;
	err = nnet_bpt_add(nn, name, len, ns->face_id, &ns->bindings);
	if (err) {
		kfree(copy);
		return err;
	}
	if (!n) {
		kfree(ns->prefix);
		ns->prefix = copy;
		ns->prefix_len = len;
		ns->next_segment = 0;
	}
	ns->bind_flags = route ? 0 : NNET_BIND_NOROUTE;
	return 0;
}

static int nnet_bind(struct socket *sock, struct sockaddr *addr, int len)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	const struct sockaddr_nnet *a;
	const u8 *name;
	u16 name_len;
	int err;

	mutex_lock(&ns->nn->control);
	lock_sock(sock->sk);
	err = nnet_address_name(ns, addr, len, &a, &name, &name_len);
	if (!err)
		err = nnet_bind_name(ns, name, name_len,
				     a->snn_flags & NNET_ADDR_STRICT);
	release_sock(sock->sk);
	mutex_unlock(&ns->nn->control);
	return err;
}

static int nnet_connect(struct socket *sock, struct sockaddr *addr, int len,
			int flags)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	const struct sockaddr_nnet *a;
	const u8 *name;
	u16 name_len;
	int err;

	if (sock->type != SOCK_SEQPACKET)
		return -EOPNOTSUPP;
	err = nnet_sock_attach(ns);
	if (err)
		return err;
	lock_sock(sock->sk);
	err = nnet_address_name(ns, addr, len, &a, &name, &name_len);
	if (!err)
		err = nnet_sequence_connect(ns, name, name_len,
					    a->snn_flags & NNET_ADDR_DECIMAL);
	if (!err)
		sock->state = SS_CONNECTED;
	release_sock(sock->sk);
	return err;
}

static int nnet_getname(struct socket *sock, struct sockaddr *addr, int peer)
{
	struct sockaddr_nnet *a = (struct sockaddr_nnet *)addr;
	struct nnet_sock *ns = nnet_sk(sock->sk);

	if (peer)
		return -EOPNOTSUPP;
	memset(a, 0, sizeof(*a));
	a->snn_family = nnet_family;
	mutex_lock(&ns->nn->control);
	a->snn_face = ns->face_id;
	if (ns->prefix && ns->prefix_len <= NNET_ADDR_NAME_MAX) {
		a->snn_name_len = ns->prefix_len;
		memcpy(a->snn_name, ns->prefix, ns->prefix_len);
	} else if (ns->prefix) {
		a->snn_flags = NNET_ADDR_TRUNC;
	}
	mutex_unlock(&ns->nn->control);
	return sizeof(*a);
}

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
static int nnet_wait_room(struct nnet_sock *ns, size_t len, bool nonblock)
{
	long left = sock_sndtimeo(&ns->sk, nonblock);
	DEFINE_WAIT_FUNC(wait, woken_wake_function);
	int err = 0;

	add_wait_queue(sk_sleep(&ns->sk), &wait);
	while (!nnet_publish_room(ns, len + 512)) {
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

/* A segment of the object that the socket is bound to. */
static int nnet_send_segment(struct nnet_sock *ns, struct msghdr *msg,
			     size_t len, struct nnet_message *m)
{
	u8 *name, *p;
	struct sk_buff *skb;
	u16 prefix;
	int err;

	if (!ns->prefix)
		return -ENOTCONN;
	if (m->name || m->has_type)
		return -EINVAL;
	err = nnet_wait_room(ns, len, msg->msg_flags & MSG_DONTWAIT);
	if (err)
		return err;
	lock_sock(&ns->sk);
	prefix = ns->prefix_len;
	name = kmalloc(prefix + 16, GFP_KERNEL);
	if (!name) {
		err = -ENOMEM;
		goto out;
	}
	memcpy(name, ns->prefix, prefix);
	p = nnet_nni_put(name + prefix, NNET_T_SEGMENT, ns->next_segment);
	m->type = NNET_DATA;
	m->has_type = true;
	m->name = name;
	m->name_len = p - name;
	if (msg->msg_flags & MSG_EOR) {
		m->final = name + prefix;
		m->final_len = p - name - prefix;
	}
	skb = nnet_message_build(m, msg, len);
	kfree(name);
	if (IS_ERR(skb)) {
		err = PTR_ERR(skb);
		goto out;
	}
	err = nnet_publish_add(ns, skb, m->publish);
	if (err) {
		kfree_skb(skb);
		goto out;
	}
	ns->next_segment++;
	/* Those who wait for it already get it now. */
	skb_get(skb);
	if (nnet_sock_submit(ns, skb))
		nnet_publish_served(ns, skb);
	kfree_skb(skb);
out:
	release_sock(&ns->sk);
	return err ?: len;
}

static int nnet_sendmsg(struct socket *sock, struct msghdr *msg, size_t len)
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
	if (!nnet_publish_room(ns, NNET_PACKET_MAX))
		mask &= ~(EPOLLOUT | EPOLLWRNORM | EPOLLWRBAND);
	return mask;
}

/* Copies a name that an option gives. */
static u8 *nnet_option_name(sockptr_t optval, unsigned int len)
{
	u8 *name;
	u16 n;

	if (!len || len > NNET_NAME_MAX)
		return ERR_PTR(-EINVAL);
	name = memdup_sockptr(optval, len);
	if (IS_ERR(name))
		return name;
	if (nnet_name_check(name, len, &n) || !n) {
		kfree(name);
		return ERR_PTR(-EINVAL);
	}
	return name;
}

static int nnet_set_name(struct nnet_sock *ns, int option, u8 *name, u16 len)
{
	int err = 0;

	switch (option) {
	case NNET_NAME:
		lock_sock(&ns->sk);
		kfree(ns->option_name);
		ns->option_name = name;
		ns->option_name_len = len;
		release_sock(&ns->sk);
		return 0;
	case NNET_UNPUBLISH:
		err = nnet_publish_remove(ns, name, len) ? 0 : -ENOENT;
		break;
	default:
		mutex_lock(&ns->nn->control);
		err = nnet_bpt_del(ns->nn, name, len, &ns->bindings);
		mutex_unlock(&ns->nn->control);
	}
	kfree(name);
	return err;
}

static int nnet_set_u32(struct nnet_sock *ns, int option, u32 v)
{
	int err = 0;

	lock_sock(&ns->sk);
	switch (option) {
	case NNET_STRICT_BIND:
		ns->strict = v;
		break;
	case NNET_MULTIBIND:
		ns->multibind = v;
		break;
	case NNET_LP:
		if (ns->sk.sk_type != SOCK_RAW || ns->face)
			err = -EINVAL;
		else
			ns->lp = v;
		break;
	case NNET_LIFETIME:
		if (!v || v > NNET_LIFETIME_MAX)
			err = -EINVAL;
		else
			WRITE_ONCE(ns->lifetime, v);
		break;
	case NNET_WHOLE:
		ns->whole = v;
		break;
	case NNET_STATUS:
		WRITE_ONCE(ns->status, v);
		break;
	case NNET_WINDOW:
		err = nnet_sequence_window(ns, v);
		break;
	default:
		err = -ENOPROTOOPT;
	}
	release_sock(&ns->sk);
	return err;
}

static int nnet_setsockopt(struct socket *sock, int level, int option,
			   sockptr_t optval, unsigned int len)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	u8 *name;
	u32 v;

	if (level != SOL_NNET)
		return -ENOPROTOOPT;
	if (option == NNET_NAME || option == NNET_UNPUBLISH ||
	    option == NNET_UNBIND) {
		name = nnet_option_name(optval, len);
		return IS_ERR(name) ? PTR_ERR(name) :
				      nnet_set_name(ns, option, name, len);
	}
	if (len != sizeof(v))
		return -EINVAL;
	if (copy_from_sockptr(&v, optval, sizeof(v)))
		return -EFAULT;
	return nnet_set_u32(ns, option, v);
}

static void nnet_sock_stats_get(struct nnet_sock *ns, struct nnet_sock_stats *s)
{
	memset(s, 0, sizeof(*s));
	s->in_interests = atomic64_read(&ns->in_interests);
	s->in_data = atomic64_read(&ns->in_data);
	s->in_nacks = atomic64_read(&ns->in_nacks);
	s->out_interests = atomic64_read(&ns->out_interests);
	s->out_data = atomic64_read(&ns->out_data);
	s->dropped = atomic64_read(&ns->dropped);
	spin_lock_bh(&ns->pub.lock);
	s->published = ns->pub.count;
	s->served = ns->pub.served;
	spin_unlock_bh(&ns->pub.lock);
	nnet_sequence_stats(ns, s);
}

static int nnet_getsockopt(struct socket *sock, int level, int option,
			   char __user *optval, int __user *optlen)
{
	struct nnet_sock *ns = nnet_sk(sock->sk);
	union {
		u32 v;
		u64 wide;
		struct nnet_sock_stats stats;
	} out;
	int len, size = sizeof(out.v);

	if (level != SOL_NNET)
		return -ENOPROTOOPT;
	if (get_user(len, optlen))
		return -EFAULT;
	if (len < 0)
		return -EINVAL;
	memset(&out, 0, sizeof(out));
	switch (option) {
	case NNET_FACE:
		out.v = READ_ONCE(ns->face_id);
		break;
	case NNET_STRICT_BIND:
		out.v = ns->strict;
		break;
	case NNET_MULTIBIND:
		out.v = ns->multibind;
		break;
	case NNET_BIND_FLAGS:
		out.v = ns->bind_flags;
		break;
	case NNET_LP:
		out.v = ns->lp;
		break;
	case NNET_LIFETIME:
		out.v = ns->lifetime;
		break;
	case NNET_WHOLE:
		out.v = ns->whole;
		break;
	case NNET_WINDOW:
		nnet_sock_stats_get(ns, &out.stats);
		out.v = out.stats.window;
		break;
	case NNET_FINAL:
		out.wide = nnet_sequence_final(ns);
		size = sizeof(out.wide);
		break;
	case NNET_STATS:
		nnet_sock_stats_get(ns, &out.stats);
		size = sizeof(out.stats);
		break;
	default:
		return -ENOPROTOOPT;
	}
	len = min(len, size);
	if (put_user(len, optlen) || copy_to_user(optval, &out, len))
		return -EFAULT;
	return 0;
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
	.ioctl = sock_no_ioctl,
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
	sk = sk_alloc(net, nnet_family, GFP_KERNEL, &nnet_proto, kern);
	if (!sk)
		return -ENOMEM;
	sock_init_data(sock, sk);
	sock_set_flag(sk, SOCK_RCU_FREE);
	sock->ops = &nnet_ops;
	sk->sk_protocol = protocol;
	sk->sk_destruct = nnet_sock_destruct;
	ns = nnet_sk(sk);
	ns->nn = nn;
	ns->protocol = protocol;
	ns->lifetime = NNET_LIFETIME_DEFAULT;
	INIT_LIST_HEAD(&ns->bindings);
	nnet_publish_init(&ns->pub);
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
