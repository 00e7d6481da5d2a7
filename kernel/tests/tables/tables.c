// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * PIT and content store of the module (pit.c, record.c, cs.c, table.c as they are)
 * under threads of a process, one on each of two processors: what they get done, and
 * how often a lock was taken while somebody had it.
 *
 *   tables REPEAT MS OTHER
 *
 * exchange: an Interest with a name of its own, kept, then the Data that answers it,
 * cached in a full store. hit: Interests for 64 packets, which all threads ask for.
 * Between operations a thread works OTHER ns on memory of its own: what a packet costs
 * beside the tables.
 * Windows of MS take turns over operations and numbers of threads, REPEAT times. One in
 * which a thread had less than 98 % of its processor is thrown away, so the machine
 * need not be quiet; medians of those kept, with their number.
 */
#include "../../nnet.h"

#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

enum { THREADS = 2, CACHED = 64, STORE = 4096, CONTENT = 1000, WINDOWS_MAX = 512 };

unsigned long jiffies = 1000;
unsigned int nnet_hash_bits = 16;
siphash_key_t nnet_secret = { { 0x0706050403020100, 0x0f0e0d0c0b0a0908 } };
struct lock_class lock_classes[CLASSES_MAX];
__thread u64 lock_taken[CLASSES_MAX], lock_contended[CLASSES_MAX];
__thread u64 counted;

/* One that all threads share, or one for each. */
static struct nnet_net nets[THREADS];
static struct nnet_slot slots[THREADS][NNET_FACES_MAX];
static struct nnet_face face;

unsigned int lock_class_of(const char *word)
{
	unsigned int c;

	for (c = 0; c < CLASSES_MAX - 1 && lock_classes[c].word && strcmp(lock_classes[c].word, word); c++)
		;
	lock_classes[c].word = word;
	return c;
}

#define CHECK(x) do { if (!(x)) { fprintf(stderr, "%d: %s\n", __LINE__, #x); _exit(1); } } while (0)

/* SipHash-2-4. */
#define ROTL(x, b) ((x) << (b) | (x) >> (64 - (b)))
static inline void sip_round(u64 v[4])
{
	v[0] += v[1]; v[1] = ROTL(v[1], 13) ^ v[0]; v[0] = ROTL(v[0], 32);
	v[2] += v[3]; v[3] = ROTL(v[3], 16) ^ v[2];
	v[0] += v[3]; v[3] = ROTL(v[3], 21) ^ v[0];
	v[2] += v[1]; v[1] = ROTL(v[1], 17) ^ v[2]; v[2] = ROTL(v[2], 32);
}

