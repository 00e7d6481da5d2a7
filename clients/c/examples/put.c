// SPDX-License-Identifier: Apache-2.0 OR MIT
/* put NAME FILE: serves a file over the node, its segments and its metadata, until it is stopped. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <onym/pull.h>

static int serve(struct onym_pull *node, const struct onym_pull_object *object)
{
	uint8_t data[ONYM_PACKET_MAX];
	struct onym_pull_interest interest;
	int got;

	while ((got = onym_pull_interest(node, &interest, -1)) > 0) {
		ssize_t len = onym_pull_segment(object, &interest, data, sizeof(data));
		int error = len > 0 ? onym_pull_answer(node, &interest, data, (size_t)len) : (int)len;

		if (error)
			return error;
	}
	return got;
}

int main(int argc, char **argv)
{
	struct onym_pull_object object = { 0 };
	struct onym_pull *node;
	struct onym_name name;
	struct stat about;
	int file, error;

	if (argc != 3 || onym_name(argv[1], &name)) {
		fprintf(stderr, "usage: put NAME FILE\n");
		return 2;
	}
	file = open(argv[2], O_RDONLY | O_CLOEXEC);
	if (file < 0 || fstat(file, &about)) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		return 2;
	}
	object.len = (size_t)about.st_size;
	object.content = about.st_size ? mmap(NULL, object.len, PROT_READ, MAP_PRIVATE, file, 0) : NULL;
	if (object.content == MAP_FAILED) {
		fprintf(stderr, "%s: %s\n", argv[2], strerror(errno));
		return 2;
	}
	node = onym_pull_open(NULL);
	if (!node) {
		fprintf(stderr, "no node answers: %s\n", strerror(errno));
		return 3;
	}
	object.name = name;
	error = onym_name_version(&object.name, (uint64_t)time(NULL) * 1000000) ?: onym_pull_register(node, &name);
	if (!error) {
		fprintf(stderr, "serving %zu octets as %s\n", object.len, argv[1]);
		error = serve(node, &object);
	}
	fprintf(stderr, "%s: %s\n", argv[1], strerror(-error));
	return 5;
}
