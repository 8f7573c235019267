#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Train with several processes on a machine, one for each GPU, or on a CPU.
# Several machines: set NNODES, NODE_RANK, MASTER_ADDR and PORT on each.
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"
[[ $# -ge 2 ]] || usage 'CONFIG NUM_PROCESSES [ARGUMENTS OF train.py...]'
run_processes "$2" "$TOOLS/train.py" "$1" "${@:3}"
