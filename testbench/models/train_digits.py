"""Trains the bundled digits network and writes its models and expected outputs to digits/.

    train_digits.py [--out FOLDER]

scikit-learn's 1,797 handwritten 8x8 digits are split once, stratified, into 1,297 for training and calibration and
500 held out. Nothing is tuned or chosen on the held-out pictures: the number of epochs is fixed and the last weights
count. One fixed seed and one core make a second run on the same machine write the same bytes.
"""

import argparse
import os
import pathlib
import sys

# Before jax is loaded: it cuts its sums by the number of cores it sees, and float sums depend on the cut. The
# thread flags alone were not enough: one and two cores gave different weights.
if hasattr(os, "sched_setaffinity"):
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
os.environ["JAX_PLATFORMS"] = "cpu"

import jax
import jax.numpy as jnp
import numpy as np
import onnx
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import digits_network
import digits_onnx
from evaluate_digits import FOLDER, REQUIRED_ACCURACY, accuracy, run_model

SEED = 20240229
HELDOUT_PICTURES = 500
EPOCHS = 60
BATCH = 64
LEARNING_RATE = 3e-3
WEIGHT_DECAY = 1e-2
LABEL_SMOOTHING = 0.05  # keeps logits, and with them the int8 step of the last layer, small


def load_split():
    """Training pictures and labels, held-out pictures and labels: float32 [N, 1, 8, 8] in 0..1, int64 [N]."""
    digits = load_digits()
    pictures = (digits.images / 16).astype(np.float32)[:, None]
    labels = digits.target.astype(np.int64)
    train_x, heldout_x, train_y, heldout_y = train_test_split(
        pictures, labels, test_size=HELDOUT_PICTURES, stratify=labels, random_state=SEED
    )
    return train_x, train_y, heldout_x, heldout_y


def resampling_matrices(generator, count):
    """[count, 8, 8] matrices that move one axis by up to 1 pixel and stretch it by up to 12 % (linear)."""
    side = digits_network.PICTURE_SIDE
    centre = (side - 1) / 2
    shift = generator.uniform(-1, 1, (count, 1, 1))
    stretch = generator.uniform(0.88, 1.12, (count, 1, 1))
    wanted = (np.arange(side)[:, None] - centre) * stretch + centre + shift
    return np.maximum(0, 1 - np.abs(wanted - np.arange(side))).astype(np.float32)


def augment(generator, pictures):
    """Pictures [N, 1, 8, 8] moved and stretched at random along rows and columns."""
    rows = resampling_matrices(generator, len(pictures))[:, None]
    columns = resampling_matrices(generator, len(pictures))[:, None]
    return rows @ pictures @ columns.swapaxes(2, 3)


def loss(parameters, pictures, labels):
    """Mean cross entropy against smoothed labels, batch normalisation by the batch."""
    values, _ = digits_network.forward(parameters, pictures)
    classes = digits_network.CLASSES
    wanted = jax.nn.one_hot(labels, classes) * (1 - LABEL_SMOOTHING) + LABEL_SMOOTHING / classes
    return -(wanted * jax.nn.log_softmax(values["head/fully_connected"])).sum(1).mean()


@jax.jit
def train_step(parameters, first, second, step, rate, pictures, labels):
    """One AdamW update (Loshchilov and Hutter, 2019); `first` and `second` are the moments, `step` counts from 1."""
    value, gradient = jax.value_and_grad(loss)(parameters, pictures, labels)
    first = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, first, gradient)
    second = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, second, gradient)

    def update(parameter, m, v):
        direction = (m / (1 - 0.9**step)) / (jnp.sqrt(v / (1 - 0.999**step)) + 1e-8)
        decay = WEIGHT_DECAY if parameter.ndim > 1 else 0.0  # weights only, not gamma, beta and bias
        return parameter - rate * (direction + decay * parameter)

    return jax.tree.map(update, parameters, first, second), first, second, value


