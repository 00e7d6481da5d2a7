# Sourced by kubernetes.sh: networks as objects of the cluster that kubernetes-node.sh started. The
# Kustomize base is applied as it is, with the image of `make image`; then what its manager may do is
# tried from outside, by several kubeconfig files and a token that is replaced.
# ROTATE=1: the token of its pod expires, too, which takes eleven minutes.

# kube WORDS...: in the namespace of the base. As the administrator, whatever KUBECONFIG says.
kube() { kubectl --kubeconfig "$work/kubeconfig" --namespace onym "$@"; }
state_is() { [ "$(kube get networks "$1" -o 'jsonpath={.status.state} {.status.functions}')" = "$2" ]; }
stop() {
  echo "kubernetes: FAILED: $*"
  kube get networks,pods -o wide
  kube logs deployment/onym-manager --tail=20
  tail -20 "$work/log" 2>/dev/null
  exit 1
}
applied() { until_true "${2:-120}" state_is "$1" "Applied 2/2" || stop "$1 is not applied"; }
gone() { ! kube get networks "$1" 2>/dev/null && [ -z "$(kube get pods --selector onym/manager --output name)" ]; }

# What a cluster brings along: a place for the manager's state.
place() {
  install -d -m 755 "$work/state-of-manager"
  kube apply -f - >/dev/null <<K
apiVersion: v1
kind: PersistentVolume
metadata: {name: onym-test}
spec:
  capacity: {storage: 100Mi}
  accessModes: [ReadWriteOnce]
  persistentVolumeReclaimPolicy: Retain
  local: {path: "$work/state-of-manager"}
  nodeAffinity:
    required:
      nodeSelectorTerms: [{matchExpressions: [{key: kubernetes.io/hostname, operator: In, values: [onym-test]}]}]
K
}

operator_image() {
  mkdir "$work/docker"
  engine_start "$work/docker"
  DOCKER_HOST=unix://$socket scripts/image.sh "$1" onym:latest
  # As `onym:latest`, which the base names.
  docker --host "unix://$socket" save onym:latest >"$work/onym.tar"
  engine_stop
  engine=
  cluster_image "$work/onym.tar"
}

# fetched OUT: a file from one end of the network to the other.
fetched() { "$program" get --node "tcp4://$(pod_address 6362):6362" /example/operator -o "$1"; }

operator_in_the_cluster() {
  KUBECONFIG=$work/kubeconfig kubectl apply -k packaging/kubernetes/base >/dev/null
  kube rollout status deployment/onym-manager --timeout=120s >/dev/null || stop "the manager does not start"
  KUBECONFIG=$work/kubeconfig kubectl apply -f packaging/kubernetes/network.yaml >/dev/null
  applied minimal
  "$program" put --node "tcp4://$(pod_address 6363):6363" /example/operator "$work/in" >"$work/put2" 2>&1 &
  put=$!
  until_true 60 fetched "$work/out4" || stop "no file through the network of an object: $(cat "$work/put2")"
  cmp "$work/in" "$work/out4"
  kube exec deployment/onym-manager -- /bin/onym net show | grep -q 'as wanted' || stop "the manager's health check fails"
  echo "kubernetes: an object is a network: $(kube get networks --no-headers | tr -s ' ')"

  kube patch networks minimal --type=merge -p '{"spec":{"functions":{"br":{"kind":"backward-ruter"}}}}' >/dev/null
  until_true 30 state_is minimal "Refused " || stop "a kind that is not there is not refused"
  kube get networks minimal -o wide | grep -q 'backward-router' || stop "the status does not say what is wrong"
  fetched "$work/out5" && cmp "$work/in" "$work/out5" || stop "what was before does not run on"
  kube apply -f packaging/kubernetes/network.yaml >/dev/null
  applied minimal 30
  sed 's/name: minimal/name: second/' packaging/kubernetes/network.yaml | kube apply -f - >/dev/null
  until_true 30 state_is second "Refused " || stop "two networks of one manager"
  kube delete networks second --timeout=30s >/dev/null
  echo "kubernetes: what cannot be is refused in its status, and what was before runs on"

  # Away while its object is deleted: nothing is lost, and the network ends once it is back.
  local pods
  pods=$(kube get pods --selector onym/manager --output name)
  kube scale deployment/onym-manager --replicas=0 >/dev/null
  until_true 60 manager_is_away || stop "the manager does not end"
  kube delete networks minimal --wait=false >/dev/null
  [ "$(kube get pods --selector onym/manager --output name)" = "$pods" ] || stop "services ended with their manager"
  kube scale deployment/onym-manager --replicas=1 >/dev/null
  until_true 120 gone minimal || stop "a network outlives its object"
  kill "$put" 2>/dev/null || true
  put=
  [ "$(kube get pods --selector app=onym-manager -o 'jsonpath={.items[*].status.containerStatuses[*].restartCount}')" = 0 ] || stop "the manager was started again"
  echo "kubernetes: a network ends with its object, though nobody looked when it was deleted"
}
manager_is_away() { [ -z "$(kube get pods --selector app=onym-manager --output name)" ]; }

