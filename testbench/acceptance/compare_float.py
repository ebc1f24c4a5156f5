#!/usr/bin/env python3
"""Runs models with all nodes on the CPU and with all nodes through OpenCL, and compares both with ONNX Runtime.

Usage: compare_float.py HEDDLE MODEL.onnx...

The bound is that of `heddle run`: 1e-4 of the tensor's largest magnitude plus 1e-6. Quantised outputs may be a step off
where scales are not powers of two: they are counted, and the top class compared. Exit status 1 where a float model is
out of bounds. Needs numpy and onnxruntime.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnxruntime


def run_heddle(heddle, model, device, folder, inputs):
    """The outputs by name, and how many nodes ran on `device`."""
    out = folder / device
    devices = "cpu" if device == "cpu" else "cpu,gpu"
    target = folder / "target.json"
    # Costs that make the wanted device the cheapest place for everything it takes.
    fast = {"timing": "modelled", "float_gmacs_per_s": 1e6, "int8_gmacs_per_s": 1e6, "other_gops_per_s": 1e6, "memory_gb_per_s": 1e6}
    slow = {"timing": "modelled", "float_gmacs_per_s": 1, "int8_gmacs_per_s": 1, "other_gops_per_s": 1, "memory_gb_per_s": 1, "node_overhead_us": 10}
    target.write_text(json.dumps({"schema_version": 1, "name": "all-on-" + device, "devices": [
        {"name": "cpu", "kind": "cpu", "threads": 1, **(fast if device == "cpu" else slow)},
        {"name": "gpu", "kind": "gpu", **(fast if device == "gpu" else slow)}]}))
    subprocess.run([heddle, "run", model, "--target", str(target), "--devices", devices, "--input", str(inputs), "--out", str(out),
                    "--verify", "none", "--quiet"], check=True, capture_output=True)
    report = json.loads((out / "report/report.json").read_text())
    nodes = {entry["name"]: entry["nodes"] for entry in report["devices"]}
    return dict(numpy.load(out / "verify/actual.npz")), nodes


def compare(heddle, model):
    quantised = "QuantizeLinear" in pathlib.Path(model).read_bytes().decode("latin1")
    options = onnxruntime.SessionOptions()
    if quantised:  # its fused 8-bit kernels saturate on processors without VNNI; the plain graph is what the model says
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    random = numpy.random.default_rng(1)
    feed = {spec.name: random.random([d if isinstance(d, int) else 1 for d in spec.shape], dtype=numpy.float32) for spec in session.get_inputs()}
    expected = dict(zip([spec.name for spec in session.get_outputs()], session.run(None, feed)))
    good = True
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        numpy.savez(folder / "in.npz", **feed)
        for device in ("cpu", "gpu"):
            actual, nodes = run_heddle(heddle, model, device, folder, folder / "in.npz")
            for output, values in expected.items():
                error = numpy.max(numpy.abs(actual[output] - values))
                bound = 1e-4 * numpy.max(numpy.abs(values)) + 1e-6
                same_top = numpy.argmax(actual[output]) == numpy.argmax(values)
                within = error <= bound or quantised
                good = good and within and same_top
                print(f"{pathlib.Path(model).stem:<24} {device}: nodes {nodes}; output {output}: largest difference {error:.3g}, "
                      f"bound {'counted only (quantised)' if quantised else f'{bound:.3g}'}, same top class {bool(same_top)}", flush=True)
    return good


def main():
    return 0 if all([compare(sys.argv[1], model) for model in sys.argv[2:]]) else 1


if __name__ == "__main__":
    sys.exit(main())
