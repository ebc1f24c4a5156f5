"""Rules for users: models, generated accelerators, reports and simulations as targets of their own Bazel workspace.

    load("@heddle//:heddle.bzl", "heddle_accelerator", "heddle_model", "heddle_partition_report", "heddle_simulation_test")

    heddle_model(name = "digits", src = "digits.onnx")
    heddle_accelerator(name = "digits_accelerator", model = ":digits", target = "zynq7020")
    heddle_partition_report(name = "digits_report", accelerator = ":digits_accelerator", inputs = ["digit0.npz"])
    heddle_simulation_test(name = "digits_test", report = ":digits_report", max_cycles = 3000)

`docs/bazel.md` has a walk through. Every action sees its declared inputs alone and gives the same bytes whenever and
wherever it runs, so that results may come from a shared cache or be spread over many machines: costs must be modelled, not
measured, and plans proven optimal (`heddle run --reproducible`, which refuses the rest).
"""

HeddleModelInfo = provider(
    doc = "A trained network.",
    fields = {
        "file": "File: the ONNX model or textual IR",
        "data": "depset of File: what the model names by relative path",
        "shapes": "dict: input name to shape, \"1,3,224,224\"",
    },
)

HeddleSystemInfo = provider(
    doc = "A network, and the devices that it is to be split over.",
    fields = {
        "model": "HeddleModelInfo",
        "arguments": "list of str: options of `heddle run` that say which target, devices and objective",
        "files": "list of File: the target file, where it is not a preset",
        "simulators": "File: folder with the simulator of the Verilog; None: built where it is needed",
    },
)

HeddleAcceleratorInfo = provider(
    doc = "A generated accelerator and what drives it; each field is a folder (File).",
    fields = {
        "verilog": "synthesisable Verilog, top module heddle_accelerator",
        "hls": "region_NNN/{kernel.h,kernel.cpp,tb.cpp,…}: the same computation as HLS C++",
        "program": "region_NNN/{program.bin,program.asm,weights.bin}",
        "driver": "C99 driver, with the programs as arrays, and examples for Linux and for bare metal",
    },
)

HeddleReportInfo = provider(
    doc = "What became of a run.",
    fields = {
        "json": "File: report.json",
        "text": "File: the first screen",
        "simulated": "bool: False where nothing was run, and all figures are predictions",
    },
)

_TOOL_ATTRS = {
    "_heddle": attr.label(default = "@heddle_tools//:heddle", executable = True, allow_single_file = True, cfg = "exec"),
    "_action": attr.label(default = "//tools:heddle_action.sh", executable = True, allow_single_file = True, cfg = "exec"),
    "_versions": attr.label(default = "@heddle_tools//:tool_versions.txt", allow_single_file = True),
}

_SYSTEM_ATTRS = {
    "target": attr.string(default = "zynq7020", doc = "a preset's name; `heddle targets` lists them"),
    "target_file": attr.label(allow_single_file = [".json"], doc = "a target file of your own (docs/targets.md), instead of `target`"),
    "devices": attr.string_list(doc = "use only these devices of the target (names or kinds); empty: all"),
    "objective": attr.string(default = "latency", doc = "what the partition minimises"),
    "time_limit_s": attr.int(default = 600, doc = "seconds for the partitioner; a plan that is not proven optimal by then is an error"),
}

def _run_heddle(ctx, mnemonic, message, keep, arguments, inputs, outputs):
    """One action: `heddle ARGUMENTS`, of whose run directory `keep` (options of tools/heddle_action.sh) is kept."""
    args = ctx.actions.args()
    args.add_all(keep, expand_directories = False)
    args.add("--")
    args.add(ctx.executable._heddle)
    args.add_all(arguments)
    ctx.actions.run(
        executable = ctx.executable._action,
        tools = [ctx.executable._heddle],
        arguments = [args],
        inputs = depset(inputs + [ctx.file._versions]),
        outputs = outputs,
        mnemonic = mnemonic,
        progress_message = message,
        use_default_shell_env = True,
    )

