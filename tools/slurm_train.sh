#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Train under Slurm. GPUS (8), GPUS_PER_NODE (8), CPUS_PER_TASK (5) and
# SRUN_ARGS are read from the environment.
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"
[[ $# -ge 3 ]] || \
    usage 'PARTITION JOB_NAME CONFIG [ARGUMENTS OF train.py...]'
run_slurm "$1" "$2" "$TOOLS/train.py" "${@:3}"
