#!/usr/bin/env bash
# The manager with a Kubernetes cluster: scripts/kubernetes.sh [PROGRAM [BINARY]]; pods are made of
# BINARY, else of PROGRAM, which must be static; without arguments that is built first.
#
# The cluster is that of KUBECONFIG, with IMAGE (and NAMESPACE) set to an image of this version that
# its nodes have or can pull, NODE_ADDRESS to the address of its node, and pods reachable from here. Without KUBECONFIG one
# node is started from K8S_BIN, a folder with kube-apiserver, kube-controller-manager,
# kube-scheduler and kubelet (they build from the Go module k8s.io/kubernetes); that needs root,
# etcd, containerd, runc and the CNI plugins (Debian: etcd-server containerd runc
# containernetworking-plugins). Exit status 77: neither is there.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/engine.sh
work=$(mktemp -d)
manager= put= pids=() started=
cleanup() {
  [ -z "$put" ] || kill "$put" 2>/dev/null || true
  [ -z "$manager" ] || { "$program" net --manager "$url" down >/dev/null 2>&1 || true; kill "$manager" 2>/dev/null || true; }
  engine_stop
  [ -z "$started" ] || cluster_stop
  rm -rf "$work"
}
trap cleanup EXIT
. scripts/kubernetes-node.sh
. scripts/kubernetes-operator.sh

if [ -z "${KUBECONFIG:-}" ]; then
  cluster_missing && exit 77
fi
if [ $# = 0 ]; then
  cargo rustc --quiet --locked --package onym --bin onym -- -C target-feature=+crt-static -C strip=symbols
  cp "${CARGO_TARGET_DIR:-target}/debug/onym" "$work/onym"
  set -- "$work/onym"
fi
program=$(realpath "$1")
binary=$(realpath "${2:-$1}")
if [ -z "${KUBECONFIG:-}" ]; then
  image=docker.io/onym/service:test
  cluster_start "$binary" "$image"
else
  image=${IMAGE:?IMAGE must name an image that the nodes of KUBECONFIG can run}
fi
namespace=${NAMESPACE:-default}

# start IMAGE [WORDS...]
start() {
  local image=$1
  shift
  # Else the word of the manager before is taken for this one's.
  rm -f "$work/log"
  "$program" manager --listen 127.0.0.1:0 --state "${state:-$work/state}" --driver kubernetes --namespace "$namespace" --image "$image" "$@" 2>"$work/log" &
  manager=$!
  until_true 120 grep -q '^ready' "$work/log" || { cat "$work/log"; exit 1; }
  url=$(sed -n 's/^ready .*"url":"\([^"]*\)".*/\1/p' "$work/log")
}
net() { "$program" net --manager "$url" "$@"; }

# An image that is nowhere: the error names it, and nothing is left.
port=$((20000 + RANDOM % 10000))
allow=(--allow-listen "tcp4://0.0.0.0:$port" --allow-listen "udp4://0.0.0.0:$port")
start 127.0.0.1:1/nowhere:none "${allow[@]}"
net preset nfd --print | sed "s,//[^:/]*:6363,//0.0.0.0:$port,g" >"$work/network.toml"
if net apply "$work/network.toml" 2>"$work/refused"; then echo "an image that is nowhere started"; exit 1; fi
grep -q 'nowhere:none' "$work/refused" || { cat "$work/refused"; exit 1; }
[ "$(net show --json | grep -c '"handle"')" = 0 ]
kill "$manager"; wait "$manager" 2>/dev/null || true
echo "kubernetes: an image that does not start is named, and nothing is left"

start "$image" "${allow[@]}"
# A namespace that has no room for the third pod: the same.
if [ -n "$started" ]; then
  quota=/api/v1/namespaces/$namespace/resourcequotas
  room='{"metadata":{"name":"room"},"spec":{"hard":{"pods":"2"}}}'
  api "$quota" -X POST -H 'Content-Type: application/json' -d "$room" >/dev/null
  counted() { api "$quota/room" | tr -d ' \n' | grep -q '"status":{"hard":{"pods":"2"}'; }
  until_true 60 counted
  if net apply "$work/network.toml" 2>"$work/refused"; then echo "three pods where two may be"; exit 1; fi
  grep -q 'exceeded quota: room' "$work/refused" && grep -q "raise the quota of namespace $namespace" "$work/refused" || { cat "$work/refused"; exit 1; }
  [ "$(net show --json | grep -c '"handle"')" = 0 ]
  api "$quota/room" -X DELETE >/dev/null
  echo "kubernetes: a quota that is used up is named, and nothing is left"
fi
sed -i 's/^kind = "backward-router"/&\nquota = 0.5/' "$work/network.toml"
net apply "$work/network.toml"
head -c 1000000 /dev/urandom >"$work/in"
export HOME=$work ONYM_KEYSTORE=$work/keys
node=tcp4://${NODE_ADDRESS:-$(pod_address "$port")}:$port
"$program" put --node "$node" /example/file "$work/in" >"$work/put" 2>&1 &
put=$!
until_true 60 "$program" get --node "$node" /example/file -o "$work/out"
cmp "$work/in" "$work/out"
echo "kubernetes: a file through the chain"

net show --json >"$work/shown"
closed "$work/shown"
echo "kubernetes: no service answers without its token"

# Another quota, in place: the same pods run on.
handles() { net show --json | grep '"handle"' | sort; }
handles >"$work/before"
sed -i 's/^quota = 0.5/quota = 0.25/' "$work/network.toml"
net apply "$work/network.toml"
handles | cmp - "$work/before"
echo "kubernetes: a quota is changed without a restart"

# The manager that is killed adopts what runs.
kill -9 "$manager"; wait "$manager" 2>/dev/null || true
"$program" get --node "$node" /example/file -o "$work/out2"
start "$image" "${allow[@]}"
settled() { net show | grep -q 'as wanted' && ! net show | grep -q 'not as wanted'; }
until_true 60 settled
handles | cmp - "$work/before"
"$program" get --node "$node" /example/file -o "$work/out3"
cmp "$work/in" "$work/out2" && cmp "$work/in" "$work/out3"
echo "kubernetes: the pods are adopted"

kill "$put" || true
put=
net down
[ "$(net show --json | grep -c '"handle"')" = 0 ]
kill "$manager"; wait "$manager" 2>/dev/null || true
# A manager that starts again finds nothing of its own.
start "$image" "${allow[@]}"
if net events | grep -q adopted; then echo "something was left"; exit 1; fi
echo "kubernetes: nothing is left"
kill "$manager"; wait "$manager" 2>/dev/null || true
manager=
[ -z "$started" ] || operator "$binary"
