# What the scripts with a browser have in common. It is sourced from the root of the repository, and
# `look PROGRAM` then gives a program in Python its gateway, its Chromium and a folder for pictures:
#
#     source tests/scripts/browser_stage.bash
#     look tests/scripts/forms.py
#
# Needs chromium, python3 and TIDEGATE_BIN (default: the release build). Screenshots go to
# TIDEGATE_SCREENSHOTS (default: a folder of the target). Passes where no browser is, but in CI.

look() {
    local program=$1 target bin browser out
    target=${CARGO_TARGET_DIR:-target}
    bin=${TIDEGATE_BIN:-$target/release/tidegate}
    browser=$(command -v chromium || command -v chromium-browser || true)
    if [ -z "$browser" ]; then
        echo 'no chromium here'
        [ -z "${CI:-}" ] || exit 1
        echo 'skipped'
        exit 0
    fi
    out=${TIDEGATE_SCREENSHOTS:-$target/screenshots}
    mkdir -p "$out"
    # Without -B what the programs have in common would leave its bytecode in the repository.
    exec python3 -B "$program" --bin "$bin" --browser "$browser" --out "$out"
}
