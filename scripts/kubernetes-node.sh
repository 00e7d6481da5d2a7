# Sourced by kubernetes.sh: one node of Kubernetes from K8S_BIN, with a folder of its own in $work.
# cluster_missing says what is not there; cluster_start BINARY IMAGE starts it with that image and
# sets KUBECONFIG; cluster_image ARCHIVE gives it another one; cluster_stop ends what it started.

K8S_BIN=${K8S_BIN:-}
# An address of the node that is not loopback: the API server refuses one as its own.
NODE=10.99.0.1

cluster_missing() {
  local missing=()
  [ "$(id -u)" = 0 ] || missing+=("root")
  for p in kube-apiserver kube-controller-manager kube-scheduler kubelet; do
    [ -x "$K8S_BIN/$p" ] || missing+=("$p in K8S_BIN")
  done
  for p in etcd containerd ctr runc openssl python3 kubectl docker dockerd iptables; do
    command -v $p >/dev/null || missing+=("$p")
  done
  [ -x /usr/lib/cni/bridge ] || missing+=("containernetworking-plugins")
  [ ${#missing[@]} -gt 0 ] || return 1
  echo "skipped: no KUBECONFIG, and no cluster can be started without: ${missing[*]}"
  echo "  next: apt-get install etcd-server containerd runc containernetworking-plugins, scripts/kubernetes-build.sh FOLDER, K8S_BIN=FOLDER"
}

# run NAME COMMAND...: starts it with a log; it ends with the cluster.
run() {
  local name=$1; shift
  setsid "$@" >"$work/$name.log" 2>&1 &
  pids+=($!)
}

cluster_config() {
  mkdir -p "$work"/{certs,cni,kubelet,ctd}
  openssl genrsa -out "$work/sa.key" 2048 2>/dev/null
  openssl rsa -in "$work/sa.key" -pubout -out "$work/sa.pub" 2>/dev/null
  token=$(openssl rand -hex 16)
  echo "$token,admin,admin,system:masters" >"$work/tokens.csv"
  cat >"$work/kubeconfig" <<K
apiVersion: v1
kind: Config
clusters: [{name: l, cluster: {server: "https://$NODE:16443", certificate-authority: "$work/certs/apiserver.crt"}}]
users: [{name: a, user: {token: "$token"}}]
contexts: [{name: c, context: {cluster: l, user: a}}]
current-context: c
K
  cat >"$work/ctd.toml" <<K
version = 2
root = "$work/ctd/root"
state = "$work/ctd/state"
[grpc]
  address = "$work/ctd/c.sock"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "docker.io/onym/pause:test"
  restrict_oom_score_adj = true
  disable_apparmor = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "$work/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
K
  cat >"$work/cni/10-onym.conflist" <<K
{"cniVersion":"0.4.0","name":"onym","plugins":[{"type":"bridge","bridge":"onym-cni0","isDefaultGateway":true,"ipMasq":false,"ipam":{"type":"host-local","dataDir":"$work/ipam","ranges":[[{"subnet":"10.244.97.0/24"}]]}},{"type":"portmap","capabilities":{"portMappings":true}}]}
K
  cat >"$work/kubelet.yaml" <<K
apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
cgroupDriver: cgroupfs
failSwapOn: false
failCgroupV1: false
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
containerRuntimeEndpoint: unix://$work/ctd/c.sock
address: $NODE
port: 11250
healthzPort: 11248
readOnlyPort: 0
evictionHard: {memory.available: "100Mi", nodefs.available: "1%", imagefs.available: "1%"}
enforceNodeAllocatable: []
cgroupsPerQOS: true
localStorageCapacityIsolation: false
K
}

# image FILE NAME PROGRAM: an image of one static program, as an archive that containerd takes.
image() {
  python3 scripts/image.py "$@"
}

# api PATH [CURL WORDS...]
api() { curl -sf --cacert "$work/certs/apiserver.crt" -H "Authorization: Bearer $token" "https://$NODE:16443$1" "${@:2}"; }
api_ready() { [ "$(api /readyz)" = ok ]; }
node_ready() { api /api/v1/nodes/onym-test | tr -d ' \n' | grep -q '"reason":"KubeletReady"'; }

# Where a Docker engine ran, the kernel forwards nothing that it was not told of. A pod reaches the API
# server at the address of its service; there is no kube-proxy that would lead it there.
forward() {
  command -v iptables >/dev/null || return 0
  iptables "$1" FORWARD -i onym-cni0 -j ACCEPT 2>/dev/null || true
  iptables "$1" FORWARD -o onym-cni0 -j ACCEPT 2>/dev/null || true
  iptables -t nat "$1" PREROUTING -d 10.96.0.1 -p tcp --dport 443 -j DNAT --to-destination $NODE:16443 2>/dev/null || true
}

# pod_address PORT: the address of the pod that clients reach at this port.
pod_address() {
  api /api/v1/pods | python3 -c '
import json, sys
for pod in json.load(sys.stdin)["items"]:
    for port in pod["spec"]["containers"][0].get("ports", []):
        if port["containerPort"] == int(sys.argv[1]):
            sys.exit(print(pod["status"]["podIP"]))' "$1"
}

cluster_image() {
  until_true 30 ctr -a "$work/ctd/c.sock" -n k8s.io images import "$1" || { tail -5 "$work/containerd.log"; exit 1; }
}

cluster_start() {
  local binary=$1 name=$2
  started=yes
  forward -I
  ip addr add $NODE/32 dev lo 2>/dev/null || true
  cluster_config
  run etcd etcd --data-dir "$work/etcd" --listen-client-urls http://127.0.0.1:12379 \
    --advertise-client-urls http://127.0.0.1:12379 --listen-peer-urls http://127.0.0.1:12380 --unsafe-no-fsync
  run containerd containerd --config "$work/ctd.toml"
  run apiserver "$K8S_BIN/kube-apiserver" --etcd-servers=http://127.0.0.1:12379 --cert-dir="$work/certs" \
    --secure-port=16443 --bind-address=$NODE --advertise-address=$NODE \
    --service-account-issuer=https://kubernetes.default.svc --service-account-signing-key-file="$work/sa.key" \
    --service-account-key-file="$work/sa.pub" --token-auth-file="$work/tokens.csv" --authorization-mode=RBAC \
    --service-cluster-ip-range=10.96.0.0/16 --allow-privileged=true --kubelet-preferred-address-types=InternalIP
  until_true 120 api_ready || { tail -5 "$work/apiserver.log"; exit 1; }
  export KUBECONFIG=$work/kubeconfig
  run controller-manager "$K8S_BIN/kube-controller-manager" --kubeconfig="$KUBECONFIG" \
    --use-service-account-credentials=true --service-account-private-key-file="$work/sa.key" \
    --root-ca-file="$work/certs/apiserver.crt" --leader-elect=false --bind-address=127.0.0.1
  run scheduler "$K8S_BIN/kube-scheduler" --kubeconfig="$KUBECONFIG" --leader-elect=false --bind-address=127.0.0.1
  # What holds the namespaces of a pod does nothing for ever.
  printf '#include <signal.h>\n#include <unistd.h>\nstatic void h(int s){(void)s;_exit(0);}\nint main(void){signal(SIGTERM,h);signal(SIGINT,h);for(;;)pause();}\n' >"$work/pause.c"
  gcc -static -O1 -o "$work/pause" "$work/pause.c"
  image "$work/pause.tar" docker.io/onym/pause:test "$work/pause"
  image "$work/service.tar" "$name" "$binary"
  for archive in pause service; do cluster_image "$work/$archive.tar"; done
  run kubelet "$K8S_BIN/kubelet" --config "$work/kubelet.yaml" --kubeconfig "$KUBECONFIG" \
    --root-dir "$work/kubelet" --cert-dir "$work/kubelet-certs" --hostname-override onym-test --node-ip $NODE
  # Pods are refused until the account that they run as is there.
  until_true 120 api /api/v1/namespaces/default/serviceaccounts/default || exit 1
  until_true 120 node_ready || { tail -5 "$work/kubelet.log"; exit 1; }
}

cluster_stop() {
  # The kubelet first: it would start again what ends.
  local i
  for ((i = ${#pids[@]} - 1; i >= 0; i--)); do
    [ $i = 1 ] && { ctr -a "$work/ctd/c.sock" -n k8s.io tasks ls -q 2>/dev/null | while read -r t; do
      ctr -a "$work/ctd/c.sock" -n k8s.io tasks kill -s KILL "$t" 2>/dev/null || true; done; sleep 1; }
    { kill "${pids[i]}" && wait "${pids[i]}"; } 2>/dev/null || true
  done
  # Shims outlive containerd; these are of this one: its folder is in their words.
  for p in $(grep -slF "$work/ctd" /proc/[0-9]*/cmdline 2>/dev/null | cut -d/ -f3); do
    [ "$p" = $$ ] || kill "$p" 2>/dev/null || true
  done
  awk -v w="$work/" 'index($2, w) == 1 {print $2}' /proc/mounts | sort -r | while read -r m; do umount -l "$m" || true; done
  find /sys/fs/cgroup -depth -type d -path '*/kubepods*' -exec rmdir {} + 2>/dev/null || true
  forward -D
  ip link delete onym-cni0 2>/dev/null || true
  ip addr del $NODE/32 dev lo 2>/dev/null || true
}
