/* SPDX-License-Identifier: GPL-2.0-only OR MIT */
/*
 * What the sources of the tables take from the kernel, for threads of a process
 * (tables.c): locks with the fast paths of the kernel's (one exchange for a spinlock,
 * an addition for a reader), which count by class how often they were taken and how
 * often somebody had them; RCU by quiescent states; no timer ever runs out.
 */
#ifndef _SHIM_H
#define _SHIM_H

#include <arpa/inet.h>
#include <ctype.h>
#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <netinet/in.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef uint16_t __be16;
typedef uint32_t __be32;
typedef unsigned int gfp_t, __poll_t;
typedef struct { int unused; } netdevice_tracker, sockptr_t;
typedef struct { unsigned int val; } kuid_t;
typedef struct { u64 key[2]; } siphash_key_t;

#define __rcu
#define __user
#define __percpu
#define noinline __attribute__((noinline))
#define unlikely(x) __builtin_expect(!!(x), 0)
#define GFP_ATOMIC 0
#define GFP_KERNEL 0
#define GFP_KERNEL_ACCOUNT 0
#define ETH_ALEN 6
#define U32_MAX UINT32_MAX
#define KERNEL_VERSION(a, b, c) ((a) << 16 | (b) << 8 | (c))
#define LINUX_VERSION_CODE KERNEL_VERSION(6, 1, 0)
#define BIT(n) (1UL << (n))
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))
#define READ_ONCE(x) (*(const volatile __typeof__(x) *)&(x))
#define WRITE_ONCE(x, v) (*(volatile __typeof__(x) *)&(x) = (v))
#define smp_load_acquire(p) __atomic_load_n(p, __ATOMIC_ACQUIRE)
#define smp_store_release(p, v) __atomic_store_n(p, v, __ATOMIC_RELEASE)
#define min(a, b) ((a) < (b) ? (a) : (b))
#define min_t(t, a, b) ((t)(a) < (t)(b) ? (t)(a) : (t)(b))
#define container_of(p, t, m) ((t *)((char *)(p) - offsetof(t, m)))
#define ERR_PTR(e) ((void *)(long)(e))
#define IS_ERR(p) ((unsigned long)(p) > -4096UL)
#define cpu_relax() __builtin_ia32_pause()
#define cond_resched() ((void)0)
#define scnprintf(buf, size, ...) ((void)(size), snprintf(buf, size, __VA_ARGS__))
#define kzalloc(n, gfp) memset(piece_get(n), 0, n)
#define kfree piece_put
#define kvcalloc(n, size, gfp) calloc(n, size)
#define kvfree free

/* Memory: each processor keeps what was given back on it, as the kernel's. */
void *piece_get(size_t n);
void piece_put(void *p);

static inline u16 get_unaligned_be16(const void *p) { u16 v; memcpy(&v, p, 2); return be16toh(v); }
static inline u32 get_unaligned_be32(const void *p) { u32 v; memcpy(&v, p, 4); return be32toh(v); }
static inline u64 get_unaligned_be64(const void *p) { u64 v; memcpy(&v, p, 8); return be64toh(v); }
static inline void put_unaligned_be16(u16 v, void *p) { v = htobe16(v); memcpy(p, &v, 2); }
static inline void put_unaligned_be32(u32 v, void *p) { v = htobe32(v); memcpy(p, &v, 4); }
static inline void put_unaligned_be64(u64 v, void *p) { v = htobe64(v); memcpy(p, &v, 8); }

/* Time stands still but where the measurement moves it. */
extern unsigned long jiffies;
#define msecs_to_jiffies(ms) ((unsigned long)(ms))
#define jiffies_to_msecs(ticks) ((u32)(ticks))
#define time_before(a, b) ((long)((a) - (b)) < 0)
#define time_after(a, b) time_before(b, a)

