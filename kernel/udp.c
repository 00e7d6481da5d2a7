// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lower faces over UDP, IPv4 and IPv6: one pair of sockets per namespace.
 *
 * Faces hang in nn->lower by the peer's address; see ether.c for its rules.
 * The sockets change under nn->control and are read under RCU.
 */
#include <linux/jhash.h>
#include <linux/rtnetlink.h>
#include <linux/udp.h>
#include <net/dst_cache.h>
#include <net/ip.h>
#include <net/ip6_route.h>
#include <net/ipv6.h>
#include <net/udp_tunnel.h>

#include "nnet.h"

#ifdef NNET_HAS_TUNNEL_FLAGS
#define nnet_tunnel_xmit4(...) udp_tunnel_xmit_skb(__VA_ARGS__, 0)
#define nnet_tunnel_xmit6(...) udp_tunnel6_xmit_skb(__VA_ARGS__, 0)
#else
#define nnet_tunnel_xmit4 udp_tunnel_xmit_skb
#define nnet_tunnel_xmit6 udp_tunnel6_xmit_skb
#endif

#ifdef NNET_HAS_TUNNEL_SOCK
#define nnet_tunnel_of(sock) ((sock)->sk)
#else
#define nnet_tunnel_of(sock) (sock)
#endif

#ifdef NNET_HAS_IPV6_STUB
#define nnet_route6 ipv6_stub->ipv6_dst_lookup_flow
#else
#define nnet_route6 ip6_dst_lookup_flow
#endif

/*
 * @headroom is what the route taken last needs in front of a packet: asking for
 * more would copy packets that have room enough, for buffers come from the
 * stack with little more than the headers that they came with.
 */
struct nnet_udp {
	struct nnet_port port;
	struct sockaddr_in6 remote;
	bool v6;
	unsigned int headroom;
	struct dst_cache cache;
};

/* A link-local address means a host only together with a device. */
static bool nnet_udp_scoped(const struct sockaddr_in6 *a)
{
	return ipv6_addr_type(&a->sin6_addr) & IPV6_ADDR_LINKLOCAL;
}

/*
 * Sees that the scope of a peer says what it must. Context: RTNL held.
 * Return: 0, -EDESTADDRREQ without a device, -ENETDOWN when it is not up.
 */
static int nnet_udp_scope(struct nnet_net *nn, struct sockaddr_in6 *remote)
{
	struct net_device *dev;

	if (!nnet_udp_scoped(remote)) {
		remote->sin6_scope_id = 0;
		return 0;
	}
	if (!remote->sin6_scope_id)
		return -EDESTADDRREQ;
	dev = __dev_get_by_index(nn->net, remote->sin6_scope_id);
	return dev && (dev->flags & IFF_UP) ? 0 : -ENETDOWN;
}

static u32 nnet_udp_hash(const struct sockaddr_in6 *a)
{
	return jhash2((__force const u32 *)a->sin6_addr.s6_addr32, 4,
		      (__force u32)a->sin6_port ^ a->sin6_scope_id ^
			      (u32)nnet_secret.key[0]) & 255;
}

static struct nnet_face *nnet_udp_find(struct nnet_net *nn,
				       const struct sockaddr_in6 *a)
{
	struct nnet_face *face;

	hlist_for_each_entry_rcu(face, &nn->lower[nnet_udp_hash(a)], lower,
				 lockdep_is_held(&nn->control))
		if (face->kind == NNET_KIND_UDP &&
		    face->remote.sin6_port == a->sin6_port &&
		    face->remote.sin6_scope_id == a->sin6_scope_id &&
		    ipv6_addr_equal(&face->remote.sin6_addr, &a->sin6_addr))
			return face;
	return NULL;
}

static void nnet_udp_routed(struct nnet_udp *u, const struct dst_entry *dst,
			    unsigned int header)
{
	unsigned int need = LL_RESERVED_SPACE(dst->dev) + dst->header_len +
			    header + sizeof(struct udphdr);

	if (READ_ONCE(u->headroom) != need)
		WRITE_ONCE(u->headroom, need);
}

