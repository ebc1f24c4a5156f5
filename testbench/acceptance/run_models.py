#!/usr/bin/env python3
"""Runs `heddle run` on a list of models and targets and prints one line each: verdict, devices, cycles, times.

Usage: run_models.py HEDDLE [--data DIR] [--out DIR] [--targets zynq7020,edge-soc] [MODEL...]

Without MODEL: the bundled int8 digits network and MLPerf Tiny's kws, ic, vww and ad as QDQ and as QLinear operators.
Exit status 1 where a run fails or is not bit-exact.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]


def default_models(data):
    models = [ROOT / "testbench/models/digits/digits_int8_qdq.onnx"]
    for name in ("kws", "ic", "vww", "ad"):
        models += [data / "mlperf_tiny_onnx" / f"{name}_int8_{form}.onnx" for form in ("qdq", "qop")]
    return models


def run(heddle, model, target, out):
    start = time.time()
    process = subprocess.run([heddle, "run", str(model), "--target", target, "--out", str(out), "--quiet"], capture_output=True, text=True)
    seconds = time.time() - start
    if process.returncode:
        return False, f"{model.stem:<22} {target:<10} exit status {process.returncode}: {process.stderr.strip()}"
    report = json.loads((out / "report" / "report.json").read_text())
    verdict = report["verdict"]
    nodes = ", ".join(f"{d['name']} {d['nodes']}" for d in report["devices"])
    accelerator = report.get("accelerator")
    cycles = ""
    if accelerator:
        simulated, estimated = accelerator["cycles_simulated"], accelerator["cycles_estimated"]
        error = 100 * (estimated / simulated - 1) if simulated else 0
        layers = [layer for layer in accelerator["layers"] if layer["cycles_simulated"]]
        worst = max(layers, key=lambda layer: abs(layer["cycles_estimated"] / layer["cycles_simulated"] - 1), default=None)
        worst_error = 100 * (worst["cycles_estimated"] / worst["cycles_simulated"] - 1) if worst else 0
        cycles = (f"{simulated} cycles (predicted {error:+.2f} %, worst layer {worst_error:+.2f} %, "
                  f"at {accelerator['estimated_cycles_per_second'] / 1e6:.0f} Mcycles/s), utilisation {accelerator['utilisation']:.3f}, "
                  f"{accelerator['simulated_cycles_per_second'] / 1e3:.0f} kcycles/s")
    line = (f"{model.stem:<22} {target:<10} {'bit-exact' if verdict['bit_exact'] else 'DIFFERS'} against {len(verdict['compared_against'])}: "
            f"{', '.join(verdict['compared_against'])}; nodes: {nodes}; {cycles}; {seconds:.1f} s")
    return verdict["bit_exact"], line


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("heddle")
    parser.add_argument("models", nargs="*", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path, default=pathlib.Path(os.environ.get("HEDDLE_DATA", ROOT / "../shared/data")))
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("heddle-out"))
    parser.add_argument("--targets", default="zynq7020,edge-soc")
    args = parser.parse_args()
    good = True
    for model in args.models or default_models(args.data):
        for target in args.targets.split(","):
            ok, line = run(args.heddle, model, target, args.out / f"{model.stem}-{target}")
            good = good and ok
            print(line, flush=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
