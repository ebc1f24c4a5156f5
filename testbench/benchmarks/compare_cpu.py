#!/usr/bin/env python3
"""Times Heddle's compiled CPU code against ONNX Runtime, interleaved in one run: same model, input and threads.

Usage: compare_cpu.py TIME_CPU MODEL.onnx... [--rounds 7] [--threads 1]

TIME_CPU is //testbench/benchmarks:time_cpu: it compiles the model once, then runs it once for each line read from stdin
and prints the milliseconds, so that the two runtimes take turns. Medians and their ratio are printed, with the largest
difference of the outputs, the time to compile and the peak memory of the compiled program's process.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time

import numpy
import onnxruntime


class HeddleRunner:
    """A time_cpu process that runs the model once a call."""

    def __init__(self, program, model, threads, inputs, outputs):
        self.process = subprocess.Popen([program, model, str(threads), inputs, outputs], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError("time_cpu ended before it was ready")
        self.ready = json.loads(line)

    def run_ms(self):
        self.process.stdin.write("run\n")
        self.process.stdin.flush()
        return float(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        last = self.process.stdout.readline()
        self.process.wait()
        return json.loads(last)


def session_for(model, threads):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def compare(program, model, threads, rounds):
    session = session_for(model, threads)
    random = numpy.random.default_rng(1)
    feed = {spec.name: random.random([d if isinstance(d, int) else 1 for d in spec.shape], dtype=numpy.float32) for spec in session.get_inputs()}
    with tempfile.TemporaryDirectory() as folder:
        numpy.savez(f"{folder}/in.npz", **feed)
        runner = HeddleRunner(program, model, threads, f"{folder}/in.npz", f"{folder}/out.npz")
        ours, theirs = [], []
        for _ in range(rounds + 1):
            ours.append(runner.run_ms())
            start = time.perf_counter()
            expected = session.run(None, feed)
            theirs.append((time.perf_counter() - start) * 1e3)
        facts = runner.close()
        actual = numpy.load(f"{folder}/out.npz")
    error = max(float(numpy.max(numpy.abs(actual[spec.name] - value))) for spec, value in zip(session.get_outputs(), expected))
    ours_ms, theirs_ms = statistics.median(ours[1:]), statistics.median(theirs[1:])
    print(f"{model}: heddle {ours_ms:.2f} ms, onnxruntime {theirs_ms:.2f} ms, ratio {ours_ms / theirs_ms:.2f}; "
          f"largest difference {error:.3g}; compiled in {runner.ready['compile_s']:.1f} s, peak memory {facts['peak_mib']:.0f} MiB")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    for model in args.models:
        compare(args.program, model, args.threads, args.rounds)
    return 0


if __name__ == "__main__":
    sys.exit(main())
