#!/usr/bin/env python3
"""Counts where Heddle's integer layers differ from ONNX Runtime, layer by layer with equal inputs and at the outputs.

Usage: compare_onnxruntime.py LAYERWISE_COMPARE MODEL.onnx [--samples 100] [--max-steps 1] [--min-same-top 0.99]

Needs numpy, onnx and onnxruntime. Every tensor of the model is recorded for random inputs; the layerwise_compare program
feeds each layer with the recorded inputs. Exit status 1 where a layer is off by more steps than allowed or the top
class differs too often.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime


def with_all_outputs(model):
    """The model with every node's outputs as graph outputs, so that a session records them all."""
    model = onnx.shape_inference.infer_shapes(model)
    known = {output.name for output in model.graph.output}
    types = {info.name: info for info in model.graph.value_info}
    for node in model.graph.node:
        for name in node.output:
            if name and name not in known and name in types:
                model.graph.output.append(types[name])
                known.add(name)
    return model


def random_feed(session, random):
    """Floats uniform in [-1, 1) around typical data, 8-bit integers over their range."""
    feed = {}
    for spec in session.get_inputs():
        shape = [dim if isinstance(dim, int) else 1 for dim in spec.shape]
        if "int8" in spec.type:
            low, high, dtype = (0, 256, numpy.uint8) if "uint8" in spec.type else (-128, 128, numpy.int8)
            feed[spec.name] = random.integers(low, high, shape).astype(dtype)
        else:
            feed[spec.name] = random.standard_normal(shape).astype(numpy.float32)
    return feed


def scale_of_input(model, name):
    """(scale, zero point) of the QuantizeLinear that reads the input, so that random data fill its range; else None."""
    initialisers = {i.name: onnx.numpy_helper.to_array(i) for i in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] == name and node.input[1] in initialisers:
            zero = initialisers.get(node.input[2]) if len(node.input) > 2 else numpy.uint8(0)
            return float(initialisers[node.input[1]]), zero
    return None


def fill_range(model, feed, random):
    for name, array in feed.items():
        quantisation = scale_of_input(model, name)
        if quantisation is None or array.dtype != numpy.float32:
            continue
        scale, zero = quantisation
        info = numpy.iinfo(zero.dtype)
        steps = random.integers(info.min, info.max + 1, array.shape).astype(numpy.float64)
        feed[name] = ((steps - float(zero)) * scale).astype(numpy.float32)


def record(model, samples, folder):
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(with_all_outputs(model).SerializeToString(), options)
    names = [output.name for output in session.get_outputs()]
    random = numpy.random.default_rng(1)
    files = []
    for index in range(samples):
        feed = random_feed(session, random)
        fill_range(model, feed, random)
        values = dict(zip(names, session.run(names, feed)))
        files.append(folder / f"sample_{index:04}.npz")
        numpy.savez(files[-1], **feed, **values)
    return files


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("model")
    parser.add_argument("--samples", type=int, default=100)
    parser.add_argument("--max-steps", type=float, default=1)
    parser.add_argument("--min-same-top", type=float, default=0.99)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        files = record(onnx.load(args.model), args.samples, pathlib.Path(folder))
        result = json.loads(subprocess.run([args.program, args.model, *map(str, files)], check=True, capture_output=True, text=True).stdout)
    integer_layers = [layer for layer in result["layers"] if layer["op"].startswith(("Q", "MaxPool"))]
    for layer in integer_layers:
        share = layer["mismatches"] / layer["elements"]
        print(f"{layer['name']:<40} {layer['op']:<14} {layer['mismatches']:>8} of {layer['elements']:>10} ({share:.5%}), at most {layer['max_steps']:g}")
    same_top = result["same_top"] / result["samples"]
    print(f"outputs: {result['output_mismatches']} of {result['output_elements']} differ, at most {result['output_max_error']:g}; "
          f"same top class {result['same_top']} of {result['samples']}")
    worst = max((layer["max_steps"] for layer in integer_layers), default=None)
    if worst is None:
        print("no integer layer was compared")
        return 1
    return 0 if worst <= args.max_steps and same_top >= args.min_same_top else 1


if __name__ == "__main__":
    sys.exit(main())
