# What checks need beside cargo and a C compiler. It is sourced; `install_tools` installs what is missing, since checks
# must not pass by leaving out what they could not run.

install_tools() {
    local missing=()
    command -v cc >/dev/null && command -v c++ >/dev/null && command -v make >/dev/null || missing+=(build-essential)
    command -v xz >/dev/null || missing+=(xz-utils)
    command -v chromium >/dev/null || missing+=(chromium)
    command -v curl >/dev/null || missing+=(curl)
    command -v openssl >/dev/null || missing+=(openssl)
    command -v r2e >/dev/null || missing+=(rss2email)
    command -v newsboat >/dev/null || missing+=(newsboat)
    command -v sfeed_update >/dev/null || missing+=(sfeed)
    PATH=$PATH:/usr/sbin command -v nginx >/dev/null || missing+=(nginx-light)
    command -v initdb >/dev/null || compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || missing+=(postgresql)
    python3 -c 'import venv, ensurepip' 2>/dev/null || missing+=(python3 python3-venv)
    install_packages "${missing[@]}"
    cargo fmt --version || rustup component add rustfmt
    cargo clippy --version || rustup component add clippy
    cargo --version
    python3 --version
}

# The same for `.ci/long`, which checks packages and alerts too.
install_all_tools() {
    local missing=()
    install_tools
    command -v lintian >/dev/null || missing+=(lintian)
    install_packages "${missing[@]}"
    unpack_promtool
}

install_packages() {
    [ $# -gt 0 ] || return 0
    echo "installing $*"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$@"
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

# Takes promtool out of its package. That is not installed, since it would start Prometheus.
unpack_promtool() {
    ! PATH=$PATH:$target/tools command -v promtool >/dev/null || return 0
    local folder
    folder=$(mktemp -d)
    as_root apt-get update -qq
    (cd "$folder" && apt-get download -qq prometheus && dpkg-deb -x prometheus_*.deb .)
    mkdir -p "$target/tools"
    mv "$folder/usr/bin/promtool" "$target/tools/"
    rm -r "$folder"
}
