// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * /proc/net/nnet: the tables for people. Each file opens with a line that
 * names its columns.
 */
#include <linux/proc_fs.h>
#include <net/ipv6.h>

#include "nnet.h"

static struct nnet_net *nnet_seq_net(struct seq_file *m)
{
	return nnet_pernet(seq_file_single_net(m));
}

static void nnet_seq_name(struct seq_file *m, const u8 *name, u16 len)
{
	char buf[256];

	nnet_name_show(buf, sizeof(buf), name, len);
	seq_puts(m, buf);
}

static void nnet_seq_peer(struct seq_file *m, const struct nnet_face *face)
{
	switch (face->kind) {
	case NNET_KIND_ETHER:
		seq_printf(m, "ether %d %pM", face->ifindex, face->peer);
		break;
	case NNET_KIND_UDP:
		seq_printf(m, face->ifindex ? "udp %pISpcs -" : "udp %pISpc -",
			   &face->remote);
		break;
	case NNET_KIND_SOCKET:
		seq_puts(m, "socket - -");
		break;
	default:
		seq_puts(m, "local - -");
	}
}

static int nnet_faces_show(struct seq_file *m, void *v)
{
	struct nnet_net *nn = nnet_seq_net(m);
	struct nnet_face_stats s;
	struct nnet_face *face;
	u32 i;

	seq_puts(m, "id kind device peer users in_interests in_data in_nacks out_interests out_data out_nacks dropped\n");
	if (!smp_load_acquire(&nn->up))
		return 0;
	rcu_read_lock();
	for (i = 0; i < NNET_FACES_MAX; i++) {
		face = rcu_dereference(nn->slots[i].face);
		if (!face)
			continue;
		nnet_face_sum(face, &s);
		seq_printf(m, "%u ", face->id);
		nnet_seq_peer(m, face);
		seq_printf(m, " %u %llu %llu %llu %llu %llu %llu %llu\n",
			   refcount_read(&face->users), s.in_interests,
			   s.in_data, s.in_nacks, s.out_interests, s.out_data,
			   s.out_nacks, s.dropped);
	}
	rcu_read_unlock();
	return 0;
}

static int nnet_fib_show(struct seq_file *m, void *v)
{
	struct nnet_net *nn = nnet_seq_net(m);
	struct nnet_fib_entry *e;
	struct nnet_hops *hops;
	u32 i, n;

	seq_puts(m, "prefix face cost\n");
	if (!smp_load_acquire(&nn->up))
		return 0;
	rcu_read_lock();
	for (i = 0; i <= nn->fib.mask; i++) {
		hlist_for_each_entry_rcu(e, &nn->fib.heads[i], node) {
			hops = rcu_dereference(e->hops);
			for (n = 0; hops && n < hops->n; n++) {
				nnet_seq_name(m, e->name, e->name_len);
				seq_printf(m, " %u %u\n", hops->hop[n].face,
					   hops->hop[n].cost);
			}
		}
	}
	rcu_read_unlock();
	return 0;
}

static int nnet_bindings_show(struct seq_file *m, void *v)
{
	struct nnet_net *nn = nnet_seq_net(m);
	struct nnet_binding *b;
	u32 i;

	seq_puts(m, "prefix face\n");
	if (!smp_load_acquire(&nn->up))
		return 0;
	rcu_read_lock();
	for (i = 0; i <= nn->bpt.mask; i++) {
		hlist_for_each_entry_rcu(b, &nn->bpt.heads[i], node) {
			nnet_seq_name(m, b->name, b->name_len);
			seq_printf(m, " %u\n", b->face);
		}
	}
	rcu_read_unlock();
	return 0;
}

static int nnet_pit_show(struct seq_file *m, void *v)
{
	struct nnet_net *nn = nnet_seq_net(m);
	struct nnet_pending *e;
	u32 i, n = 0;

	if (!smp_load_acquire(&nn->up))
		return 0;
	seq_printf(m, "entries %d max %u bytes %ld bytes_max %lu\n",
		   atomic_read(&nn->pit.count), nn->pit.max,
		   atomic_long_read(&nn->pit.octets), nn->pit.octets_max);
	seq_puts(m, "name flags downstream upstream\n");
	rcu_read_lock();
	for (i = 0; i <= nn->pit.table.mask && n < 1000; i++) {
		hlist_for_each_entry_rcu(e, &nn->pit.table.buckets[i].head,
					 node) {
			if (!refcount_inc_not_zero(&e->ref))
				continue;
			nnet_seq_name(m, e->name, e->name_len);
			seq_printf(m, " %u %u %u\n", e->flags & NNET_V_KEY,
				   e->ins, e->outs);
			nnet_pit_put(e);
			n++;
		}
	}
	rcu_read_unlock();
	return 0;
}

static int nnet_cs_show(struct seq_file *m, void *v)
{
	struct nnet_net *nn = nnet_seq_net(m);
	const struct nnet_cs *cs = &nn->cs;

	seq_puts(m, "packets packets_max bytes bytes_max\n");
	if (smp_load_acquire(&nn->up))
		seq_printf(m, "%u %u %llu %llu\n", cs->packets,
			   cs->packets_max, cs->bytes, cs->bytes_max);
	return 0;
}

static int nnet_stats_show(struct seq_file *m, void *v)
{
	struct nnet_net *nn = nnet_seq_net(m);
	u32 i;

	seq_puts(m, "kind word count\n");
	for (i = 0; i < NNET_C_COUNT; i++)
		seq_printf(m, "%s %s %llu\n", nnet_counter_kind[i],
			   nnet_counter_word[i], nnet_counter_sum(nn, i));
	return 0;
}

static int nnet_dispatch_file_show(struct seq_file *m, void *v)
{
	nnet_dispatch_show(m, nnet_seq_net(m));
	return 0;
}

static const struct {
	const char *name;
	int (*show)(struct seq_file *m, void *v);
} nnet_files[] = {
	{ "faces", nnet_faces_show },
	{ "fib", nnet_fib_show },
	{ "bindings", nnet_bindings_show },
	{ "pit", nnet_pit_show },
	{ "cs", nnet_cs_show },
	{ "stats", nnet_stats_show },
	{ "dispatch", nnet_dispatch_file_show },
};

int nnet_procfs_init(struct nnet_net *nn)
{
	unsigned int i;

	nn->proc = proc_net_mkdir(nn->net, "nnet", nn->net->proc_net);
	if (!nn->proc)
		return -ENOMEM;
	for (i = 0; i < ARRAY_SIZE(nnet_files); i++)
		if (!proc_create_net_single(nnet_files[i].name, 0444, nn->proc,
					    nnet_files[i].show, NULL)) {
			nnet_procfs_exit(nn);
			return -ENOMEM;
		}
	return 0;
}

void nnet_procfs_exit(struct nnet_net *nn)
{
	remove_proc_subtree("nnet", nn->net->proc_net);
}
