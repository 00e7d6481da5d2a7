// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Lower faces over Ethernet devices: unicast, multicast, broadcast.
 *
 * nn->lower holds lower faces by peer: changed under nn->control and
 * nn->face_lock, read under RCU. Device events come with RTNL held, so RTNL
 * is taken before nn->control wherever both are needed.
 */
#include <linux/etherdevice.h>
#include <linux/jhash.h>
#include <linux/rtnetlink.h>

#include "nnet.h"

static u32 nnet_ether_hash(int ifindex, const u8 *mac)
{
	return jhash(mac, ETH_ALEN, ifindex ^ (u32)nnet_secret.key[0]) & 255;
}

/* The face of a peer behind a device. Context: RCU read side. */
struct nnet_face *nnet_ether_find(struct nnet_net *nn, int ifindex,
				  const u8 *mac)
{
	struct nnet_face *face;

	hlist_for_each_entry_rcu(face, &nn->lower[nnet_ether_hash(ifindex, mac)],
				 lower, lockdep_is_held(&nn->control))
		if (face->kind == NNET_KIND_ETHER && face->ifindex == ifindex &&
		    ether_addr_equal(face->peer, mac))
			return face;
	return NULL;
}

static int nnet_ether_frame(void *ctx, struct sk_buff *skb)
{
	struct nnet_ether_port *port = ctx;
	struct net_device *dev = port->dev;
	int err;

	skb->dev = dev;
	skb->protocol = htons(NNET_ETHERTYPE);
	skb_reset_network_header(skb);
	if (dev_hard_header(skb, dev, NNET_ETHERTYPE, port->peer, NULL,
			    skb->len) < 0) {
		kfree_skb(skb);
		return -EINVAL;
	}
	/* net_xmit_eval() is a macro that looks twice. */
	err = dev_queue_xmit(skb);
	return net_xmit_eval(err);
}

static void nnet_ether_send(struct nnet_face *face, struct nnet_port *port,
			    struct sk_buff *skb)
{
	struct nnet_ether_port *ether =
		container_of(port, struct nnet_ether_port, port);
	struct net_device *dev = ether->dev;
	unsigned int mtu = READ_ONCE(dev->mtu);

	if (!(dev->flags & IFF_UP)) {
		nnet_count(face->nn, NNET_C_U_FACE_GONE);
		kfree_skb(skb);
		return;
	}
	if (face->mtu)
		mtu = min_t(unsigned int, mtu, face->mtu);
	nnet_link_send(face, skb, mtu, LL_RESERVED_SPACE(dev), nnet_ether_frame,
		       ether);
}

static void nnet_ether_free(struct nnet_port *port)
{
	struct nnet_ether_port *ether =
		container_of(port, struct nnet_ether_port, port);

	netdev_put(ether->dev, &ether->tracker);
	kfree(ether);
}

/**
 * nnet_ether_face_new() - make a face to a peer or group behind a device
 * @nn: whose
 * @dev: the device
 * @mac: a station, a group, or the broadcast address
 * @mtu: largest frame, 0: the device's
 * @automatic: for a peer that nobody named
 * @id: the new face
 *
 * Context: RTNL and nn->control held.
 * Return: 0, -EEXIST (then @id is that face), -EINVAL, -ENOMEM or -ENOBUFS.
 */
int nnet_ether_face_new(struct nnet_net *nn, struct net_device *dev,
			const u8 *mac, u16 mtu, bool automatic, u32 *id)
{
	struct nnet_ether_port *port;
	struct nnet_face *face;
	int err;

	if (dev->addr_len != ETH_ALEN || is_zero_ether_addr(mac))
		return -EINVAL;
	face = nnet_ether_find(nn, dev->ifindex, mac);
	if (face) {
		*id = face->id;
		return -EEXIST;
	}
	port = kzalloc(sizeof(*port), GFP_KERNEL_ACCOUNT);
	face = port ? nnet_face_new(nn, NNET_KIND_ETHER, GFP_KERNEL_ACCOUNT) :
		      NULL;
	if (!face) {
		kfree(port);
		return -ENOMEM;
	}
	port->port.send = nnet_ether_send;
	port->port.free = nnet_ether_free;
	port->dev = dev;
	ether_addr_copy(port->peer, mac);
	ether_addr_copy(face->peer, mac);
	face->ifindex = dev->ifindex;
	face->multi = is_multicast_ether_addr(mac);
	face->fragment = true;
	face->mtu = mtu;
	face->automatic = automatic;
	netdev_hold(dev, &port->tracker, GFP_KERNEL);
	err = nnet_face_register(face, &port->port, 0);
	if (err) {
		nnet_ether_free(&port->port);
		return err;
	}
	if (face->multi && !is_broadcast_ether_addr(mac))
		dev_mc_add(dev, mac);
	spin_lock_bh(&nn->face_lock);
	hlist_add_head_rcu(&face->lower,
			   &nn->lower[nnet_ether_hash(dev->ifindex, mac)]);
	spin_unlock_bh(&nn->face_lock);
	*id = face->id;
	nnet_netlink_face_event(nn, face, face->id, true);
	return 0;
}

/* Makes a face for a peer that nobody knows yet, outside the data path. */
struct nnet_unknown {
	struct work_struct work;
	struct net *net;
	netns_tracker tracker;
	int ifindex;
	u8 mac[ETH_ALEN];
};