def _shape_arguments(model):
    arguments = []
    for name, shape in model.shapes.items():
        arguments += ["--shape", "%s=%s" % (name, shape)]
    return arguments

def _system(ctx):
    """HeddleSystemInfo of a rule with `model` and _SYSTEM_ATTRS."""
    arguments = ["--target", ctx.file.target_file.path if ctx.file.target_file else ctx.attr.target]
    if ctx.attr.devices:
        arguments += ["--devices", ",".join(ctx.attr.devices)]
    return HeddleSystemInfo(
        model = ctx.attr.model[HeddleModelInfo],
        arguments = arguments + ["--objective", ctx.attr.objective, "--time-limit", str(ctx.attr.time_limit_s), "--reproducible"],
        files = [ctx.file.target_file] if ctx.file.target_file else [],
        simulators = None,
    )

def _command(system, command):
    return [command, system.model.file.path] + system.arguments + _shape_arguments(system.model)

def _system_files(system):
    return [system.model.file] + system.model.data.to_list() + system.files

def _model_impl(ctx):
    model = HeddleModelInfo(file = ctx.file.src, data = depset(ctx.files.data), shapes = ctx.attr.shapes)
    graph = ctx.actions.declare_file(ctx.label.name + ".ir")
    args = ctx.actions.args()
    args.add(graph)
    args.add(ctx.executable._heddle)
    args.add_all(["import", model.file.path] + _shape_arguments(model))
    ctx.actions.run_shell(
        command = 'out=$1; shift; "$@" >"$out"',
        tools = [ctx.executable._heddle],
        arguments = [args],
        inputs = depset([model.file], transitive = [model.data]),
        outputs = [graph],
        mnemonic = "HeddleImport",
        progress_message = "Importing %s" % ctx.label,
    )
    return [DefaultInfo(files = depset([graph])), model]

heddle_model = rule(
    doc = "A trained network. Building it imports it: the output NAME.ir is its graph as text; what is not supported is an error that names every operator.",
    implementation = _model_impl,
    attrs = dict(
        src = attr.label(mandatory = True, allow_single_file = [".onnx", ".ir"], doc = "the ONNX model, or textual IR"),
        data = attr.label_list(allow_files = True, doc = "files that the model names by relative path: external weights, constants.bin"),
        shapes = attr.string_dict(doc = "shapes of inputs with unknown dimensions: {\"x\": \"1,3,224,224\"}"),
        _heddle = _TOOL_ATTRS["_heddle"],
    ),
)

def _accelerator_impl(ctx):
    system = _system(ctx)
    name = ctx.label.name
    parts = {part: ctx.actions.declare_directory("%s/%s" % (name, part)) for part in ["verilog", "hls", "program", "driver"]}
    _run_heddle(
        ctx,
        "HeddleCompile",
        "Generating accelerator %s" % ctx.label,
        ["--keep-folder", "accelerator/rtl", parts["verilog"], "--keep-folder", "accelerator/driver", parts["driver"]] +
        ["--keep-hls", parts["hls"], "--keep-programs", parts["program"]],
        _command(system, "compile"),
        _system_files(system),
        parts.values(),
    )

    # Made once for all reports and tests of this accelerator, and only if there are any.
    simulators = ctx.actions.declare_directory(name + "/simulator")
    _run_heddle(
        ctx,
        "HeddleSimulator",
        "Building the simulator of %s" % ctx.label,
        ["--keep-simulators", simulators],
        _command(system, "compile") + ["--simulator"],
        _system_files(system),
        [simulators],
    )
    return [
        DefaultInfo(files = depset(parts.values())),
        OutputGroupInfo(simulator = depset([simulators]), **{part: depset([folder]) for part, folder in parts.items()}),
        HeddleAcceleratorInfo(**parts),
        HeddleSystemInfo(model = system.model, arguments = system.arguments, files = system.files, simulators = simulators),
    ]

