"""Tools: `fetch` reports failures by its exit status; the injector of the bench makes known twins."""

import http.server
import importlib.machinery
import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

TOOLS = Path(__file__).resolve().parents[1]


@pytest.fixture(scope="module")
def environment(tmp_path_factory):
    place = tmp_path_factory.mktemp("environment") / "python"
    subprocess.run([sys.executable, "-m", "venv", place], check=True)
    return place


@pytest.fixture
def fetch(environment):
    """Runs `fetch` with the package index at an address."""

    def run(index):
        own = {
            "PIP_INDEX_URL": index,
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "NO_PROXY": "127.0.0.1",
            "no_proxy": "127.0.0.1",
        }
        kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
        command = [TOOLS / "fetch", environment]
        return subprocess.run(command, env=kept | own, capture_output=True, text=True)

    return run


class Index(http.server.BaseHTTPRequestHandler):
    """Serves a package index that contains only pip."""

    def do_GET(self):
        found = self.path == "/simple/pip/"
        self.send_response(200 if found else 404)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        if found:
            self.wfile.write(b'<a href="pip-1.0.tar.gz">pip-1.0.tar.gz</a>')

    def log_message(self, *_):
        pass


def test_an_unreachable_index_has_a_separate_status(fetch):
    # No service listens on the discard port.
    done = fetch("http://127.0.0.1:9/simple")
    assert done.returncode == 3, done.stderr
    assert "no package index is reachable" in done.stderr.splitlines()[-1]


def test_a_version_that_the_index_lacks_is_a_failure(fetch):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        done = fetch(f"http://127.0.0.1:{server.server_port}/simple")
        server.shutdown()
    assert done.returncode == 1, done.stderr
    assert "cannot install maturin" in done.stderr.splitlines()[-1]


def test_every_package_of_the_tests_is_pinned():
    lines = (TOOLS / "requirements.txt").read_text(encoding="utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(line.count("==") == 1 for line in pins)
    assert len({line.split("==")[0].lower() for line in pins}) == len(pins) > 30


@pytest.fixture(scope="module")
def bench():
    """The program tools/bench/e2e, as a module."""
    loader = importlib.machinery.SourceFileLoader("e2e", str(TOOLS.parent / "bench" / "e2e"))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("e2e", loader))
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


def prose(rng):
    """A text of 99 clauses of words that no other text has, and one in Chinese."""
    words = ("".join(rng.choices("abcdefghijklmnop", k=7)) for _ in iter(int, 1))
    clauses = (" ".join(next(words) for _ in range(rng.randrange(2, 9))) for _ in range(99))
    return ", ".join(clauses) + "。" + "".join(rng.choices("市图书馆出借工具电钻梯子", k=12)) + "，"


def test_a_twin_keeps_the_share_of_its_kind(bench):
    rng = random.Random(5)
    for _ in range(20):
        text, other = prose(rng), prose(rng)
        own, theirs = bench.clauses(text), bench.clauses(other)
        assert "".join(own) == text and len(own) == 100
        for kind, (away, more) in bench.KINDS.items():
            made = bench.clauses(bench.twin(text, other, kind, rng))
            left = [piece for piece in made if piece in own]
            new = [piece for piece in made if piece not in own]
            # In the order of the original, and nothing that neither text has.
            assert left == [piece for piece in own if piece in left] and set(new) <= set(theirs)
            assert 1 - away <= len("".join(left)) / len(text) <= 1 - away + 0.02
            assert more - 0.02 <= len("".join(new)) / len(text) <= more


def injected(bench, place, seed):
    rng = random.Random(3)
    rows = [{"text": prose(rng)} for _ in range(200)] + [{"text": "too short"}] * 50
    place.mkdir()
    (place / "texts.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bench.inject(place / "texts.jsonl", place / "corpus.jsonl", place / "truth.tsv", seed)
    truth = [line.split("\t") for line in (place / "truth.tsv").read_text().splitlines()]
    corpus = [json.loads(line) for line in (place / "corpus.jsonl").read_text().splitlines()]
    return rows, corpus, [(int(a), int(b), kind) for a, b, kind in truth]


def test_the_injector_names_every_twin_and_changes_no_other_row(bench, tmp_path):
    rows, corpus, truth = injected(bench, tmp_path / "a", 7)
    assert [row["id"] for row in corpus] == list(range(len(rows) + 8))
    twins = {twin for twin, _, _ in truth}
    assert [row["text"] for row in corpus if row["id"] not in twins] == [row["text"] for row in rows]
    assert sorted(kind for _, _, kind in truth) == sorted([*bench.KINDS] * 2)
    assert len({original for _, original, _ in truth}) == 8
    for twin, original, kind in truth:
        same = corpus[twin]["text"] == corpus[original]["text"]
        assert same == (kind == "copy") and len(corpus[twin]["text"]) > 600
    assert injected(bench, tmp_path / "b", 7)[1:] == (corpus, truth)
    assert injected(bench, tmp_path / "c", 8)[2] != truth


def test_recall_counts_twins_that_are_not_kept_beside_their_original(bench):
    truth = [(1, 0, "copy"), (3, 2, "copy"), (5, 4, "cut"), (7, 6, "both")]
    found = bench.recall(truth, kept={0, 2, 3, 5})
    assert found == {"copy": 0.5, "cut": 1.0, "both": 1.0}


def test_the_nearest_kept_row_has_the_exact_edit_similarity(bench):
    pytest.importorskip("numpy")
    pytest.importorskip("rapidfuzz")
    rng = random.Random(9)
    texts = [prose(rng) for _ in range(60)]
    texts.append(bench.twin(texts[0], texts[1], "both", rng))
    kept = set(range(1, 60))
    found = bench.nearest(lambda: enumerate(texts), [(60, {0, *kept}), (60, kept), (0, {60})])
    assert 0.75 < found[0] == found[2] < 0.9 and found[1] < 0.5


def test_a_measurement_includes_the_children_of_a_process(bench):
    child = "a = bytearray(60_000_000); import time; time.sleep(0.5)"
    command = f"[sys.executable, '-c', {child!r}]"
    code = f"import subprocess, sys; subprocess.run({command}, start_new_session=True)"
    with open(os.devnull, "w") as log:
        done = bench.measure([sys.executable, "-c", code], log, 60)
        assert done["status"] == 0 and 60e6 < done["peak"] < 200e6
        slow = bench.measure([sys.executable, "-c", "import time; time.sleep(60)"], log, 0.3)
    assert slow["status"] == "limit" and slow["seconds"] < 30
