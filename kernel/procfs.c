// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * /proc/net/nnet: the tables for people. Each file opens with a line that
 * names its columns.
 *
 * A table is told place by place (slots, heads), as much at a time as a reader has
 * room for, and readers of a table hold no lock and no RCU read side between. A row
 * that stays is told once; one that comes or goes meanwhile may be or may not be.
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

/*
 * struct nnet_rows - a table that is told place by place
 * @head: the first line
 * @places: how many
 * @empty: whether one has no rows, without looking closely
 * @tell: the rows of one. Context: RCU read side.
 */
struct nnet_rows {
	const char *name;
	void (*head)(struct seq_file *m, struct nnet_net *nn);
	u32 (*places)(const struct nnet_net *nn);
	bool (*empty)(struct nnet_net *nn, u32 place);
	void (*tell)(struct seq_file *m, struct nnet_net *nn, u32 place);
};

static void nnet_faces_head(struct seq_file *m, struct nnet_net *nn)
{
	seq_puts(m, "id kind device peer users in_interests in_data in_nacks out_interests out_data out_nacks dropped\n");
}

static u32 nnet_faces_places(const struct nnet_net *nn)
{
	return NNET_FACES_MAX;
}

static bool nnet_faces_empty(struct nnet_net *nn, u32 place)
{
	return !rcu_access_pointer(nn->slots[place].face);
}

static void nnet_faces_tell(struct seq_file *m, struct nnet_net *nn, u32 place)
{
	struct nnet_face *face = rcu_dereference(nn->slots[place].face);
	struct nnet_face_stats s;
	u32 id = face ? READ_ONCE(face->id) : 0;

	if (!id)
		return;
	nnet_face_sum(face, &s);
	seq_printf(m, "%u ", id);
	nnet_seq_peer(m, face);
	seq_printf(m, " %u %llu %llu %llu %llu %llu %llu %llu\n",
		   refcount_read(&face->users), s.in_interests, s.in_data,
		   s.in_nacks, s.out_interests, s.out_data, s.out_nacks,
		   s.dropped);
}

static void nnet_fib_head(struct seq_file *m, struct nnet_net *nn)
{
	seq_puts(m, "prefix face cost\n");
}

static u32 nnet_fib_places(const struct nnet_net *nn)
{
	return nn->fib.mask + 1;
}

static bool nnet_fib_empty(struct nnet_net *nn, u32 place)
{
	return hlist_empty(&nn->fib.heads[place]);
}

static void nnet_fib_tell(struct seq_file *m, struct nnet_net *nn, u32 place)
{
	struct nnet_fib_entry *e;
	struct nnet_hops *hops;
	u32 n;

	hlist_for_each_entry_rcu(e, &nn->fib.heads[place], node) {
		hops = rcu_dereference(e->hops);
		for (n = 0; hops && n < hops->n; n++) {
			nnet_seq_name(m, e->name, e->name_len);
			seq_printf(m, " %u %u\n", hops->hop[n].face,
				   hops->hop[n].cost);
		}
	}
}

static void nnet_bindings_head(struct seq_file *m, struct nnet_net *nn)
{
	seq_puts(m, "prefix face\n");
}

static u32 nnet_bindings_places(const struct nnet_net *nn)
{
	return nn->bpt.mask + 1;
}

static bool nnet_bindings_empty(struct nnet_net *nn, u32 place)
{
	return hlist_empty(&nn->bpt.heads[place]);
}

static void nnet_bindings_tell(struct seq_file *m, struct nnet_net *nn,
			       u32 place)
{
	struct nnet_binding *b;

	hlist_for_each_entry_rcu(b, &nn->bpt.heads[place], node) {
		nnet_seq_name(m, b->name, b->name_len);
		seq_printf(m, " %u\n", b->face);
	}
}

static void nnet_pit_head(struct seq_file *m, struct nnet_net *nn)
{
	if (!smp_load_acquire(&nn->up))
		return;
	seq_printf(m, "entries %d max %u bytes %ld bytes_max %lu\n",
		   atomic_read(&nn->pit.count), READ_ONCE(nn->pit.max),
		   atomic_long_read(&nn->pit.octets),
		   READ_ONCE(nn->pit.octets_max));
	seq_puts(m, "name flags downstream upstream\n");
}

