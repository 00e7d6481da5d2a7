// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * Unit tests at load, in debug builds: the module refuses to load when one
 * does not hold.
 */
#include <linux/delay.h>
#include <linux/moduleparam.h>

#include "../nnet.h"

static unsigned int nnet_window_us;
module_param_named(window, nnet_window_us, uint, 0644);
MODULE_PARM_DESC(window, "microseconds that the release of a face lasts longer, so that what races with it meets it");

void nnet_window(void)
{
	if (nnet_window_us)
		usleep_range(nnet_window_us, nnet_window_us + 1);
}

#define LAW(law)                                                   \
	do {                                                       \
		if (!(law)) {                                      \
			pr_err("nnet selftest: %s:%d: %s\n",       \
			       __func__, __LINE__, #law);          \
			return -EINVAL;                            \
		}                                                  \
	} while (0)

/* /a/b with CanBePrefix, MustBeFresh, nonce, lifetime 1000, hop limit 5 */
static const u8 nnet_t_interest[] = {
	5, 26, 7, 6, 8, 1, 'a', 8, 1, 'b', 0x21, 0, 0x12, 0, 10, 4, 1, 2, 3, 4,
	12, 2, 3, 0xe8, 0x22, 1, 5, 0x80
};

static const u8 nnet_t_data[] = {
	6, 28, 7, 3, 8, 1, 'a', 0x14, 8, 0x19, 1, 10, 0x1a, 3, 0x32, 1, 7,
	0x15, 2, 'h', 'i', 0x16, 3, 0x1b, 1, 200, 0x17, 0
};

static int nnet_selftest_wire(void)
{
	struct nnet_view v;
	u8 copy[32];

	memcpy(copy, nnet_t_interest, 27);
	copy[1] = 25;
	LAW(!nnet_interest_parse(copy, 27, &v));
	LAW(v.name_len == 6 && v.lifetime == 1000 && v.hop == 5);
	LAW(v.nonce == 0x01020304 && copy[v.hop_at] == 5);
	LAW(v.flags == (NNET_V_PREFIX | NNET_V_FRESH | NNET_V_NONCE |
			NNET_V_HOP));
	copy[3] = 60;
	LAW(nnet_interest_parse(copy, 27, &v));
	memcpy(copy, nnet_t_data, sizeof(nnet_t_data));
	copy[1] = sizeof(nnet_t_data) - 2;
	LAW(!nnet_data_parse(copy, sizeof(nnet_t_data), &v));
	LAW(v.freshness == 10 && v.content_len == 2 && v.final_len == 3);
	copy[0] = 5;
	LAW(nnet_data_parse(copy, sizeof(nnet_t_data), &v));
	return 0;
}

static int nnet_selftest_prefixes(void)
{
	static const u8 name[] = { 8, 1, 'a', 8, 1, 'b', 8, 1, 'c' };
	siphash_key_t secret = { { 1, 2 } };
	struct nnet_key whole, part;
	u16 d;

	nnet_key_make(&secret, name, sizeof(name), &whole);
	LAW(whole.n == 3 && whole.deep == 3 && whole.full == whole.h[3]);
	LAW(whole.parent == whole.h[2] && whole.parent_len == 6);
	for (d = 1; d <= 3; d++) {
		nnet_key_make(&secret, name, 3 * d, &part);
		LAW(part.full == whole.h[d] && whole.end[d] == 3 * d);
	}
	return 0;
}

static int nnet_selftest_link(void)
{
	static const u8 fragment[] = { 100, 19, 81, 8, 0, 0, 0, 0, 0, 0, 0, 9,
				       82, 1, 1, 83, 1, 2, 80, 1, 5 };
	static const u8 late[] = { 100, 6, 80, 1, 5, 98, 1, 7 };
	static const u8 unknown[] = { 100, 5, 99, 0, 80, 1, 5 };
	struct nnet_lp lp;

	LAW(nnet_lp_parse(fragment, sizeof(fragment), &lp) == NNET_LP_OK);
	LAW(lp.index == 1 && lp.count == 2 && lp.sequence == 9);
	LAW(nnet_lp_parse(late, sizeof(late), &lp) == NNET_LP_MALFORMED);
	LAW(nnet_lp_parse(unknown, sizeof(unknown), &lp) ==
	    NNET_LP_UNKNOWN_CRITICAL);
	return 0;
}

static int nnet_selftest_name(void)
{
	static const u8 name[] = { 8, 3, 'a', '/', 'b', 0x32, 1, 4, 8, 0 };
	char buf[64];

	nnet_name_show(buf, sizeof(buf), name, sizeof(name));
	LAW(!strcmp(buf, "/a%2Fb/50=%04/..."));
	return 0;
}

int nnet_selftest(void)
{
	int err = nnet_selftest_wire() ?: nnet_selftest_prefixes() ?:
		  nnet_selftest_link() ?: nnet_selftest_name();

	if (!err)
		pr_info("nnet: self-test passed\n");
	return err;
}
