#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Run the tests of a checkout of mmaction2, mmengine or mmcv twice, without and
# with `import mmvidattn`, and print the differences. Downloads nothing.
#   git clone --branch v1.2.0 https://github.com/open-mmlab/mmaction2
#   bash tools/soak/peers.sh mmaction2
# Further arguments go to pytest. Environment variables:
#   LIMIT  seconds per test (default: 120)
#   JOBS   processes that share the tests (default: 1; with more, mmengine's
#          multi-process tests compete for the same port)
#   OUT    folder of the logs (default: a temporary folder)
# Tests that differ run once more, with and without us, because some are flaky.
# Exits with 1 if a test passes without mmvidattn and fails with it.
set -euo pipefail
[[ $# -ge 1 && -d $1/tests ]] || {
    echo "usage: $(basename "$0") CHECKOUT [ARGUMENTS OF pytest...]" >&2
    exit 2
}
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
checkout=$(cd "$1" && pwd)
shift
out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$checkout"
export PYTHONPATH=$checkout:$root${PYTHONPATH:+:$PYTHONPATH} MPLBACKEND=Agg

# A process that hangs is killed and replaced, and its test counts as failed.
run() {
    local name=$1 ours=()
    [[ $name != with ]] || ours=(-p mmvidattn)
    python -m pytest "${ours[@]}" -p no:cacheprovider -p no:randomly \
        -n "${JOBS:-1}" --max-worker-restart 1000 --dist loadfile -q -rA \
        --show-capture no --tb line -o "faulthandler_timeout=${LIMIT:-120}" \
        -o faulthandler_exit_on_timeout=true "${@:2}" > "$out/log" 2>&1 ||
        [[ $? -eq 1 ]] || { tail -n 20 "$out/log" >&2; return 1; }
    cat "$out/log" >> "$out/$name.log"
    # Drop the reason, which contains addresses and times.
    sed -nE 's/^(FAILED|ERROR) (.*)/\2/p' "$out/log" | sed 's/ - .*//' |
        sort -u > "$out/$name.failed"
    sed -n 's/^PASSED //p' "$out/log" | sort -u > "$out/$name.passed"
    echo "$name mmvidattn: $(tail -n 1 "$out/log")"
}

differences() {
    # Leave out tests of a file that cannot be imported without mmvidattn.
    comm -13 "$out/without.failed" "$out/with.failed" |
        awk -F :: 'FILENAME != "-" { failed[$0]; next } !($1 in failed)' \
            "$out/without.failed" - > "$out/broken"
    comm -23 "$out/without.failed" "$out/with.failed" > "$out/fixed"
}

for way in without with; do
    run $way "${@:-tests}"
done
differences
sort "$out/broken" "$out/fixed" > "$out/again"
if [[ -s $out/again ]]; then
    mapfile -t tests < "$out/again"
    echo "Run the ${#tests[@]} tests that differ once more"
    for way in without with; do
        run $way "${tests[@]}"
    done
    differences
fi
echo "Fail only without mmvidattn: $(wc -l < "$out/fixed")"
sed 's/^/  /' "$out/fixed"
echo "Fail only with mmvidattn: $(wc -l < "$out/broken")"
sed 's/^/  /' "$out/broken"
echo "Logs: $out"
[[ ! -s $out/broken ]]
