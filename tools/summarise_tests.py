#!/usr/bin/env python3
"""Counts test cases in Bazel's test logs, names every skip with its reason, and closes with one line of totals.

Exit status 1 where a case failed or a test target left no case.
"""

import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree


def skip_reason(case, log_text):
    """The message of GTEST_SKIP, from the XML where it stands there, else from the log."""
    skipped = case.find("skipped")
    if skipped is not None and skipped.get("message"):
        return skipped.get("message").strip().splitlines()[-1]
    match = re.search(r"Skipped\n(.*)\n", log_text)
    return match.group(1).strip() if match else "no reason given"


def read_target(xml_path):
    """Returns lists of (passed, failed, skipped) of one test target; skipped has (name, reason)."""
    target = "//" + str(xml_path.parent.relative_to(sys.argv[1]))
    log_path = xml_path.parent / "test.log"
    log_text = log_path.read_text(errors="replace") if log_path.exists() else ""
    passed, failed, skipped = [], [], []
    for case in ElementTree.parse(xml_path).getroot().iter("testcase"):
        name = f"{target} {case.get('classname', '')}.{case.get('name')}"
        if case.find("failure") is not None or case.find("error") is not None:
            failed.append(name)
        elif case.get("result") == "skipped" or case.find("skipped") is not None:
            skipped.append((name, skip_reason(case, log_text)))
        elif case.get("status") != "notrun":
            passed.append(name)
    return passed, failed, skipped


def main():
    passed, failed, skipped = [], [], []
    for xml_path in sorted(pathlib.Path(sys.argv[1]).rglob("test.xml")):
        lists = read_target(xml_path)
        for total, part in zip((passed, failed, skipped), lists):
            total.extend(part)
    for name, reason in skipped:
        print(f"skipped: {name}: {reason}")
    for name in failed:
        print(f"FAILED: {name}")
    print(f"{len(passed)} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
