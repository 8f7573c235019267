# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Functions of the scripts that start several processes.
set -euo pipefail
TOOLS=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
export PYTHONPATH="$(dirname "$TOOLS")${PYTHONPATH:+:$PYTHONPATH}"

usage() {
    echo "usage: $(basename "$0") $1" >&2
    exit 2
}

# The active environment, else the one that setup_env.sh made.
python_of_checkout() {
    local venv="$TOOLS/../.venv/bin/python"
    if [[ -z "${VIRTUAL_ENV:-}${CONDA_PREFIX:-}" && -x "$venv" ]]; then
        echo "$venv"
    else
        command -v python3 || command -v python
    fi
}
PYTHON=$(python_of_checkout)

# run_processes NUM_PROCESSES PROGRAM [ARGS...]: start processes on this
# machine. NNODES, NODE_RANK, MASTER_ADDR and PORT select one of several
# machines; TORCHRUN_ARGS has more options of torchrun.
run_processes() {
    local num=$1 threads meeting
    shift
    if [[ -z "${PORT:-}" && ${NNODES:-1} == 1 ]]; then
        # Any free port will do, so that runs don't collide.
        meeting=(--rdzv-backend=c10d --rdzv-endpoint=127.0.0.1:0
                 --local-addr=127.0.0.1)
    else
        meeting=(--node_rank="${NODE_RANK:-0}"
                 --master_addr="${MASTER_ADDR:-127.0.0.1}"
                 --master_port="${PORT:-29500}")
    fi
    # A store that torchrun shares with its processes survives a restart. New
    # processes then read the addresses of dead ones, and fail or wait for half
    # an hour (pytorch#135712). The static rendezvous always shares the store.
    export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1
    threads=$("$PYTHON" -c "import os; print(max(1, os.cpu_count() // $num))")
    export OMP_NUM_THREADS=${OMP_NUM_THREADS:-$threads}
    export MKL_NUM_THREADS=${MKL_NUM_THREADS:-$OMP_NUM_THREADS}
    # TORCHRUN_ARGS holds several words.
    # shellcheck disable=SC2086
    exec "$PYTHON" -m torch.distributed.run \
        --nnodes="${NNODES:-1}" --nproc_per_node="$num" "${meeting[@]}" \
        ${TORCHRUN_ARGS:-} "$@" --launcher pytorch
}

# run_slurm PARTITION JOB_NAME PROGRAM [ARGS...]
run_slurm() {
    local partition=$1 job=$2
    shift 2
    export MASTER_PORT=${MASTER_PORT:-$((12000 + RANDOM % 20000))}
    # SRUN_ARGS holds several words.
    # shellcheck disable=SC2086
    exec srun -p "$partition" --job-name="$job" \
        --gres="gpu:${GPUS_PER_NODE:-8}" --ntasks="${GPUS:-8}" \
        --ntasks-per-node="${GPUS_PER_NODE:-8}" \
        --cpus-per-task="${CPUS_PER_TASK:-5}" --kill-on-bad-exit=1 \
        ${SRUN_ARGS:-} "$PYTHON" -u "$@" --launcher slurm
}
