#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# From a fresh clone to a trained, tested linear video transformer, and what
# it sees in a clip. A second run takes up what is there already.
#   bash tools/quickstart.sh
#   bash tools/quickstart.sh --short          # every step, and little is learned
#   bash tools/quickstart.sh --venv FOLDER    # an environment that is there
set -euo pipefail
cd "$(dirname "$0")/.."
venv=
config=configs/linear_ff_tiny_motion.py
data=data/motion
work=work_dirs/quickstart
enough=90
videos=()
changes=()
while [ $# -gt 0 ]; do
    case $1 in
    --short)
        work=work_dirs/quickstart_short
        data=$work/motion
        enough=0
        videos=(--train 32 --val 16)
        changes=(--cfg-options "data_root=$data" train_cfg.max_epochs=1
                 train_cfg.val_interval=1)
        shift ;;
    --venv)
        venv=${2:?--venv needs a folder}
        shift 2 ;;
    *)
        echo "ERROR: there are --short and --venv FOLDER, got $1" >&2
        exit 2 ;;
    esac
done
python=${venv:-.venv}/bin/python
clip=$data/val/000000.mp4
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

if [ -z "$venv" ]; then
    step 'Environment' bash tools/setup_env.sh
fi
step 'Videos' "$python" tools/data/motion/make_motion.py "$data" \
    ${videos[@]+"${videos[@]}"}
step 'Training' "$python" tools/train.py "$config" --work-dir "$work" \
    --resume ${changes[@]+"${changes[@]}"}
best=$(newest "$work"/best_*.pth)
step 'Testing, 2 clips x 3 crops' "$python" tools/test.py "$config" "$best" \
    --work-dir "$work/test" --show-dir "$work/test_pictures" --interval 20 \
    ${changes[@]+"${changes[@]}"}
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
