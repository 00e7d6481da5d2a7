#!/usr/bin/env bash
# The image and its compose file as a user runs them: tests/image/run.sh PROGRAM, which is static.
# Uses the engine of DOCKER_HOST. Exit status 77: there is no docker-compose.
set -euo pipefail
cd "$(dirname "$0")/../.."
program=$(realpath "$1")
command -v docker-compose >/dev/null || { echo "skipped: no docker-compose (apt-get install docker-compose)"; exit 77; }
tag=onym:test$$
export ONYM_IMAGE=$tag COMPOSE_PROJECT_NAME=onymtest$$
compose() { docker-compose --file packaging/image/compose.yaml "$@"; }
cleanup() {
  compose down --volumes --timeout 2 >/dev/null 2>&1 || true
  docker image rm --force "$tag" >/dev/null 2>&1 || true
  rm -rf "$work"
}
work=$(mktemp -d)
trap cleanup EXIT
fail() { echo "image: $*"; compose ps; compose logs --tail 20; exit 1; }
# until_true SECONDS COMMAND...
until_true() {
  local end=$((SECONDS + $1)); shift
  until "$@" >/dev/null 2>&1; do [ $SECONDS -lt $end ] || return 1; sleep 0.2; done
}
# The container of a service; asked of the engine, as docker-compose takes a second for it.
container() {
  docker ps --all --quiet --filter "label=com.docker.compose.project=$COMPOSE_PROJECT_NAME" \
    --filter "label=com.docker.compose.service=$1"
}
of() { docker inspect --format "$2" "$(container "$1")"; }
onym_in() { local node=$1; shift; docker exec "$(container "$node")" onym "$@"; }

docker-compose --file packaging/image/compose.yaml --file packaging/image/monitoring.yaml config --quiet || fail "monitoring.yaml is wrong"
scripts/image.sh "$program" "$tag"
[ "$(docker image inspect --format '{{.Config.User}}' "$tag")" = 10001:10001 ] || fail "it runs as another user"

docker-compose --file packaging/image/compose.yaml up --detach 2>"$work/up" || { cat "$work/up"; fail "it did not start"; }
ended() { [ "$(of consumer '{{.State.Running}} {{.State.ExitCode}}')" = "false 0" ]; }
until_true 60 ended || fail "the consumer did not get the file"
docker cp "$(container consumer):/var/lib/onym/program" "$work/program" >/dev/null
docker cp "$(container producer):/bin/onym" "$work/put" >/dev/null
cmp "$work/put" "$work/program"
for node in n1 n2 n3; do
  healthy() { [ "$(of $node '{{.State.Health.Status}}')" = healthy ]; }
  until_true 30 healthy || fail "$node is not healthy"
  [ "$(of $node '{{.HostConfig.ReadonlyRootfs}}')" = true ] || fail "the root of $node may be written"
done
onym_in n2 route table | grep -q /example/n3 || fail "n2 knows no way to n3"
! onym_in n3 status --node unix:///run/onym/none.sock >/dev/null 2>&1 || fail "a node that does not answer is healthy"
echo "image: a file over three nodes, each healthy, from a root that is read-only"

# It ends by SIGTERM, not by being killed, and comes again.
docker stop --time 20 "$(container n2)" >/dev/null
[ "$(of n2 '{{.State.ExitCode}}')" = 0 ] || fail "n2 ended with $(of n2 '{{.State.ExitCode}}')"
docker start "$(container n2)" >/dev/null
again() { onym_in n2 route table | grep -q /example/n3; }
until_true 30 again || fail "n2 did not come again"
echo "image: a node stops in order and comes again"
