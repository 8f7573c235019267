#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# From a fresh clone to a trained and tested linear video transformer, and its
# prediction for a video. A second run continues from the files of the first.
#   bash tools/quickstart.sh
#   bash tools/quickstart.sh --short        # every stage, on a few videos
#   bash tools/quickstart.sh --venv FOLDER  # use an existing environment
set -euo pipefail
cd "$(dirname "$0")/.."
venv=
options=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help)
        sed -n '3,7s/^# //p' tools/quickstart.sh
        exit ;;
    --short)
        options+=(--short)
        shift ;;
    --venv)
        venv=${2:?--venv needs a folder}
        shift 2 ;;
    *)
        echo "ERROR: expected --short or --venv FOLDER, got $1" >&2
        exit 2 ;;
    esac
done

if [ -z "$venv" ]; then
    echo '==> Environment'
    bash tools/setup_env.sh
    echo "==> Environment: $SECONDS s"
fi
"${venv:-.venv}/bin/python" tools/quickstart.py ${options[@]+"${options[@]}"}
echo "==> All stages: $SECONDS s"
