# shellcheck shell=bash
# Sourced by tools/test and tools/demo: finds or installs what the build needs.
#
# Lists everything it is about to install before it installs any of it; what cannot be installed
# from here is named in one sentence. Afterwards `project` is the root of the sources and
# CARGO_TARGET_DIR lies outside of it, so that one compilation of RocksDB serves every clone.

project=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)

heading() { printf '\n== %s\n' "$*"; }

die() {
    printf '%s: %s\n' "$(basename "$0")" "$*" >&2
    exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

can_install() {
    have apt-get && { [ "$(id -u)" -eq 0 ] || have sudo; }
}

# apt_install PACKAGE...: installs Debian packages, after one refresh of the lists.
apt_install() {
    can_install || return 1
    if [ -z "${apt_refreshed:-}" ]; then
        as_root apt-get update -qq || return 1
        apt_refreshed=1
    fi
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

# Lists the files in a directory that bindgen can load; libclang-cpp is another library.
libclang_in() {
    local directory=$1
    find -L "$directory" -maxdepth 1 -type f \
        \( -name 'libclang.so' -o -name 'libclang.so.*' \
        -o -name 'libclang-*.so' -o -name 'libclang-*.so.*' -o -name 'libclang.dylib' \) \
        ! -name '*-cpp.*' 2>/dev/null
}

# The directories that bindgen searches, in its order.
libclang_directories() {
    local llvm_config=${LLVM_CONFIG_PATH:-llvm-config}
    if [ -n "${LIBCLANG_PATH:-}" ]; then
        if [ -d "$LIBCLANG_PATH" ]; then
            printf '%s\n' "$LIBCLANG_PATH"
        else
            dirname "$LIBCLANG_PATH"
        fi
        return
    fi
    if have "$llvm_config"; then
        "$llvm_config" --libdir 2>/dev/null || true
    fi
    printf '%s' "${LD_LIBRARY_PATH:-}" | tr ':' '\n'
    printf '\n'
    printf '%s\n' /usr/local/llvm*/lib* /usr/local/lib* /usr/local/lib*/* /usr/lib/llvm*/lib \
        /usr/lib/*-linux-gnu* /usr/lib /usr/lib64 /usr/lib64/llvm*/lib* \
        /Library/Developer/CommandLineTools/usr/lib /usr/local/opt/llvm*/lib /opt/homebrew/opt/llvm*/lib
}

have_libclang() {
    local directory
    while IFS= read -r directory; do
        if [ -d "$directory" ] && [ -n "$(libclang_in "$directory" | head -n 1)" ]; then
            return 0
        fi
    done < <(libclang_directories)
    return 1
}

have_compiler() {
    have c++ && have cc && have make
}

# An old compiler is there and does not do: it has to be replaced by hand.
knows_cpp20() {
    printf '#include <compare>\nint main() { return (1 <=> 1) != 0; }\n' |
        "${CXX:-c++}" -std=c++20 -fsyntax-only -x c++ - 2>/dev/null
}

need_compiler() {
    if ! have_compiler; then
        apt_install build-essential || true
        have_compiler ||
            die "a C and C++20 compiler and make are needed to compile RocksDB: install them" \
                "(Debian and Ubuntu: apt-get install build-essential; Fedora: dnf install gcc-c++ make)"
    fi
    knows_cpp20 ||
        die "${CXX:-c++} does not compile C++20, which RocksDB needs: install GCC 11 or Clang 13" \
            "or later, or name one by CXX"
}

need_libclang() {
    if have_libclang; then
        return
    fi
    if [ -n "${LIBCLANG_PATH:-}" ]; then
        die "LIBCLANG_PATH is $LIBCLANG_PATH, where no libclang.so is: correct or unset it"
    fi
    apt_install libclang-dev && have_libclang && return
    die "libclang is needed to bind RocksDB: install it (Debian and Ubuntu: apt-get install" \
        "libclang-dev; Fedora: dnf install clang-devel), or set LIBCLANG_PATH to its directory"
}

need_cargo() {
    if ! have cargo && [ -x "$HOME/.cargo/bin/cargo" ]; then
        PATH=$HOME/.cargo/bin:$PATH
    fi
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' "$project/Cargo.toml" | head -n 1)
    have cargo || die "Rust is needed: install Rust $wanted or later with cargo"
    found=$(cargo --version | awk '{ print $2 }')
    if [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" != "$wanted" ]; then
        die "Rust $wanted or later is needed, found $found: install a newer toolchain"
    fi
}

have_nextest() {
    cargo nextest --version >/dev/null 2>&1
}

need_nextest() {
    if have_nextest; then
        return
    fi
    cargo install cargo-nextest --locked && cargo nextest --version >/dev/null && return
    die "cargo-nextest is needed to run the tests: install it with cargo install cargo-nextest --locked"
}

# announce [nextest]: says what is missing and will be installed, before any of it is.
announce() {
    local packages=() crates=()
    have_compiler || packages+=(build-essential)
    [ -n "${LIBCLANG_PATH:-}" ] || have_libclang || packages+=(libclang-dev)
    if [ "${1:-}" = nextest ] && ! have_nextest; then
        crates+=(cargo-nextest)
    fi
    if [ ${#packages[@]} -gt 0 ] && can_install; then
        heading "Will be installed by apt-get: ${packages[*]}"
    fi
    if [ ${#crates[@]} -gt 0 ]; then
        heading "Will be installed by cargo: ${crates[*]}"
    fi
}

need_cargo
announce "${needs:-}"
need_compiler
need_libclang

export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/hamdex/target}
mkdir -p "$CARGO_TARGET_DIR"

# Cargo would compile RocksDB again for every set of features; where this fails it still does.
if [ -z "${ROCKSDB_LIB_DIR:-}" ] && [ -z "${RUSTFLAGS:-}" ]; then
    if ROCKSDB_LIB_DIR=$("$project/tools/rocksdb" ${rocksdb:+"$rocksdb"}); then
        export ROCKSDB_LIB_DIR ROCKSDB_STATIC=1
    else
        unset ROCKSDB_LIB_DIR
        echo "RocksDB is compiled by cargo instead, which takes longer."
    fi
fi
