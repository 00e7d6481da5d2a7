#!/usr/bin/env bash
# The programs of a Kubernetes node, for `K8S_BIN=FOLDER make kubernetes-test`, built from their Go
# module: scripts/kubernetes-build.sh FOLDER. KUBERNETES: another version. Needs Go 1.24 or later;
# fetches the module and what it uses, some GB of cache. Exit status 77: there is no Go.
set -euo pipefail
version=${KUBERNETES:-1.34.4}
out=$(realpath -m "${1:?scripts/kubernetes-build.sh FOLDER}")
command -v go >/dev/null || { echo "kubernetes-build: skipped, there is no go (1.24 or later)" >&2; exit 77; }
mkdir -p "$out/module"
cd "$out/module"
printf 'module local/kubernetes\n\ngo 1.24.0\n\nrequire k8s.io/kubernetes v%s\n' "$version" >go.mod
folder=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p')
[ -d "$folder" ] || { echo "kubernetes-build: k8s.io/kubernetes v$version cannot be had: see GOPROXY in go env" >&2; exit 1; }
# What the project has as folders of its own tree is published with the version 0.MINOR.PATCH.
sed -n 's,^\t*\(k8s.io/[^ ]*\) => ./staging/.*,\1,p' "$folder/go.mod" |
  sed "s,.*,replace & => & v0.${version#1.}," >>go.mod
told=k8s.io/component-base/version
flags="-s -w -X $told.gitVersion=v$version -X $told.gitMajor=1 -X $told.gitMinor=$(cut -d. -f2 <<<"$version")"
for program in kube-apiserver kube-controller-manager kube-scheduler kubelet; do
  echo "kubernetes-build: $program" >&2
  go build -mod=mod -ldflags "$flags" -o "$out/$program" "k8s.io/kubernetes/cmd/$program"
done
echo "kubernetes-build: K8S_BIN=$out"
