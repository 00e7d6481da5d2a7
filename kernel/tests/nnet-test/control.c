// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* Control over netlink, for the shell scripts. */
#include "nnet-test.h"

#include <arpa/inet.h>
#include <net/if.h>

/* ctl ether DEV MAC | ctl udp4 ADDRESS PORT | ctl route URI FACE [COST] | ... */
int ctl(int argc, char **argv)
{
	int fd = onym_ctl_open(), err;
	uint32_t face = 0;

	CHECK(fd >= 0);
	if (!strcmp(argv[0], "ether")) {
		uint8_t mac[6];

		CHECK(mac_of(argv[2], mac));
		err = onym_ctl_ether(fd, argv[1], mac, argc > 3 ? atoi(argv[3]) : 0, &face);
		printf("%u\n", face);
	} else if (!strcmp(argv[0], "udp4")) {
		uint8_t a[16] = { [10] = 0xff, [11] = 0xff };

		CHECK(inet_pton(AF_INET, argv[1], a + 12) == 1);
		err = onym_ctl_udp(fd, a, atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 0, &face);
		printf("%u\n", face);
	} else if (!strcmp(argv[0], "udp6")) {
		uint32_t device = if_nametoindex(argv[2]);
		uint8_t kind = NNET_FACE_KIND_UDP, a[16];
		uint16_t port = atoi(argv[3]);

		CHECK(inet_pton(AF_INET6, argv[1], a) == 1);
		err = onym_ctl_call(fd, NNET_CMD_FACE_NEW, &face, NNET_A_FACE_ID, NNET_A_FACE_KIND, &kind, (size_t)1,
				    NNET_A_ADDRESS, a, (size_t)16, NNET_A_PORT, &port, (size_t)2, NNET_A_IFINDEX,
				    &device, (size_t)4, 0);
		printf("%u\n", face);
	} else if (!strcmp(argv[0], "route")) {
		struct onym_name n = name_of(argv[1]);

		err = onym_ctl_route(fd, &n, atoi(argv[2]), argc > 3 ? atoi(argv[3]) : 0);
	} else if (!strcmp(argv[0], "routes")) {
		/* routes URI COUNT FACE COST: of so many prefixes below one. */
		err = 0;
		for (int i = 0; i < atoi(argv[2]) && !err; i++) {
			struct onym_name n = name_of(argv[1]);

			CHECK(!onym_name_segment(&n, i));
			err = onym_ctl_route(fd, &n, atoi(argv[3]), atoi(argv[4]));
		}
	} else if (!strcmp(argv[0], "del")) {
		err = onym_ctl_face_del(fd, atoi(argv[1]));
	} else if (!strcmp(argv[0], "dispatch")) {
		uint8_t mode = atoi(argv[1]), separate = argc > 2 ? atoi(argv[2]) : 0;

		err = onym_ctl_call(fd, NNET_CMD_DISPATCH_SET, NULL, 0, NNET_A_DISPATCH_MODE, &mode, (size_t)1,
				    NNET_A_DISPATCH_SEPARATE, &separate, (size_t)1, 0);
	} else if (!strcmp(argv[0], "auto")) {
		uint8_t on = atoi(argv[1]);
		uint16_t port = NNET_UDP_PORT;

		err = onym_ctl_call(fd, NNET_CMD_NET_SET, NULL, 0, NNET_A_AUTO_FACES, &on, (size_t)1,
				    NNET_A_PORT, &port, (size_t)2, 0);
	} else if (!strcmp(argv[0], "cs")) {
		uint32_t packets = atoi(argv[1]);

		err = onym_ctl_call(fd, NNET_CMD_CS_CONFIG, NULL, 0, NNET_A_CAPACITY, &packets, (size_t)4, 0);
	} else {
		err = -EINVAL;
	}
	if (err)
		printf("ctl %s: %s\n", argv[0], strerror(-err));
	return !!err;
}
