#!/usr/bin/env python3
"""Builds and tests testbench/example_workspace as a user would, from outside, and writes a test.xml of what was found.

Usage: test_example_workspace.py HEDDLE LOGS

HEDDLE is the built program: the example takes it by HEDDLE_PROGRAM instead of building Heddle again. LOGS gets test.xml and
test.log. A Bazel server of its own with a temporary output folder and cache, both gone afterwards, so that every simulation
really runs once, and what comes from the cache afterwards is known.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree

EXAMPLE = pathlib.Path(__file__).resolve().parents[1] / "testbench/example_workspace"
EXIT_TESTS_FAILED = 3  # of Bazel
RAN = re.compile(r"(\d+) (?:linux-sandbox|processwrapper-sandbox|sandboxed|local|worker)\b")
CACHED = re.compile(r"(\d+) (?:disk|remote) cache hit")


class Bazel:
    def __init__(self, heddle, work, log):
        self.base, self.cache, self.log = work / "base", work / "cache", log
        self.environment = dict(os.environ, HEDDLE_PROGRAM=str(heddle))

    def run(self, command, *arguments):
        line = ["bazel", f"--output_base={self.base}", "--host_jvm_args=-Xmx800m", command]
        if command in ("build", "test"):
            line += ["--noshow_progress", "--color=no", "--experimental_convenience_symlinks=ignore", f"--disk_cache={self.cache}"]
        done = subprocess.run(line + list(arguments), cwd=EXAMPLE, env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
        self.log.write(f"$ bazel {command} {' '.join(arguments)}\n{done.stdout}\n")
        return done.returncode, done.stdout

    def folder(self, name):
        """bazel-bin or bazel-testlogs."""
        return pathlib.Path(self.run("info", name)[1].strip().splitlines()[-1])


def processes(output):
    """How many actions ran and how many came from a cache, by Bazel's closing line."""
    line = next((line for line in output.splitlines() if " process" in line and line.startswith("INFO:")), "")
    return sum(map(int, RAN.findall(line))), sum(map(int, CACHED.findall(line)))


def one_file(folder, pattern):
    found = sorted(folder.glob(pattern))
    assert found and found[0].stat().st_size > 0, f"no {pattern} in {folder}"
    return found[0]


def check_builds(bazel):
    status, output = bazel.run("build", "//...")
    assert status == 0, f"bazel build //... ended with {status}"
    assert processes(output)[0] > 0, "nothing was run"


def check_outputs(bazel):
    accelerator = bazel.folder("bazel-bin") / "digits_accelerator"
    assert "module heddle_accelerator" in one_file(accelerator, "verilog/heddle_accelerator.v").read_text()
    for pattern in ("hls/region_*/kernel.cpp", "hls/region_*/tb.cpp", "program/region_*/program.bin", "program/region_*/program.asm",
                    "program/region_*/weights.bin", "driver/heddle_driver.c", "driver/region_*.c"):
        one_file(accelerator, pattern)


def check_report(bazel):
    folder = bazel.folder("bazel-bin") / "digits_report"
    report = json.loads((folder / "report.json").read_text())
    assert report["verdict"]["bit_exact"] and report["accelerator"]["cycles_simulated"] > 0, report["verdict"]
    assert "BIT-EXACT" in (folder / "report.txt").read_text()
    assert "<svg" in (folder / "report.html").read_text()
    predicted = json.loads((bazel.folder("bazel-bin") / "digits_on_edge_soc/report.json").read_text())
    assert not predicted["verdict"]["compared"] and predicted["target"]["name"] == "edge-soc", predicted["verdict"]


def check_report_has_no_wall_clock(bazel):
    report = json.loads((bazel.folder("bazel-bin") / "digits_report/report.json").read_text())
    times = [report["partition"]["solve_seconds"], report["accelerator"]["simulated_cycles_per_second"],
             report["accelerator"]["estimated_cycles_per_second"]]
    assert times == [0, 0, 0], times


def check_missed_budget(bazel):
    status, output = bazel.run("test", "//:digits_missed_budget_test")
    assert status == EXIT_TESTS_FAILED, f"a missed budget ended with {status}"
    assert "E-BUDGET-003" in output and "1,000 allowed" in output, "the test does not say what was missed"


def check_tests(bazel):
    status, _ = bazel.run("test", "//...")
    assert status == 0, f"bazel test //... ended with {status}"
    found = sorted(path.parent.name for path in bazel.folder("bazel-testlogs").rglob("test.xml"))
    expected = ["digits_random_1_test", "digits_random_2_test", "digits_random_3_test", "digits_test"]
    assert [name for name in found if name != "digits_missed_budget_test"] == expected, found


def check_cache(bazel):
    """After everything is removed but the cache, all comes from there: no action and no test runs again."""
    assert bazel.run("clean")[0] == 0
    status, output = bazel.run("test", "//...")
    assert status == 0, f"bazel test //... from the cache ended with {status}"
    ran, cached = processes(output)
    assert ran == 0 and cached > 0, f"{ran} actions ran, {cached} came from the cache"


CHECKS = [check_builds, check_outputs, check_report, check_report_has_no_wall_clock, check_tests, check_missed_budget, check_cache]


def main():
    heddle, logs = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
    logs.mkdir(parents=True, exist_ok=True)
    suite = ElementTree.Element("testsuite", name="example_workspace")
    work = pathlib.Path(tempfile.mkdtemp(prefix="heddle-example-"))
    failures = 0
    with open(logs / "test.log", "w") as log:
        bazel = Bazel(heddle, work, log)
        for check in CHECKS:
            name = check.__name__.removeprefix("check_")
            case = ElementTree.SubElement(suite, "testcase", classname="ExampleWorkspace", name=name, status="run")
            start = time.monotonic()
            try:
                check(bazel)
                outcome = "ok"
            except Exception as error:  # a missing or damaged output too is a failed case
                failures += 1
                outcome = f"FAILED: {error}"
                ElementTree.SubElement(case, "failure", message=str(error))
            seconds = time.monotonic() - start
            case.set("time", f"{seconds:.1f}")
            print(f"example workspace: {name}: {outcome} ({seconds:.1f} s)", flush=True)
        bazel.run("shutdown")
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.ElementTree(root).write(logs / "test.xml")
    subprocess.run(["chmod", "-R", "u+w", work], check=False)  # Bazel's outputs are read-only
    shutil.rmtree(work, ignore_errors=True)
    if failures:
        print((logs / "test.log").read_text()[-6000:])
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
