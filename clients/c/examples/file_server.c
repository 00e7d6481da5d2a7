// SPDX-License-Identifier: Apache-2.0 OR MIT
/* file_server NAME FILE: serves a file in segments until it is stopped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <onym/nnet.h>

int main(int argc, char **argv)
{
	int fd = onym_socket(SOCK_RAW, 0), err, room = 256 << 20;
	struct onym_name name;
	uint8_t *content;
	FILE *file;
	long len;

	if (argc != 3 || onym_name(argv[1], &name) || !(file = fopen(argv[2], "rb"))) {
		fprintf(stderr, "usage: file_server NAME FILE\n");
		return 2;
	}
	fseek(file, 0, SEEK_END);
	len = ftell(file);
	rewind(file);
	content = malloc(len + 1);
	if (!content || fread(content, 1, len, file) != (size_t)len)
		return 1;
	if (fd < 0) {
		fprintf(stderr, "no AF_NNET here: %s\n", strerror(-fd));
		return 3;
	}
	/* The kernel keeps the segments: ask for room, by privilege where there is some. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)))
		setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &room, sizeof(room));
	err = onym_bind(fd, &name, 0);
	err = err ? err : onym_pump(fd, &name, content, len, 1200, NULL);
	if (err) {
		fprintf(stderr, "%s cannot be served: %s\n", argv[1], strerror(-err));
		return 1;
	}
	fprintf(stderr, "serving %ld octets as %s\n", len, argv[1]);
	pause();
	return 0;
}
