#!/usr/bin/env python3
"""Writes docs/errors.md from the codes in the sources, or with --check fails where the file is not current.

A code is found by its spelling, "E-AREA-NNN"; what it says is the first text that follows it there.
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[1]
FOLDERS = ["ir", "frontend", "hls", "sim", "cpu_fallback", "gpu", "report", "driver"]
AREAS = {
    "ACC": ("the accelerator's compiler refuses a node", 3), "ACCEL": ("accelerator parameters of a target file", 2),
    "BUDGET": ("a limit was exceeded; everything was written", 4), "CPU": ("the CPU device", 3), "EXPORT": ("writing ONNX models", 3),
    "GPU": ("the GPU device", 3), "HLS": ("HLS C++ and its C simulation", 3), "IMPORT": ("reading a model", 3), "INPUT": ("inputs of a run", 2),
    "IR": ("the graph", 3), "JIT": ("the CPU compiler", 3), "LOOP": ("loop schedules", 3), "LOOPS": ("loop schedules", 3), "OP": ("a node's verifier", 3),
    "OUTPUT": ("writing files", 3), "PARTITION": ("the partitioner", 3), "PASS": ("passes", 3), "PROGRAM": ("accelerator programs", 3), "REPORT": ("reading a report", 3),
    "QUANT": ("`heddle quantise`; 1xx, calibration data, has exit status 2", 3), "RUN": ("running a graph", 3), "SCHED": ("loop schedules", 3), "SIM": ("simulation", 3), "TARGET": ("target files", 2), "TEXT": ("textual IR", 3), "TOOL": ("external programs", 6),
    "TYPE": ("types and shapes", 3), "USAGE": ("the command line", 2), "VERIFY": ("results differ; everything was written", 5),
}
CODE = re.compile(r'"(E-([A-Z]+)-\d+)"')
TEXT = re.compile(r'"((?:[^"\\]|\\.)*)"')


def messages():
    """code → (text, file) of its first use that has a text."""
    found = {}
    for folder in FOLDERS:
        for path in sorted((ROOT / folder).rglob("*.cc")):
            if path.name.endswith("_test.cc") or path.name.startswith(("sample_", "write_sample")):
                continue
            source = path.read_text()
            for match in CODE.finditer(source):
                following = source[match.end():match.end() + 400].split(");\n")[0]
                text = TEXT.search(following)
                entry = (text.group(1) if text else "", path.relative_to(ROOT).as_posix())
                if match.group(1) not in found or (entry[0] and not found[match.group(1)][0]):
                    found[match.group(1)] = entry
    return found


def document():
    lines = ["# Error codes", "",
             "A user-facing error starts with a code, names the node or file, says what was expected and found, and ends with one next",
             "step. The area decides the exit status. This page is written by `tools/list_error_codes.py` from the sources; `{}` stands for",
             "what the message fills in.", ""]
    found = messages()
    for area in sorted({code.split("-")[1] for code in found}):
        meaning, status = AREAS.get(area, ("", 3))
        lines += [f"## E-{area}: {meaning} (exit status {status})", "", "| code | says | where |", "|---|---|---|"]
        for code in sorted(code for code in found if code.split("-")[1] == area):
            text, path = found[code]
            lines.append(f"| {code} | {text.replace('|', '/')} | `{path}` |")
        lines.append("")
    return "\n".join(lines)


def main():
    path = ROOT / "docs/errors.md"
    if "--check" in sys.argv:
        if path.read_text() == document():
            return 0
        print("docs/errors.md is not current: run tools/list_error_codes.py", file=sys.stderr)
        return 1
    path.write_text(document())
    return 0


if __name__ == "__main__":
    sys.exit(main())