static u32 nnet_pit_places(const struct nnet_net *nn)
{
	return nn->pit.table.mask + 1;
}

static bool nnet_pit_empty(struct nnet_net *nn, u32 place)
{
	return hlist_empty(&nn->pit.table.buckets[place].head);
}

static void nnet_pit_tell(struct seq_file *m, struct nnet_net *nn, u32 place)
{
	struct nnet_pending *e;

	hlist_for_each_entry_rcu(e, &nn->pit.table.buckets[place].head, node) {
		if (!refcount_inc_not_zero(&e->ref))
			continue;
		nnet_seq_name(m, e->name, e->name_len);
		seq_printf(m, " %u %u %u\n", e->flags & NNET_V_KEY,
			   READ_ONCE(e->ins), READ_ONCE(e->outs));
		nnet_pit_put(e);
	}
}

static const struct nnet_rows nnet_tables[] = {
	{ "faces", nnet_faces_head, nnet_faces_places, nnet_faces_empty,
	  nnet_faces_tell },
	{ "fib", nnet_fib_head, nnet_fib_places, nnet_fib_empty,
	  nnet_fib_tell },
	{ "bindings", nnet_bindings_head, nnet_bindings_places,
	  nnet_bindings_empty, nnet_bindings_tell },
	{ "pit", nnet_pit_head, nnet_pit_places, nnet_pit_empty,
	  nnet_pit_tell },
};

static const struct nnet_rows *nnet_rows_of(struct seq_file *m)
{
	return pde_data(file_inode(m->file));
}

/* The first place from @pos on that is not empty; position 0 is the first line. */
static void *nnet_rows_at(struct seq_file *m, loff_t *pos)
{
	const struct nnet_rows *rows = nnet_rows_of(m);
	struct nnet_net *nn = nnet_pernet(seq_file_net(m));
	u32 places;

	if (!*pos)
		return SEQ_START_TOKEN;
	places = smp_load_acquire(&nn->up) ? rows->places(nn) : 0;
	while (*pos <= places && rows->empty(nn, *pos - 1))
		++*pos;
	return *pos <= places ? (void *)(unsigned long)(*pos + 1) : NULL;
}

static void *nnet_rows_start(struct seq_file *m, loff_t *pos)
	__acquires(RCU)
{
	rcu_read_lock();
	return nnet_rows_at(m, pos);
}

static void *nnet_rows_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return nnet_rows_at(m, pos);
}

static void nnet_rows_stop(struct seq_file *m, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static int nnet_rows_show(struct seq_file *m, void *v)
{
	const struct nnet_rows *rows = nnet_rows_of(m);
	struct nnet_net *nn = nnet_pernet(seq_file_net(m));

	if (v == SEQ_START_TOKEN)
		rows->head(m, nn);
	else
		rows->tell(m, nn, (unsigned long)v - 2);
	return 0;
}

static const struct seq_operations nnet_rows_ops = {
	.start = nnet_rows_start,
	.next = nnet_rows_next,
	.stop = nnet_rows_stop,
	.show = nnet_rows_show,
};

static int nnet_cs_show(struct seq_file *m, void *v)
{
	struct nnet_net *nn = nnet_seq_net(m);
	struct nnet_cs_sums s;

	seq_puts(m, "packets packets_max bytes bytes_max\n");
	if (smp_load_acquire(&nn->up)) {
		nnet_cs_sum(nn, &s);
		seq_printf(m, "%u %u %llu %llu\n", s.packets, s.packets_max,
			   s.bytes, s.bytes_max);
	}
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
	for (i = 0; i < ARRAY_SIZE(nnet_tables); i++)
		if (!proc_create_net_data(nnet_tables[i].name, 0444, nn->proc,
					  &nnet_rows_ops,
					  sizeof(struct seq_net_private),
					  (void *)&nnet_tables[i]))
			goto fail;
	for (i = 0; i < ARRAY_SIZE(nnet_files); i++)
		if (!proc_create_net_single(nnet_files[i].name, 0444, nn->proc,
					    nnet_files[i].show, NULL))
			goto fail;
	return 0;
fail:
	nnet_procfs_exit(nn);
	return -ENOMEM;
}

void nnet_procfs_exit(struct nnet_net *nn)
{
	remove_proc_subtree("nnet", nn->net->proc_net);
}
