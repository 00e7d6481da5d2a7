// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Names of sockets: bind, connect, getname, and the rules of binding.
 */
#include <linux/net.h>

#include "nnet.h"

/* The name that an address gives. Context: lock_sock held. */
static int nnet_address_name(struct nnet_sock *ns,
			     const struct nnet_sockaddr *addr, int len,
			     const struct sockaddr_nnet **out,
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
	copy = n ? NULL : kmemdup(name, len, GFP_KERNEL_ACCOUNT);
	if (!n && !copy)
		return -ENOMEM;
	err = nnet_bpt_add(nn, name, len, ns->face_id,
			   nnet_admin(nn) ? NULL : ns->user, &ns->bindings);
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

int nnet_bind(struct socket *sock, struct nnet_sockaddr *addr, int len)
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

int nnet_connect(struct socket *sock, struct nnet_sockaddr *addr, int len,
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

int nnet_getname(struct socket *sock, struct sockaddr *addr, int peer)
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
