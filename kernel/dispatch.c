// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Packets of lower faces handed to kernel threads, one per processor, because
 * network cards send all frames of an unknown EtherType to one. What local
 * applications send is worked on by their own thread.
 *
 * The threads serve all namespaces and come with the first that asks. A
 * packet in a queue carries its namespace in skb->dev_scratch; its namespace
 * waits for nn->dispatched to become 0 before it goes.
 */
#include <linux/kthread.h>
#include <linux/random.h>

#include "nnet.h"

struct nnet_worker {
	struct sk_buff_head queue;
	struct task_struct *task;
	wait_queue_head_t wait;
	int cpu;
	u64 packets;
	u64 dropped;
};

static DEFINE_MUTEX(nnet_workers_lock);
static struct nnet_worker *nnet_workers;
static unsigned int nnet_worker_count;

static void nnet_worker_run(struct nnet_worker *w)
{
	struct sk_buff_head batch;
	struct nnet_net *nn;
	struct sk_buff *skb;

	__skb_queue_head_init(&batch);
	spin_lock_bh(&w->queue.lock);
	skb_queue_splice_init(&w->queue, &batch);
	spin_unlock_bh(&w->queue.lock);
	while ((skb = __skb_dequeue(&batch))) {
		nn = (struct nnet_net *)skb->dev_scratch;
		skb->dev = NULL;
		w->packets++;
		local_bh_disable();
		nnet_forward(nn, skb);
		local_bh_enable();
		atomic_dec(&nn->dispatched);
		if (!(w->packets & 63))
			cond_resched();
	}
}

static int nnet_worker_thread(void *data)
{
	struct nnet_worker *w = data;

	while (!kthread_should_stop()) {
		wait_event_interruptible(w->wait,
					 !skb_queue_empty(&w->queue) ||
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
		skb_queue_head_init(&w[i].queue);
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
	smp_store_release(&nnet_workers, w);
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
		err = nnet_workers_start();
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

static struct nnet_worker *nnet_dispatch_choose(struct nnet_net *nn, u32 hash)
{
	unsigned int n = READ_ONCE(nn->dispatch.threads), i;
	struct nnet_worker *w = nnet_workers;
	unsigned int all = nnet_worker_count;

	if (!n || n > all)
		n = all;
	i = reciprocal_scale(hash, n);
	if (READ_ONCE(nn->dispatch.separate) && all > 1 &&
	    w[i].cpu == smp_processor_id()) {
		if (n == 1)
			n = all;
		i = (i + 1 + hash % (n - 1)) % n;
	}
	return &w[i];
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
	u8 mode = READ_ONCE(nn->dispatch.mode);
	struct nnet_worker *w;

	if (mode == NNET_DISPATCH_INLINE || !smp_load_acquire(&nnet_workers)) {
		nnet_forward(nn, skb);
		return;
	}
	w = nnet_dispatch_choose(nn, nnet_dispatch_hash(nn, skb, mode));
	if (skb_queue_len_lockless(&w->queue) >= NNET_DISPATCH_QUEUE) {
		w->dropped++;
		nnet_count(nn, NNET_C_F_DISPATCH_FULL);
		kfree_skb(skb);
		return;
	}
	skb->dev_scratch = (unsigned long)nn;
	atomic_inc(&nn->dispatched);
	skb_queue_tail(&w->queue, skb);
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
	unsigned int i;

	seq_printf(m, "mode %s depth %u threads %u separate %u\n",
		   word[nn->dispatch.mode & 3], nn->dispatch.depth,
		   nn->dispatch.threads, nn->dispatch.separate);
	seq_puts(m, "cpu packets dropped waiting\n");
	for (i = 0; smp_load_acquire(&nnet_workers) && i < nnet_worker_count;
	     i++)
		seq_printf(m, "%d %llu %llu %u\n", nnet_workers[i].cpu,
			   nnet_workers[i].packets, nnet_workers[i].dropped,
			   skb_queue_len(&nnet_workers[i].queue));
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
