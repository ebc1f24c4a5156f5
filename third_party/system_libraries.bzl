"""`@system//:NAME` for each C++ library that the distribution's packages install.

Headers lie under the compiler's built-in include folders, so only link flags and defines are needed. They are asked of
pkg-config or llvm-config where the library answers one, since names and versions differ between Debian releases.
"""

# target: link flags that are the same everywhere
_FIXED = {
    "benchmark": ["-lbenchmark", "-lpthread"],
    "cbc": ["-lCbcSolver", "-lCbc", "-lCgl", "-lOsiClp", "-lClpSolver", "-lClp", "-lOsi", "-lCoinUtils"],
    "cli11": [],
    "fmt": ["-lfmt"],
    "gtest": ["-lgtest", "-lgmock", "-lpthread"],
    "gtest_main": ["-lgtest_main", "-lgtest", "-lgmock", "-lpthread"],
    "boost_graph": [],
    "json": [],
    "onnx": ["-lonnx_proto", "-lprotobuf"],
    "opencl": ["-lOpenCL"],
    "systemc": ["-lsystemc"],
    "zlib": ["-lz"],
}

_DEFINES = {
    "onnx": ["ONNX_ML=1", "ONNX_NAMESPACE=onnx"],
    # The packaged library was built as C++17; this lets C++20 code link to it.
    "systemc": ["SC_CPLUSPLUS=201703L"],
    "opencl": ["CL_TARGET_OPENCL_VERSION=120"],
}

_LLVM_VERSIONS = ["19"]

_PKG_CONFIG = {
    "absl": ["absl_statusor", "absl_status", "absl_strings", "absl_flat_hash_map", "absl_flat_hash_set"],
}

_TARGET = """
cc_library(
    name = "{name}",
    copts = {copts},
    defines = {defines},
    linkopts = {linkopts},
    visibility = ["//visibility:public"],
)
"""

def _pkg_config(ctx, names):
    result = ctx.execute(["pkg-config", "--libs"] + names)
    if result.return_code:
        fail("pkg-config %s: %s (run tools/install_packages)" % (names, result.stderr))
    return [flag for flag in result.stdout.strip().split(" ") if flag]

def _llvm(ctx):
    for version in _LLVM_VERSIONS:
        if ctx.path("/usr/lib/llvm-%s/bin/llvm-config" % version).exists:
            return version
    fail("no LLVM of %s under /usr/lib (run tools/install_packages)" % _LLVM_VERSIONS)

def _system_libraries_impl(ctx):
    build = 'load("@rules_cc//cc:defs.bzl", "cc_library")\n'
    for name, linkopts in _FIXED.items():
        build += _TARGET.format(name = name, copts = [], defines = _DEFINES.get(name, []), linkopts = linkopts)
    for name, packages in _PKG_CONFIG.items():
        build += _TARGET.format(name = name, copts = [], defines = [], linkopts = _pkg_config(ctx, packages))
    version = _llvm(ctx)
    build += _TARGET.format(
        name = "llvm",
        copts = [],
        defines = [],
        linkopts = ["-L/usr/lib/llvm-%s/lib" % version, "-lLLVM-%s" % version],
    )
    ctx.file("WORKSPACE", "")
    ctx.file("BUILD", build)
    ctx.file("llvm.bzl", 'LLVM_COPTS = ["-isystem", "/usr/include/llvm-%s", "-isystem", "/usr/include/llvm-c-%s"]\n' % (version, version))

system_libraries = repository_rule(
    implementation = _system_libraries_impl,
    local = True,
)
