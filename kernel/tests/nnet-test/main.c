// SPDX-License-Identifier: GPL-2.0-only OR MIT
/*
 * The tests that run in the guest: nnet-test COMMAND ARGUMENT... Exit 0 when
 * the law holds; what did not hold is said.
 */
#include <sys/time.h>

#include "nnet-test.h"

struct onym_name name_of(const char *uri)
{
	struct onym_name n;

	CHECK(!onym_name(uri, &n));
	return n;
}

void patience(int fd, int seconds)
{
	struct timeval t = { .tv_sec = seconds };

	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
}

int mac_of(const char *text, uint8_t mac[6])
{
	return sscanf(text, "%hhx:%hhx:%hhx:%hhx:%hhx:%hhx", mac, mac + 1, mac + 2, mac + 3,
		      mac + 4, mac + 5) == 6;
}

uint8_t content[ONYM_PACKET_MAX];

int bound(const char *uri, int flags)
{
	struct onym_name n = name_of(uri);
	int fd = onym_socket(SOCK_DGRAM, 0), err;

	CHECK(fd >= 0);
	err = onym_bind(fd, &n, flags);
	if (!err)
		return fd;
	close(fd);
	return err;
}

static const struct {
	const char *name;
	int (*run)(int argc, char **argv);
	int arguments;
} commands[] = {
	{ "ctl", ctl, 1 },	   { "serve", serve, 3 },     { "fetch", fetch, 3 },
	{ "binding", binding, 0 }, { "refused", refused, 0 }, { "published", published, 0 },
	{ "calls", calls, 0 },
	{ "relay", relay, 7 },     { "reuse", reuse, 0 },
	{ "pump", pump, 4 },	   { "request", request, 2 }, { "pair", pair, 0 },
	{ "fuzz", fuzz, 1 },	   { "closing", closing, 1 }, { "storm", storm, 1 },
	{ "cost", cost, 1 },	   { "lpfields", lpfields, 0 }, { "shares", shares, 0 },
	{ "hostlimits", hostlimits, 0 }, { "blocked", blocked, 0 }, { "longrows", longrows, 0 },
	{ "pad", pad, 4 },	   { "autoload", autoload, 0 },
	{ "charged", charged, 1 },  { "rights", rights, 0 },
	{ "closes", closes, 0 },
	{ "bindings", bindings, 0 }, { "crowd", crowd, 1 },     { "peers", peers, 3 },
	{ "probe", probe, 1 },	   { "hit", hit, 2 },	   { "flood", flood, 3 },
	{ "partial", partial, 3 },
	{ "traffic", traffic, 2 },   { "witness", witness, 1 }, { "as", run_as, 3 },
	{ "cached-prefix", cached_prefix, 0 },
	{ "cached-name", cached_name, 0 },
	{ "forged", forged, 0 },
	{ "dumps", dumps, 0 },
	{ "digest", digest, 0 },
	{ "publications", publications, 0 },
	{ "pending-lifetime", pending_lifetime, 0 },
	{ "pending-octets", pending_octets, 0 },
	{ "pending-close", pending_close, 0 },
	{ "pending-share", pending_share, 0 },
	{ "pending-user", pending_user, 0 },
	{ "pending-variants", pending_variants, 0 },
	{ "pending-drain", pending_drain, 0 },
	{ "parts", parts, 0 },
	{ "hostsum", hostsum, 0 },
	{ "stale", stale, 3 },
	{ "turns", turns, 4 },
	{ "downs", downs, 1 },
	{ "parallel", parallel, 3 },
};

int main(int argc, char **argv)
{
	for (size_t i = 0; argc > 1 && i < sizeof(commands) / sizeof(*commands); i++)
		if (!strcmp(argv[1], commands[i].name) && argc - 2 >= commands[i].arguments)
			return commands[i].run(argc - 2, argv + 2);
	fprintf(stderr, "nnet-test: no such test, or arguments are missing\n");
	return 2;
}
