#!/usr/bin/env bash
# Makes a release again, from a clone in a folder of another name and depth, and compares every file of it.
#
#   tests/packages/again.sh FOLDER_OF_A_RELEASE [COMMIT]
#
# COMMIT is what the release was made of, HEAD unless it is said. Costs a build of its own; the same compiler, the same
# version of Debian and the same CARGO_PROFILE_… are what the two have to share.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
release=$(cd "${1:?the folder of a release is missing}" && pwd)
commit=$(git rev-parse "${2:-HEAD}^{commit}")

work=$(mktemp -d "${TMPDIR:-/var/tmp}/weir-again-XXXXXX")
trap 'rm -rf "$work"' EXIT
clone=$work/another/of-another-depth
git clone --quiet --no-checkout . "$clone"
git -C "$clone" checkout --quiet --detach "$commit"

has() { compgen -G "$release/$1" >/dev/null; }
kinds=()
has 'weir_*.deb' && kinds+=(deb)
has 'weir-*.tar.gz' && kinds+=(archive)
has 'weir_*.oci.tar' && kinds+=(image)
has 'weir-runners_*.deb' || kinds+=(--no-runners)
version=$(basename "$release"/weir_*.cdx.json) version=${version#weir_} version=${version%_*}
CARGO_TARGET_DIR=$work/target "$clone/scripts/package" "${kinds[@]}" --version "$version" --out "$work/made"

if ! diff "$release/SHA256SUMS" "$work/made/SHA256SUMS"; then
    rm -rf "$release.again"
    mv "$work/made" "$release.again"
    echo "again: FAILED: not the same bytes; the other ones are in $release.again" >&2
    exit 1
fi
echo "again: ok: $(wc -l < "$work/made/SHA256SUMS") files are the same, byte by byte"