u64 siphash(const void *data, size_t len, const siphash_key_t *key)
{
	u64 v[4] = { key->key[0] ^ 0x736f6d6570736575, key->key[1] ^ 0x646f72616e646f6d,
		     key->key[0] ^ 0x6c7967656e657261, key->key[1] ^ 0x7465646279746573 };
	const u8 *p = data, *end = p + (len & ~7UL);
	u64 m, last = (u64)len << 56;

	for (; p < end; p += 8) {
		memcpy(&m, p, 8);
		v[3] ^= m;
		sip_round(v); sip_round(v);
		v[0] ^= m;
	}
	for (size_t i = 0; i < (len & 7); i++)
		last |= (u64)p[i] << 8 * i;
	v[3] ^= last;
	sip_round(v); sip_round(v);
	v[0] ^= last;
	v[2] ^= 255;
	for (int i = 0; i < 4; i++)
		sip_round(v);
	return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* By size, in steps; a piece begins with the number of its step. */
enum { PIECE_STEP = 128, PIECE_STEPS = 16, PIECE_HEAD = 16 };
struct pieces { void *first[PIECE_STEPS]; char apart[128]; };
static struct pieces pieces[THREADS];
static __thread struct pieces *mine = pieces;

void *piece_get(size_t n)
{
	size_t step = (n + PIECE_STEP - 1) / PIECE_STEP;
	char *p;

	CHECK(step < PIECE_STEPS);
	p = mine->first[step];
	if (p) {
		mine->first[step] = *(void **)(p + PIECE_HEAD);
	} else {
		p = malloc(PIECE_HEAD + step * PIECE_STEP);
		*(size_t *)p = step;
	}
	return p + PIECE_HEAD;
}

void piece_put(void *piece)
{
	char *p = (char *)piece - PIECE_HEAD;

	if (!piece)
		return;
	*(void **)piece = mine->first[*(size_t *)p];
	mine->first[*(size_t *)p] = p;
}

struct sk_buff *skb_of(const void *octets, u32 len)
{
	struct sk_buff *skb = piece_get(sizeof(*skb) + len);

	*skb = (struct sk_buff){ .len = len, .truesize = SKB_TRUESIZE(len), .data = (u8 *)(skb + 1) };
	refcount_set(&skb->users, 1);
	memcpy(skb->data, octets, len);
	return skb;
}

struct sk_buff *skb_copy_expand(struct sk_buff *skb, int head, int tail, gfp_t gfp)
{
	return skb_of(skb->data, skb->len);
}

/* The rest of the module that the tables call. */
void nnet_pending_expired(struct nnet_pending *e) {}
void nnet_store_offer(struct nnet_net *nn, struct sk_buff *data, u32 fresh_ms) {}
bool nnet_owner_over(const struct nnet_net *nn, long octets) { return false; }
void nnet_owner_charge(const struct nnet_net *nn, long octets) { counted += octets; }

/* RCU: what was given up before every thread was quiet twice is freed. */
enum { LATER_BATCH = 256 };
static struct { atomic_ulong quiet; char apart[120]; } quiet[THREADS];
static atomic_int running;
static __thread struct { struct rcu_head *first, *waiting; unsigned int n; unsigned long seen[THREADS]; } later;

void call_rcu(struct rcu_head *head, void (*func)(struct rcu_head *))
{
	head->func = func;
	head->next = later.first;
	later.first = head;
	later.n++;
}

static void free_all(struct rcu_head **list)
{
	struct rcu_head *h, *next;

	for (h = *list; h; h = next) {
		next = h->next;
		h->func(h);
	}
	*list = NULL;
}

static void quiesce(int me)
{
	int t;

	atomic_store_explicit(&quiet[me].quiet, atomic_load_explicit(&quiet[me].quiet, memory_order_relaxed) + 1,
			      memory_order_release);
	if (later.n < LATER_BATCH)
		return;
	for (t = 0; later.waiting && t < atomic_load(&running); t++)
		if (t != me && atomic_load_explicit(&quiet[t].quiet, memory_order_acquire) < later.seen[t] + 2)
			return;
	free_all(&later.waiting);
	later.waiting = later.first;
	later.first = NULL;
	later.n = 0;
	for (t = 0; t < THREADS; t++)
		later.seen[t] = atomic_load(&quiet[t].quiet);
}

/* Packets of names /t/WORKER/NUMBER. */
struct shot { u8 v[CONTENT + 64]; u32 len, number_at; };

static void shot_make(struct shot *s, u8 type, u8 worker)
{
	u8 name[] = { 7, 12, 8, 1, 't', 8, 1, worker, 8, 4, 0, 0, 0, 0 }, *p = s->v;
	u32 inner = sizeof(name) + (type == NNET_T_DATA ? 5 + 4 + CONTENT + 7 : 6);

	p = nnet_tl_put(p, type, inner);
	memcpy(p, name, sizeof(name));
	p += sizeof(name);
	s->number_at = p - s->v - 4;
	if (type == NNET_T_INTEREST) {
		p = nnet_tl_put(p, NNET_T_NONCE, 4);
		memset(p, 1, 4);
		p += 4;
	} else {
		p = nnet_tl_put(p, NNET_T_META, 3);
		p = nnet_nni_put(p, NNET_T_FRESHNESS, 100);
		p = nnet_tl_put(p, NNET_T_CONTENT, CONTENT);
		memset(p, 7, CONTENT);
		p += CONTENT;
		p = nnet_tl_put(p, NNET_T_SIG_INFO, 3);
		p = nnet_nni_put(p, NNET_T_SIG_TYPE, 200);
		p = nnet_tl_put(p, NNET_T_SIG_VALUE, 0);
	}
	s->len = p - s->v;
}

static struct sk_buff *shot_fire(struct shot *s, u32 number)
{
	put_unaligned_be32(number, s->v + s->number_at);
	return skb_of(s->v, s->len);
}

/* As interest.c. Return: whether the content store had an answer. */
static bool interest(struct nnet_net *nn, struct sk_buff *skb, u32 from, u32 to)
{
	struct nnet_cs_packet *p;
	struct nnet_pending *e;
	struct nnet_record *r;
	struct nnet_view v;
	struct nnet_key key;
	bool is_new;

	CHECK(!nnet_interest_parse(skb->data, skb->len, &v));
	nnet_key_make(&nnet_secret, v.name, v.name_len, &key);
	CHECK(!nnet_dead_has(nn, key.full, v.nonce));
	e = nnet_pit_find(nn, &v, &key);
	p = e ? NULL : nnet_cs_find(nn, &v, &key);
	if (p) {
		kfree_skb(skb_get(p->skb));
		nnet_cs_put(p);
		kfree_skb(skb);
		return true;
	}
	CHECK(!e && !nnet_over_share(nn, from, nnet_pending_octets(skb)));
	e = nnet_pit_insert(nn, skb, &v, &key, &is_new);
	CHECK(!IS_ERR(e) && is_new);
	spin_lock(&e->lock);
	r = nnet_in_get(e, from);
	CHECK(r);
	r->nonce = v.nonce;
	r->expires = jiffies + 4000;
	r = nnet_out_get(e, to);
	CHECK(r);
	r->nonce = v.nonce;
	nnet_pit_arm(e, jiffies + 4000);
	spin_unlock(&e->lock);
	nnet_pit_put(e);
	kfree_skb(skb);
	return false;
}

/* As data.c. */
static void data(struct nnet_net *nn, struct sk_buff *skb, u32 from)
{
	struct nnet_pending *found[NNET_MATCH_MAX];
	struct nnet_arrival a = { .skb = skb, .face = from };
	struct nnet_view v;

	CHECK(!nnet_data_parse(skb->data, skb->len, &v));
	a.v = &v;
	nnet_key_make(&nnet_secret, v.name, v.name_len, &a.key);
	CHECK(nnet_pit_take(nn, &a, found) == 1);
	nnet_cs_insert(nn, skb, &v, &a.key, false);
	kfree_skb(skb_get(skb));
	nnet_pit_put(found[0]);
	kfree_skb(skb);
}

struct worker {
	pthread_t thread;
	struct nnet_net *nn;
	int me, hits;
	u64 done, taken[CLASSES_MAX], contended[CLASSES_MAX];
	double share;
};
static atomic_int ready, go, stop;
static u32 rounds_between;
static u32 numbers[THREADS];

static double clock_of(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return t.tv_sec + t.tv_nsec * 1e-9;
}

/* Work that touches nothing of others. */
static void other(u32 rounds)
{
	static __thread u64 own[16];

	while (rounds--)
		own[rounds & 15] = siphash(own, sizeof(own), &nnet_secret);
}

/* Rounds of it in so many ns: the best of some. */
static u32 rounds_of(int ns)
{
	double best = 1, begun;

	for (int again = 0; again < 200; again++) {
		begun = clock_of(CLOCK_MONOTONIC);
		other(1000);
		best = min(best, clock_of(CLOCK_MONOTONIC) - begun);
	}
	return ns * 1e-9 / (best / 1000);
}

/* Above everything else for the time of a window, where that is allowed. */
static void rank(int priority)
{
	struct sched_param p = { .sched_priority = priority };

	pthread_setschedparam(pthread_self(), priority ? SCHED_FIFO : SCHED_OTHER, &p);
}

static void *work(void *arg)
{
	struct worker *w = arg;
	u32 ask = NNET_FACE_FIRST + 2 * w->me, answer = ask + 1, i = numbers[w->me];
	static __thread struct shot in, out;
	double wall, own;
	cpu_set_t on;

	CPU_ZERO(&on);
	CPU_SET(w->me, &on);
	CHECK(!pthread_setaffinity_np(pthread_self(), sizeof(on), &on));
	rank(10);
	mine = &pieces[w->me];
	shot_make(&in, NNET_T_INTEREST, w->hits ? 99 : w->me);
	shot_make(&out, NNET_T_DATA, w->me);
	memset(lock_taken, 0, sizeof(lock_taken));
	memset(lock_contended, 0, sizeof(lock_contended));
	atomic_fetch_add(&ready, 1);
	while (!atomic_load(&go))
		cpu_relax();
	wall = clock_of(CLOCK_MONOTONIC), own = clock_of(CLOCK_THREAD_CPUTIME_ID);
	for (; !atomic_load_explicit(&stop, memory_order_relaxed); i++, w->done++) {
		if (w->hits) {
			CHECK(interest(w->nn, shot_fire(&in, i * 7919 % CACHED), ask, answer));
		} else {
			CHECK(!interest(w->nn, shot_fire(&in, i), ask, answer));
			data(w->nn, shot_fire(&out, i), answer);
		}
		other(rounds_between);
		quiesce(w->me);
	}
	w->share = (clock_of(CLOCK_THREAD_CPUTIME_ID) - own) / (clock_of(CLOCK_MONOTONIC) - wall);
	numbers[w->me] = i;
	memcpy(w->taken, lock_taken, sizeof(lock_taken));
	memcpy(w->contended, lock_contended, sizeof(lock_contended));
	/* Nobody reads any more when all are here. */
	atomic_fetch_sub(&ready, 1);
	while (atomic_load(&ready))
		sched_yield();
	free_all(&later.waiting);
	free_all(&later.first);
	later.n = 0;
	return NULL;
}

static void tables_up(struct nnet_net *nn, int hits)
{
	struct nnet_slot *slot = slots[nn - nets];
	static struct shot s;
	struct nnet_view v;
	struct nnet_key key;
	struct sk_buff *skb;
	u32 i;

	memset(nn, 0, sizeof(*nn));
	nn->slots = slot;
	for (i = 0; i < NNET_FACES_MAX; i++, slot++) {
		memset(slot, 0, sizeof(*slot));
		spin_lock_init(&slot->lock);
		INIT_LIST_HEAD(&slot->asked);
		slot->face = &face;
	}
	CHECK(!nnet_pit_init(nn) && !nnet_cs_init(nn));
	nn->cs.packets_max = STORE;
	memset(numbers, 0, sizeof(numbers));
	shot_make(&s, NNET_T_DATA, hits ? 99 : 98);
	for (i = 0; i < (hits ? CACHED : STORE); i++) {
		skb = shot_fire(&s, i);
		CHECK(!nnet_data_parse(skb->data, skb->len, &v));
		nnet_key_make(&nnet_secret, v.name, v.name_len, &key);
		nnet_cs_insert(nn, skb, &v, &key, true);
		kfree_skb(skb);
	}
}

static void tables_down(struct nnet_net *nn)
{
	nnet_cs_exit(nn);
	nnet_pit_exit(nn);
	free_all(&later.first);
	later.n = 0;
}

struct result { double rate[WINDOWS_MAX]; int n; u64 done, taken[CLASSES_MAX], contended[CLASSES_MAX]; };

static void window(struct result *r, int threads, bool apart, int hits, int ms)
{
	struct worker w[THREADS] = {};
	double begun, wall;
	u64 done = 0;
	bool whole = true;
	int t, c;

	rank(20);
	atomic_store(&go, 0), atomic_store(&stop, 0), atomic_store(&running, threads);
	for (t = 0; t < threads; t++) {
		w[t].me = t;
		w[t].nn = &nets[apart ? t : 0];
		w[t].hits = hits;
		CHECK(!pthread_create(&w[t].thread, NULL, work, &w[t]));
	}
	while (atomic_load(&ready) < threads)
		usleep(100);
	begun = clock_of(CLOCK_MONOTONIC);
	atomic_store(&go, 1);
	usleep(ms * 1000);
	atomic_store(&stop, 1);
	wall = clock_of(CLOCK_MONOTONIC) - begun;
	for (t = 0; t < threads; t++) {
		CHECK(!pthread_join(w[t].thread, NULL));
		done += w[t].done;
		whole &= w[t].share > 0.98;
	}
	rank(0);
	if (!whole || r->n == WINDOWS_MAX)
		return;
	r->rate[r->n++] = done / wall;
	r->done += done;
	for (c = 0; c < CLASSES_MAX; c++)
		for (t = 0; t < threads; t++) {
			r->taken[c] += w[t].taken[c];
			r->contended[c] += w[t].contended[c];
		}
}

static int by_size(const void *a, const void *b)
{
	return *(const double *)a < *(const double *)b ? -1 : *(const double *)a > *(const double *)b;
}

static double middle(struct result *r)
{
	qsort(r->rate, r->n, sizeof(r->rate[0]), by_size);
	return r->n ? r->rate[r->n / 2] : 0;
}

/* One thread; two on the same tables; two with tables of their own. */
enum { ALONE, SHARED, APART, WAYS };

static void row(const char *what, struct result r[WAYS])
{
	struct result *two = &r[SHARED];
	u64 taken = 0, contended = 0;
	int c;

	for (c = 0; c < CLASSES_MAX; c++)
		taken += two->taken[c], contended += two->contended[c];
	printf("| %s | %.0f | %.2f | %.2f | %d, %d, %d | %.1f | %.1f |", what, middle(&r[ALONE]),
	       middle(two) / middle(&r[ALONE]), middle(&r[APART]) / middle(&r[ALONE]), r[ALONE].n, two->n,
	       r[APART].n, (double)taken / two->done, taken ? contended * 1e3 / taken : 0.0);
	for (c = 0; c < CLASSES_MAX && lock_classes[c].word; c++)
		if (two->taken[c])
			printf(" %s %.1f", lock_classes[c].word, two->contended[c] * 1e3 / two->taken[c]);
	printf(" |\n");
}

int main(int argc, char **argv)
{
	static const char *const what[] = { "exchange", "hit" };
	static struct result all[2][WAYS];
	int repeat = argc > 1 ? atoi(argv[1]) : 40, ms = argc > 2 ? atoi(argv[2]) : 5;
	int again, hits, way, t;

	rounds_between = rounds_of(argc > 3 ? atoi(argv[3]) : 0);

	for (again = 0; again < repeat; again++)
		for (hits = 0; hits < 2; hits++) {
			for (t = 0; t < THREADS; t++)
				tables_up(&nets[t], hits);
			for (way = 0; way < WAYS; way++)
				window(&all[hits][way], way == ALONE ? 1 : THREADS, way == APART, hits, ms);
			for (t = 0; t < THREADS; t++)
				tables_down(&nets[t]);
		}
	printf("| what | one thread, /s | two, of one | two, each its tables | windows | taken an operation | contended of 1000 taken | by class |\n"
	       "|---|---|---|---|---|---|---|---|\n");
	for (hits = 0; hits < 2; hits++)
		row(what[hits], all[hits]);
	return 0;
}
