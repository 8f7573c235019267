#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Test with several processes on a machine, one for each GPU, or on a CPU.
# Several machines: set NNODES, NODE_RANK, MASTER_ADDR and PORT on each.
source "$(dirname "${BASH_SOURCE[0]}")/launch.sh"
[[ $# -ge 3 ]] || \
    usage 'CONFIG CHECKPOINT NUM_PROCESSES [ARGUMENTS OF test.py...]'
run_processes "$3" "$TOOLS/test.py" "$1" "$2" "${@:4}"
