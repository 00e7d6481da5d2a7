#!/usr/bin/env bash
# Runs a command with a collector of the OpenTelemetry project, whose program is named by OTELCOL:
# scripts/otelcol.sh COMMAND...
# OTELCOL or the otelcol on PATH when there is one; else it is built once, into target/tools/otelcol, from
# the project's Go modules, with a receiver of OTLP and the exporter debug alone (minutes; Go 1.26 or
# later). Exit status 77: it cannot be had.
set -euo pipefail
[ -z "${OTELCOL:-}" ] || OTELCOL=$(realpath "$OTELCOL")
cd "$(dirname "$0")/.."
version=0.165.0 stable=1.71.0
tools=$(realpath -m "${CARGO_TARGET_DIR:-target}")/tools/otelcol
program=$tools/otelcol-$version

build() {
  command -v go >/dev/null || { echo "otelcol: skipped, there is neither otelcol nor go (1.26 or later)" >&2; exit 77; }
  echo "otelcol: building the collector into $tools (minutes, once)" >&2
  mkdir -p "$tools/module"
  cd "$tools/module"
  local at=go.opentelemetry.io/collector
  {
    printf 'module local/otelcol\n\ngo 1.26.0\n\nrequire (\n'
    printf "\t$at/%s v$stable\n" component confmap confmap/provider/fileprovider exporter receiver
    printf "\t$at/%s v$version\n" exporter/debugexporter otelcol receiver/otlpreceiver service
    printf ')\n'
  } >go.mod
  cat >main.go <<'END'
package main

import (
	"fmt"
	"os"

	"go.opentelemetry.io/collector/component"
	"go.opentelemetry.io/collector/confmap"
	"go.opentelemetry.io/collector/confmap/provider/fileprovider"
	"go.opentelemetry.io/collector/exporter"
	"go.opentelemetry.io/collector/exporter/debugexporter"
	"go.opentelemetry.io/collector/otelcol"
	"go.opentelemetry.io/collector/receiver"
	"go.opentelemetry.io/collector/receiver/otlpreceiver"
	"go.opentelemetry.io/collector/service/telemetry/otelconftelemetry"
)

func parts() (otelcol.Factories, error) {
	found := otelcol.Factories{Telemetry: otelconftelemetry.NewFactory()}
	var err error
	found.Receivers, err = otelcol.MakeFactoryMap[receiver.Factory](otlpreceiver.NewFactory())
	if err == nil {
		found.Exporters, err = otelcol.MakeFactoryMap[exporter.Factory](debugexporter.NewFactory())
	}
	return found, err
}

func main() {
	files := []confmap.ProviderFactory{fileprovider.NewFactory()}
	command := otelcol.NewCommand(otelcol.CollectorSettings{
		BuildInfo: component.BuildInfo{Command: "otelcol", Version: "of the tests"},
		Factories: parts,
		ConfigProviderSettings: otelcol.ConfigProviderSettings{
			ResolverSettings: confmap.ResolverSettings{DefaultScheme: "file", ProviderFactories: files},
		},
	})
	if err := command.Execute(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
END
  go build -mod=mod -ldflags '-s -w' -o "$program.new" . ||
    { echo "otelcol: skipped, it cannot be built: see GOPROXY in go env" >&2; exit 77; }
  mv "$program.new" "$program"
}

if [ -z "${OTELCOL:-}" ] && ! OTELCOL=$(command -v otelcol); then
  [ -x "$program" ] || (build)
  OTELCOL=$program
fi
export OTELCOL
echo "otelcol: $OTELCOL" >&2
"$@"
