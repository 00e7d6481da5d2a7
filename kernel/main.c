// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Init and exit of the module and of each namespace; what was made last goes
 * first.
 */
#include <linux/module.h>
#include <linux/random.h>

#include "nnet.h"

unsigned int nnet_net_id;
siphash_key_t nnet_secret __read_mostly;
struct workqueue_struct *nnet_wq;

int nnet_family = NNET_FAMILY_DEFAULT;
module_param_named(family, nnet_family, int, 0444);
MODULE_PARM_DESC(family, "number of the address family, 1 to 45");

unsigned int nnet_hash_bits = 12;
module_param_named(hash_bits, nnet_hash_bits, uint, 0444);
MODULE_PARM_DESC(hash_bits, "heads of each table, as a power of two: 4 to 20");

unsigned int nnet_ns_packets = 65536;
module_param_named(ns_packets, nnet_ns_packets, uint, 0444);
MODULE_PARM_DESC(ns_packets, "most packets that the content store of a namespace may be given by who does not administrate the host");

unsigned long nnet_ns_bytes = 64 << 20;
module_param_named(ns_bytes, nnet_ns_bytes, ulong, 0444);
MODULE_PARM_DESC(ns_bytes, "the same, octets of memory");

unsigned int nnet_ns_pit = 65536;
module_param_named(ns_pit, nnet_ns_pit, uint, 0444);
MODULE_PARM_DESC(ns_pit, "most pending Interests that a namespace may be given by who does not administrate the host");

unsigned long nnet_ns_pit_bytes = NNET_PIT_OCTETS_MAX;
module_param_named(ns_pit_bytes, nnet_ns_pit_bytes, ulong, 0444);
MODULE_PARM_DESC(ns_pit_bytes, "the same, octets of memory");

#define X(symbol, kind, word) [NNET_C_##symbol] = kind,
const char *const nnet_counter_kind[NNET_C_COUNT] = { NNET_COUNTERS(X) };
#undef X
#define X(symbol, kind, word) [NNET_C_##symbol] = word,
const char *const nnet_counter_word[NNET_C_COUNT] = { NNET_COUNTERS(X) };
#undef X

u64 nnet_counter_sum(struct nnet_net *nn, enum nnet_counter c)
{
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(per_cpu_ptr(nn->counters, cpu)->c[c]);
	return sum;
}

/*
 * Face_local is in the FIB as the entrance to the applications; the path asks
 * the binding table for the face behind it (nnet_eligible()), so nothing is
 * ever sent to Face_local itself.
 */
static void nnet_local_send(struct nnet_face *face, struct nnet_port *port,
			    struct sk_buff *skb)
{
	nnet_count(face->nn, NNET_C_S_BLACKHOLE);
	kfree_skb(skb);
}

static void nnet_local_free(struct nnet_port *port)
{
	kfree(port);
}

static void nnet_down(struct nnet_net *nn)
{
	nnet_pit_exit(nn);
	nnet_cs_exit(nn);
	nnet_bpt_exit(nn);
	nnet_fib_exit(nn);
	nnet_owner_put(nn);
	kvfree(nn->slots);
	nn->slots = NULL;
}

/**
 * nnet_up() - see that a namespace has its tables
 * @nn: which
 *
 * They come with the first socket, face or route, so that namespaces that
 * never use named data cost nothing.
 *
 * Return: 0 or -ENOMEM.
 */
int nnet_up(struct nnet_net *nn)
{
	struct nnet_port *port;
	int err = -ENOMEM;
	u32 i;

	if (smp_load_acquire(&nn->up))
		return 0;
	mutex_lock(&nn->control);
	if (nn->up) {
		mutex_unlock(&nn->control);
		return 0;
	}
	nn->slots = kvcalloc(NNET_FACES_MAX, sizeof(*nn->slots),
			     GFP_KERNEL_ACCOUNT);
	for (i = 0; nn->slots && i < NNET_FACES_MAX; i++) {
		spin_lock_init(&nn->slots[i].lock);
		INIT_LIST_HEAD(&nn->slots[i].asked);
	}
	if (!nn->slots || nnet_owner_find(nn) || nnet_fib_init(nn) || nnet_bpt_init(nn) ||
	    nnet_cs_init(nn) || nnet_pit_init(nn))
		goto fail;
	port = kzalloc(sizeof(*port), GFP_KERNEL_ACCOUNT);
	nn->local = port ? nnet_face_new(nn, NNET_KIND_LOCAL,
					 GFP_KERNEL_ACCOUNT) : NULL;
	if (!nn->local) {
		kfree(port);
		goto fail;
	}
	port->send = nnet_local_send;
	port->free = nnet_local_free;
	nn->local->local = true;
	err = nnet_face_register(nn->local, port, NNET_FACE_LOCAL);
	if (err)
		goto fail;
	smp_store_release(&nn->up, true);
	mutex_unlock(&nn->control);
	return 0;
fail:
	nnet_down(nn);
	mutex_unlock(&nn->control);
	return err;
}

