"""The shared cluster of the tests, the command line to compare with, and a timeout."""

import json
import os
import random
import signal
import subprocess

import pytest

from . import cluster

#: Number of documents compared with one machine; a million in the long form.
DOCUMENTS = int(os.environ.get("HAMDEX_SPARK_DOCUMENTS", "20000"))

#: Timeout of one test, in seconds.
BOUND = 240 + DOCUMENTS // 500

#: Settings of both one machine and the cluster.
SETTINGS = {"pipeline": "post"}

#: The same for the command line, which would verify groups and pairs by default.
UNVERIFIED = ["--pipeline", "post", "--verify", "none"]


def pytest_collection_modifyitems(items):
    reason = cluster.missing()
    for item in items:
        if reason is not None and "tests/spark" in item.nodeid:
            item.add_marker(pytest.mark.skip(reason=f"no Spark here: {reason}"))


@pytest.fixture(autouse=True)
def bounded():
    """Stops a test that hangs; calls into Spark are interruptible waits in Python."""

    def stop(number, frame):
        raise TimeoutError(f"not done after {BOUND} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(BOUND)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="session")
def started(tmp_path_factory):
    large = DOCUMENTS > 100_000
    running = cluster.Cluster(tmp_path_factory.mktemp("spark"), memory="3g" if large else "1g")
    yield running
    running.close()


@pytest.fixture(scope="session")
def spark(started):
    large = DOCUMENTS > 100_000
    settings = {"spark.executor.memory": "2g"} if large else {}
    session = started.session(**settings)
    yield session
    session.stop()


def _words(rng, count):
    return " ".join(f"w{int(rng.random() ** 2 * 20000):05}" for _ in range(count))


def documents(count, equal, near, seed=7):
    """Ids and texts: one in ten differs slightly from an earlier one, and there are two groups.

    `equal` texts are identical, and `near` ones differ from them in one word.
    """
    rng = random.Random(seed)
    crowd = _words(rng, 220)
    crowd_words = crowd.split(" ")
    texts = []
    for at in range(count - equal - near):
        if texts and rng.random() < 0.1:
            words = rng.choice(texts).split(" ")
            for _ in range(rng.choice([0, 0, 1])):
                words[rng.randrange(len(words))] = f"w{rng.randrange(20000):05}"
            texts.append(" ".join(words))
        else:
            texts.append(_words(rng, rng.randrange(20, 40)))
    texts.extend([crowd] * equal)
    for at in range(near):
        words = list(crowd_words)
        words[rng.randrange(len(words))] = f"x{at:06}"
        texts.append(" ".join(words))
    rng.shuffle(texts)
    return [(f"d{at:08}", text) for at, text in enumerate(texts)]


def write(path, rows):
    with open(path, "w", encoding="utf-8") as lines:
        for id, text in rows:
            lines.write(json.dumps({"id": id, "text": text}) + "\n")
    return path


@pytest.fixture(scope="session")
def corpus(tmp_path_factory):
    """Writes the documents to a file; a twentieth are equal, and a fiftieth near to these."""
    rows = documents(DOCUMENTS, DOCUMENTS // 20, DOCUMENTS // 50)
    return write(tmp_path_factory.mktemp("corpus") / "rows.jsonl", rows)


@pytest.fixture(scope="session")
def hamdex_lines(program):
    """Runs the command line and returns the lines that it printed."""

    def run(*arguments):
        command = [program, *map(str, arguments), "--quiet"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)
        assert done.returncode == 0, done.stderr
        return done.stdout.splitlines()

    return run


def frame(spark, path):
    """Returns the rows of a file, partitioned for all workers."""
    schema = "id string, text string"
    return spark.read.schema(schema).json(str(path)).repartition(4)
