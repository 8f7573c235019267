#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Run the tests in .venv; arguments go to pytest:
#   bash tools/run_tests.sh -m slow
#   bash tools/run_tests.sh tests/ops -k leap
#
#   bash tools/run_tests.sh --all     # then compare with other libraries too
#
# With --all, the files that compare our results with other libraries run once
# more in .venv-all, which has these libraries (6 GB: torchvision for the torch
# on PyPI needs its CUDA build). A comparison that is skipped there fails.
set -euo pipefail
cd "$(dirname "$0")/.."
all=
if [ "${1:-}" = --all ]; then
    all=1
    shift
fi
# One thread per worker: the models are tiny, and more threads only wait.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# Compile modules once, not in each of hundreds of processes.
unset PYTHONDONTWRITEBYTECODE
# More workers than processors, as many tests wait for a program.
workers=$(($(getconf _NPROCESSORS_ONLN) * 3 / 2))

# run_pytest VENV ARGUMENTS...
run_pytest() {
    local venv=$1
    shift
    VIRTUAL_ENV=$PWD/$venv PATH=$PWD/$venv/bin:$PATH \
        "$venv/bin/python" -m pytest -m 'not slow' -n $workers \
        --maxprocesses 8 --dist loadfile --no-loadscope-reorder "$@"
}

bash tools/setup_env.sh --dev
failed=0
run_pytest .venv "$@" || failed=$?
if [ -n "$all" ]; then
    bash tools/setup_env.sh --all
    mapfile -t files < <(grep -rlE --include='test_*.py' \
        'MMVIDATTN_COMPARE|torchvision|timm|transformers|open_clip|huggingface_hub' tests)
    MMVIDATTN_COMPARE=1 run_pytest .venv-all "${files[@]}" || failed=$?
fi
exit "$failed"
