# Python with packages of PyPI, in a folder of its own. It is sourced from the root of the repository.

# Prints the path of a Python in the folder NAME-venv; where the program CHECK fails there, the packages are installed
# anew. Fails where they cannot be had.
#
#     venv_python NAME CHECK PACKAGE…
venv_python() {
    local venv=${CARGO_TARGET_DIR:-target}/$1-venv check=$2
    shift 2
    if ! "$venv/bin/python" -c "$check" 2>/dev/null; then
        rm -rf "$venv"
        # Not left to `set -e`, which does not count where this is asked in a condition.
        python3 -m venv "$venv" >&2 || return
        "$venv/bin/pip" install --quiet --disable-pip-version-check "$@" >&2 || return
    fi
    echo "$venv/bin/python"
}

# The same with one package in just this version.
pinned_python() {
    local package=$1 version=$2
    venv_python "$package" "import importlib.metadata as m; assert m.version('$package') == '$version'" \
        "$package==$version"
}

# The reader that is a library.
feedparser_python() {
    venv_python feedparser 'import feedparser' 'feedparser>=6.0.11,<7'
}
