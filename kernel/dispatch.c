// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Packets of lower faces handed to kernel threads, one per processor, because
 * network cards send all frames of an unknown EtherType to one. What local
 * applications send is worked on by their own thread.
 *
 * The threads serve all namespaces and come with the first that asks. Each has
 * a queue for each owner of namespaces (a flow; those of root have one each) and
 * takes them in turn, so many packets of one at a time; what a flow may have
 * waiting is three times the room that is left. A packet in a queue carries its
 * namespace in skb->dev_scratch; its namespace waits for nn->dispatched to become
 * 0 before it goes.
 */
#include <linux/kthread.h>
#include <linux/random.h>

#include "nnet.h"

/* What waits for one thread, of one owner. Under the lock of the thread. */
struct nnet_flow {
	struct list_head active;
	struct sk_buff_head queue;
	u64 packets;
	u64 dropped;
};

/*
 * struct nnet_worker - a thread
 * @active: flows that have packets, in the order of their turns
 * @waiting: packets of all of them
 */
struct nnet_worker {
	spinlock_t lock;
	struct list_head active;
	unsigned int waiting;
	struct task_struct *task;
	wait_queue_head_t wait;
	int cpu;
};

static DEFINE_MUTEX(nnet_workers_lock);
static struct nnet_worker *nnet_workers;
static unsigned int nnet_worker_count;

/* Takes a turn of the flow whose turn it is. */
static void nnet_worker_take(struct nnet_worker *w, struct sk_buff_head *batch)
{
	struct nnet_flow *flow;
	unsigned int n;

	spin_lock_bh(&w->lock);
	flow = list_first_entry_or_null(&w->active, struct nnet_flow, active);
	if (flow) {
		n = min_t(unsigned int, flow->queue.qlen, NNET_DISPATCH_TURN);
		w->waiting -= n;
		flow->packets += n;
		while (n--)
			__skb_queue_tail(batch, __skb_dequeue(&flow->queue));
		if (skb_queue_empty(&flow->queue))
			list_del_init(&flow->active);
		else
			list_move_tail(&flow->active, &w->active);
	}
	spin_unlock_bh(&w->lock);
}

static void nnet_worker_run(struct nnet_worker *w)
{
	struct sk_buff_head batch;
	struct nnet_net *nn;
	struct sk_buff *skb;

	__skb_queue_head_init(&batch);
	nnet_worker_take(w, &batch);
	while ((skb = __skb_dequeue(&batch))) {
		nn = (struct nnet_net *)skb->dev_scratch;
		skb->dev = NULL;
		local_bh_disable();
		nnet_forward(nn, skb);
		local_bh_enable();
		atomic_dec(&nn->dispatched);
	}
}

static int nnet_worker_thread(void *data)
{
	struct nnet_worker *w = data;

	while (!kthread_should_stop()) {
		wait_event_interruptible(w->wait,
					 !list_empty(&w->active) ||
						 kthread_should_stop());
		nnet_worker_run(w);
		cond_resched();
	}
	return 0;
}

static int nnet_workers_start(void)
{
	unsigned int n = min_t(unsigned int, num_online_cpus(),
			       NNET_THREADS_MAX);
	struct nnet_worker *w;
	unsigned int i = 0;
	int cpu;

	if (nnet_workers)
		return 0;
	w = kcalloc(n, sizeof(*w), GFP_KERNEL);
	if (!w)
		return -ENOMEM;
	for_each_online_cpu(cpu) {
		if (i == n)
			break;
		spin_lock_init(&w[i].lock);
		INIT_LIST_HEAD(&w[i].active);
		init_waitqueue_head(&w[i].wait);
		w[i].cpu = cpu;
		w[i].task = kthread_create(nnet_worker_thread, &w[i], "nnet/%d",
					   cpu);
		if (IS_ERR(w[i].task))
			break;
		kthread_bind(w[i].task, cpu);
		wake_up_process(w[i].task);
		i++;
	}
	if (!i) {
		kfree(w);
		return -ENOMEM;
	}
	nnet_worker_count = i;
	nnet_workers = w;
	return 0;
}

/*
 * Gives a namespace its flows: those of its owner, or its own where root owns it.
 * Context: nnet_workers_lock held.
 */
static int nnet_flows_find(struct nnet_net *nn)
{
	struct nnet_flow **at = nn->owner ? &nn->owner->flows : &nn->own_flows;
	struct nnet_flow *flows = *at;
	unsigned int i;

	if (nn->flows)
		return 0;
	if (!flows) {
		flows = kcalloc(nnet_worker_count, sizeof(*flows),
				GFP_KERNEL_ACCOUNT);
		if (!flows)
			return -ENOMEM;
		for (i = 0; i < nnet_worker_count; i++) {
			INIT_LIST_HEAD(&flows[i].active);
			__skb_queue_head_init(&flows[i].queue);
		}
		*at = flows;
	}
	smp_store_release(&nn->flows, flows);
	return 0;
}

/**
 * nnet_dispatch_set() - choose how packets find their thread
 * @nn: whose packets
 * @mode: NNET_DISPATCH_*
 * @depth: components of the prefix, for NNET_DISPATCH_PREFIX
 * @threads: how many, 0 for all processors
 * @separate: none on the processor that dispatches
 *
 * Context: nn->control held.
 * Return: 0, -EINVAL or -ENOMEM.
 */
