"""Writes every 8-bit tensor that ONNX Runtime computes in a quantised model, for layer_differences.

Usage: onnx_runtime_layers.py MODEL.onnx FOLDER [INPUTS=100] [SEED=1]

Each random input gives one FOLDER/NNN.npz: the model's inputs and all 8-bit tensors under their names. Inputs are random
integers of the first quantiser's type, dequantised, so that every quantised value occurs. Needs onnx and onnxruntime.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime


def with_8bit_outputs(model):
    """Makes every 8-bit tensor of the graph an output, so that the runtime hands it out."""
    model = onnx.shape_inference.infer_shapes(model)
    graph = model.graph
    present = {value.name for value in graph.output}
    for value in graph.value_info:
        if value.type.tensor_type.elem_type in (onnx.TensorProto.INT8, onnx.TensorProto.UINT8) and value.name not in present:
            graph.output.append(value)
    return model


def input_quantiser(model):
    """Scale, zero point and integer range of the QuantizeLinear that reads the first input."""
    constants = {c.name: onnx.numpy_helper.to_array(c) for c in model.graph.initializer}
    for node in model.graph.node:
        if node.op_type == "QuantizeLinear" and node.input[0] == model.graph.input[0].name:
            zero = constants[node.input[2]]
            return float(constants[node.input[1]]), int(zero), np.iinfo(zero.dtype)
    raise SystemExit("the model's first input is not quantised")


def main():
    path, folder = sys.argv[1], pathlib.Path(sys.argv[2])
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 100
    random = np.random.default_rng(int(sys.argv[4]) if len(sys.argv) > 4 else 1)
    model = onnx.load(path)
    scale, zero, limits = input_quantiser(model)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(with_8bit_outputs(model).SerializeToString(), options,
                                           providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    source = session.get_inputs()[0]
    shape = [extent if isinstance(extent, int) else 1 for extent in source.shape]
    folder.mkdir(parents=True, exist_ok=True)
    for run in range(count):
        integers = random.integers(limits.min, limits.max + 1, size=shape)
        data = ((integers - zero) * scale).astype(np.float32)
        tensors = dict(zip(names, session.run(None, {source.name: data})))
        kept = {name: t for name, t in tensors.items() if t.dtype in (np.int8, np.uint8)}
        np.savez(folder / f"{run:03}.npz", **{source.name: data}, **kept)


if __name__ == "__main__":
    main()
