#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Train with several processes on a machine, one for each GPU, or on a CPU.
# Several machines: set NNODES, NODE_RANK, MASTER_ADDR and PORT on each.
# With --resume, TORCHRUN_ARGS='--max-restarts=3 --rdzv-backend=c10d
# --rdzv-endpoint=127.0.0.1:0' goes on from the last checkpoint when a process
# dies. (torchrun's static rendezvous would find the ports of the dead.)
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"
[[ $# -ge 2 ]] || usage 'CONFIG NUM_PROCESSES [ARGUMENTS OF train.py...]'
run_processes "$2" "$TOOLS/train.py" "$1" "${@:3}"
