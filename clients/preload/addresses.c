// SPDX-License-Identifier: Apache-2.0 OR MIT
// Addresses: within the library all are of IPv6, those of IPv4 mapped (::ffff:a.b.c.d), and each stands for a
// scope.

#include "onym_udp.h"

bool is_ipv4(const struct sockaddr_in6 *at)
{
	return IN6_IS_ADDR_V4MAPPED(&at->sin6_addr);
}

static void map_ipv4(struct sockaddr_in6 *at, const struct in_addr *address)
{
	memset(at, 0, sizeof(*at));
	at->sin6_family = AF_INET6;
	memset(at->sin6_addr.s6_addr + 10, 0xFF, 2);
	memcpy(at->sin6_addr.s6_addr + 12, address, 4);
}

// What the program of a socket of `domain` means; false with errno where it is no address for that.
bool place_of(const struct sockaddr *given, socklen_t len, int domain, struct sockaddr_in6 *at)
{
	struct sockaddr_in in;

	if (len >= sizeof(in) && given->sa_family == AF_INET) {
		memcpy(&in, given, sizeof(in));
		map_ipv4(at, &in.sin_addr);
		at->sin6_port = in.sin_port;
		return true;
	}
	if (domain == AF_INET6 && len >= sizeof(*at) && given->sa_family == AF_INET6) {
		memcpy(at, given, sizeof(*at));
		return true;
	}
	errno = len < sizeof(in) ? EINVAL : EAFNOSUPPORT;
	return false;
}

// Writes `at` as a program with a socket of `domain` sees it; as much as there is room for.
void show_place(const struct sockaddr_in6 *at, int domain, struct sockaddr *out, socklen_t *len)
{
	struct sockaddr_in in = { .sin_family = AF_INET, .sin_port = at->sin6_port };
	struct sockaddr_in6 in6 = *at;
	socklen_t size = domain == AF_INET ? sizeof(in) : sizeof(in6);

	in6.sin6_family = AF_INET6;
	memcpy(&in.sin_addr, at->sin6_addr.s6_addr + 12, 4);
	memcpy(out, domain == AF_INET ? (void *)&in : (void *)&in6, *len < size ? *len : size);
	*len = size;
}

// Link-local addresses count without the interface: those of a domain are as on one link.
bool is_same_place(const struct sockaddr_in6 *a, const struct sockaddr_in6 *b)
{
	return a->sin6_port == b->sin6_port && IN6_ARE_ADDR_EQUAL(&a->sin6_addr, &b->sin6_addr);
}

static bool is_any(const struct sockaddr_in6 *at)
{
	static const uint8_t none[4];

	return is_ipv4(at) ? !memcmp(at->sin6_addr.s6_addr + 12, none, 4) : IN6_IS_ADDR_UNSPECIFIED(&at->sin6_addr);
}

// The address of one family among those in `hosts`, which commas part.
static bool host_of(const char *hosts, bool is_4, struct sockaddr_in6 *at)
{
	while (hosts && *hosts) {
		size_t len = strcspn(hosts, ",");
		char text[INET6_ADDRSTRLEN] = "";
		struct in_addr in;
		struct in6_addr in6;

		if (len < sizeof(text)) {
			memcpy(text, hosts, len);
			if (is_4 && inet_pton(AF_INET, text, &in) == 1) {
				map_ipv4(at, &in);
				return true;
			}
			if (!is_4 && inet_pton(AF_INET6, text, &in6) == 1) {
				at->sin6_addr = in6;
				return true;
			}
		}
		hosts += len + (hosts[len] == ',');
	}
	return false;
}

// The places where who is bound to `at` is reached: `hosts` stand for it where it is any address, and `::` is any
// of both families unless `is_6_only`. Their number.
unsigned places_of(const struct sockaddr_in6 *at, bool is_6_only, const char *hosts, struct sockaddr_in6 places[2])
{
	struct sockaddr_in6 in4 = *at, in6 = *at;
	struct in_addr any = { INADDR_ANY };
	bool has_4, has_6;
	unsigned count = 0;

	if (!is_any(at)) {
		places[0] = *at;
		return 1;
	}
	if (!is_ipv4(at))
		map_ipv4(&in4, &any);
	has_4 = host_of(hosts, true, &in4);
	has_6 = host_of(hosts, false, &in6);
	in4.sin6_port = in6.sin6_port = at->sin6_port;
	// Without any host the address itself stands for it.
	if (!is_ipv4(at) && (has_6 || !has_4 || is_6_only))
		places[count++] = in6;
	if (is_ipv4(at) || (!is_6_only && (has_4 || !has_6)))
		places[count++] = in4;
	return count;
}

// The scope of a place beneath the root label of its family: of IPv4 its octets and port, of IPv6 their hash.
void scope_of(const struct sockaddr_in6 *at, const uint8_t roots[2][LABEL], uint8_t id[ID_MAX])
{
	uint8_t octets[18];

	memset(id, 0, ID_MAX);
	memcpy(octets, &at->sin6_addr, 16);
	memcpy(octets + 16, &at->sin6_port, 2);
	if (is_ipv4(at)) {
		memcpy(id, roots[0], LABEL);
		memcpy(id + LABEL, octets + 12, 6);
	} else {
		memcpy(id, roots[1], LABEL);
		sha256_label(octets, sizeof(octets), id + LABEL);
	}
}

// An address that nobody has, made of the label of a client's item: of class E, or beneath 100::/64, which is
// for what is discarded.
void client_place(const uint8_t id[ID_MAX], const uint8_t roots[2][LABEL], struct sockaddr_in6 *at)
{
	const uint8_t *label = id + 2 * LABEL;
	struct in_addr in = { htonl(0xF0000000u | (uint32_t)label[0] << 16 | (uint32_t)label[1] << 8 | label[2]) };

	map_ipv4(at, &in);
	if (memcmp(id, roots[0], LABEL)) {
		memset(&at->sin6_addr, 0, 8);
		at->sin6_addr.s6_addr[0] = 1;
		memcpy(at->sin6_addr.s6_addr + 8, label, LABEL);
	}
	at->sin6_port = htons((uint16_t)(1024 + (((unsigned)label[3] << 8 | label[4]) % 60000)));
}
