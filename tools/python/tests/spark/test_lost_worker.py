"""A worker that is killed in the middle changes nothing."""

import threading
import time

import pytest

from .conftest import SETTINGS, UNVERIFIED, frame
from .test_one_machine import grouped, wanted

hs = pytest.importorskip(
    "hamdex.spark", reason="no Spark here", exc_type=ImportError
)


def test_a_killed_worker_changes_nothing(started, spark, corpus, hamdex_lines):
    checkpoints = started.directory / "checkpoints"
    before = set(checkpoints.rglob("rdd-*"))
    found = {}

    def run():
        rows = hs.clusters(frame(spark, corpus), "text", "id", 3, **SETTINGS).collect()
        found["rows"], found["at"] = rows, time.monotonic()

    work = threading.Thread(target=run, daemon=True)
    work.start()
    # The second checkpoint is behind the fingerprints and before the groups.
    while len(set(checkpoints.rglob("rdd-*")) - before) < 2 and work.is_alive():
        time.sleep(0.05)
    assert work.is_alive(), "the work was done before the worker was killed"
    started.kill_worker(0)
    killed = time.monotonic()
    work.join()
    started.add_worker()
    assert found["at"] > killed
    lines = hamdex_lines("clusters", corpus, "-k", 3, *UNVERIFIED)
    assert grouped(found["rows"]) == wanted(lines)
