/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What the kernel's tables look like to NFD's management protocol: the datasets
 * faces/list, fib/list, rib/list, cs/info and status/general, made from dumps of the
 * netlink family. Part of nfd_bridge.c.
 *
 * A dataset is made when its first Interest comes and kept until another one is asked
 * for, so that the segments of one version agree.
 */
#ifndef NFD_VIEW_H
#define NFD_VIEW_H

#include <arpa/inet.h>
#include <linux/genetlink.h>
#include <linux/netlink.h>
#include <net/if.h>
#include <time.h>

#include <nnet_nl.h>

enum { DATASET_MAX = 4 << 20, SEGMENT = 7000, BOUND_MAX = 4096 };

static struct {
	struct onym_name name;	/* with its version */
	uint8_t *v;
	size_t len;
	size_t prefix_len;	/* of the name without it */
} dataset;

static uint64_t started_ms;

/* A row of a table: its attributes. */
typedef void (*view_row)(void *ctx, const struct nlattr *const a[NNET_A_MAX + 1]);

static uint64_t now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_REALTIME, &t);
	return t.tv_sec * 1000ull + t.tv_nsec / 1000000;
}

static const void *value_of(const struct nlattr *a)
{
	return (const char *)a + NLA_HDRLEN;
}

static uint64_t number_of(const struct nlattr *a)
{
	uint64_t v = 0;

	if (a)
		memcpy(&v, value_of(a), a->nla_len - NLA_HDRLEN > 8 ? 8 : a->nla_len - NLA_HDRLEN);
	return v;
}

static void view_attributes(const struct nlmsghdr *h, view_row row, void *ctx)
{
	const struct nlattr *a[NNET_A_MAX + 1] = { 0 };
	const char *p = (const char *)h + NLMSG_LENGTH(GENL_HDRLEN), *end = (const char *)h + h->nlmsg_len;

	while (p + NLA_HDRLEN <= end) {
		const struct nlattr *at = (const struct nlattr *)p;

		if (at->nla_len < NLA_HDRLEN || p + at->nla_len > end)
			break;
		if ((at->nla_type & NLA_TYPE_MASK) <= NNET_A_MAX)
			a[at->nla_type & NLA_TYPE_MASK] = at;
		p += NLA_ALIGN(at->nla_len);
	}
	row(ctx, a);
}

/* Asks for a table, or for one answer. Return: 0 or a negative errno. */
static int view_table(uint8_t command, int dump, view_row row, void *ctx)
{
	static uint8_t answer[32768];
	static uint32_t sequence = 1000000;
	struct {
		struct nlmsghdr h;
		struct genlmsghdr g;
	} r = { { sizeof(r), onym_ctl_family(control), NLM_F_REQUEST | (dump ? NLM_F_DUMP : NLM_F_ACK), ++sequence, 0 },
		{ command, NNET_NL_VERSION, 0 } };
	ssize_t n;

	if (send(control, &r, sizeof(r), 0) < 0)
		return -errno;
	while ((n = recv(control, answer, sizeof(answer), 0)) > 0) {
		for (struct nlmsghdr *h = (void *)answer; NLMSG_OK(h, n); h = NLMSG_NEXT(h, n)) {
			if (h->nlmsg_seq != sequence)
				continue;
			if (h->nlmsg_type == NLMSG_DONE)
				return 0;
			if (h->nlmsg_type == NLMSG_ERROR)
				return ((struct nlmsgerr *)NLMSG_DATA(h))->error;
			view_attributes(h, row, ctx);
		}
	}
	return n < 0 ? -errno : -EPIPE;
}

static int view_room(size_t more)
{
	return dataset.len + more <= DATASET_MAX;
}

static void view_put(const uint8_t *v, uint32_t type, size_t len)
{
	uint8_t *p = dataset.v + dataset.len;

	if (!view_room(len + 16))
		return;
	p = onym_put_tl(p, type, len);
	memcpy(p, v, len);
	dataset.len = p + len - dataset.v;
}

static uint8_t *put_text(uint8_t *p, uint32_t type, const char *text)
{
	size_t len = strlen(text);

	p = onym_put_tl(p, type, len);
	memcpy(p, text, len);
	return p + len;
}

