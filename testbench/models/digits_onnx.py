"""Writes the trained digits network as ONNX: fp32 with its BatchNormalization nodes, and int8 in QDQ form.

The int8 model follows the ONNX quantisation conventions that ONNX Runtime fuses into integer kernels: activations
int8 with a scale and a zero point each, weights int8, symmetric, with a scale for each output channel (axis 0),
biases int32 at scale (activation scale x weight scale) with zero point 0. BatchNormalization is folded first.
"""

from dataclasses import dataclass, field

import numpy as np
from onnx import TensorProto, checker, helper, numpy_helper

from digits_network import BATCH_NORM_EPSILON, CLASSES, LAYERS, PICTURE_SIDE, Conv, fold_batch_norm

# The newest pair that ONNX 1.12 (Debian 12) knows.
OPSET = 17
IR_VERSION = 8

# Pixels are multiples of 1/16. At scale 1/240 each of them is a whole number of steps, so that the first
# QuantizeLinear loses nothing and meets no tie; min-max calibration (1/255) would put 8/16 on 127.5.
INPUT_SCALE = 1 / 240
# Softmax lies in [0, 1): the fixed choice of TFLite and of most int8 tool chains.
SOFTMAX_SCALE = 1 / 256


@dataclass
class GraphWriter:
    """Collects nodes and initialisers. A node's (only) output bears the node's name."""

    nodes: list = field(default_factory=list)
    constants: list = field(default_factory=list)

    def constant(self, name, array):
        self.constants.append(numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op, name, inputs, output=None, **attributes):
        output = output or name
        self.nodes.append(helper.make_node(op, inputs, [output], name=name, **attributes))
        return output

    def model(self, title):
        """The checked model: float "input" [1, 1, 8, 8] to float "probabilities" [1, 10]."""
        shape = [1, 1, PICTURE_SIDE, PICTURE_SIDE]
        graph = helper.make_graph(
            self.nodes,
            title,
            [helper.make_tensor_value_info("input", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, CLASSES])],
            self.constants,
        )
        model = helper.make_model(
            graph,
            opset_imports=[helper.make_opsetid("", OPSET)],
            ir_version=IR_VERSION,
            producer_name="heddle/testbench/models/train_digits.py",
        )
        checker.check_model(model, full_check=True)
        return model


def _conv_attributes(conv):
    return {
        "dilations": [1, 1],
        "group": conv.groups,
        "kernel_shape": [conv.kernel] * 2,
        "pads": [conv.padding] * 4,
        "strides": [conv.stride] * 2,
    }


# --- fp32 ---------------------------------------------------------------------------------------------------------


def _write_conv_fp32(writer, conv, source, parameters, statistics):
    weight = writer.constant(f"{conv.name}/weight", parameters["weight"])
    result = writer.node("Conv", conv.name, [source, weight], **_conv_attributes(conv))
    name = f"{conv.name}/batch_norm"
    mean, variance = statistics
    constants = {"gamma": parameters["gamma"], "beta": parameters["beta"], "mean": mean, "variance": variance}
    inputs = [writer.constant(f"{name}/{key}", value) for key, value in constants.items()]
    return writer.node("BatchNormalization", name, [result, *inputs], epsilon=BATCH_NORM_EPSILON)


def write_fp32(parameters, statistics):
    """The float32 model, from parameters and batch statistics as `digits_network.forward` takes them."""
    writer = GraphWriter()
    values = {"input": "input"}
    for layer in LAYERS:
        if isinstance(layer, Conv):
            own = parameters[layer.name], statistics[layer.name]
            result = _write_conv_fp32(writer, layer, values[layer.source], *own)
        else:
            result = writer.node("Add", layer.name, [values[layer.left], values[layer.right]])
        values[layer.name] = writer.node("Relu", f"{layer.name}/relu", [result]) if layer.relu else result
    pooled = writer.node("GlobalAveragePool", "head/average_pool", [values[LAYERS[-1].name]])
    flat = writer.node("Flatten", "head/flatten", [pooled], axis=1)
    name = "head/fully_connected"
    head = [writer.constant(f"{name}/{key}", parameters[name][key]) for key in ("weight", "bias")]
    logits = writer.node("Gemm", name, [flat, *head], transB=1)
    writer.node("Softmax", "head/softmax", [logits], output="probabilities", axis=1)
    return writer.model("digits_fp32")


# --- int8 ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Scaled:
    """How int8 stands for a real value: real = scale * (int8 - zero_point)."""

    scale: np.float32
    zero_point: np.int8