heddle_accelerator = rule(
    doc = """The accelerator of a target, generated for a network: folders NAME/verilog, NAME/hls, NAME/program and NAME/driver.

Each is an output group of its own too (`filegroup(srcs = [":NAME"], output_group = "verilog")`).""",
    implementation = _accelerator_impl,
    attrs = dict(
        model = attr.label(mandatory = True, providers = [HeddleModelInfo]),
        **dict(_SYSTEM_ATTRS, **_TOOL_ATTRS)
    ),
)

def _input_arguments(ctx):
    arguments = []
    for file in ctx.files.inputs:
        arguments += ["--input", file.path]
    for target, name in ctx.attr.named_inputs.items():
        arguments += ["--input", "%s=%s" % (name, target.files.to_list()[0].path)]
    return arguments + ["--input", "random:%d" % ctx.attr.seed]

def _report_impl(ctx):
    if bool(ctx.attr.accelerator) == bool(ctx.attr.model):
        fail("give either an accelerator or a model")
    system = ctx.attr.accelerator[HeddleSystemInfo] if ctx.attr.accelerator else _system(ctx)
    files = {}
    keep = []
    names = {"report/report.json": "report.json", "report/index.html": "report.html", "report/report.txt": "report.txt", "sim/trace.json": "trace.json"}
    if ctx.attr.simulate:
        names["verify/actual.npz"] = "actual.npz"
    if not system.model.file.path.endswith(".ir"):
        names["partitioned.onnx"] = "partitioned.onnx"
    for source, name in names.items():
        files[name] = ctx.actions.declare_file("%s/%s" % (ctx.label.name, name))
        keep += ["--keep", source, files[name]]
    inputs = _system_files(system)
    if not ctx.attr.simulate:
        _run_heddle(ctx, "HeddleCompile", "Predicting %s" % ctx.label, keep, _command(system, "compile"), inputs, files.values())
    else:
        keep.append("--keep-verdict")
        if system.simulators:
            keep += ["--simulators", system.simulators]
            inputs.append(system.simulators)
        _run_heddle(
            ctx,
            "HeddleSimulate",
            "Simulating %s" % ctx.label,
            keep,
            _command(system, "run") + ["--verify", ctx.attr.verify] + _input_arguments(ctx),
            inputs + ctx.files.inputs + ctx.files.named_inputs,
            files.values(),
        )
    return [
        DefaultInfo(files = depset(files.values())),
        HeddleReportInfo(json = files["report.json"], text = files["report.txt"], simulated = ctx.attr.simulate),
    ]

heddle_partition_report = rule(
    doc = """What runs where, why, and what it costs: NAME/report.json, report.html, report.txt, trace.json (Perfetto),
partitioned.onnx and the outputs in actual.npz. `heddle explain bazel-bin/…/NAME NODE` tells one node's story.

The accelerator's Verilog is simulated, and all results are compared with the reference interpreter. A wrong result does not
fail the build, since the report says what is wrong; heddle_simulation_test does.""",
    implementation = _report_impl,
    attrs = dict(
        accelerator = attr.label(providers = [HeddleSystemInfo], doc = "a heddle_accelerator: its network and target, and its simulator, which is built once"),
        model = attr.label(providers = [HeddleModelInfo], doc = "a heddle_model, instead of an accelerator; then target, devices and objective count"),
        inputs = attr.label_list(allow_files = [".npz"], doc = "arrays under the names of the model's inputs"),
        named_inputs = attr.label_keyed_string_dict(allow_files = [".npy"], doc = "{\"x.npy\": \"NAME\"}: one array for each input"),
        seed = attr.int(doc = "draws the inputs that no file gives"),
        simulate = attr.bool(default = True, doc = "False: nothing is run, and all figures are predictions"),
        verify = attr.string(default = "plan", values = ["plan", "all"], doc = "all: on each device, SystemC and HLS C++ too (slower; OpenCL where the machine has a driver)"),
        **dict(_SYSTEM_ATTRS, **_TOOL_ATTRS)
    ),
)

