// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Written by kernel/tools/nlgen.py from spec/netlink/nnet.yaml; not by hand. */
#include "nnet_nl_ops.h"

const struct nla_policy nnet_nl_policy[NNET_A_END] = {
	[NNET_A_FACE_ID] = { .type = NLA_U32 },
	[NNET_A_FACE_KIND] = { .type = NLA_U8 },
	[NNET_A_IFINDEX] = { .type = NLA_U32 },
	[NNET_A_PEER] = { .type = NLA_BINARY, .len = 6 },
	[NNET_A_ADDRESS] = { .type = NLA_BINARY, .len = 16 },
	[NNET_A_PORT] = { .type = NLA_U16 },
	[NNET_A_MTU] = { .type = NLA_U16 },
	[NNET_A_FLAGS] = { .type = NLA_U32 },
	[NNET_A_NAME] = { .type = NLA_BINARY, .len = 8192 },
	[NNET_A_COST] = { .type = NLA_U32 },
	[NNET_A_STRATEGY] = { .type = NLA_U8 },
	[NNET_A_CAPACITY] = { .type = NLA_U32 },
	[NNET_A_LIFETIME] = { .type = NLA_U32 },
	[NNET_A_BYTES_MAX] = { .type = NLA_U64 },
	[NNET_A_ADMIT] = { .type = NLA_U8 },
	[NNET_A_SERVE] = { .type = NLA_U8 },
	[NNET_A_UNSOLICITED] = { .type = NLA_U8 },
	[NNET_A_ENTRIES] = { .type = NLA_U32 },
	[NNET_A_PACKETS] = { .type = NLA_U32 },
	[NNET_A_BYTES] = { .type = NLA_U64 },
	[NNET_A_COUNT] = { .type = NLA_U32 },
	[NNET_A_PIT_MAX] = { .type = NLA_U32 },
	[NNET_A_COUNTER_KIND] = { .type = NLA_NUL_STRING, .len = 31 },
	[NNET_A_COUNTER_WORD] = { .type = NLA_NUL_STRING, .len = 31 },
	[NNET_A_VALUE] = { .type = NLA_U64 },
	[NNET_A_DISPATCH_MODE] = { .type = NLA_U8 },
	[NNET_A_DISPATCH_DEPTH] = { .type = NLA_U8 },
	[NNET_A_DISPATCH_THREADS] = { .type = NLA_U8 },
	[NNET_A_DISPATCH_SEPARATE] = { .type = NLA_U8 },
	[NNET_A_AUTO_FACES] = { .type = NLA_U8 },
	[NNET_A_PACKET] = { .type = NLA_BINARY, .len = 8800 },
	[NNET_A_IN_USER] = { .type = NLA_U8 },
	[NNET_A_IN_INTERESTS] = { .type = NLA_U64 },
	[NNET_A_IN_DATA] = { .type = NLA_U64 },
	[NNET_A_IN_NACKS] = { .type = NLA_U64 },
	[NNET_A_IN_BYTES] = { .type = NLA_U64 },
	[NNET_A_OUT_INTERESTS] = { .type = NLA_U64 },
	[NNET_A_OUT_DATA] = { .type = NLA_U64 },
	[NNET_A_OUT_NACKS] = { .type = NLA_U64 },
	[NNET_A_OUT_BYTES] = { .type = NLA_U64 },
	[NNET_A_FAMILY] = { .type = NLA_U32 },
	[NNET_A_LOCAL_FIELDS] = { .type = NLA_U8 },
};

const struct genl_ops nnet_nl_ops[23] = {
	{
		.cmd = NNET_CMD_FACE_NEW,
		.doit = nnet_nl_face_new,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_FACE_DEL,
		.doit = nnet_nl_face_del,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_FACE_SET,
		.doit = nnet_nl_face_set,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_FACE_GET,
		.dumpit = nnet_nl_face_get,
		.start = nnet_nl_dump_start,
	},
	{
		.cmd = NNET_CMD_FIB_ADD,
		.doit = nnet_nl_fib_add,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_FIB_DEL,
		.doit = nnet_nl_fib_del,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_FIB_GET,
		.dumpit = nnet_nl_fib_get,
		.start = nnet_nl_dump_start,
	},
	{
		.cmd = NNET_CMD_STRATEGY_SET,
		.doit = nnet_nl_strategy_set,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_CS_CONFIG,
		.doit = nnet_nl_cs_config,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_CS_ERASE,
		.doit = nnet_nl_cs_erase,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_CS_GET,
		.doit = nnet_nl_cs_get,
	},
	{
		.cmd = NNET_CMD_BPT_GET,
		.dumpit = nnet_nl_bpt_get,
		.start = nnet_nl_dump_start,
	},
	{
		.cmd = NNET_CMD_PIT_SET,
		.doit = nnet_nl_pit_set,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_PIT_GET,
		.dumpit = nnet_nl_pit_get,
		.start = nnet_nl_dump_start,
	},
	{
		.cmd = NNET_CMD_STATS_GET,
		.dumpit = nnet_nl_stats_get,
		.start = nnet_nl_dump_start,
	},
	{
		.cmd = NNET_CMD_DISPATCH_SET,
		.doit = nnet_nl_dispatch_set,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_NET_SET,
		.doit = nnet_nl_net_set,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_STORE_ATTACH,
		.doit = nnet_nl_store_attach,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_STORE_DATA,
		.doit = nnet_nl_store_data,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_STORE_MISS,
		.doit = nnet_nl_store_miss,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_PIT_INFO,
		.doit = nnet_nl_pit_info,
	},
	{
		.cmd = NNET_CMD_PIT_ERASE,
		.doit = nnet_nl_pit_erase,
		.flags = GENL_UNS_ADMIN_PERM,
	},
	{
		.cmd = NNET_CMD_STORE_HAVE,
		.doit = nnet_nl_store_have,
		.flags = GENL_UNS_ADMIN_PERM,
	},
};

const struct genl_multicast_group nnet_nl_groups[1] = {
	{ .name = NNET_GROUP_FACES },
};