/* Atomics: those that return something are ordered, as the kernel's. */
typedef struct { int v; } atomic_t;
typedef struct { long v; } atomic_long_t, atomic64_t;
#define atomic_read(a) READ_ONCE((a)->v)
#define atomic_add(n, a) ((void)__atomic_fetch_add(&(a)->v, n, __ATOMIC_RELAXED))
#define atomic_long_read atomic_read
#define atomic_long_add atomic_add
typedef struct { int v; } refcount_t;
#define refcount_set(r, n) WRITE_ONCE((r)->v, n)
#define refcount_inc(r) ((void)__atomic_fetch_add(&(r)->v, 1, __ATOMIC_RELAXED))
#define refcount_dec(r) ((void)__atomic_fetch_sub(&(r)->v, 1, __ATOMIC_RELEASE))
static inline bool refcount_dec_and_test(refcount_t *r)
{
	return __atomic_sub_fetch(&r->v, 1, __ATOMIC_ACQ_REL) == 0;
}
static inline bool refcount_inc_not_zero(refcount_t *r)
{
	int v = READ_ONCE(r->v);

	while (v && !__atomic_compare_exchange_n(&r->v, &v, v + 1, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return v;
}

/* Locks. Their class is the words that they were made with. */
enum { CLASSES_MAX = 16 };
struct lock_class { const char *word; };
extern struct lock_class lock_classes[CLASSES_MAX];
extern __thread u64 lock_taken[CLASSES_MAX], lock_contended[CLASSES_MAX];
unsigned int lock_class_of(const char *word);
typedef struct { u32 v; u32 class; } spinlock_t;
#define spin_lock_init(l) (*(l) = (spinlock_t){ 0, lock_class_of(#l) })

static inline bool lock_try(spinlock_t *l)
{
	u32 free_ = 0;

	return __atomic_compare_exchange_n(&l->v, &free_, 1, false, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
static inline void spin_lock(spinlock_t *l)
{
	lock_taken[l->class]++;
	if (lock_try(l))
		return;
	lock_contended[l->class]++;
	do {
		while (READ_ONCE(l->v))
			cpu_relax();
	} while (!lock_try(l));
}
#define spin_lock_bh spin_lock
#define spin_unlock(l) __atomic_store_n(&(l)->v, 0, __ATOMIC_RELEASE)
#define spin_unlock_bh(l) spin_unlock(l)
static inline bool spin_trylock_bh(spinlock_t *l)
{
	bool mine = !READ_ONCE(l->v) && lock_try(l);

	lock_taken[l->class]++;
	lock_contended[l->class] += !mine;
	return mine;
}
#define local_bh_disable() ((void)0)
#define local_bh_enable() ((void)0)
struct mutex { int unused; };

/* RCU: each thread says between operations that it reads nothing. */
struct rcu_head { struct rcu_head *next; void (*func)(struct rcu_head *); };
#define rcu_read_lock() ((void)0)
#define rcu_read_unlock() ((void)0)
#define rcu_access_pointer(p) READ_ONCE(p)
void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *));

/* Lists. */
struct list_head { struct list_head *next, *prev; };
struct hlist_node { struct hlist_node *next, **pprev; };
struct hlist_head { struct hlist_node *first; };
#define INIT_LIST_HEAD(l) ((l)->next = (l)->prev = (l))
#define list_entry container_of
#define list_empty(l) (READ_ONCE((l)->next) == (l))
static inline void list_add_tail(struct list_head *n, struct list_head *h)
{
	n->next = h;
	n->prev = h->prev;
	h->prev->next = n;
	h->prev = n;
}
static inline void list_del(struct list_head *n)
{
	n->next->prev = n->prev;
	n->prev->next = n->next;
}
static inline void list_del_init(struct list_head *n)
{
	list_del(n);
	INIT_LIST_HEAD(n);
}
static inline void list_move_tail(struct list_head *n, struct list_head *h)
{
	list_del(n);
	list_add_tail(n, h);
}
#define list_first_entry_or_null(h, t, m) (list_empty(h) ? NULL : list_entry((h)->next, t, m))
#define list_for_each_entry(p, h, m) \
	for (p = list_entry((h)->next, __typeof__(*p), m); &p->m != (h); p = list_entry(p->m.next, __typeof__(*p), m))
#define list_for_each_entry_safe(p, n, h, m) \
	for (p = list_entry((h)->next, __typeof__(*p), m), n = list_entry(p->m.next, __typeof__(*p), m); &p->m != (h); \
	     p = n, n = list_entry(n->m.next, __typeof__(*n), m))
#define INIT_HLIST_HEAD(h) ((h)->first = NULL)
#define hlist_empty(h) (!READ_ONCE((h)->first))
#define hlist_unhashed(n) (!(n)->pprev)
#define hlist_entry_safe(p, t, m) ({ __typeof__(p) at_ = (p); at_ ? container_of(at_, t, m) : NULL; })
static inline void hlist_add_head_rcu(struct hlist_node *n, struct hlist_head *h)
{
	struct hlist_node *first = h->first;

	n->next = first;
	n->pprev = &h->first;
	smp_store_release(&h->first, n);
	if (first)
		first->pprev = &n->next;
}
static inline void hlist_del_rcu(struct hlist_node *n)
{
	WRITE_ONCE(*n->pprev, n->next);
	if (n->next)
		n->next->pprev = n->pprev;
}
static inline void hlist_del_init_rcu(struct hlist_node *n)
{
	hlist_del_rcu(n);
	n->pprev = NULL;
}
#define hlist_for_each_entry(p, h, m) \
	for (p = hlist_entry_safe(READ_ONCE((h)->first), __typeof__(*p), m); p; \
	     p = hlist_entry_safe(READ_ONCE(p->m.next), __typeof__(*p), m))
#define hlist_for_each_entry_rcu(p, h, m, ...) hlist_for_each_entry(p, h, m)

/* The kernel's own red-black tree: lib/rbtree.c, by way of tables.sh. */
#define rcu_assign_pointer(p, v) smp_store_release(&(p), v)
#define EXPORT_SYMBOL(f)
#include <linux/rbtree.h>

/* Timers: armed and taken back, as the tables do; none runs out. */
struct timer_list { int pending; };
#define timer_setup(t, f, flags) ((void)(f), (t)->pending = 0)
#define from_timer(var, t, field) container_of(t, __typeof__(*(var)), field)
#define mod_timer(t, when) ((void)(when), __atomic_exchange_n(&(t)->pending, 1, __ATOMIC_ACQ_REL))
#define del_timer(t) __atomic_exchange_n(&(t)->pending, 0, __ATOMIC_ACQ_REL)
#define del_timer_sync del_timer

/* Buffers: one piece with their octets. */
struct sk_buff { refcount_t users; u32 len, truesize; bool nohdr; u8 *data; char cb[48]; };
#define SKB_TRUESIZE(n) ((n) + 576)
#define skb_cloned(skb) false
#define __skb_header_release(skb) ((void)(skb))
static inline struct sk_buff *skb_get(struct sk_buff *skb)
{
	refcount_inc(&skb->users);
	return skb;
}
static inline void kfree_skb(struct sk_buff *skb)
{
	if (refcount_dec_and_test(&skb->users))
		kfree(skb);
}
struct sk_buff *skb_copy_expand(struct sk_buff *skb, int head, int tail, gfp_t gfp);
struct sk_buff *skb_of(const void *octets, u32 len);

u64 siphash(const void *data, size_t len, const siphash_key_t *key);
static inline u64 siphash_2u64(u64 a, u64 b, const siphash_key_t *key)
{
	u64 both[2] = { a, b };

	return siphash(both, 16, key);
}
/* Nobody asks for a digest here. */
#define sha256(data, len, out) abort()

/* What structures of the module hold that the tables do not touch. */
struct sock { int unused; };
struct net;
struct net_device;
struct socket;
struct msghdr;
struct seq_file;
struct workqueue_struct;
struct proc_dir_entry;
#define net_generic(net, id) NULL
extern __thread u64 counted;
#define this_cpu_inc(x) ((void)++counted)

#endif /* _SHIM_H */
