#!/usr/bin/env bash
# An image of the static program: scripts/image.sh PROGRAM [TAG]; the tag is onym:VERSION and
# onym:latest, else TAG alone. The engine is that of the docker client (DOCKER_HOST).
set -euo pipefail
cd "$(dirname "$0")/.."
program=$(realpath "$1")
stop() { printf 'image: %s\n  why:  %s\n  next: %s\n' "$1" "$2" "$3" >&2; exit 1; }
# The first match is enough: a program header of an interpreter means a linker that the image lacks.
! readelf -lW "$program" | grep INTERP >/dev/null || stop "$1 does not start in an image from nothing" "it needs shared libraries" "make static"
command -v objcopy >/dev/null || stop "no image is built" "there is no objcopy" "apt-get install binutils"
command -v docker >/dev/null || stop "no image is built" "there is no docker client" "apt-get install docker.io"
docker version >/dev/null 2>&1 || stop "no image is built" "no engine answers: $(docker version 2>&1 | tail -1)" "start the engine, or say where it is: DOCKER_HOST"
version=$("$program" --version | sed 's/^onym \([^ ]*\).*/\1/')
tags=("onym:$version" onym:latest)
[ -z "${2:-}" ] || tags=("$2")
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
mkdir -p "$context"/root/{etc/onym/onym.toml.d,run/onym,var/lib/onym}
cp packaging/image/onym.toml "$context/root/etc/onym/"
# Line tables stay at home.
objcopy --strip-unneeded "$program" "$context/onym"
docker build --quiet --file packaging/image/Dockerfile ${tags[@]/#/--tag } "$context" >/dev/null 2>"$context/said" || { cat "$context/said" >&2; exit 1; }
octets=$(docker save "${tags[0]}" | gzip -4 | wc -c)
printf 'image: %s, %d.%d MB compressed\n' "${tags[*]}" $((octets / 1000000)) $((octets / 100000 % 10))
[ "$octets" -lt 25000000 ] || [ -n "${2:-}" ] || stop "the image is too large to ship" "it has 25 MB or more" "look at what came into the program"
