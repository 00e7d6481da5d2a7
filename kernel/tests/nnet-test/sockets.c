// SPDX-License-Identifier: GPL-2.0-only OR MIT
/* The sockets of one host: binding, errors, publications, SEQPACKET. */
#include "nnet-test.h"

#include <linux/sockios.h>
#include <poll.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

/* The two rules of binding, and the errors of the other calls. */
int binding(int argc, char **argv)
{
	struct onym_name n, local = name_of("/net/app"), root = name_of("/net");
	struct sockaddr_nnet a = { .snn_family = onym_family() };
	struct nnet_sock_stats stats;
	int fd, other, control = onym_ctl_open(), one = 1;
	socklen_t len = sizeof(one);
	uint32_t v;

	CHECK(control >= 0);
	CHECK(!onym_ctl_route(control, &root, 1, 0));
	fd = bound("/net/app", 0);
	CHECK(fd >= 0);
	CHECK(bound("/net/app", 0) == -EADDRINUSE);
	CHECK(bound("/net/app/x", 0) == -EADDRINUSE);
	CHECK(bound("/net", 0) == -EADDRINUSE);
	other = bound("/net/apple", 0);
	CHECK(other >= 0);
	close(other);
	CHECK(bound("/elsewhere", NNET_ADDR_STRICT) == -EADDRNOTAVAIL);
	other = bound("/elsewhere", 0);
	CHECK(other >= 0);
	CHECK(!getsockopt(other, SOL_NNET, NNET_BIND_FLAGS, &v, &len) && v == NNET_BIND_NOROUTE);
	n = name_of("/second");
	CHECK(onym_bind(other, &n, 0) == -EISCONN);
	CHECK(!setsockopt(other, SOL_NNET, NNET_MULTIBIND, &one, sizeof(one)));
	CHECK(!onym_bind(other, &n, 0));
	CHECK(!setsockopt(other, SOL_NNET, NNET_UNBIND, n.v, n.len));
	close(other);
	/* Addresses: too short, of another family, with a malformed name. */
	other = onym_socket(SOCK_DGRAM, 0);
	CHECK(bind(other, (void *)&a, 4) && errno == EINVAL);
	CHECK(bind(other, (void *)&a, sizeof(a)) && errno == EINVAL);
	a.snn_name_len = 117;
	CHECK(bind(other, (void *)&a, sizeof(a)) && errno == EINVAL);
	a.snn_name_len = 3;
	memcpy(a.snn_name, "\x08\x7f\x00", 3);
	CHECK(bind(other, (void *)&a, sizeof(a)) && errno == EINVAL);
	a.snn_family = AF_INET;
	CHECK(bind(other, (void *)&a, sizeof(a)) && errno == EAFNOSUPPORT);
	/* A name beyond the address goes by option. */
	n.len = 0;
	for (int i = 0; i < 20; i++)
		CHECK(!onym_name_append(&n, 8, "twelveoctets", 12));
	CHECK(n.len > NNET_ADDR_NAME_MAX && !onym_bind(other, &n, 0));
	close(other);
	CHECK(onym_socket(SOCK_STREAM, 0) == -ESOCKTNOSUPPORT);
	CHECK(onym_socket(SOCK_DGRAM, 3) == -EPROTONOSUPPORT);
	len = sizeof(stats);
	CHECK(!getsockopt(fd, SOL_NNET, NNET_STATS, &stats, &len));
	CHECK(setsockopt(fd, SOL_NNET, 99, &one, sizeof(one)) && errno == ENOPROTOOPT);
	close(fd);
	fd = bound("/net/app", 0);
	CHECK(fd >= 0);
	close(fd);
	CHECK(!onym_ctl_unroute(control, &local, 1) == 0);
	return 0;
}

/* Interests for what nobody serves come back as Nacks; sockets time out. */
int refused(int argc, char **argv)
{
	struct onym_name n = name_of("/nowhere/1");
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	struct pollfd pfd = { .events = POLLIN };
	int fd = onym_socket(SOCK_DGRAM, 0);
	struct timeval t = { .tv_usec = 50000 };

	pfd.fd = fd;
	CHECK(!onym_send_interest(fd, &n, 0, 0));
	CHECK(poll(&pfd, 1, 10000) == 1 && pfd.revents & POLLIN);
	CHECK(onym_recv(fd, &p, 0) >= 0 && p.type == NNET_NACK && p.reason == 150);
	CHECK(!setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &t, sizeof(t)));
	CHECK(onym_recv(fd, &p, 0) == -EAGAIN);
	CHECK(onym_recv(fd, &p, MSG_DONTWAIT) == -EAGAIN);
	n.len = 0;
	CHECK(onym_send_interest(fd, &n, 0, 0) == -EDESTADDRREQ);
	return 0;
}

