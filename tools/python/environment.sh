# shellcheck shell=bash
# Sourced by install, fetch and test: creates a virtual environment and installs packages.
#
# Needs tools/setup.sh. Sets `python` to the interpreter of the environment.

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

# missing PACKAGE...: prints the packages that are not installed in the pinned version.
missing() {
    "$python" - "$project/tools/python/requirements.txt" "$@" <<'END'
import importlib.metadata, sys

def installed(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None

lines = open(sys.argv[1], encoding="utf-8").read().split()
pins = dict(line.split("==") for line in lines if "==" in line)
print(*(name for name in sys.argv[2:] if installed(name) != pins[name]))
END
}

# Exit status if no package index is reachable; other failures exit with 1.
no_index=3

pip_install() {
    "$python" -m pip install --quiet --disable-pip-version-check --retries 1 --timeout 20 "$@"
}

# fetch PACKAGE...: installs the pinned versions; exits with $no_index if there is no index.
fetch() {
    local wanted
    wanted=$(missing "$@")
    [ -n "$wanted" ] || return 0
    heading "Installing $wanted"
    # shellcheck disable=SC2086 # names are words
    pip_install --constraint "$project/tools/python/requirements.txt" $wanted && return
    # Every index contains pip.
    if "$python" -m pip index versions --quiet --disable-pip-version-check --retries 1 \
        --timeout 20 pip >/dev/null 2>&1; then
        die "cannot install $wanted, although the package index answers"
    fi
    printf '%s: cannot install %s: no package index is reachable\n' \
        "$(basename "$0")" "$wanted" >&2
    exit "$no_index"
}
