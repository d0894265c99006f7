# Python with schemathesis in a folder of its own. It is sourced from the root of the repository.

openapi_python() {
    local venv=${CARGO_TARGET_DIR:-target}/openapi-venv version=4.32.5
    if ! "$venv/bin/python" -c "import importlib.metadata as m; assert m.version('schemathesis') == '$version'" 2>/dev/null; then
        rm -rf "$venv"
        python3 -m venv "$venv" >&2
        "$venv/bin/pip" install --quiet --disable-pip-version-check "schemathesis==$version" >&2
    fi
    echo "$venv/bin/python"
}
