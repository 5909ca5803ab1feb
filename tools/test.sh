#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs the tests of one preset, names the slowest, and closes with one line of counts. A run in which
# nothing passed is an error: it proves nothing.
#
#   tools/test.sh release [ctest arguments, as -L gpu]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

mkdir -p .cache
readonly log=.cache/test-$1.log
status=0
ctest --preset "$@" 2>&1 | tee "$log" || status=$?

echo
echo "the slowest:"
sed -nE 's/^ *[0-9]+\/[0-9]+ Test +#[0-9]+: (.*[^. ]) \.*[ *]*(Passed|Failed|Timeout) +([0-9.]+) sec.*/\3 s  \1/p' "$log" |
  sort -rn | sed -n 1,5p  # head would leave sort with a broken pipe, which pipefail reports

count() { grep -cE "^ *[0-9]+/[0-9]+ Test +#[0-9]+: .*$1" "$log" || true; }
total=$(count '[0-9.]+ sec')
passed=$(count ' Passed ')
skipped=$(count 'Skipped ')
if [ "$passed" = 0 ]; then
  echo "no test passed: that is no result" >&2
  [ "$status" != 0 ] || status=1
fi
echo "$passed passed, $((total - passed - skipped)) failed, $skipped skipped" | tee .cache/counts
exit "$status"