static int nnet_udp4_frame(struct nnet_udp *u, struct nnet_net *nn,
			   struct sk_buff *skb)
{
	struct socket *sock = READ_ONCE(nn->udp4);
	__be32 to = u->remote.sin6_addr.s6_addr32[3];
	struct flowi4 fl = {
		.daddr = to,
		.flowi4_proto = IPPROTO_UDP,
		.fl4_dport = u->remote.sin6_port,
		.fl4_sport = htons(nn->udp_port),
	};
	struct rtable *rt;

	if (!sock)
		goto drop;
	rt = dst_cache_get_ip4(&u->cache, &fl.saddr);
	if (!rt) {
		rt = ip_route_output_flow(nn->net, &fl, sock->sk);
		if (IS_ERR(rt))
			goto drop;
		dst_cache_set_ip4(&u->cache, &rt->dst, fl.saddr);
	}
	nnet_udp_routed(u, &rt->dst, sizeof(struct iphdr));
	nnet_tunnel_xmit4(rt, sock->sk, skb, fl.saddr, to, 0,
			  ip4_dst_hoplimit(&rt->dst), 0, fl.fl4_sport,
			  fl.fl4_dport, false, false);
	return 0;
drop:
	kfree_skb(skb);
	return -EHOSTUNREACH;
}

#if IS_ENABLED(CONFIG_IPV6)
static int nnet_udp6_frame(struct nnet_udp *u, struct nnet_net *nn,
			   struct sk_buff *skb)
{
	struct socket *sock = READ_ONCE(nn->udp6);
	struct flowi6 fl = {
		.daddr = u->remote.sin6_addr,
		.flowi6_proto = IPPROTO_UDP,
		.flowi6_oif = u->remote.sin6_scope_id,
		.fl6_dport = u->remote.sin6_port,
		.fl6_sport = htons(nn->udp_port),
	};
	struct dst_entry *dst;

	if (!sock)
		goto drop;
	dst = dst_cache_get_ip6(&u->cache, &fl.saddr);
	if (!dst) {
		dst = nnet_route6(nn->net, sock->sk, &fl, NULL);
		if (IS_ERR(dst))
			goto drop;
		dst_cache_set_ip6(&u->cache, dst, &fl.saddr);
	}
	nnet_udp_routed(u, dst, sizeof(struct ipv6hdr));
	nnet_tunnel_xmit6(dst, sock->sk, skb, skb->dev, &fl.saddr, &fl.daddr,
			  0, ip6_dst_hoplimit(dst), 0, fl.fl6_sport,
			  fl.fl6_dport, false);
	return 0;
drop:
	kfree_skb(skb);
	return -EHOSTUNREACH;
}
#else
static int nnet_udp6_frame(struct nnet_udp *u, struct nnet_net *nn,
			   struct sk_buff *skb)
{
	kfree_skb(skb);
	return -EAFNOSUPPORT;
}
#endif

struct nnet_udp_out {
	struct nnet_udp *u;
	struct nnet_net *nn;
};

static int nnet_udp_frame(void *ctx, struct sk_buff *skb)
{
	struct nnet_udp_out *out = ctx;

	return out->u->v6 ? nnet_udp6_frame(out->u, out->nn, skb) :
			    nnet_udp4_frame(out->u, out->nn, skb);
}

static void nnet_udp_send(struct nnet_face *face, struct nnet_port *port,
			  struct sk_buff *skb)
{
	struct nnet_udp *u = container_of(port, struct nnet_udp, port);
	struct nnet_udp_out out = { u, face->nn };

	nnet_link_send(face, skb, face->mtu ?: NNET_PACKET_MAX,
		       READ_ONCE(u->headroom), nnet_udp_frame, &out);
}

static void nnet_udp_free(struct nnet_port *port)
{
	struct nnet_udp *u = container_of(port, struct nnet_udp, port);

	dst_cache_destroy(&u->cache);
	kfree(u);
}