static atomic_t nnet_unknown_count;

static void nnet_unknown_work(struct work_struct *work)
{
	struct nnet_unknown *u = container_of(work, struct nnet_unknown, work);
	struct nnet_net *nn = nnet_pernet(u->net);
	struct net_device *dev;
	u32 id;

	rtnl_lock();
	dev = __dev_get_by_index(u->net, u->ifindex);
	if (dev) {
		mutex_lock(&nn->control);
		nnet_ether_face_new(nn, dev, u->mac, 0, true, &id);
		mutex_unlock(&nn->control);
	}
	rtnl_unlock();
	put_net_track(u->net, &u->tracker);
	kfree(u);
	atomic_dec(&nnet_unknown_count);
}

static void nnet_unknown(struct nnet_net *nn, int ifindex, const u8 *mac)
{
	struct nnet_unknown *u;

	nnet_count(nn, NNET_C_F_UNKNOWN_PEER);
	if (!READ_ONCE(nn->auto_faces) || !is_valid_ether_addr(mac) ||
	    !maybe_get_net(nn->net))
		return;
	u = kmalloc(sizeof(*u), GFP_ATOMIC);
	if (u && !atomic_add_unless(&nnet_unknown_count, 1, 64)) {
		kfree(u);
		u = NULL;
	}
	if (!u) {
		put_net(nn->net);
		return;
	}
	u->net = nn->net;
	netns_tracker_alloc(u->net, &u->tracker, GFP_ATOMIC);
	u->ifindex = ifindex;
	ether_addr_copy(u->mac, mac);
	INIT_WORK(&u->work, nnet_unknown_work);
	queue_work(nnet_wq, &u->work);
}

/* A frame ends where its TLV ends; what follows is padding. */
static bool nnet_ether_trim(struct sk_buff *skb)
{
	const u8 *p;
	u32 type, len;

	if (skb_linearize(skb))
		return false;
	p = skb->data;
	if (nnet_tl_get(&p, p + skb->len, &type, &len))
		return false;
	skb_trim(skb, p - skb->data + len);
	return true;
}

static int nnet_ether_receive(struct sk_buff *skb, struct net_device *dev,
			      struct packet_type *pt, struct net_device *orig)
{
	struct nnet_net *nn = nnet_pernet(dev_net(dev));
	struct nnet_face *face;
	bool group;

	skb = skb_share_check(skb, GFP_ATOMIC);
	if (!skb)
		return NET_RX_DROP;
	if (!smp_load_acquire(&nn->up) || skb->pkt_type == PACKET_OTHERHOST ||
	    !skb_mac_header_was_set(skb) || dev->addr_len != ETH_ALEN) {
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	group = is_multicast_ether_addr(eth_hdr(skb)->h_dest);
	face = nnet_ether_find(nn, dev->ifindex,
			       group ? eth_hdr(skb)->h_dest :
				       eth_hdr(skb)->h_source);
	if (!face || !refcount_inc_not_zero(&face->users)) {
		nnet_unknown(nn, dev->ifindex, eth_hdr(skb)->h_source);
		kfree_skb(skb);
		return NET_RX_DROP;
	}
	if (nnet_ether_trim(skb)) {
		u8 source[ETH_ALEN];

		ether_addr_copy(source, eth_hdr(skb)->h_source);
		nnet_link_receive(face, skb, source);
	} else {
		nnet_count(nn, NNET_C_F_TRANSPORT_REFUSED);
		kfree_skb(skb);
	}
	nnet_face_put(face);
	return NET_RX_SUCCESS;
}

static struct packet_type nnet_packet_type = {
	.type = cpu_to_be16(NNET_ETHERTYPE),
	.func = nnet_ether_receive,
};

/* Releases the faces of a device that goes. Context: RTNL held. */
static void nnet_device_gone(struct nnet_net *nn, struct net_device *dev)
{
	struct nnet_face *face;
	bool routed = false;
	u32 i;

	mutex_lock(&nn->control);
	for (i = NNET_FACE_FIRST; nn->up && i < NNET_FACES_MAX; i++) {
		face = rcu_dereference_protected(nn->slots[i].face,
						 lockdep_is_held(&nn->control));
		if (!face || face->ifindex != dev->ifindex)
			continue;
		if (face->kind == NNET_KIND_ETHER && face->multi &&
		    !is_broadcast_ether_addr(face->peer))
			dev_mc_del(dev, face->peer);
		nnet_netlink_face_event(nn, face, face->id, false);
		routed |= face->routed;
		nnet_face_release(face);
	}
	if (routed)
		nnet_fib_sweep(nn);
	mutex_unlock(&nn->control);
}

static int nnet_device_event(struct notifier_block *nb, unsigned long event,
			     void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	if (event == NETDEV_UNREGISTER || event == NETDEV_DOWN)
		nnet_device_gone(nnet_pernet(dev_net(dev)), dev);
	return NOTIFY_DONE;
}

static struct notifier_block nnet_device_notifier = {
	.notifier_call = nnet_device_event,
};

int nnet_ether_init(void)
{
	int err = register_netdevice_notifier(&nnet_device_notifier);

	if (!err)
		dev_add_pack(&nnet_packet_type);
	return err;
}

void nnet_ether_exit(void)
{
	dev_remove_pack(&nnet_packet_type);
	unregister_netdevice_notifier(&nnet_device_notifier);
}
