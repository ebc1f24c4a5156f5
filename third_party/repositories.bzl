"""Repositories made from what the distribution's packages install; nothing is downloaded."""

load("//third_party:heddle_tools.bzl", "heddle_tools")
load("//third_party:rules_cc.bzl", "patched_rules_cc")
load("//third_party:system_libraries.bzl", "system_libraries")

_COVERAGE_BUILD = """
filegroup(name = "coverage_report_generator", visibility = ["//visibility:public"])
"""

def heddle_repositories():
    """Declares every external repository that building and using Heddle needs, but for those that exist already."""
    _maybe(patched_rules_cc, name = "rules_cc", path = "/usr/share/bazel/rules/cc")
    _maybe(native.local_repository, name = "rules_java", path = "/usr/share/bazel/rules/java")
    _maybe(native.local_repository, name = "rules_proto", path = "/usr/share/bazel/rules/proto")
    _maybe(_stub_repository, name = "remote_coverage_tools", build = _COVERAGE_BUILD)
    _maybe(system_libraries, name = "system")
    _maybe(heddle_tools, name = "heddle_tools")

def _maybe(rule, name, **attributes):
    if name not in native.existing_rules():
        rule(name = name, **attributes)

def _stub_repository_impl(ctx):
    ctx.file("WORKSPACE", "")
    ctx.file("BUILD", ctx.attr.build)

_stub_repository = repository_rule(
    implementation = _stub_repository_impl,
    attrs = {"build": attr.string(mandatory = True)},
)