/**
 * nnet_udp_face_new() - make a face to a UDP peer
 * @nn: whose
 * @remote: the peer, IPv4 addresses mapped
 * @mtu: largest datagram, 0: 8800
 * @automatic: for a peer that nobody named
 * @id: the new face
 *
 * The scope of @remote counts for link-local addresses, which need one; their
 * faces go with the device.
 *
 * Context: RTNL and nn->control held.
 * Return: 0, -EEXIST (then @id is that face), or a negative errno.
 */
int nnet_udp_face_new(struct nnet_net *nn, struct sockaddr_in6 *remote, u16 mtu,
		      bool automatic, u32 *id)
{
	struct nnet_face *face;
	struct nnet_udp *u;
	int err;

	if (!remote->sin6_port || ipv6_addr_any(&remote->sin6_addr))
		return -EINVAL;
	err = nnet_udp_scope(nn, remote);
	if (err)
		return err;
	face = nnet_udp_find(nn, remote);
	if (face) {
		*id = face->id;
		return -EEXIST;
	}
	err = nnet_udp_listen(nn, nn->udp_port ?: NNET_UDP_PORT);
	if (err)
		return err;
	u = kzalloc(sizeof(*u), GFP_KERNEL_ACCOUNT);
	if (!u)
		return -ENOMEM;
	if (dst_cache_init(&u->cache, GFP_KERNEL_ACCOUNT)) {
		kfree(u);
		return -ENOMEM;
	}
	face = nnet_face_new(nn, NNET_KIND_UDP, GFP_KERNEL_ACCOUNT);
	if (!face) {
		nnet_udp_free(&u->port);
		return -ENOMEM;
	}
	u->port.send = nnet_udp_send;
	u->port.free = nnet_udp_free;
	u->headroom = NNET_LINK_HEADROOM;
	u->remote = *remote;
	u->v6 = !ipv6_addr_v4mapped(&remote->sin6_addr);
	face->remote = *remote;
	face->ifindex = remote->sin6_scope_id;
	face->automatic = automatic;
	face->fragment = true;
	face->mtu = mtu;
	err = nnet_face_register(face, &u->port, 0);
	if (err) {
		nnet_udp_free(&u->port);
		return err;
	}
	spin_lock_bh(&nn->face_lock);
	hlist_add_head_rcu(&face->lower, &nn->lower[nnet_udp_hash(remote)]);
	spin_unlock_bh(&nn->face_lock);
	*id = face->id;
	nnet_netlink_face_event(nn, face, face->id, true);
	return 0;
}

struct nnet_udp_unknown {
	struct work_struct work;
	struct net *net;
	struct sockaddr_in6 remote;
};

static atomic_t nnet_udp_unknown_count;

static void nnet_udp_unknown_work(struct work_struct *work)
{
	struct nnet_udp_unknown *n =
		container_of(work, struct nnet_udp_unknown, work);
	struct nnet_net *nn = nnet_pernet(n->net);
	u32 id;

	rtnl_lock();
	mutex_lock(&nn->control);
	nnet_udp_face_new(nn, &n->remote, 0, true, &id);
	mutex_unlock(&nn->control);
	rtnl_unlock();
	put_net(n->net);
	kfree(n);
	atomic_dec(&nnet_udp_unknown_count);
}

static void nnet_udp_unknown(struct nnet_net *nn,
			     const struct sockaddr_in6 *remote)
{
	struct nnet_udp_unknown *n;

	nnet_count(nn, NNET_C_F_UNKNOWN_PEER);
	if (!READ_ONCE(nn->auto_faces) || !maybe_get_net(nn->net))
		return;
	n = kmalloc(sizeof(*n), GFP_ATOMIC);
	if (!n || !atomic_add_unless(&nnet_udp_unknown_count, 1, 64)) {
		kfree(n);
		put_net(nn->net);
		return;
	}
	n->net = nn->net;
	n->remote = *remote;
	INIT_WORK(&n->work, nnet_udp_unknown_work);
	queue_work(nnet_wq, &n->work);
}

static void nnet_udp_source6(const struct sk_buff *skb,
			     struct sockaddr_in6 *from)
{
	from->sin6_addr = ipv6_hdr(skb)->saddr;
	if (nnet_udp_scoped(from))
		from->sin6_scope_id = inet6_iif(skb);
}