def train(pictures, labels):
    """Trains from scratch with a cosine learning rate and returns the parameters as numpy arrays."""
    generator = np.random.default_rng(SEED)
    parameters = digits_network.initial_parameters(generator)
    first = second = jax.tree.map(np.zeros_like, parameters)
    steps_per_epoch = len(pictures) // BATCH
    step = 0
    for epoch in range(EPOCHS):
        order = generator.permutation(len(pictures))
        for batch in order[: steps_per_epoch * BATCH].reshape(-1, BATCH):
            rate = LEARNING_RATE * 0.5 * (1 + np.cos(np.pi * step / (EPOCHS * steps_per_epoch)))
            step += 1
            parameters, first, second, value = train_step(
                parameters, first, second, step, rate, augment(generator, pictures[batch]), labels[batch]
            )
        if epoch % 10 == 9:
            print(f"epoch {epoch + 1}/{EPOCHS}: loss {float(value):.4f}", file=sys.stderr)
    return jax.tree.map(np.asarray, parameters)


def calibrate(parameters, pictures):
    """Batch statistics and output ranges over all training pictures, unaugmented, as {layer: (.., ..)} each.

    One pass over everything replaces the usual running averages: the network then sees exactly the normalisation
    that training used, with the batch grown to the whole set.
    """
    values, statistics = jax.jit(digits_network.forward)(parameters, pictures)
    ranges = {name: (np.asarray(value).min(), np.asarray(value).max()) for name, value in values.items()}
    return jax.tree.map(np.asarray, statistics), ranges


def check_fp32(parameters, statistics, pictures, probabilities):
    """The exported fp32 model must compute what was trained."""
    values, _ = jax.jit(digits_network.forward)(parameters, pictures, statistics)
    difference = np.abs(jax.nn.softmax(values["head/fully_connected"]) - probabilities).max()
    if difference > 1e-5:
        raise SystemExit(f"the fp32 export differs from the trained network by {difference}")


def print_summary():
    macs, parameters = digits_network.count_macs(), digits_network.count_parameters()
    for name, count in macs.items():
        print(f"{name:22} {count:9,} MACs {parameters[name]:8,} parameters")
    print(f"{'total':22} {sum(macs.values()):9,} MACs {sum(parameters.values()):8,} parameters (batch norm folded)")


def write_models(out, parameters, statistics, ranges):
    """Writes both models and returns their paths, {"fp32" | "int8": path}."""
    models = {
        "fp32": ("digits_fp32.onnx", digits_onnx.write_fp32(parameters, statistics)),
        "int8": ("digits_int8_qdq.onnx", digits_onnx.write_int8(parameters, statistics, ranges)),
    }
    for name, model in models.values():
        onnx.save(model, out / name)
    return {kind: out / name for kind, (name, _) in models.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=pathlib.Path, default=FOLDER, help="where the files go")
    out = parser.parse_args().out
    out.mkdir(parents=True, exist_ok=True)
    train_x, train_y, heldout_x, heldout_y = load_split()
    parameters = train(train_x, train_y)
    statistics, ranges = calibrate(parameters, train_x)
    paths = write_models(out, parameters, statistics, ranges)
    outputs = {kind: run_model(path, heldout_x) for kind, path in paths.items()}
    check_fp32(parameters, statistics, heldout_x, outputs["fp32"])
    expected = {f"probabilities_{kind}": value for kind, value in outputs.items()}
    np.savez(out / "heldout.npz", input=heldout_x, labels=heldout_y, **expected)
    np.savez(out / "digit0.npz", input=heldout_x[:1])
    print_summary()
    shares = {kind: accuracy(value, heldout_y) for kind, value in outputs.items()}
    print(", ".join(f"{kind} {share:.2%}" for kind, share in shares.items()), "of the held-out digits right")
    return 0 if min(shares.values()) >= REQUIRED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
