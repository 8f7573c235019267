#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Train with several processes on a machine, one for each GPU, or on a CPU.
# Several machines: set NNODES, NODE_RANK, MASTER_ADDR and PORT on each.
# With --resume and without PORT, TORCHRUN_ARGS=--max-restarts=3 goes on from
# the last checkpoint when a process dies. On several machines, add to it
# --rdzv-backend=c10d --rdzv-id=JOB --rdzv-endpoint=MASTER_ADDR:PORT.
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"
[[ $# -ge 2 ]] || usage 'CONFIG NUM_PROCESSES [ARGUMENTS OF train.py...]'
run_processes "$2" "$TOOLS/train.py" "$1" "${@:3}"