static void face_uri(const struct nlattr *const a[], char *uri, size_t size, char *local, size_t local_size)
{
	uint32_t index = number_of(a[NNET_A_IFINDEX]);
	char device[IF_NAMESIZE] = "?", text[INET6_ADDRSTRLEN];
	const uint8_t *v;

	if_indextoname(index, device);
	snprintf(local, local_size, "internal://");
	switch (number_of(a[NNET_A_FACE_KIND])) {
	case NNET_FACE_KIND_ETHER:
		v = value_of(a[NNET_A_PEER]);
		snprintf(uri, size, "ether://[%02x:%02x:%02x:%02x:%02x:%02x]", v[0], v[1], v[2], v[3], v[4], v[5]);
		snprintf(local, local_size, "dev://%s", device);
		break;
	case NNET_FACE_KIND_UDP:
		v = value_of(a[NNET_A_ADDRESS]);
		if (!memcmp(v, "\0\0\0\0\0\0\0\0\0\0\xff\xff", 12))
			snprintf(uri, size, "udp4://%s:%u", inet_ntop(AF_INET, v + 12, text, sizeof(text)),
				 (unsigned int)number_of(a[NNET_A_PORT]));
		else
			snprintf(uri, size, "udp6://[%s%s%s]:%u", inet_ntop(AF_INET6, v, text, sizeof(text)),
				 index ? "%" : "", index ? device : "", (unsigned int)number_of(a[NNET_A_PORT]));
		snprintf(local, local_size, "udp://");
		break;
	default:
		snprintf(uri, size, "internal://");
	}
}

/* FaceStatus. The kernel's flags: 1 local, 2 several peers, 4 local fields. */
static void face_row(void *ctx, const struct nlattr *const a[])
{
	static const struct {
		uint16_t attr, type;
	} counters[] = { { NNET_A_IN_INTERESTS, 144 },	{ NNET_A_IN_DATA, 145 },  { NNET_A_IN_NACKS, 151 },
			 { NNET_A_OUT_INTERESTS, 146 }, { NNET_A_OUT_DATA, 147 }, { NNET_A_OUT_NACKS, 152 },
			 { NNET_A_IN_BYTES, 148 },	{ NNET_A_OUT_BYTES, 149 } };
	uint64_t flags = number_of(a[NNET_A_FLAGS]), mtu = number_of(a[NNET_A_MTU]);
	uint8_t v[1024], *p = v;
	char uri[128], local[64];

	(void)ctx;
	face_uri(a, uri, sizeof(uri), local, sizeof(local));
	p = onym_put_nni(p, 105, number_of(a[NNET_A_FACE_ID]));
	p = put_text(p, 114, uri);
	p = put_text(p, 129, local);
	p = onym_put_nni(p, 132, flags & 1);
	p = onym_put_nni(p, 133, 0);
	p = onym_put_nni(p, 134, flags >> 1 & 1);
	if (mtu)
		p = onym_put_nni(p, 137, mtu);
	for (size_t i = 0; i < sizeof(counters) / sizeof(*counters); i++)
		p = onym_put_nni(p, counters[i].type, number_of(a[counters[i].attr]));
	p = onym_put_nni(p, 108, flags >> 2 & 1);
	view_put(v, 128, p - v);
}

struct bindings {
	int count;
	struct {
		uint32_t face;
		size_t len;
		uint8_t name[256];
	} at[BOUND_MAX];
};

static void binding_row(void *ctx, const struct nlattr *const a[])
{
	struct bindings *b = ctx;
	size_t len = a[NNET_A_NAME] ? a[NNET_A_NAME]->nla_len - NLA_HDRLEN : 0;

	if (b->count == BOUND_MAX || len > sizeof(b->at->name))
		return;
	memcpy(b->at[b->count].name, value_of(a[NNET_A_NAME]), len);
	b->at[b->count].len = len;
	b->at[b->count++].face = number_of(a[NNET_A_FACE_ID]);
}

/* @hops: next hops of the prefix that the rows tell now, for rows of one follow each other. */
struct routes {
	int rib;
	uint8_t name[ONYM_NAME_MAX], hops[2048];
	size_t name_len, hops_len;
	struct bindings bound;
};

