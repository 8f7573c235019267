#!/usr/bin/env bash
# Copyright (c) mmvidattn contributors. Licensed under Apache-2.0.
# Run the tests of a checkout of mmaction2, mmengine or mmcv twice, without and
# with `import mmvidattn`, and print where the two differ. Fetches nothing.
#   git clone --branch v1.2.0 https://github.com/open-mmlab/mmaction2
#   bash tools/soak/peers.sh mmaction2
# Further arguments go to pytest. A test may take LIMIT seconds (default: 120);
# JOBS processes share the tests (default: 1; with more, mmengine's tests of
# several processes take each other's port); what they print is kept in
# OUT (default: a temporary folder). Ends with 1 if a test that passes without
# us fails with us. Tests that differ are run once more, each way, as some fail
# now and then.
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

# A process that hangs is ended and replaced, and its test has failed.
run() {
    local name=$1 ours=()
    [[ $name != with ]] || ours=(-p mmvidattn)
    python -m pytest "${ours[@]}" -p no:cacheprovider -p no:randomly \
        -n "${JOBS:-1}" --max-worker-restart 1000 --dist loadfile -q -rA \
        --show-capture no --tb line -o "faulthandler_timeout=${LIMIT:-120}" \
        -o faulthandler_exit_on_timeout=true "${@:2}" > "$out/log" 2>&1 ||
        [[ $? -eq 1 ]] || { tail -n 20 "$out/log" >&2; return 1; }
    cat "$out/log" >> "$out/$name.log"
    # Without the reason, which holds addresses and times.
    sed -nE 's/^(FAILED|ERROR) (.*)/\2/p' "$out/log" | sed 's/ - .*//' |
        sort -u > "$out/$name.failed"
    sed -n 's/^PASSED //p' "$out/log" | sort -u > "$out/$name.passed"
    echo "$name mmvidattn: $(tail -n 1 "$out/log")"
}

differences() {
    # Without the tests of a file that without us cannot even be imported.
    comm -13 "$out/without.failed" "$out/with.failed" |
        awk -F :: 'FILENAME != "-" { failed[$0]; next } !($1 in failed)' \
            "$out/without.failed" - > "$out/harmed"
    comm -23 "$out/without.failed" "$out/with.failed" > "$out/mended"
}

for way in without with; do
    run $way "${@:-tests}"
done
differences
sort "$out/harmed" "$out/mended" > "$out/again"
if [[ -s $out/again ]]; then
    cp "$out/mended" "$out/mended.first"
    mapfile -t tests < "$out/again"
    echo "Once more, what differs: ${#tests[@]}"
    for way in without with; do
        run $way "${tests[@]}"
    done
    differences
fi
echo "Fail only without mmvidattn: $(wc -l < "$out/mended")"
sed 's/^/  /' "$out/mended"
echo "Fail only with mmvidattn: $(wc -l < "$out/harmed")"
sed 's/^/  /' "$out/harmed"
echo "All that was printed: $out"
[[ ! -s $out/harmed ]]
