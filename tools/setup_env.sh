#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Make .venv in this checkout, with versions that are tested together. A second
# run is quick; an interrupted one continues.
#   PYTHON=python3.12 bash tools/setup_env.sh
#   bash tools/setup_env.sh --dev     # add the packages of the tests
#   source tools/setup_env.sh         # activate .venv as well
# UV=0 installs with pip only.

if [ "${BASH_SOURCE[0]}" != "$0" ]; then
    bash "${BASH_SOURCE[0]}" || return
    . "$(dirname "${BASH_SOURCE[0]}")/../.venv/bin/activate"
    return
fi

set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
'') parts=required ;;
--dev) parts='required dev' ;;
*)
    echo "ERROR: expected --dev, got $1" >&2
    exit 2 ;;
esac
base=${PYTHON:-python3}
venv=$PWD/.venv
python=$venv/bin/python
log=$venv/setup.log
constraints=requirements/constraints.txt

fail() {
    echo "ERROR: $*" >&2
    exit 1
}

# Hash of everything that decides the contents of the environment.
fingerprint() {
    "$python" - "$venv" setup.py "$constraints" tools/setup_env.sh <<'PY'
import hashlib, pathlib, sys
digest = hashlib.sha256((sys.version + sys.argv[1]).encode())
for path in sys.argv[2:]:
    digest.update(pathlib.Path(path).read_bytes())
print(digest.hexdigest())
PY
}

is_ready() {
    [ -f "$venv/$1.stamp" ] &&
        [ "$(cat "$venv/$1.stamp")" = "$(fingerprint 2>&1)" ]
}

# Modules are compiled when they are first imported, which is most of a minute
# less than compiling all of them here.
by_pip() {
    "$python" -m pip install --disable-pip-version-check --no-compile \
        -c "$constraints" "$@"
}

# uv resolves and unpacks several times as fast as pip. It reads none of pip's
# settings, and may lack a package index that pip is set up for.
by_uv() {
    "$venv/bin/uv" pip install --python "$python" -c "$constraints" "$@"
}

# Print a dot per package; the installer's output goes to the log.
install() {
    local installer=by_pip
    printf '==> Installing %s ' "$1"
    shift
    if [ "$1" = --uv ]; then
        shift
        [ -x "$venv/bin/uv" ] && installer=by_uv
    fi
    if "$installer" "$@" 2>&1 | tee -a "$log" |
        awk '/^ *(Collecting|Processing|Downloading|Building|\+) ?/ {
                 printf "."; fflush() } END { print "" }'; then
        return 0
    fi
    [ "$installer" = by_uv ] || return 1
    echo 'uv failed, trying pip' | tee -a "$log"
    rm -f "$venv/bin/uv"
    install 'by pip' "$@"
}

see_log() {
    tail -n 15 "$log" >&2
    fail "the installation failed; its output is in $log"
}

missing=
for part in $parts; do
    is_ready "$part" || missing="$missing $part"
done
[ -n "$missing" ] || exit 0

command -v "$base" > /dev/null ||
    fail "$base not found. Install Python 3.10 or newer, or name one with" \
         "PYTHON=/path/to/python3"
"$base" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "Python 3.10 or newer is needed, $base is $("$base" -V 2>&1). Name" \
         "another one with PYTHON=/path/to/python3"

if ! "$python" -m pip --version > /dev/null 2>&1; then
    echo "==> Making .venv with $("$base" -V 2>&1)"
    "$base" -m venv --clear "$venv" ||
        fail "$base cannot make virtual environments. On Debian and Ubuntu:" \
             "apt install python3-venv"
fi
: > "$log"

# pip settings that uv has under other names. Its default index is PyPI.
export UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1 UV_LINK_MODE=copy
UV_DEFAULT_INDEX=${PIP_INDEX_URL:-$("$python" -m pip config get \
    global.index-url 2> /dev/null || echo https://pypi.org/simple)}
export UV_DEFAULT_INDEX

install_required() {
    install 'build tools' setuptools || see_log
    if [ "${UV:-1}" != 0 ] && [ ! -x "$venv/bin/uv" ]; then
        install uv --no-deps uv || echo 'no uv: pip is slower' >&2
    fi
    install_torch
    # A path instead of an import hook, or else the clone's folder mmvidattn
    # would hide the package from programs in the folder above.
    install 'mmvidattn and its requirements' --uv --no-build-isolation \
        --config-settings editable_mode=compat -e '.[lite]' || see_log
    # OpenCV's usual build needs libGL, which servers and containers often
    # lack. mmaction2 requires both opencv-python and opencv-contrib-python,
    # which write the same files: the one installed last must be the latter.
    opencv=$(sed -n 's/^opencv-python==//p' "$constraints")
    if ! "$python" -c 'import cv2' 2>> "$log"; then
        install 'OpenCV without windows' --no-deps --force-reinstall \
            "opencv-contrib-python-headless==$opencv" || see_log
    elif ! "$python" -c 'import cv2; cv2.optflow.DualTVL1OpticalFlow_create' \
        2>> "$log"; then
        install 'OpenCV with optical flow' --no-deps --force-reinstall \
            "opencv-contrib-python==$opencv" || see_log
    fi
    "$python" -c 'import mmvidattn' ||
        fail "the environment is complete, but mmvidattn cannot be imported"
}

# PyPI's torch for Linux brings gigabytes of CUDA, so ask PyTorch's own index
# for the CPU build first, and give up on it soon. pip finds local files that
# its settings name.
install_torch() {
    local torch
    torch=$(sed -n 's/^torch==//p' "$constraints")
    "$python" -m pip freeze 2> /dev/null |
        grep -Eq "^torch(==$torch| @)" && return
    if [ "$(uname)" = Linux ] && ! nvidia-smi -L > /dev/null 2>&1 &&
        install "torch $torch (CPU)" "torch==$torch+cpu" --no-deps \
            --extra-index-url https://download.pytorch.org/whl/cpu \
            --retries 0 --timeout 15; then
        return
    fi
    install "torch $torch" "torch==$torch" || see_log
}

install_dev() {
    install 'the tests' --uv --no-build-isolation \
        --config-settings editable_mode=compat -e '.[lite,dev]' || see_log
    # timm would install a torchvision that may not fit this torch.
    install timm --no-deps timm || see_log
}

for part in $missing; do
    rm -f "$venv/$part.stamp"
    "install_$part"
    fingerprint > "$venv/$part.stamp"
done
echo "==> The environment is ready: .venv"