/* Puts the FibEntry or RibEntry that is whole. */
static void route_put(struct routes *r)
{
	static uint8_t v[ONYM_NAME_MAX + 2048 + 16];
	uint8_t *p = v;

	if (!r->hops_len)
		return;
	p = onym_put_tl(p, 7, r->name_len);
	memcpy(p, r->name, r->name_len);
	p += r->name_len;
	memcpy(p, r->hops, r->hops_len);
	view_put(v, 128, p + r->hops_len - v);
	r->hops_len = 0;
}

/* A route to the applications leads to the one that bound the prefix. */
static void route_row(void *ctx, const struct nlattr *const a[])
{
	struct routes *r = ctx;
	const uint8_t *name = a[NNET_A_NAME] ? value_of(a[NNET_A_NAME]) : NULL;
	size_t len = name ? a[NNET_A_NAME]->nla_len - NLA_HDRLEN : 0;
	uint32_t face = number_of(a[NNET_A_FACE_ID]);
	uint8_t hop[64], *q = hop;

	if (!face || len > sizeof(r->name))
		return;
	if (len != r->name_len || memcmp(r->name, name, len) || r->hops_len > sizeof(r->hops) - 80) {
		route_put(r);
		memcpy(r->name, name, len);
		r->name_len = len;
	}
	for (int i = 0; face == 1 && i < r->bound.count; i++)
		if (r->bound.at[i].len == len && !memcmp(r->bound.at[i].name, name, len))
			face = r->bound.at[i].face;
	q = onym_put_nni(q, 105, face);
	if (r->rib)
		q = onym_put_nni(q, 111, 255);
	q = onym_put_nni(q, 106, number_of(a[NNET_A_COST]));
	if (r->rib)
		q = onym_put_nni(q, 108, 1);
	len = q - hop;
	q = onym_put_tl(r->hops + r->hops_len, 129, len);
	memcpy(q, hop, len);
	r->hops_len = q + len - r->hops;
}

struct counts {
	uint64_t hits, misses, routes, pending, capacity, packets, admit, serve;
	uint64_t general[11];	/* NInInterests, 144, to NUnsatisfiedInterests, 154 */
};

static void count_row(void *ctx, const struct nlattr *const a[])
{
	struct counts *c = ctx;
	const char *kind = a[NNET_A_COUNTER_KIND] ? value_of(a[NNET_A_COUNTER_KIND]) : "";
	const char *word = a[NNET_A_COUNTER_WORD] ? value_of(a[NNET_A_COUNTER_WORD]) : "";

	static const struct {
		const char *kind, *word;
		int type;
	} general[] = { { "received", "interests", 144 }, { "received", "data", 145 }, { "received", "nacks", 151 },
			{ "sent", "interests", 146 },	  { "sent", "data", 147 },     { "sent", "nacks", 152 },
			{ "pit", "satisfied", 153 },	  { "pit", "unsatisfied", 154 } };

	for (size_t i = 0; i < sizeof(general) / sizeof(*general); i++)
		if (!strcmp(kind, general[i].kind) && !strcmp(word, general[i].word))
			c->general[general[i].type - 144] = number_of(a[NNET_A_VALUE]);
	if (!strcmp(kind, "interest") && !strcmp(word, "cs_hit"))
		c->hits = number_of(a[NNET_A_VALUE]);
	if (!strcmp(kind, "cs") && !strcmp(word, "misses"))
		c->misses = number_of(a[NNET_A_VALUE]);
}

static void store_row(void *ctx, const struct nlattr *const a[])
{
	struct counts *c = ctx;

	if (!a[NNET_A_CAPACITY])
		return;
	c->capacity = number_of(a[NNET_A_CAPACITY]);
	c->packets = number_of(a[NNET_A_PACKETS]);
	c->admit = number_of(a[NNET_A_ADMIT]);
	c->serve = number_of(a[NNET_A_SERVE]);
}

static void number_row(void *ctx, const struct nlattr *const a[])
{
	(void)a;
	++*(uint64_t *)ctx;
}

static int view_cache(void)
{
	struct counts c = { 0 };
	uint8_t v[128], *p = v;

	if (view_table(NNET_CMD_CS_GET, 0, store_row, &c) || view_table(NNET_CMD_STATS_GET, 1, count_row, &c))
		return -EIO;
	p = onym_put_nni(p, 131, c.capacity);
	p = onym_put_nni(p, 108, c.admit | c.serve << 1);
	p = onym_put_nni(p, 135, c.packets);
	p = onym_put_nni(p, 129, c.hits);
	p = onym_put_nni(p, 130, c.misses);
	view_put(v, 128, p - v);
	return 0;
}

