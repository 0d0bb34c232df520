#!/usr/bin/env bash
# Measures tables in memory at random, text and balanced fingerprints in turn, twice.
#
# Usage: tools/bench/shapes.sh DIRECTORY [OPTIONS OF hamdex-bench report]
#
# Writes DIRECTORY/SHAPE-RUN/report.json and prints the smallest median of every row.
set -euo pipefail

directory=${1:?"Usage: tools/bench/shapes.sh DIRECTORY [OPTIONS OF hamdex-bench report]"}
shift
mkdir -p "$directory"
directory=$(cd "$directory" && pwd)
report=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)/report.sh
for run in 1 2; do
    for shape in random text balanced; do
        "$report" --shape "$shape" --sizes 1500000 --distances 3,8,12 --repetitions 3 --budget 0.25 \
            --batch 10000 --only "tables in memory" --out "$directory/$shape-$run" "$@"
    done
done
python3 - "$directory" <<'PYTHON'
import json, pathlib, sys
rows = {}
for path in sorted(pathlib.Path(sys.argv[1]).glob("*-[12]/report.json")):
    shape = path.parent.name.split("-")[0]
    for row in json.loads(path.read_text())["rows"]:
        times = row["figures"].get("median_us") or [1e6 / x for x in row["figures"].get("per_second", [])]
        if row["k"] is not None and times:
            key = row["engine"], row["work"], row["kind"], row["k"], row["threads"]
            rows.setdefault(key, {}).setdefault(shape, []).extend(times)
print("engine\twork\tkind\tk\tthreads\trandom\ttext\tbalanced")
for key, by_shape in rows.items():
    figures = [f"{min(by_shape[s]):.2f}" if s in by_shape else "" for s in ("random", "text", "balanced")]
    print(*key, *figures, sep="\t")
PYTHON
