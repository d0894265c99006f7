#!/usr/bin/env bash
# What is in deploy/, as far as this machine can check it: the image and its lists, the unit and its socket, the
# Debian package, the manifests for Kubernetes, and the proxies with TLS in front of a running gateway.
#
# Needs python3 and TIDEGATE_BIN (default: the release build). What it checks with, it takes from PyPI, Debian and
# crates.io where it may; what is missing is named, and fails in CI.
set -euo pipefail
cd "$(dirname "$0")/../.."
. tests/scripts/packages_tools.bash

bin=${TIDEGATE_BIN:-${CARGO_TARGET_DIR:-target}/release/tidegate}
bin=$(realpath "$bin")
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

echo '-- image'
python=$(packages_python)
if [ -n "$python" ]; then
    "$(dirname "$python")/hadolint" deploy/Dockerfile
    "$python" -B tests/scripts/packages_lists.py "$folder"
    TIDEGATE_ADMIN_TOKEN=a-token-for-this-check "$bin" check -c "$folder/kubernetes/tidegate.toml"
    # The secrets are not here.
    TIDEGATE_ADMIN_TOKEN=a-token-for-this-check TIDEGATE_STORE_URL=postgresql://database/tidegate \
        "$bin" check -c "$folder/cluster/tidegate.toml"
else
    missing 'PyPI (hadolint, compose-spec, kubernetes-validate)'
fi
as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo -n)
if "${as_root[@]}" true 2>/dev/null; then
    mkdir "$folder/image"
    "${as_root[@]}" python3 -B tests/scripts/packages_image.py --bin "$bin" --folder "$folder/image"
    "${as_root[@]}" rm -r "$folder/image"
else
    missing 'right to change the root folder'
fi

echo '-- systemd'
if command -v systemd-analyze >/dev/null; then
    bash tests/scripts/packages_systemd.bash "$bin" "$folder"
else
    missing systemd-analyze
fi

echo '-- socket activation'
if command -v systemd-socket-activate >/dev/null; then
    python3 -B tests/scripts/packages_socket.py --bin "$bin"
else
    missing systemd-socket-activate
fi

echo '-- Debian'
deb=$(packages_cargo_deb)
if [ -n "$deb" ] && command -v dpkg-deb >/dev/null; then
    bash tests/scripts/packages_debian.bash "$bin" "$folder" "$deb"
else
    missing 'cargo-deb and dpkg'
fi

echo '-- proxies'
caddy=$(packages_caddy)
[ -n "$caddy" ] || missing caddy
nginx=$(PATH=$PATH:/usr/sbin command -v nginx || true)
[ -n "$nginx" ] || missing nginx
python3 -B tests/scripts/packages_proxies.py --bin "$bin" --nginx "$nginx" --caddy "$caddy"

say_missing