static int view_status(void)
{
	static const uint8_t order[] = { 144, 145, 151, 146, 147, 152, 153, 154 };
	struct counts c = { 0 };
	uint8_t *p = dataset.v;

	if (view_table(NNET_CMD_STATS_GET, 1, count_row, &c) || view_table(NNET_CMD_CS_GET, 0, store_row, &c) || view_table(NNET_CMD_FIB_GET, 1, number_row, &c.routes) ||
	    view_table(NNET_CMD_PIT_GET, 1, number_row, &c.pending))
		return -EIO;
	p = put_text(p, 128, "nnet");
	p = onym_put_nni(p, 129, started_ms);
	p = onym_put_nni(p, 130, now_ms());
	p = onym_put_nni(p, 131, 0);
	p = onym_put_nni(p, 132, c.routes);
	p = onym_put_nni(p, 133, c.pending);
	p = onym_put_nni(p, 134, 0);
	p = onym_put_nni(p, 135, c.packets);
	for (size_t i = 0; i < sizeof(order) / sizeof(*order); i++)
		p = onym_put_nni(p, order[i], c.general[order[i] - 144]);
	dataset.len = p - dataset.v;
	return 0;
}

static int view_routes(int rib)
{
	struct routes *r = calloc(1, sizeof(*r));
	int err;

	if (!r)
		return -ENOMEM;
	r->rib = rib;
	err = view_table(NNET_CMD_BPT_GET, 1, binding_row, &r->bound);
	if (!err)
		err = view_table(NNET_CMD_FIB_GET, 1, route_row, r);
	route_put(r);
	free(r);
	return err;
}

/* Makes the dataset of a module and verb. Return: 0, -ENOENT when there is none such. */
static int view_make(const char *module, const char *verb)
{
	if (!dataset.v)
		dataset.v = malloc(DATASET_MAX);
	if (!dataset.v)
		return -ENOMEM;
	dataset.len = 0;
	if (!strcmp(module, "faces") && !strcmp(verb, "list"))
		return view_table(NNET_CMD_FACE_GET, 1, face_row, NULL);
	if (!strcmp(module, "fib") && !strcmp(verb, "list"))
		return view_routes(0);
	if (!strcmp(module, "rib") && !strcmp(verb, "list"))
		return view_routes(1);
	if (!strcmp(module, "cs") && !strcmp(verb, "info"))
		return view_cache();
	if (!strcmp(module, "status") && !strcmp(verb, "general"))
		return view_status();
	return -ENOENT;
}

/*
 * The Data that answers an Interest for a dataset, by its name: with a version it is a
 * segment of what is kept. Return: its octets, 0 when it is not here.
 */
static ssize_t view_answer(const struct onym_name *asked, const char *module, const char *verb, size_t prefix_len,
			   uint8_t *data, size_t size)
{
	const uint8_t *p = asked->v + dataset.name.len, *end = asked->v + asked->len;
	struct onym_data d = { .freshness = 1000 };
	uint64_t type, n, segment = 0, last;
	struct onym_name name;
	uint8_t final[16], version[8];

	if (asked->len == prefix_len) {
		if (view_make(module, verb))
			return 0;
		dataset.name = *asked;
		dataset.prefix_len = prefix_len;
		*(uint64_t *)version = __builtin_bswap64(now_ms());
		if (onym_name_append(&dataset.name, 54, version, 8))
			return 0;
	} else if (!dataset.v || asked->len <= dataset.name.len || memcmp(asked->v, dataset.name.v, dataset.name.len) ||
		   onym_get_tl(&p, end, &type, &n) || type != 50) {
		return 0;
	} else {
		segment = onym_get_nni(p, n);
	}
	last = dataset.len ? (dataset.len - 1) / SEGMENT : 0;
	if (segment > last)
		return 0;
	name = dataset.name;
	if (onym_name_segment(&name, segment))
		return 0;
	d.name = &name;
	d.content = dataset.v + segment * SEGMENT;
	d.len = dataset.len - segment * SEGMENT < SEGMENT ? dataset.len - segment * SEGMENT : SEGMENT;
	d.final = final;
	d.final_len = onym_put_nni(final, 50, last) - final;
	return onym_data_make(&d, NULL, data, size);
}

#endif