static bool nnet_udp_source(struct sk_buff *skb, struct sockaddr_in6 *from)
{
	memset(from, 0, sizeof(*from));
	from->sin6_family = AF_INET6;
	from->sin6_port = udp_hdr(skb)->source;
	if (ip_hdr(skb)->version == 4)
		ipv6_addr_set_v4mapped(ip_hdr(skb)->saddr, &from->sin6_addr);
	else if (ip_hdr(skb)->version == 6)
		nnet_udp_source6(skb, from);
	else
		return false;
	return true;
}

/* A datagram is one whole TLV. */
static bool nnet_udp_whole(const struct sk_buff *skb)
{
	const u8 *p = skb->data;
	u32 type, len;

	return !nnet_tl_get(&p, p + skb->len, &type, &len) &&
	       p - skb->data + len == skb->len;
}

static int nnet_udp_receive(struct sock *sk, struct sk_buff *skb)
{
	struct nnet_net *nn = rcu_dereference_sk_user_data(sk);
	struct sockaddr_in6 from;
	struct nnet_face *face;

	if (!nn || skb_linearize(skb) || !nnet_udp_source(skb, &from))
		goto drop;
	__skb_pull(skb, sizeof(struct udphdr));
	face = nnet_udp_find(nn, &from);
	if (!face || !refcount_inc_not_zero(&face->users)) {
		nnet_udp_unknown(nn, &from);
		goto drop;
	}
	if (nnet_udp_whole(skb)) {
		nnet_link_receive(face, skb, NULL);
	} else {
		nnet_count(nn, NNET_C_F_TRANSPORT_REFUSED);
		kfree_skb(skb);
	}
	nnet_face_put(face);
	return 0;
drop:
	kfree_skb(skb);
	return 0;
}

static int nnet_udp_open(struct nnet_net *nn, bool v6, u16 port,
			 struct socket **sock)
{
	struct udp_tunnel_sock_cfg tunnel = {
		.sk_user_data = nn,
		.encap_type = 1,
		.encap_rcv = nnet_udp_receive,
	};
	struct udp_port_cfg conf = {
		.family = v6 ? AF_INET6 : AF_INET,
		.local_udp_port = htons(port),
		.use_udp_checksums = true,
		.use_udp6_tx_checksums = true,
		.use_udp6_rx_checksums = true,
		.ipv6_v6only = true,
	};
	int err = udp_sock_create(nn->net, &conf, sock);

	if (!err)
		setup_udp_tunnel_sock(nn->net, nnet_tunnel_of(*sock), &tunnel);
	return err;
}

/**
 * nnet_udp_listen() - open the sockets
 * @nn: whose
 * @port: local port
 *
 * Without IPv6 there is IPv4 alone.
 *
 * Context: nn->control held.
 * Return: 0, -EBUSY when they are open at another port, or as of bind().
 */
int nnet_udp_listen(struct nnet_net *nn, u16 port)
{
	struct socket *v4, *v6;
	int err;

	if (nn->gone)
		return -ENETDOWN;
	if (nn->udp4)
		return nn->udp_port == port ? 0 : -EBUSY;
	err = nnet_udp_open(nn, false, port, &v4);
	if (err)
		return err;
	nn->udp_port = port;
	WRITE_ONCE(nn->udp4, v4);
	if (IS_ENABLED(CONFIG_IPV6) && !nnet_udp_open(nn, true, port, &v6))
		WRITE_ONCE(nn->udp6, v6);
	return 0;
}

void nnet_udp_exit(struct nnet_net *nn)
{
	struct socket *v4 = nn->udp4, *v6 = nn->udp6;

	WRITE_ONCE(nn->udp4, NULL);
	WRITE_ONCE(nn->udp6, NULL);
	synchronize_net();
	if (v4)
		udp_tunnel_sock_release(nnet_tunnel_of(v4));
	if (v6)
		udp_tunnel_sock_release(nnet_tunnel_of(v6));
}
