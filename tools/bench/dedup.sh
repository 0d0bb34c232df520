#!/usr/bin/env bash
# Measures `hamdex dedup` without options on texts from templates and on corpora.
#
# Usage: tools/bench/dedup.sh HAMDEX[,HAMDEX...] [CORPUS.jsonl...]
#
# Prints seconds, peak memory and kept rows for 200,000 parcel notices, 200,000 weather lines,
# 30,000 changed copies of a licence, and every corpus. Each HAMDEX program runs three times on each
# input, in turn.
set -euo pipefail

programs=${1:?"Usage: tools/bench/dedup.sh HAMDEX[,HAMDEX] [CORPUS.jsonl...]"}
shift
project=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tools/setup.sh
. "$project/tools/setup.sh"
(cd "$project" && cargo build --locked --release --package hamdex-bench)
bench=$CARGO_TARGET_DIR/release/hamdex-bench

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bench" texts notices >"$work/notices.jsonl"
"$bench" texts weather >"$work/weather.jsonl"
"$bench" texts licences --count 30000 >"$work/licences.jsonl"
python3 - "$programs" "$work" "$@" <<'PYTHON'
import json, os, subprocess, sys, time
programs, work, corpora = sys.argv[1].split(","), sys.argv[2], sys.argv[3:]
made = [f"{work}/{name}.jsonl" for name in ("notices", "weather", "licences")]
print("input\tprogram\tseconds\tpeak MB\trows\tkept")
for path in made + corpora:
    for _ in range(3):
        for program in programs:
            out = f"{work}/out"
            begun = time.monotonic()
            process = subprocess.Popen([program, "dedup", path, "-o", out, "--quiet", "--overwrite"])
            _, status, usage = os.wait4(process.pid, 0)
            seconds = time.monotonic() - begun
            if status:
                sys.exit(f"{program} failed on {path}: status {status}")
            report = json.load(open(f"{out}/report.json"))
            name = os.path.basename(path)
            peak = usage.ru_maxrss / 1024
            print(f"{name}\t{program}\t{seconds:.2f}\t{peak:.0f}\t{report['rows']}\t{report['kept']}", flush=True)
PYTHON
