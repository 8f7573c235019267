#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Make .venv in this checkout, with versions known to work together.
# Run it, or source it to use the environment afterwards. A second run is
# quick; one that was cut short is taken up again.
#   PYTHON=python3.12 bash tools/setup_env.sh

if [ "${BASH_SOURCE[0]}" != "$0" ]; then
    bash "${BASH_SOURCE[0]}" || return
    . "$(dirname "${BASH_SOURCE[0]}")/../.venv/bin/activate"
    return
fi

set -euo pipefail
cd "$(dirname "$0")/.."
base=${PYTHON:-python3}
venv=$PWD/.venv
python=$venv/bin/python
stamp=$venv/mmvidattn.stamp
log=$venv/setup.log
constraints=requirements/constraints.txt

fail() {
    echo "ERROR: $*" >&2
    exit 1
}

# Of everything that decides what belongs into the environment.
fingerprint() {
    "$python" - "$venv" setup.py "$constraints" tools/setup_env.sh <<'PY'
import hashlib, pathlib, sys
digest = hashlib.sha256((sys.version + sys.argv[1]).encode())
for path in sys.argv[2:]:
    digest.update(pathlib.Path(path).read_bytes())
print(digest.hexdigest())
PY
}

# One dot for each package; all of pip's output goes to the log.
install() {
    printf '==> Installing %s ' "$1"
    shift
    if "$python" -m pip install --disable-pip-version-check \
        -c "$constraints" "$@" 2>&1 | tee -a "$log" |
        awk '/^ *(Collecting|Processing|Downloading|Building)/ {
                 printf "."; fflush() } END { print "" }'; then
        return 0
    fi
    return 1
}

if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$(fingerprint 2>&1)" ]; then
    exit 0
fi

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
rm -f "$stamp"
: > "$log"

see_log() {
    tail -n 15 "$log" >&2
    fail "pip failed; all it said is in $log"
}

install 'build tools' setuptools || see_log

# PyPI's torch for Linux brings gigabytes of CUDA, so ask PyTorch's own index
# for the CPU build first, and give up on it soon.
torch=$(sed -n 's/^torch==//p' "$constraints")
if ! "$python" -m pip freeze 2> /dev/null | grep -Eq "^torch(==$torch| @)"; then
    if [ "$(uname)" = Linux ] && ! nvidia-smi -L > /dev/null 2>&1 &&
        install "torch $torch (CPU)" "torch==$torch+cpu" --no-deps \
            --extra-index-url https://download.pytorch.org/whl/cpu \
            --retries 0 --timeout 15; then
        :
    else
        install "torch $torch" "torch==$torch" || see_log
    fi
fi

install 'mmvidattn and what it needs' --no-build-isolation \
    -e '.[lite,dev]' || see_log

# For tests: kernels run in Triton's interpreter where torch is a CPU build,
# which brings no Triton; timm would bring a torchvision of its own choice.
install timm --no-deps timm || see_log
if [ "$(uname)" = Linux ] && ! "$python" -c 'import triton' 2>> "$log"; then
    install Triton --no-deps triton==3.7.1 || see_log
fi

# It needs ffmpeg's libraries; without them its tests are skipped.
install torchcodec --no-deps torchcodec ||
    echo 'no torchcodec: decoding with it is not tested' >&2

# OpenCV's usual build needs libGL, which servers and containers often lack.
if ! "$python" -c 'import cv2' 2>> "$log"; then
    opencv=$(sed -n 's/^opencv-python==//p' "$constraints")
    install 'OpenCV without windows' --no-deps --force-reinstall \
        "opencv-contrib-python-headless==$opencv" || see_log
fi
"$python" -c 'import mmvidattn' ||
    fail "the environment is complete, but mmvidattn cannot be imported"
fingerprint > "$stamp"
echo '==> The environment is ready: .venv'