/* What is published is answered by the kernel; prefixes and status. */
int published(int argc, char **argv)
{
	struct onym_name n = name_of("/pub"), item = name_of("/pub/item"), route = name_of("/pub");
	struct onym_data d = { .name = &item, .content = "content", .len = 7, .freshness = 1000 };
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int fd = onym_socket(SOCK_RAW, 0), c = onym_socket(SOCK_DGRAM, 0), control = onym_ctl_open(), one = 1;
	uint8_t raw[ONYM_PACKET_MAX];
	ssize_t len;

	CHECK(!onym_ctl_route(control, &route, 1, 0));
	CHECK(!onym_bind(fd, &n, 0));
	CHECK(!setsockopt(fd, SOL_NNET, NNET_STATUS, &one, sizeof(one)));
	CHECK(!onym_publish(fd, &d, NULL));
	patience(c, 20);
	CHECK(!setsockopt(c, SOL_NNET, NNET_WHOLE, &one, sizeof(one)));
	CHECK(!onym_send_interest(c, &n, NNET_CAN_BE_PREFIX, 0));
	CHECK(onym_recv(c, &p, 0) == 7 && !memcmp(content, "content", 7));
	CHECK(onym_status(fd, &p, 10000) == 0 && p.satisfied == 1);
	len = onym_data_make(&d, NULL, raw, sizeof(raw));
	CHECK(len > 0 && !onym_data_verify(raw, len, NULL));
	raw[len - 1] ^= 1;
	CHECK(onym_data_verify(raw, len, NULL) == -EBADMSG);
	/* Published octets are told, and go; a socket that asked for nothing has nothing waiting. */
	CHECK(!ioctl(fd, SIOCOUTQ, &one) && one > 7);
	CHECK(!ioctl(c, SIOCINQ, &one) && !one);
	CHECK(!onym_unpublish(fd, &item));
	CHECK(!ioctl(fd, SIOCOUTQ, &one) && !one);
	CHECK(ioctl(fd, 0x89ef, &one) && errno == ENOTTY);
	CHECK(onym_unpublish(fd, &item) == -ENOENT);
	n = name_of("/pub/other");
	CHECK(!onym_send_interest(c, &n, 0, 0));
	CHECK(onym_status(fd, &p, 10000) == 0 && p.satisfied == 0);
	return 0;
}

/* The calls that other tests do not make: cast, unpump, watch, unwatch. */
int calls(int argc, char **argv)
{
	struct onym_name n = name_of("/c"), item = name_of("/c/item");
	struct onym_data d = { .name = &item, .content = "cast", .len = 4 };
	struct onym_packet p = { .content = content, .size = sizeof(content) };
	int fd = onym_socket(SOCK_RAW, 0), c = onym_socket(SOCK_DGRAM, 0), control = onym_ctl_open(), w;
	struct onym_meta m;
	time_t begun = time(NULL);

	patience(c, 20);
	CHECK(!onym_ctl_route(control, &n, 1, 0));
	CHECK(!onym_bind(fd, &n, 0));
	CHECK(!onym_cast(fd, &d, NULL, 2000));
	CHECK(!onym_send_interest(c, &item, 0, 0));
	CHECK(onym_recv(c, &p, 0) == 4 && !memcmp(content, "cast", 4));
	/* It goes after its time; what is then asked for comes to the socket. */
	do {
		CHECK(time(NULL) - begun < 20);
		CHECK(!onym_send_interest(c, &item, NNET_MUST_BE_FRESH, 500));
	} while (onym_status(fd, &p, 200) == -ETIMEDOUT);
	CHECK(!p.satisfied && p.name.len == item.len);
	CHECK(!onym_pump(fd, &n, content, 5000, 1000, NULL));
	CHECK(!onym_touch(&n, &m, 10000) && m.last == 4 && m.size == 5000);
	CHECK(!onym_unpump(fd, &n));
	CHECK(onym_unpump(fd, &n) == -ENOENT);
	close(fd);
	w = onym_watch(&n);
	CHECK(w >= 0);
	/* A name that nobody asked for yet: what pends is suppressed for a while. */
	item = name_of("/c/watched");
	CHECK(!onym_send_interest(c, &item, NNET_MUST_BE_FRESH, 4000));
	CHECK(!onym_status(w, &p, 10000) && p.type == NNET_INTEREST && p.name.len == item.len);
	CHECK(!onym_unwatch(w));
	return 0;
}

/* A SEQPACKET provider numbers the segments itself, and waits for room. */
int pair(int argc, char **argv)
{
	struct onym_name n = name_of("/pair/object"), route = name_of("/pair");
	int control = onym_ctl_open(), total = 300, i, small = 32768;
	struct onym_packet p;
	pid_t child;

	CHECK(!onym_ctl_route(control, &route, 1, 0));
	child = fork();
	if (!child) {
		int fd = onym_socket(SOCK_SEQPACKET, 0);

		CHECK(!setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &small, sizeof(small)));
		CHECK(!onym_bind(fd, &n, 0));
		for (i = 0; i < total; i++) {
			memset(content, i, 1000);
			CHECK(send(fd, content, 1000, i == total - 1 ? MSG_EOR : 0) == 1000);
		}
		sleep(20);
		exit(0);
	}
	usleep(200000);
	{
		int fd = onym_socket(SOCK_SEQPACKET, 0);

		patience(fd, 30);
		CHECK(!onym_connect(fd, &n, 0));
		for (i = 0; i < total; i++) {
			p = (struct onym_packet){ .content = content, .size = sizeof(content) };
			CHECK(onym_recv(fd, &p, 0) == 1000);
			CHECK(p.segment == (uint64_t)i && content[999] == (uint8_t)i);
			CHECK(p.last == (i == total - 1));
		}
		CHECK(onym_recv(fd, &p, 0) == 0);
	}
	kill(child, 9);
	waitpid(child, NULL, 0);
	return 0;
}
