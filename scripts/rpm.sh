#!/usr/bin/env bash
# A package for distributions with RPM, of an archive of scripts/archive.sh: scripts/rpm.sh ARCHIVE [FOLDER]
# Writes FOLDER/onym-VERSION-1.MACHINE.rpm (target/rpm). Two runs give the same octets. Needs rpmbuild
# (Debian: rpm). COMPRESS: gzip in place of what rpmbuild takes, which is slow.
set -euo pipefail
cd "$(dirname "$0")/.."
archive=$(realpath "$1")
out=$(realpath -m "${2:-target/rpm}")
command -v rpmbuild >/dev/null || { echo "rpm: skipped, there is no rpmbuild (rpm)" >&2; exit 77; }
folder=$(basename "$archive" .tar.gz)
machine=${folder##*-} rest=${folder%-*}
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
mkdir -p "$out"
# Its time is that of the files in the archive.
SOURCE_DATE_EPOCH=$(date -d "$(tar -tvzf "$archive" | awk 'NR == 1 {print $4, $5}')" +%s)
export SOURCE_DATE_EPOCH
how=(--define "_topdir $top" --define "_sourcedir $(dirname "$archive")" --define "_buildhost localhost"
  --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1"
  --define "onym_version ${rest#onym-}" --define "onym_archive $(basename "$archive")" --define "onym_folder $folder")
[ "${COMPRESS:-}" != gzip ] || how+=(--define "_binary_payload w1.gzdio")
rpmbuild --quiet -bb --target "$machine" "${how[@]}" packaging/rpm/onym.spec >&2
cp "$top"/RPMS/*/*.rpm "$out/"
ls "$out/onym-${rest#onym-}-1.$machine.rpm"
