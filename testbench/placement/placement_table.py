#!/usr/bin/env python3
"""Solves every instance of data/placement_graphs, checks each plan, and prints the table of docs/partitioning.md.

    placement_table.py [--heddle PATH] [--data FOLDER] [--time-limit SECONDS]

The data folder is $HEDDLE_DATA/placement_graphs by default. Ends with status 1 where a plan fails the check.
"""

import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent


def solve(options, graph, objective, *flags):
    command = [options.heddle, "partition", str(graph), "--objective", objective, "--json", "--time-limit", str(options.time_limit), *flags]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as plan:
        plan.write(run.stdout)
        plan.flush()
        check = subprocess.run([sys.executable, HERE / "check_plan.py", graph, plan.name], capture_output=True, text=True, check=False)
    return json.loads(run.stdout)["partition"], check.returncode == 0


def expert_cost(data, graph):
    plan = data / "human-experts" / f"{graph.stem}_expert.json"
    if graph.parent.name != "LayerGraphs" or not plan.exists():
        return None
    return float(subprocess.run([sys.executable, HERE / "check_plan.py", graph, plan, "--expert"], capture_output=True, text=True, check=True).stdout)


def main():
    root = HERE.parents[1]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--heddle", default=str(root / "bazel-bin/driver/heddle"))
    parser.add_argument("--data", default=os.path.join(os.environ.get("HEDDLE_DATA", str(root.parent / "shared/data")), "placement_graphs"))
    parser.add_argument("--time-limit", type=float, default=60)
    options = parser.parse_args()
    data = pathlib.Path(options.data)
    failed = 0
    print("| instance | problem | cost | lower bound | gap % | seconds | expert |\n|---|---|---|---|---|---|---|")
    problems = [("throughput", ["--contiguous"], "throughput, contiguous"), ("throughput", ["--any"], "throughput, any"), ("latency", [], "latency")]
    for objective, flags, name in problems:
        for graph in sorted((data / f"{objective}-inputs").glob("*/*.json")):
            plan, good = solve(options, graph, objective, *flags)
            failed += not good
            expert = expert_cost(data, graph) if objective == "throughput" else None
            label = f"{graph.parent.name.removesuffix('Graphs').lower()}/{graph.stem}"
            print(f"| {label} | {name} | {plan['cost_us']:.6f} | {plan['lower_bound_us']:.6f} | {plan['gap_percent']:.4g} | "
                  f"{plan['solve_seconds']:.1f} | {f'{expert:.4f}' if expert else '–'} |{'' if good else ' CHECK FAILED'}", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
