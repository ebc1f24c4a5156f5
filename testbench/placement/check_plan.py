#!/usr/bin/env python3
"""Checks plans for placement graphs with code of its own: limits, contiguity, and the objective's value.

    check_plan.py GRAPH.json PLAN.json             # a plan as `heddle partition GRAPH.json --json` prints it
    check_plan.py GRAPH.json EXPERT.json --expert  # prints the throughput of a human expert's plan

Prints one line and ends with status 0, or says what is wrong and ends with status 1. Needs nothing but Python.
"""

import argparse
import collections
import json
import sys


class Graph:
    def __init__(self, path):
        data = json.load(open(path))
        self.accelerators = int(data["maxFPGAs"])
        self.cpus = int(data["maxCPUs"])
        self.capacity = float(data["maxSizePerFPGA"])
        self.nodes = {node["id"]: node for node in data["nodes"]}
        self.send = collections.defaultdict(float)
        self.readers = collections.defaultdict(set)
        self.sources = collections.defaultdict(set)
        for edge in data["edges"]:
            self.send[edge["sourceId"]] = float(edge["cost"])
            self.readers[edge["sourceId"]].add(edge["destId"])
            self.sources[edge["destId"]].add(edge["sourceId"])


def is_cpu(device):
    return device.startswith("cpu")


def load_of(graph, device, members):
    """Load of one device: its nodes' time, and on an accelerator one transfer for each result that comes or goes."""
    if is_cpu(device):
        return sum(graph.nodes[node]["cpuLatency"] for node in members)
    load = sum(graph.nodes[node]["fpgaLatency"] for node in members)
    load += sum(graph.send[source] for source in {s for node in members for s in graph.sources[node]} - members)
    load += sum(graph.send[node] for node in members if graph.readers[node] - members)
    return load


def members_of(assignment):
    members = collections.defaultdict(set)
    for node, device in assignment.items():
        members[device].add(node)
    return members


def problems(graph, assignment, objective, contiguous):
    members = members_of(assignment)
    if set(assignment) != set(graph.nodes):
        yield "the assignment does not name every node exactly once"
        return
    accelerators = [device for device in members if not is_cpu(device)]
    if len(accelerators) > graph.accelerators:
        yield f"{len(accelerators)} accelerators are used, {graph.accelerators} exist"
    if objective == "throughput" and len(members) - len(accelerators) > graph.cpus:
        yield f"more than {graph.cpus} cores are used"
    for device in accelerators:
        size = sum(graph.nodes[node]["size"] for node in members[device])
        if size > graph.capacity:
            yield f"{device} holds {size}, at most {graph.capacity}"
        for node in members[device]:
            if not graph.nodes[node]["supportedOnFpga"]:
                yield f"node {node} is not supported on {device}"
    colours = collections.defaultdict(set)
    for node, device in assignment.items():
        if graph.nodes[node].get("colorClass") is not None:
            colours[graph.nodes[node]["colorClass"]].add(device)
    for colour, devices in colours.items():
        if len(devices) > 1:
            yield f"colour {colour} is on {sorted(devices)}"
    if contiguous and objective == "throughput":
        for device, nodes in members.items():
            bad = leaves_and_returns(graph, nodes)
            if bad is not None:
                yield f"{device} is not contiguous: a path leaves it and returns to node {bad}"


def leaves_and_returns(graph, members):
    """A forward node of the set that a forward path from the set reaches through nodes outside; None if there is none."""
    outside = [r for node in members if not graph.nodes[node]["isBackwardNode"] for r in graph.readers[node] if r not in members]
    seen = set()
    while outside:
        node = outside.pop()
        if node in seen or graph.nodes[node]["isBackwardNode"]:
            continue
        seen.add(node)
        for reader in graph.readers[node]:
            if reader in members and not graph.nodes[reader]["isBackwardNode"]:
                return reader
            if reader not in members:
                outside.append(reader)
    return None


def latency(graph, assignment):
    """End of the latest block; None where blocks wait for each other."""
    members = members_of(assignment)
    block_of = {node: node if is_cpu(device) else device for node, device in assignment.items()}
    blocks = {block: ({block} if block in graph.nodes else members[block]) for block in block_of.values()}
    waits = {block: {block_of[s] for node in nodes for s in graph.sources[node]} - {block} for block, nodes in blocks.items()}
    end = {}
    while len(end) < len(blocks):
        ready = [block for block in blocks if block not in end and waits[block] <= end.keys()]
        if not ready:
            return None
        for block in ready:
            time = graph.nodes[block]["cpuLatency"] if block in graph.nodes else load_of(graph, block, blocks[block])
            end[block] = max((end[w] for w in waits[block]), default=0) + time
    return max(end.values())


def throughput(graph, assignment):
    return max(load_of(graph, device, nodes) for device, nodes in members_of(assignment).items())


def expert_assignment(path):
    plan = json.load(open(path))
    assignment = {}
    for kind, name in (("fpgas", "accelerator"), ("cpus", "cpu")):
        for number, device in enumerate(plan[kind]):
            for node in device["nodes"]:
                assignment[node] = f"{name}{number}"
    return assignment


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graph")
    parser.add_argument("plan")
    parser.add_argument("--expert", action="store_true", help="the plan is one of the data's human experts")
    options = parser.parse_args()
    graph = Graph(options.graph)
    if options.expert:
        print(f"{throughput(graph, expert_assignment(options.plan)):.9g}")
        return 0
    plan = json.load(open(options.plan))["partition"]
    assignment = {int(node): device for node, device in plan["assignment"].items()}
    errors = list(problems(graph, assignment, plan["objective"], plan.get("contiguous", True)))
    value = None
    if not errors:
        value = latency(graph, assignment) if plan["objective"] == "latency" else throughput(graph, assignment)
        if value is None:
            errors.append("blocks wait for each other")
        elif abs(value - plan["cost_us"]) > 1e-6 * max(1.0, abs(value)):
            errors.append(f"the plan says {plan['cost_us']}, the checker finds {value}")
        elif plan["lower_bound_us"] > value * (1 + 1e-9):
            errors.append(f"the lower bound {plan['lower_bound_us']} is above the cost {value}")
    for error in errors:
        print(f"{options.graph}: {error}", file=sys.stderr)
    if errors:
        return 1
    print(f"{options.graph}: {plan['objective']} {value:.9g} as stated, bound {plan['lower_bound_us']:.9g}, gap {plan['gap_percent']:.4g} %")
    return 0


if __name__ == "__main__":
    sys.exit(main())
