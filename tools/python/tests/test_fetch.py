"""The environment of the tests: `fetch` reports failures by its exit status."""

import http.server
import os
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
