#!/usr/bin/env bash
# The dependencies are what deny.toml allows.
set -euo pipefail
cd "$(dirname "$0")/../.."
cargo metadata --locked --format-version 1 | python3 tests/scripts/dependencies.py deny.toml