static int __net_init nnet_net_init(struct net *net)
{
	struct nnet_net *nn = nnet_pernet(net);
	int err;

	nn->net = net;
	mutex_init(&nn->control);
	spin_lock_init(&nn->face_lock);
	nnet_users_init(nn);
	nn->cursor = NNET_FACE_FIRST;
	nn->dispatch.depth = 1;
	nnet_store_init(nn);
	nn->counters = alloc_percpu(struct nnet_counters);
	if (!nn->counters)
		return -ENOMEM;
	err = nnet_procfs_init(nn);
	if (err)
		free_percpu(nn->counters);
	return err;
}

/* The last step of a namespace: its sockets and devices have gone. */
static void __net_exit nnet_net_exit(struct net *net)
{
	struct nnet_net *nn = nnet_pernet(net);
	u8 n;

	nnet_procfs_exit(nn);
	mutex_lock(&nn->control);
	nn->gone = true;
	mutex_unlock(&nn->control);
	nnet_udp_exit(nn);
	/* Faces for unknown peers that are still to be made. */
	flush_workqueue(nnet_wq);
	if (nn->up) {
		nnet_dispatch_flush(nn);
		nnet_faces_exit(nn);
		WRITE_ONCE(nn->up, false);
		synchronize_net();
		nnet_dispatch_flush(nn);
	}
	nnet_store_exit(nn);
	nnet_dispatch_leave(nn);
	nnet_down(nn);
	for (n = 0; n < nn->regions; n++)
		kfree(nn->region[n]);
	/* Faces, packets and records that wait for readers count into it. */
	rcu_barrier();
	free_percpu(nn->counters);
}

static struct pernet_operations nnet_net_ops = {
	.init = nnet_net_init,
	.exit = nnet_net_exit,
	.id = &nnet_net_id,
	.size = sizeof(struct nnet_net),
};

static int __init nnet_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct nnet_cb) > sizeof_field(struct sk_buff, cb));
	BUILD_BUG_ON(sizeof(struct sockaddr_nnet) != 128);
	sock_skb_cb_check_size(sizeof(struct nnet_cb));
	if (nnet_family <= AF_UNSPEC || nnet_family >= AF_MAX) {
		pr_err("nnet: family must be above 0 and below %d\n", AF_MAX);
		return -EINVAL;
	}
	if (nnet_hash_bits < NNET_HASH_BITS_MIN ||
	    nnet_hash_bits > NNET_HASH_BITS_MAX)
		return -EINVAL;
	get_random_bytes(&nnet_secret, sizeof(nnet_secret));
	err = nnet_selftest();
	if (err)
		return err;
	err = nnet_host_init();
	if (err)
		return err;
	nnet_wq = alloc_workqueue("nnet", WQ_UNBOUND, 0);
	if (!nnet_wq) {
		nnet_host_exit();
		return -ENOMEM;
	}
	err = register_pernet_subsys(&nnet_net_ops);
	if (err)
		goto err_wq;
	err = nnet_ether_init();
	if (err)
		goto err_net;
	err = nnet_netlink_init();
	if (err)
		goto err_ether;
	err = nnet_socket_init();
	if (err)
		goto err_netlink;
	return 0;

err_netlink:
	nnet_netlink_exit();
err_ether:
	nnet_ether_exit();
err_net:
	unregister_pernet_subsys(&nnet_net_ops);
	nnet_dispatch_exit();
err_wq:
	destroy_workqueue(nnet_wq);
	rcu_barrier();
	nnet_host_exit();
	return err;
}

static void __exit nnet_exit(void)
{
	nnet_socket_exit();
	nnet_netlink_exit();
	nnet_ether_exit();
	unregister_pernet_subsys(&nnet_net_ops);
	nnet_dispatch_exit();
	destroy_workqueue(nnet_wq);
	rcu_barrier();
	nnet_host_exit();
}

module_init(nnet_init);
module_exit(nnet_exit);

MODULE_LICENSE("Dual MIT/GPL");
MODULE_AUTHOR("The Onym authors");
MODULE_VERSION("0.1.0");
MODULE_DESCRIPTION("Named-data networking as a socket family");
/* Lets socket() of any user load the module; NNET_AUTOLOAD=n leaves it out. */
#ifndef NNET_NO_ALIAS
MODULE_ALIAS("net-pf-19");
#endif
