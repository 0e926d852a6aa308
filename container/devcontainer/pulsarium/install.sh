#!/bin/sh
# Installs Pulsarium into a development container, and what starts a broker with the container.
# Reads PACKAGE and SERVE, the options of devcontainer-feature.json; PREFIX, where to install, is for tests.
set -eu

package=${PACKAGE:-"pulsarium[auth,client]"}
prefix=${PREFIX:-/usr/local}
home=$prefix/share/pulsarium

usable() { "$1" -c 'import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; }

find_python() {
    for python in "$prefix/python/current/bin/python3" python3 python3.14 python3.13 python3.12 python3.11; do
        if usable "$python"; then
            echo "$python"
            return
        fi
    done
}

python=$(find_python)
if [ -z "$python" ] && command -v apt-get >/dev/null; then
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3 python3-venv >/dev/null
    rm -rf /var/lib/apt/lists/*
    python=$(find_python)
fi
if [ -z "$python" ]; then
    echo "pulsarium: Python 3.11 or later with its venv module is needed; put the feature python before this one" >&2
    exit 1
fi

mkdir -p "$home" "$prefix/bin"
"$python" -m venv --clear "$home/venv"
"$home/venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-cache-dir "$package"
ln -sf "$home/venv/bin/pulsarium" "$prefix/bin/pulsarium"

# The container runs this with its own command behind it.
cat >"$home/start" <<START
#!/bin/sh
"$home/venv/bin/pulsarium" serve ${SERVE:-} >"\${TMPDIR:-/tmp}/pulsarium.log" 2>&1 </dev/null &
exec "\$@"
START
chmod 755 "$home/start"
