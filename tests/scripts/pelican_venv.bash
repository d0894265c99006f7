# Python with pelican, a generator of static sites, in a folder of its own. It is sourced from the root of the
# repository.

pelican_python() {
    local venv=${CARGO_TARGET_DIR:-target}/pelican-venv version=4.12.0
    if ! "$venv/bin/python" -c "import importlib.metadata as m; assert m.version('pelican') == '$version'" 2>/dev/null; then
        rm -rf "$venv"
        python3 -m venv "$venv" >&2
        "$venv/bin/pip" install --quiet --disable-pip-version-check "pelican==$version" >&2
    fi
    echo "$venv/bin/python"
}