# The token of the manager's pod lives ten minutes, and the node replaces it before.
operator_rotation() {
  kube patch deployment onym-manager --type=json -p '[
    {"op": "add", "path": "/spec/template/spec/automountServiceAccountToken", "value": false},
    {"op": "add", "path": "/spec/template/spec/volumes/-", "value": {"name": "account", "projected": {"sources": [
      {"serviceAccountToken": {"path": "token", "expirationSeconds": 600}},
      {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}}]}}},
    {"op": "add", "path": "/spec/template/spec/containers/0/volumeMounts/-", "value":
      {"name": "account", "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "readOnly": true}}]' >/dev/null
  kube rollout status deployment/onym-manager --timeout=120s >/dev/null || stop "the manager does not start"
  kube apply -f packaging/kubernetes/network.yaml >/dev/null
  applied minimal
  local ends
  ends=$(cut -d. -f2 "$work"/kubelet/pods/*/volumes/kubernetes.io~projected/account/token |
    python3 -c 'import base64, json, sys; print(json.loads(base64.urlsafe_b64decode(sys.stdin.read().strip() + "=="))["exp"])')
  # An API server forgives a minute.
  past() { [ "$(date +%s)" -gt $((ends + 75)) ]; }
  until_true 900 past
  kube delete -f packaging/kubernetes/network.yaml --timeout=60s >/dev/null || stop "the manager does nothing with a token that was replaced"
  [ "$(kube get pods --selector app=onym-manager -o 'jsonpath={.items[*].status.containerStatuses[*].restartCount}')" = 0 ] || stop "the manager was started again"
  echo "kubernetes: the manager outlives the token of its pod"
}

# A manager outside, with the rights of the base's account: who it is and where the cluster is stand in
# two files, of which one is not there yet.
operator_outside() {
  kube scale deployment/onym-manager --replicas=0 >/dev/null
  until_true 60 manager_is_away || stop "the manager does not end"
  token_of() {
    kube create secret generic "$1" >/dev/null
    kube create token onym-manager --bound-object-kind=Secret --bound-object-name="$1" >"$work/token"
  }
  token_of first
  printf 'current-context: c\nusers: [{name: a, user: {tokenFile: token}}]\n' >"$work/users"
  sed -e '/^users/d' -e '/^current-context/d' "$work/kubeconfig" >"$work/clusters"
  KUBECONFIG=$work/absent:$work/users:$work/clusters namespace=onym state=$work/state2 start onym:latest --networks \
    --allow-listen tcp4://0.0.0.0:6362 --allow-listen tcp4://0.0.0.0:6363
  kube apply -f packaging/kubernetes/network.yaml >/dev/null
  applied minimal
  # A token that is bound to an object ends with it.
  kube delete secret first >/dev/null
  kube patch networks minimal --type=merge -p '{"spec":{"network":"renamed"}}' >/dev/null
  until_true 60 grep -q 'networks of the cluster: .*401' "$work/log" || stop "a token that ended is still good"
  token_of second
  until_true 60 observed || stop "a replaced token is not read"
  kube delete -f packaging/kubernetes/network.yaml --timeout=60s >/dev/null || stop "the network is not ended"
  kill "$manager"; wait "$manager" 2>/dev/null || true
  manager=
  echo "kubernetes: a list of kubeconfig files, and a token that was replaced"
}
observed() { [ "$(kube get networks minimal -o 'jsonpath={.status.observedGeneration}')" = "$(kube get networks minimal -o 'jsonpath={.metadata.generation}')" ]; }

operator() {
  place
  operator_image "$1"
  operator_in_the_cluster
  [ -z "${ROTATE:-}" ] || operator_rotation
  operator_outside
  KUBECONFIG=$work/kubeconfig kubectl delete -k packaging/kubernetes/base --timeout=60s >/dev/null || stop "the base is not deleted"
  echo "kubernetes: the base is deleted"
}
