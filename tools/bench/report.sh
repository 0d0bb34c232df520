#!/usr/bin/env bash
# Measures hamdex and its peers on the same data and writes bench-report.
#
# Usage: tools/bench/report.sh [OPTIONS OF hamdex-bench report]
#
# Installs Python peers into a virtual environment in $HAMDEX_PEERS, or beside the compiled
# programs. If Python or a package is not available, the report lists these peers as missing.
set -euo pipefail

# shellcheck source=tools/setup.sh
. "$(dirname "${BASH_SOURCE[0]}")/../setup.sh"
cd "$project"
peers=${HAMDEX_PEERS:-$CARGO_TARGET_DIR/peers}
python="$peers/bin/python"
if [ ! -x "$python" ]; then
    python3 -m venv "$peers" || echo "no virtual environment; Python peers are skipped" >&2
fi
if [ -x "$python" ]; then
    "$python" -m pip install --quiet --disable-pip-version-check faiss-cpu numpy simhash ||
        echo "pip failed; Python peers that are not installed are skipped" >&2
    set -- --python "$python" "$@"
fi
# --workspace unifies the features of dependencies, so that RocksDB is compiled only once.
cargo build --locked --release --workspace --bin hamdex-bench --features hamdex-bench/peers
exec "$CARGO_TARGET_DIR/release/hamdex-bench" report "$@"
