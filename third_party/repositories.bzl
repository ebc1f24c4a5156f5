"""Repositories made from what the distribution's packages install; nothing is downloaded."""

load("//third_party:rules_cc.bzl", "patched_rules_cc")
load("//third_party:system_libraries.bzl", "system_libraries")

_COVERAGE_BUILD = """
filegroup(name = "coverage_report_generator", visibility = ["//visibility:public"])
"""

def heddle_repositories():
    """Declares every external repository of the workspace."""
    patched_rules_cc(name = "rules_cc", path = "/usr/share/bazel/rules/cc")
    native.local_repository(name = "rules_java", path = "/usr/share/bazel/rules/java")
    native.local_repository(name = "rules_proto", path = "/usr/share/bazel/rules/proto")
    _stub_repository(name = "remote_coverage_tools", build = _COVERAGE_BUILD)
    system_libraries(name = "system")

def _stub_repository_impl(ctx):
    ctx.file("WORKSPACE", "")
    ctx.file("BUILD", ctx.attr.build)

_stub_repository = repository_rule(
    implementation = _stub_repository_impl,
    attrs = {"build": attr.string(mandatory = True)},
)
