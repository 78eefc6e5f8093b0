#!/usr/bin/env bash
#
# Checks everything: format, lints, all tests. Installs what the tests need and the machine lacks.
# Runs from any folder, on Debian, Ubuntu and macOS, as any user.

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."

headline() {
    printf '\n== %s\n' "$*"
}

fail() {
    printf '%s\n' "$*" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# The places where the tests look for a Postgres server: distributions keep it off the search path.
has_postgres() {
    if has postgres && has initdb; then
        return 0
    fi
    compgen -G '/usr/lib/postgresql/*/bin/postgres' >/dev/null ||
        compgen -G '/opt/homebrew/opt/postgresql*/bin/postgres' >/dev/null ||
        compgen -G '/usr/local/opt/postgresql*/bin/postgres' >/dev/null
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif has sudo; then
        sudo "$@"
    else
        fail "Not root, and no sudo to become it: please run yourself: $*"
    fi
}

# The tests start servers of their own. What Debian would set up besides is kept from happening,
# with the means that its packages offer for it:
# - no database cluster: a drop-in of postgresql-common, removed afterwards;
# - no Redis service: its unit is masked while the package is installed, and left disabled. Where
#   there is no systemd, the service is stopped again.
# A policy-rc.d would decide for whatever else is installed meanwhile, too.
install_with_apt() (
    packages=" $* "
    cluster_folder=/etc/postgresql-common/createcluster.d
    cluster_setting=$cluster_folder/segstock-tests.conf

    # shellcheck disable=SC2329 # Called on exit.
    undo() {
        if [[ $packages == *' postgresql '* ]]; then
            as_root rm -f "$cluster_setting"
        fi
        if [[ $packages == *' redis-server '* ]] && [ -d /run/systemd/system ]; then
            as_root systemctl unmask --runtime redis-server.service
            as_root systemctl disable redis-server.service || true
        fi
    }

    as_root apt-get update
    trap undo EXIT
    if [[ $packages == *' postgresql '* ]]; then
        as_root mkdir -p "$cluster_folder"
        as_root sh -c "echo 'create_main_cluster = false' >$cluster_setting"
    fi
    if [[ $packages == *' redis-server '* ]] && [ -d /run/systemd/system ]; then
        as_root systemctl mask --runtime redis-server.service
    fi
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install --yes --no-install-recommends "$@"
    if [[ $packages == *' redis-server '* ]] && [ ! -d /run/systemd/system ]; then
        as_root /etc/init.d/redis-server stop || true
    fi
)

install_missing() {
    local redis=no postgres=no compiler=no curl=no
    has redis-server || redis=yes
    has_postgres || postgres=yes
    # SQLite and the allocator are built from their C sources.
    has cc || compiler=yes
    # One test pastes the curl line that the service prints.
    has curl || curl=yes
    if [ "$redis$postgres$compiler$curl" = nononono ]; then
        return
    fi

    headline "Install what is missing"
    local packages=()
    if [ "$(uname)" = Darwin ]; then
        if [ "$compiler" = yes ]; then
            fail "No C compiler: please run xcode-select --install"
        fi
        has brew || fail "Please install Homebrew (https://brew.sh), or Redis and PostgreSQL."
        [ "$redis" = no ] || packages+=(redis)
        [ "$postgres" = no ] || packages+=(postgresql@17)
        brew install "${packages[@]}"
    elif has apt-get; then
        [ "$redis" = no ] || packages+=(redis-server)
        [ "$postgres" = no ] || packages+=(postgresql)
        [ "$compiler" = no ] || packages+=(build-essential)
        [ "$curl" = no ] || packages+=(curl)
        install_with_apt "${packages[@]}"
    else
        [ "$redis" = no ] || packages+=("Redis (redis-server on the PATH)")
        [ "$postgres" = no ] || packages+=("the PostgreSQL server (initdb and postgres on the PATH)")
        [ "$compiler" = no ] || packages+=("a C compiler (cc on the PATH)")
        [ "$curl" = no ] || packages+=("curl")
        printf 'Please install: %s\n' "${packages[@]}" >&2
        exit 1
    fi
}

check_rust() {
    has cargo || fail "No Rust toolchain: please install one with https://rustup.rs"
    if cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1; then
        return
    fi
    has rustup || fail "Please install rustfmt and clippy for your Rust toolchain."
    headline "Install rustfmt and clippy"
    rustup component add rustfmt clippy
}

install_missing
check_rust

headline "Format"
cargo fmt --check

headline "Lints"
cargo clippy --all-targets --locked -- -D warnings

headline "Tests"
cargo test --locked