# Writes test.xml itself: what Bazel would make has the test's duration in it and so never comes from a cache.
_SCRIPT = """#!/bin/sh
status=0
"{heddle}" check {report} {arguments} || {{ status=$?; cat {text}; }}
[ -n "$XML_OUTPUT_FILE" ] || exit $status
{{
  echo '<?xml version="1.0" encoding="UTF-8"?>'
  echo '<testsuites><testsuite name="{name}"><testcase name="{name}" status="run">'
  [ $status = 0 ] || echo "<failure message=\\"heddle check ended with $status\\"/>"
  echo '</testcase></testsuite></testsuites>'
}} >"$XML_OUTPUT_FILE"
exit $status
"""

def _check_impl(ctx):
    report = ctx.attr.report[HeddleReportInfo]
    if not report.simulated:
        fail("%s was made with simulate = False: there is nothing to test" % ctx.attr.report.label)
    arguments = []
    for option, value in {"--max-cycles": ctx.attr.max_cycles, "--max-latency-us": ctx.attr.max_latency_us, "--max-luts": ctx.attr.max_luts}.items():
        if value:
            arguments += [option, str(value)]
    if ctx.attr.within_bounds:
        arguments.append("--within-bounds")
    script = ctx.actions.declare_file(ctx.label.name)
    text = _SCRIPT.format(
        heddle = ctx.executable._heddle.short_path,
        report = report.json.short_path,
        text = report.text.short_path,
        arguments = " ".join(arguments),
        name = ctx.label.name,
    )
    ctx.actions.write(script, text, is_executable = True)
    return [DefaultInfo(executable = script, runfiles = ctx.runfiles(files = [ctx.executable._heddle, report.json, report.text]))]

_heddle_check_test = rule(
    implementation = _check_impl,
    test = True,
    attrs = {
        "report": attr.label(mandatory = True, providers = [HeddleReportInfo]),
        "max_cycles": attr.int(),
        "max_latency_us": attr.string(),
        "max_luts": attr.int(),
        "within_bounds": attr.bool(),
        "_heddle": _TOOL_ATTRS["_heddle"],
    },
)

_TEST_ATTRIBUTES = ["tags", "size", "timeout", "flaky", "visibility", "testonly"]

def heddle_simulation_test(name, report = None, max_cycles = 0, max_latency_us = 0, max_luts = 0, within_bounds = False, **attributes):
    """Passes where a run's outputs equal the reference interpreter's to the bit, and its budgets are kept.

    Args:
      name: of the test.
      report: a heddle_partition_report; without it one is made, NAME_report, to which all attributes of that rule go.
      max_cycles: simulated cycles of the accelerator; 0: no limit.
      max_latency_us: microseconds of one inference, host and transfers included (int, or a string with a fraction); 0: no limit.
      max_luts: LUTs of the accelerator; 0: no limit.
      within_bounds: floating-point outputs within their stated bounds pass too.
      **attributes: of every test (tags, size, …), or of heddle_partition_report.
    """
    test_attributes = {key: value for key, value in attributes.items() if key in _TEST_ATTRIBUTES}
    run_attributes = {key: value for key, value in attributes.items() if key not in _TEST_ATTRIBUTES}
    if report:
        if run_attributes:
            fail("%s: %s belong to the report %s" % (name, ", ".join(run_attributes.keys()), report))
    else:
        report = name + "_report"
        heddle_partition_report(
            name = report,
            testonly = True,
            tags = test_attributes.get("tags", []),
            **run_attributes
        )
    _heddle_check_test(
        name = name,
        report = report,
        max_cycles = max_cycles,
        max_latency_us = str(max_latency_us) if max_latency_us else "",
        max_luts = max_luts,
        within_bounds = within_bounds,
        **dict({"size": "small"}, **test_attributes)
    )
