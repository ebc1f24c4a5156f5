"""The distribution's rules_cc, adapted to the distribution's Bazel.

The packaged rules_cc loads `use_cpp_toolchain`, which the packaged Bazel 4.2 does not have; the two files that do so
are changed to the older, equivalent spelling. Everything else is the package's.
"""

_LOAD = 'load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain", "use_cpp_toolchain")'
_OLD_LOAD = 'load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")'

def _patched_rules_cc_impl(ctx):
    result = ctx.execute(["cp", "-rL", ctx.attr.path + "/.", "."])
    if result.return_code:
        fail("copying rules_cc from %s: %s (install bazel-rules-cc)" % (ctx.attr.path, result.stderr))
    for name in ["cc_flags_supplier", "compiler_flag"]:
        path = "cc/private/rules_impl/%s.bzl" % name
        text = ctx.read(path)
        text = text.replace(_LOAD, _OLD_LOAD)
        text = text.replace("use_cpp_toolchain()", '["@bazel_tools//tools/cpp:toolchain_type"]')
        ctx.file(path, text)

patched_rules_cc = repository_rule(
    implementation = _patched_rules_cc_impl,
    attrs = {"path": attr.string(mandatory = True)},
    local = True,
)
