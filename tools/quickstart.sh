#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# From a fresh clone to a trained, tested linear video transformer, and what
# it sees in a clip. A second run takes up what is there already.
set -euo pipefail
cd "$(dirname "$0")/.."
python=.venv/bin/python
config=configs/linear_ff_tiny_motion.py
data=data/motion
work=work_dirs/quickstart
clip=$data/val/000000.mp4
enough=90
# The processes that read videos need cores as well.
cores=$(nproc)
export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$((cores > 1 ? cores / 2 : 1))}
mkdir -p "$work"

step() {
    local name=$1 start=$SECONDS
    shift
    echo "==> $name"
    "$@"
    echo "==> $name: $((SECONDS - start)) s"
}

newest() {
    ls -t "$@" | head -n 1
}

step 'Environment' bash tools/setup_env.sh
step 'Videos' "$python" tools/data/motion/make_motion.py "$data"
step 'Training' "$python" tools/train.py "$config" --work-dir "$work" --resume
best=$(newest "$work"/best_*.pth)
step 'Testing, 2 clips x 3 crops' "$python" tools/test.py "$config" "$best" \
    --work-dir "$work/test" --show-dir "$work/test_pictures" --interval 20
step 'Prediction' "$python" tools/predict.py "$clip" "$config" "$best" \
    --out "$work/prediction.png"
step 'Video' "$python" tools/predict.py "$clip" "$config" "$best" \
    --out "$work/prediction.mp4"

metrics=$(newest "$work"/test/*/*.json)
"$python" - "$metrics" "$enough" <<'PY'
import json
import sys

with open(sys.argv[1]) as file:
    top1 = 100 * json.load(file)['acc/top1']
print(f'==> top-1 {top1:.1f} % on the validation videos')
if top1 < float(sys.argv[2]):
    raise SystemExit(f'ERROR: expected at least {sys.argv[2]} %')
PY
echo "==> Pictures: $work/prediction.png, $work/prediction.mp4," \
    "$work/test_pictures"
