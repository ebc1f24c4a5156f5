"""`@heddle_tools`: the program that the rules of heddle.bzl run, and the versions of the programs that it runs in turn.

The program is built from source, unless the environment variable HEDDLE_PROGRAM names one that is there already. Verilator
and g++ are the machine's, as the C++ toolchain of Bazel is; their versions are an input of every action that calls them, so
that a shared cache never gives what another version has made.
"""

_TOOLS = [
    ["verilator", "--version"],
    ["g++", "--version"],
]

def _versions(ctx):
    text = ""
    for tool in _TOOLS:
        result = ctx.execute(tool)
        text += (result.stdout.split("\n")[0] if result.return_code == 0 else tool[0] + " is absent") + "\n"
    return text

def _heddle_tools_impl(ctx):
    build = 'package(default_visibility = ["//visibility:public"])\n'
    program = ctx.os.environ.get("HEDDLE_PROGRAM", "")
    if program:
        if not ctx.path(program).exists:
            fail("HEDDLE_PROGRAM names %s, which does not exist" % program)
        ctx.symlink(program, "heddle")
        build += 'exports_files(["heddle", "tool_versions.txt"])\n'
    else:
        source = "@%s//driver:heddle" % Label("//driver:heddle").workspace_name
        build += 'alias(name = "heddle", actual = "%s")\nexports_files(["tool_versions.txt"])\n' % source
    ctx.file("WORKSPACE", "")
    ctx.file("BUILD", build)
    ctx.file("tool_versions.txt", _versions(ctx))

heddle_tools = repository_rule(
    implementation = _heddle_tools_impl,
    environ = ["HEDDLE_PROGRAM", "PATH"],
    local = True,
)
