#!/usr/bin/env bash
# Measures hamdex and its peers on the same data and writes bench-report.
#
# Usage: tools/bench/report.sh [OPTIONS OF hamdex-bench report]
#
# Python peers are installed into a virtual environment of their own in $HAMDEX_PEERS, or beside
# the compiled programs; without Python, or where pip finds nothing, the report says that they are
# missing.
set -euo pipefail

# shellcheck source=tools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup.sh"
cd "$project"
peers=${HAMDEX_PEERS:-$CARGO_TARGET_DIR/peers}
python="$peers/bin/python"
if [ ! -x "$python" ]; then
    python3 -m venv "$peers" || echo "no virtual environment: Python peers stay out" >&2
fi
if [ -x "$python" ]; then
    "$python" -m pip install --quiet --disable-pip-version-check faiss-cpu numpy simhash ||
        echo "pip failed: Python peers that are not installed stay out" >&2
    set -- --python "$python" "$@"
fi
# The whole workspace decides the features of the dependencies, so that RocksDB is compiled once.
cargo build --locked --release --workspace --bin hamdex-bench --features hamdex-bench/peers
exec "$CARGO_TARGET_DIR/release/hamdex-bench" report "$@"
