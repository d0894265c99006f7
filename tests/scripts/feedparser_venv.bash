# Python with feedparser in a folder of its own. It is sourced from the root of the repository.

feedparser_python() {
    local venv=${CARGO_TARGET_DIR:-target}/feedparser-venv
    if ! "$venv/bin/python" -c 'import feedparser' 2>/dev/null; then
        rm -rf "$venv"
        python3 -m venv "$venv" >&2
        "$venv/bin/pip" install --quiet --disable-pip-version-check 'feedparser>=6.0.11,<7' >&2
    fi
    echo "$venv/bin/python"
}
