# shellcheck shell=bash
# Sourced by install, fetch and test: makes a virtual environment and puts packages into it.
#
# Needs `heading`, `die` and `have` of tools/setup.sh. Afterwards `python` is the environment's own.

# make_environment DIRECTORY
make_environment() {
    have python3 || die "Python 3.10 or later is needed: install python3"
    if [ ! -x "$1/bin/python" ]; then
        heading "Making the environment $1"
        python3 -m venv "$1" ||
            die "virtual environments are needed (Debian and Ubuntu: apt-get install python3-venv)"
    fi
    python=$(cd "$1" && pwd)/bin/python
    "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
        die "Python 3.10 or later is needed, found $("$python" --version)"
}

# has MODULE...: tells whether the environment has all of them, without loading them.
has() {
    "$python" -c 'import importlib.util, sys
sys.exit(not all(map(importlib.util.find_spec, sys.argv[1:])))' "$@"
}

# fetch PACKAGE...: an index that does not answer is not waited for.
fetch() {
    "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@"
}

fetch_maturin() {
    if ! has maturin; then
        heading "Installing maturin"
        fetch 'maturin>=1.9,<2' || die "maturin cannot be had: the package index does not answer"
    fi
}
