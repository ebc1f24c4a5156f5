#!/bin/sh
# The command line from outside: the main job on the bundled model, every other command, exit statuses, and what a failed
# or interrupted run leaves behind.
#
# Usage: heddle_cli_test.sh HEDDLE MODEL INPUT FLOAT_MODEL
set -u
heddle=$(realpath "$1"); model=$(realpath "$2"); input=$(realpath "$3"); float_model=$(realpath "$4")
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
failures=0
check() {  # check WHAT CONDITION...
  what=$1; shift
  if "$@"; then echo "ok: $what"; else echo "FAILED: $what"; failures=$((failures + 1)); fi
}
status_of() { "$@" >out.txt 2>err.txt; echo $?; }

check "run ends well" [ "$(status_of "$heddle" run "$model" --target zynq7020 --input "$input" --out run1)" = 0 ]
check "the first screen says bit-exact" grep -qi "bit-exact" out.txt
for file in manifest.json resolved_config.json log.txt run.sh phases/01-import.ir phases/02-legalised.ir phases/03-partition.ir partitioned.onnx \
    report/report.txt report/report.json report/index.html sim/trace.json sim/counters.json verify/expected.npz verify/actual.npz verify/diff.json \
    accelerator/region_001/kernel.cpp accelerator/region_001/program.asm; do
  check "run directory has $file" [ -s "run1/$file" ] || ls run1/*/ >&2
done
check "RTL is there" sh -c 'ls run1/accelerator/rtl/*.v >/dev/null'
check "no partial directory is left" sh -c '! ls -d *.partial-* 2>/dev/null'

check "a second run ends well" [ "$(status_of "$heddle" run "$model" --target zynq7020 --input "$input" --out run2)" = 0 ]
check "runs are byte-identical, times excepted" sh -c '
  for part in phases partitioned.onnx accelerator verify resolved_target.json; do diff -r run1/$part run2/$part || exit 1; done'
check "the RTL in Icarus gives the same" [ "$(status_of "$heddle" run "$model" --input "$input" --verify plan --icarus --out icarus)" = 0 ]
check "Icarus is part of the verdict" grep -q "Icarus" icarus/verify/diff.json
check "report" [ "$(status_of "$heddle" report run1 --format json)" = 0 ]
check "the JSON says bit-exact" grep -q '"bit_exact": true' out.txt
check "explain" [ "$(status_of "$heddle" explain run1 head/softmax)" = 0 ]
check "explain of an unknown node is refused" [ "$(status_of "$heddle" explain run1 no/such/node)" != 0 ]
check "explain without a node tells the plan" [ "$(status_of "$heddle" explain run1)" = 0 ]
check "it says why the accelerator has not all" grep -q "head/softmax on cpu: cannot run there, E-ACC-001" out.txt
check "it says who holds up the others" grep -q "accelerator holds up the others" out.txt
check "a pass can be left out" [ "$(status_of "$heddle" import "$model" --passes default)" = 0 -a \
  "$(status_of "$heddle" compile "$model" --skip-pass fuse-vertical --out unfused)" = 0 ]
check "an unknown pass is refused" [ "$(status_of "$heddle" compile "$model" --skip-pass no-such-pass --out x)" = 2 ]
check "check" [ "$(status_of "$heddle" check run1 --max-cycles 100000 --max-latency-us 10000)" = 0 ]
check "check of a report alone" [ "$(status_of "$heddle" check run1/report/report.json)" = 0 ]
check "check of a budget that is missed" [ "$(status_of "$heddle" check run1 --max-cycles 10)" = 4 ]
check "reproducible runs are byte-identical" sh -c '
  for run in 1 2; do "$0" run "$1" --reproducible --verify plan --quiet --out same$run >/dev/null || exit 1; done
  diff -r -x log.txt same1/report same2/report && diff -r same1/sim same2/sim' "$heddle" "$model"
check "measured costs are not reproducible" [ "$(status_of "$heddle" run "$model" --target this-machine --reproducible --out x)" = 2 ]
check "diff" [ "$(status_of "$heddle" diff run1 run2)" = 0 ]
check "compile" [ "$(status_of "$heddle" compile "$model" --target edge-soc --out compiled)" = 0 ]
check "simulate" [ "$(status_of "$heddle" simulate compiled --input "$input" --out simulated)" = 0 ]
for model_kind in fast systemc; do
  check "simulate --model $model_kind" [ "$(status_of "$heddle" simulate run1 --input "$input" --model $model_kind --out simulated_$model_kind)" = 0 ]
  check "its outputs are the same" cmp run1/verify/actual.npz simulated_$model_kind/verify/actual.npz
done
check "the platform is named" grep -q '"plan (cpu + accelerator SystemC)"' simulated_systemc/verify/diff.json
check "the full verdict contains the platform" grep -q '"SystemC"' run1/verify/diff.json
check "the C driver is there" [ -s run1/accelerator/driver/heddle_driver.c -a -s run1/accelerator/driver/region_001.c ]
check "explore" [ "$(status_of "$heddle" explore "$model" --sweep rows=7,8,16,cols=8,16 --out explored)" = 0 ]
check "explore marks a front" grep -q "front" out.txt
check "explore says what is not possible" grep -q "not possible: contraction_lanes=7.*E-ACCEL-001" out.txt
check "explore draws" grep -q "<svg" explored/explore.html
check "explore --json" [ "$(status_of "$heddle" explore "$model" --sweep rows=8 --json --out explored)" = 0 ]
check "its version" grep -q '"schema_version": 1' out.txt
check "explore with an unknown parameter: usage" [ "$(status_of "$heddle" explore "$model" --sweep columns=8 --out x)" = 2 ]
check "import prints IR" [ "$(status_of "$heddle" import "$model" --full)" = 0 ]
cp out.txt once.ir
check "import of its own output" [ "$(status_of "$heddle" import once.ir --full)" = 0 ]
check "print, parse, print is the identity" cmp once.ir out.txt
for command in targets ops passes version --help "run --help"; do
  check "$command" [ "$(status_of "$heddle" $command)" = 0 ]
  check "$command prints something" [ -s out.txt ]
done
check "partition prints JSON" [ "$(status_of "$heddle" partition "$model")" = 0 ]

check "no command: usage" [ "$(status_of "$heddle")" = 2 ]
check "unknown option: usage" [ "$(status_of "$heddle" run "$model" --no-such-option)" = 2 ]
check "unknown target: usage" [ "$(status_of "$heddle" run "$model" --target no-such-target --out x)" = 2 ]
check "the error has a code" grep -q "E-TARGET-001" err.txt
check "missing model: bad model" [ "$(status_of "$heddle" run no-such.onnx --out x)" = 3 ]
head -c 1000 "$model" >truncated.onnx
check "truncated model: bad model" [ "$(status_of "$heddle" run truncated.onnx --out x)" = 3 ]
check "a failed run leaves nothing" [ ! -e x ]
mkdir precious; echo keep >precious/file
check "a foreign folder is not replaced" [ "$(status_of "$heddle" run "$model" --out precious)" = 2 ]
check "its file is kept" [ -s precious/file ]
check "a missed budget has its status" [ "$(status_of "$heddle" run "$model" --max-luts 10 --verify none --out small)" = 4 ]

check "quantise" [ "$(status_of "$heddle" quantise "$float_model" --calibrate "$input" --method mse -o int8.onnx)" = 0 ]
check "quantise says what each layer costs" grep -q "block1/conv_b .*Conv" out.txt
check "a quantised model runs bit-exact" [ "$(status_of "$heddle" run int8.onnx --target edge-soc --input "$input" --verify plan --out int8_run)" = 0 ]
check "quantise --json" sh -c '"$0" quantise "$1" --calibrate "$2" --json -q -o json.onnx 2>/dev/null | python3 -c "import json, sys; assert json.load(sys.stdin)[\"layers\"] > 0"' "$heddle" "$float_model" "$input"
check "a quantised model is not quantised again" [ "$(status_of "$heddle" quantise "$model" -o again.onnx)" = 3 ]
check "calibration data that is not there is bad usage" [ "$(status_of "$heddle" quantise "$float_model" --calibrate absent.npz -o again.onnx)" = 2 ]
check "a quantisation that failed leaves no file" [ ! -e again.onnx ]

"$heddle" run "$model" --out interrupted >/dev/null 2>err.txt &
pid=$!; sleep 0.3; kill -INT $pid; wait $pid; status=$?
check "an interrupted run says so or had ended" [ "$status" = 130 -o "$status" = 0 ]
check "an interrupted run leaves nothing partial" sh -c '! ls -d *.partial-* 2>/dev/null'
[ "$failures" = 0 ] && echo "all checks passed" || { echo "$failures checks failed"; exit 1; }