int nnet_dispatch_set(struct nnet_net *nn, u8 mode, u8 depth, u8 threads,
		      bool separate)
{
	int err = 0;

	if (mode > NNET_DISPATCH_RANDOM || depth > NNET_DEPTH_MAX ||
	    threads > NNET_THREADS_MAX)
		return -EINVAL;
	mutex_lock(&nnet_workers_lock);
	if (mode != NNET_DISPATCH_INLINE)
		err = nnet_workers_start() ?: nnet_flows_find(nn);
	mutex_unlock(&nnet_workers_lock);
	if (err)
		return err;
	WRITE_ONCE(nn->dispatch.depth, depth ?: 1);
	WRITE_ONCE(nn->dispatch.threads, threads);
	WRITE_ONCE(nn->dispatch.separate, separate);
	WRITE_ONCE(nn->dispatch.mode, mode);
	return 0;
}

/* A number for a packet: the same for what must stay in order. */
static u32 nnet_dispatch_hash(struct nnet_net *nn, const struct sk_buff *skb,
			      u8 mode)
{
	const u8 *p = skb->data, *end = p + skb->len, *name;
	u8 depth = READ_ONCE(nn->dispatch.depth);
	u32 type, len;

	if (mode == NNET_DISPATCH_RANDOM)
		return get_random_u32();
	if (nnet_tl_get(&p, end, &type, &len) ||
	    nnet_tl_get(&p, end, &type, &len) || type != NNET_T_NAME)
		return 0;
	if (mode == NNET_DISPATCH_NAME)
		return siphash(p, len, &nnet_secret);
	name = p;
	end = p + len;
	while (depth-- && p < end && !nnet_tl_get(&p, end, &type, &len))
		p += len;
	return siphash(name, p - name, &nnet_secret);
}

/* The number of the thread for a packet. */
static unsigned int nnet_dispatch_choose(struct nnet_net *nn, u32 hash)
{
	unsigned int n = READ_ONCE(nn->dispatch.threads), i;
	unsigned int all = nnet_worker_count;

	if (!n || n > all)
		n = all;
	i = reciprocal_scale(hash, n);
	if (READ_ONCE(nn->dispatch.separate) && all > 1 &&
	    nnet_workers[i].cpu == smp_processor_id()) {
		if (n == 1)
			n = all;
		i = (i + 1 + hash % (n - 1)) % n;
	}
	return i;
}

/* Queues a packet. Return: whether its flow had room. */
static bool nnet_flow_add(struct nnet_worker *w, struct nnet_flow *flow,
			  struct sk_buff *skb)
{
	bool room;

	spin_lock(&w->lock);
	room = flow->queue.qlen < 3 * (NNET_DISPATCH_QUEUE - w->waiting);
	if (room) {
		__skb_queue_tail(&flow->queue, skb);
		w->waiting++;
		if (list_empty(&flow->active))
			list_add_tail(&flow->active, &w->active);
	} else {
		flow->dropped++;
	}
	spin_unlock(&w->lock);
	return room;
}

/**
 * nnet_dispatch() - hand a packet to its thread, or work on it at once
 * @nn: whose
 * @skb: the packet, its control block filled; taken
 *
 * Context: bottom halves off.
 */
void nnet_dispatch(struct nnet_net *nn, struct sk_buff *skb)
{
	struct nnet_flow *flows = smp_load_acquire(&nn->flows);
	u8 mode = READ_ONCE(nn->dispatch.mode);
	struct nnet_worker *w;
	unsigned int i;

	if (mode == NNET_DISPATCH_INLINE || !flows) {
		nnet_forward(nn, skb);
		return;
	}
	i = nnet_dispatch_choose(nn, nnet_dispatch_hash(nn, skb, mode));
	w = &nnet_workers[i];
	skb->dev_scratch = (unsigned long)nn;
	atomic_inc(&nn->dispatched);
	if (!nnet_flow_add(w, &flows[i], skb)) {
		atomic_dec(&nn->dispatched);
		nnet_count(nn, NNET_C_F_DISPATCH_FULL);
		skb->dev = NULL;
		kfree_skb(skb);
		return;
	}
	if (wq_has_sleeper(&w->wait))
		wake_up_interruptible(&w->wait);
}

/* Waits until no thread has a packet of this namespace. */
void nnet_dispatch_flush(struct nnet_net *nn)
{
	while (atomic_read(&nn->dispatched))
		schedule_timeout_uninterruptible(1);
}

void nnet_dispatch_show(struct seq_file *m, struct nnet_net *nn)
{
	static const char *const word[] = { "inline", "name", "prefix",
					    "random" };
	struct nnet_flow *flows = smp_load_acquire(&nn->flows);
	u64 packets, dropped;
	unsigned int i, n;

	seq_printf(m, "mode %s depth %u threads %u separate %u\n",
		   word[READ_ONCE(nn->dispatch.mode) & 3],
		   READ_ONCE(nn->dispatch.depth),
		   READ_ONCE(nn->dispatch.threads),
		   READ_ONCE(nn->dispatch.separate));
	seq_puts(m, "cpu packets dropped waiting\n");
	for (i = 0; flows && i < nnet_worker_count; i++) {
		spin_lock_bh(&nnet_workers[i].lock);
		packets = flows[i].packets;
		dropped = flows[i].dropped;
		n = flows[i].queue.qlen;
		spin_unlock_bh(&nnet_workers[i].lock);
		seq_printf(m, "%d %llu %llu %u\n", nnet_workers[i].cpu,
			   packets, dropped, n);
	}
}

/* The last step of a namespace: no thread has a packet of it. */
void nnet_dispatch_leave(struct nnet_net *nn)
{
	nn->flows = NULL;
	kfree(nn->own_flows);
	nn->own_flows = NULL;
}

/* No namespace is left. */
void nnet_dispatch_exit(void)
{
	unsigned int i;

	for (i = 0; nnet_workers && i < nnet_worker_count; i++)
		kthread_stop(nnet_workers[i].task);
	kfree(nnet_workers);
	nnet_workers = NULL;
}
