#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Run the tests in .venv; arguments go to pytest:
#   bash tools/run_tests.sh -m slow
#   bash tools/run_tests.sh tests/ops -k leap
set -euo pipefail
cd "$(dirname "$0")/.."
# One thread per worker: the models are tiny, and more threads only wait.
export OMP_NUM_THREADS=1 MKL_NUM_THREADS=1
# Compile modules once, not in each of hundreds of processes.
unset PYTHONDONTWRITEBYTECODE
# More workers than processors, as many tests wait for a program.
workers=$(($(getconf _NPROCESSORS_ONLN) * 3 / 2))

bash tools/setup_env.sh --dev
export VIRTUAL_ENV=$PWD/.venv PATH=$PWD/.venv/bin:$PATH
exec python -m pytest -m 'not slow' -n $workers --maxprocesses 8 \
    --dist loadfile --no-loadscope-reorder "$@"
