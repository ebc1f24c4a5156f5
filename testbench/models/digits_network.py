"""The digits network, described once: training, both exports and the MAC table walk the same list of layers.

It is small but holds what real int8 vision networks are made of: a 3x3 stem, a ResNet block with an identity
shortcut, a MobileNetV1 pair (strided depthwise, pointwise), a MobileNetV2 inverted residual whose Add has no ReLU, a
ResNet block with a projection shortcut, global average pooling, a fully connected layer and softmax.

All pictures and activations are [batch, channels, rows, columns] (NCHW), all convolution weights are
[output channels, input channels / groups, kernel rows, kernel columns] (OIHW), as in ONNX.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

CLASSES = 10
FEATURES = 64  # channels that reach the fully connected layer
PICTURE_SIDE = 8
BATCH_NORM_EPSILON = 1e-5


@dataclass(frozen=True)
class Conv:
    """A convolution without bias, then batch normalisation, then ReLU where `relu` is set. "Same" padding."""

    name: str
    source: str  # name of the layer whose output is read
    inputs: int
    outputs: int
    kernel: int
    stride: int = 1
    groups: int = 1
    relu: bool = True

    @property
    def weight_shape(self):
        return (self.outputs, self.inputs // self.groups, self.kernel, self.kernel)

    @property
    def padding(self):
        """Zeros on each of the four sides."""
        return self.kernel // 2


@dataclass(frozen=True)
class Add:
    """The sum of two layers of one shape, then ReLU where `relu` is set."""

    name: str
    left: str
    right: str
    relu: bool = True


LAYERS = (
    Conv("stem/conv", "input", 1, 16, kernel=3),
    Conv("block1/conv_a", "stem/conv", 16, 16, kernel=3),
    Conv("block1/conv_b", "block1/conv_a", 16, 16, kernel=3, relu=False),
    Add("block1/add", "stem/conv", "block1/conv_b"),
    Conv("block2/depthwise", "block1/add", 16, 16, kernel=3, stride=2, groups=16),
    Conv("block2/pointwise", "block2/depthwise", 16, 32, kernel=1),
    Conv("block3/expand", "block2/pointwise", 32, 128, kernel=1),
    Conv("block3/depthwise", "block3/expand", 128, 128, kernel=3, groups=128),
    Conv("block3/project", "block3/depthwise", 128, 32, kernel=1, relu=False),
    Add("block3/add", "block2/pointwise", "block3/project", relu=False),
    Conv("block4/conv_a", "block3/add", 32, 64, kernel=3, stride=2),
    Conv("block4/conv_b", "block4/conv_a", 64, 64, kernel=3, relu=False),
    Conv("block4/shortcut", "block3/add", 32, 64, kernel=1, stride=2, relu=False),
    Add("block4/add", "block4/shortcut", "block4/conv_b"),
)
CONVS = tuple(layer for layer in LAYERS if isinstance(layer, Conv))


def initial_parameters(generator):
    """He-normal weights drawn from `generator` (numpy.random.Generator), as {layer: {parameter: float32 array}}."""
    parameters = {}
    for conv in CONVS:
        fan_in = np.prod(conv.weight_shape[1:])
        parameters[conv.name] = {
            "weight": generator.normal(0, np.sqrt(2 / fan_in), conv.weight_shape).astype(np.float32),
            "gamma": np.ones(conv.outputs, np.float32),
            "beta": np.zeros(conv.outputs, np.float32),
        }
    parameters["head/fully_connected"] = {
        "weight": generator.normal(0, np.sqrt(1 / FEATURES), (CLASSES, FEATURES)).astype(np.float32),
        "bias": np.zeros(CLASSES, np.float32),
    }
    return parameters


def _convolve(pictures, conv, weight):
    return jax.lax.conv_general_dilated(
        pictures,
        weight,
        window_strides=(conv.stride, conv.stride),
        padding=[(conv.padding, conv.padding)] * 2,
        feature_group_count=conv.groups,
        dimension_numbers=("NCHW", "OIHW", "NCHW"),
    )


def _normalise(values, parameters, mean, variance):
    scale = parameters["gamma"] / jnp.sqrt(variance + BATCH_NORM_EPSILON)
    shift = parameters["beta"] - mean * scale
    return values * scale[None, :, None, None] + shift[None, :, None, None]


def forward(parameters, pictures, statistics=None):
    """Runs the network on float32 pictures [N, 1, 8, 8].

    `statistics` is {convolution: (mean, variance)}, each [output channels]; None uses those of this batch, as
    training does. Returns the output of every layer by name ("head/fully_connected" holds the logits [N, 10]) and
    the statistics that were used.
    """
    values = {"input": pictures}
    used = {}
    for layer in LAYERS:
        if isinstance(layer, Conv):
            result = _convolve(values[layer.source], layer, parameters[layer.name]["weight"])
            batch = (result.mean((0, 2, 3)), result.var((0, 2, 3)))
            used[layer.name] = statistics[layer.name] if statistics else batch
            result = _normalise(result, parameters[layer.name], *used[layer.name])
        else:
            result = values[layer.left] + values[layer.right]
        values[layer.name] = jax.nn.relu(result) if layer.relu else result
    head = parameters["head/fully_connected"]
    values["head/average_pool"] = values[LAYERS[-1].name].mean((2, 3), keepdims=True)
    values["head/fully_connected"] = values["head/average_pool"][:, :, 0, 0] @ head["weight"].T + head["bias"]
    return values, used


def fold_batch_norm(conv, parameters, statistics):
    """Weight (OIHW) and bias [output channels] of the convolution that equals convolution plus normalisation."""
    mean, variance = (np.asarray(value, np.float64) for value in statistics[conv.name])
    own = parameters[conv.name]
    scale = own["gamma"] / np.sqrt(variance + BATCH_NORM_EPSILON)
    weight = own["weight"] * scale[:, None, None, None]
    return weight.astype(np.float32), (own["beta"] - mean * scale).astype(np.float32)


def count_macs():
    """Multiply-accumulates of one picture, {layer: count}; taps that fall on padding are counted, as is usual."""
    side = {"input": PICTURE_SIDE}
    macs = {}
    for layer in LAYERS:
        if isinstance(layer, Conv):
            side[layer.name] = -(-side[layer.source] // layer.stride)
            macs[layer.name] = side[layer.name] ** 2 * int(np.prod(layer.weight_shape))
        else:
            side[layer.name] = side[layer.left]
    macs["head/fully_connected"] = CLASSES * FEATURES
    return macs


def count_parameters():
    """Weights and biases once batch normalisation is folded, {layer: count}."""
    counts = {conv.name: int(np.prod(conv.weight_shape)) + conv.outputs for conv in CONVS}
    counts["head/fully_connected"] = CLASSES * FEATURES + CLASSES
    return counts
