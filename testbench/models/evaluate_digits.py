"""Runs a digits model with ONNX Runtime over held-out pictures and prints how many it gets right.

    evaluate_digits.py digits/digits_int8_qdq.onnx

Exits with 1 below 97 %, so that it can stand in a test. Any model with float "input" [1, 1, 8, 8] and float
"probabilities" [1, 10] will do.
"""

import argparse
import pathlib
import sys

import numpy as np
import onnxruntime

FOLDER = pathlib.Path(__file__).parent / "digits"
REQUIRED_ACCURACY = 0.97


def run_model(path, pictures):
    """Probabilities float32 [N, 10] for float32 pictures [N, 1, 8, 8], one picture at a time (the batch is 1)."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    rows = [session.run(["probabilities"], {"input": picture[None]})[0] for picture in pictures]
    return np.concatenate(rows)


def accuracy(probabilities, labels):
    """Share of rows of [N, 10] whose largest entry is at the label [N]; the first of equal entries counts."""
    return float((probabilities.argmax(1) == labels).mean())


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=pathlib.Path, help="digits_fp32.onnx or digits_int8_qdq.onnx")
    parser.add_argument("--pictures", type=pathlib.Path, default=FOLDER / "heldout.npz", help="keys: input, labels")
    arguments = parser.parse_args()
    heldout = np.load(arguments.pictures)
    share = accuracy(run_model(arguments.model, heldout["input"]), heldout["labels"])
    total = len(heldout["labels"])
    print(f"{arguments.model.name}: {round(share * total)} of {total} right ({share:.2%})")
    return 0 if share >= REQUIRED_ACCURACY else 1


if __name__ == "__main__":
    sys.exit(main())