def scaled_for_range(low, high):
    """Maps [low, high], widened to hold 0 (padding must be exact), onto -128..127."""
    low, high = min(float(low), 0.0), max(float(high), 0.0)
    scale = np.float32((high - low) / 255)
    return Scaled(scale, np.int8(np.clip(np.rint(-128 - low / scale), -128, 127)))


def quantise_weight(weight, bias, input_scale):
    """Symmetric int8 for each output channel (axis 0).

    Returns weight int8, weight scales float32 [outputs], bias int32 [outputs] and bias scales float32 [outputs].
    """
    rows = weight.reshape(len(weight), -1)
    # A channel that training switched off would get a scale so small that its bias overflows int32.
    smallest = np.abs(bias) / (float(input_scale) * 2**30)
    scales = np.maximum(np.abs(rows).max(1) / 127, smallest).astype(np.float32)
    steps = np.rint(rows / scales[:, None]).clip(-127, 127).astype(np.int8)
    bias_scales = np.float32(input_scale) * scales
    bias_steps = np.rint(bias.astype(np.float64) / bias_scales).astype(np.int32)
    return steps.reshape(weight.shape), scales, bias_steps, bias_scales


class QdqWriter(GraphWriter):
    """A GraphWriter whose values pass through QuantizeLinear and DequantizeLinear."""

    def quantised(self, name, value, scaled, output=None):
        """Rounds float `value` to int8 steps and returns the name of the float value after it."""
        steps = [self.constant(f"{name}/scale", scaled.scale), self.constant(f"{name}/zero_point", scaled.zero_point)]
        integers = self.node("QuantizeLinear", f"{name}/quantize", [value, *steps])
        return self.node("DequantizeLinear", f"{name}/dequantize", [integers, *steps], output=output)

    def parameter(self, name, integers, scales):
        """A stored int8 or int32 array with a scale for each index of axis 0, as a float value."""
        constants = [
            self.constant(f"{name}/quantized", integers),
            self.constant(f"{name}/scale", scales),
            self.constant(f"{name}/zero_point", np.zeros(len(scales), integers.dtype)),
        ]
        return self.node("DequantizeLinear", f"{name}/dequantize", constants, axis=0)

    def weighted(self, op, name, source, weight, bias, input_scale, **attributes):
        """A Conv or Gemm on `source` with quantised weight and bias."""
        weight, weight_scales, bias, bias_scales = quantise_weight(weight, bias, input_scale)
        inputs = [
            source,
            self.parameter(f"{name}/weight", weight, weight_scales),
            self.parameter(f"{name}/bias", bias, bias_scales),
        ]
        return self.node(op, name, inputs, **attributes)


def _write_head_int8(writer, value, scaled, parameters):
    value = writer.node("GlobalAveragePool", "head/average_pool", [value])
    pooled_scaled = scaled["head/average_pool"]
    value = writer.quantised("head/average_pool", value, pooled_scaled)
    value = writer.node("Flatten", "head/flatten", [value], axis=1)
    value = writer.quantised("head/flatten", value, pooled_scaled)  # moves data only: same steps on both sides
    name = "head/fully_connected"
    own = parameters[name]
    value = writer.weighted("Gemm", name, value, own["weight"], own["bias"], pooled_scaled.scale, transB=1)
    value = writer.quantised(name, value, scaled[name])
    value = writer.node("Softmax", "head/softmax", [value], axis=1)
    fixed = Scaled(np.float32(SOFTMAX_SCALE), np.int8(-128))
    writer.quantised("head/softmax", value, fixed, output="probabilities")


def write_int8(parameters, statistics, ranges):
    """The int8 QDQ model. `ranges` is {layer: (lowest, highest)} of its float output on calibration pictures."""
    scaled = {name: scaled_for_range(*bounds) for name, bounds in ranges.items()}
    scaled["input"] = Scaled(np.float32(INPUT_SCALE), np.int8(-128))
    writer = QdqWriter()
    values = {"input": writer.quantised("input", "input", scaled["input"])}
    for layer in LAYERS:
        if isinstance(layer, Conv):
            weight, bias = fold_batch_norm(layer, parameters, statistics)
            input_scale = scaled[layer.source].scale
            attributes = _conv_attributes(layer)
            result = writer.weighted("Conv", layer.name, values[layer.source], weight, bias, input_scale, **attributes)
        else:
            result = writer.node("Add", layer.name, [values[layer.left], values[layer.right]])
        if layer.relu:
            result = writer.node("Relu", f"{layer.name}/relu", [result])
        values[layer.name] = writer.quantised(layer.name, result, scaled[layer.name])
    _write_head_int8(writer, values[LAYERS[-1].name], scaled, parameters)
    return writer.model("digits_int8_qdq")
