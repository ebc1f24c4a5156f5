// A region's kernel: one static function a fusion group, a top function with AXI pointers that calls them in order, arrays on
// chip between them; and the test bench.

#include "hls/hls_cpp.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>

#include "hls/hls_printer.h"
#include "ir/loops/lower_group.h"
#include "ir/loops/names.h"
#include "ir/status.h"
#include "ir/subprocess.h"

namespace heddle::hls {
namespace {

using ir::ValueId;
namespace loops = ir::loops;

// How the top function sees a value.
struct Argument {
  std::string name;
  ir::ElementType type = ir::ElementType::kInt8;
  int64_t elements = 0;
};

class KernelWriter {
 public:
  KernelWriter(const ir::Graph& region, const std::string& name, const AcceleratorParams& params)
      : region_(region), name_(loops::ToIdentifier(name)), params_(params) {}

  absl::StatusOr<HlsSources> Write() {
    HEDDLE_ASSIGN_OR_RETURN(const auto groups, loops::FusionGroups(region_));
    for (size_t i = 0; i < region_.inputs().size(); ++i) NameValue(region_.inputs()[i], fmt::format("input_{}", i), inputs_);
    for (size_t i = 0; i < region_.outputs().size(); ++i) {
      const ValueId value = region_.outputs()[i];
      outputs_.push_back(ArgumentOf(value, fmt::format("output_{}", i)));
      if (!names_.contains(value)) {
        names_[value] = outputs_.back().name;
      } else {
        copies_ += CopyText(value, outputs_.back());  // an input, or a value that is output twice
      }
    }
    for (size_t g = 0; g < groups.size(); ++g) HEDDLE_RETURN_IF_ERROR(AddGroup(groups[g], static_cast<int>(g)));
    sources_.kernel_name = name_;
    sources_.kernel_h = HeaderText();
    sources_.kernel_cpp = KernelText();
    sources_.tb_cpp = TestBenchText();
    return std::move(sources_);
  }

 private:
  Argument ArgumentOf(ValueId value, const std::string& name) const {
    const ir::ValueType& type = region_.type(value);
    return {name, type.element, std::max<int64_t>(1, type.elements())};
  }
  void NameValue(ValueId value, const std::string& name, std::vector<Argument>& list) {
    list.push_back(ArgumentOf(value, name));
    names_[value] = name;
  }
  std::string CopyText(ValueId value, const Argument& to) const {
    return fmt::format("  for (int64_t i = 0; i < {}; ++i) {{\n#pragma HLS pipeline II=1\n    {}[i] = {}[i];\n  }}\n", to.elements, to.name,
                       names_.at(value));
  }

  absl::Status AddGroup(const std::vector<ir::NodeId>& nodes, int index) {
    HEDDLE_ASSIGN_OR_RETURN(const loops::LoweredGroup group, loops::LowerGroup(region_, nodes));
    std::string names;
    for (ir::NodeId id : nodes) names += (names.empty() ? "" : ", ") + region_.node(id).name;
    const std::string function_name = fmt::format("layer_{}_{}", index, loops::ToIdentifier(region_.node(nodes.front()).name));
    HEDDLE_ASSIGN_OR_RETURN(const loops::Function function, loops::LowerToFunction(function_name, group.stages, group.params));
    functions_ += "\n// " + names + "\n" + PrintHlsFunction(function, params_);
    std::string arguments;
    for (size_t p = 0; p < group.params.size(); ++p) {
      const ValueId value = group.param_values[p];
      if (!names_.contains(value)) {
        if (region_.IsConstant(value)) {
          NameValue(value, fmt::format("constant_{}", constants_.size()), constants_);
          sources_.constants.push_back(region_.value(value).constant);
        } else {
          const Argument local = ArgumentOf(value, fmt::format("between_{}", locals_.size()));
          names_[value] = local.name;
          locals_.push_back(local);
        }
      }
      arguments += (arguments.empty() ? "" : ", ") + names_[value];
    }
    calls_ += fmt::format("  {}({});\n", function_name, arguments);
    return absl::OkStatus();
  }

  std::string Signature() const {
    std::string text;
    for (const auto* list : {&inputs_, &constants_, &outputs_}) {
      for (const Argument& a : *list) {
        text += fmt::format("{}{}{}* {}", text.empty() ? "" : ", ", list == &outputs_ ? "" : "const ", CppType(a.type), a.name);
      }
    }
    return fmt::format("void {}({})", name_, text);
  }

  std::string HeaderText() const {
    return fmt::format("// {}: inputs and outputs row-major, as in the model; see kernel.cpp.\n#pragma once\n\n#include <cstdint>\n\nextern \"C\" {};\n",
                       name_, Signature());
  }

  std::string KernelText() const {
    std::string text = fmt::format("// Region {} as HLS C++: {} output channels at a time, {} products in each.\n#include \"kernel.h\"\n\n{}{}\n", name_,
                                   params_.output_lanes, params_.contraction_lanes, HlsPrelude(), functions_);
    text += "extern \"C\" " + Signature() + " {\n";
    int bundle = 0;
    for (const auto* list : {&inputs_, &constants_, &outputs_}) {
      for (const Argument& a : *list) {
        text += fmt::format("#pragma HLS interface m_axi port={} offset=slave bundle=gmem{} depth={}\n", a.name, bundle, a.elements);
      }
      ++bundle;
    }
    text += "#pragma HLS interface s_axilite port=return\n";
    for (const Argument& local : locals_) {
      text += fmt::format("  static {} {}[{}];\n", CppType(local.type), local.name, local.elements);
      if (local.elements > 1) {
        text += fmt::format("#pragma HLS array_partition variable={} cyclic factor={}\n", local.name,
                            std::min<int64_t>(local.elements, params_.contraction_lanes));
      }
    }
    for (const Argument& a : inputs_) {
      const std::string body = calls_ + copies_;
      const bool read = body.find(a.name + ",") != std::string::npos || body.find(a.name + ")") != std::string::npos ||
                        body.find(a.name + "[") != std::string::npos;
      if (!read) text += fmt::format("  (void){};  // no layer reads it\n", a.name);
    }
    return text + calls_ + copies_ + "}\n";
  }

  std::string TestBenchText() const {
    std::string text =
        "// Runs the kernel on recorded inputs and compares every byte with the recorded outputs.\n#include \"kernel.h\"\n\n"
        "#include <cstdio>\n#include <cstring>\n#include <string>\n#include <vector>\n\n"
        "template <typename T>\n"
        "static bool Read(const std::string& path, size_t elements, std::vector<T>& values) {\n"
        "  values.assign(elements, T{});\n"
        "  std::FILE* file = std::fopen(path.c_str(), \"rb\");\n"
        "  if (!file) {\n    std::fprintf(stderr, \"cannot open %s\\n\", path.c_str());\n    return false;\n  }\n"
        "  const size_t read = std::fread(values.data(), sizeof(T), elements, file);\n"
        "  std::fclose(file);\n"
        "  if (read != elements) std::fprintf(stderr, \"%s is too short\\n\", path.c_str());\n"
        "  return read == elements;\n}\n\n"
        "int main(int argc, char** argv) {\n  const std::string folder = argc > 1 ? argv[1] : \".\";\n";
    std::string arguments, compare;
    for (const auto* list : {&inputs_, &constants_, &outputs_}) {
      for (const Argument& a : *list) {
        arguments += (arguments.empty() ? "" : ", ") + a.name + ".data()";
        // bool has no contiguous vector; its bytes are 0 and 1.
        const std::string type(a.type == ir::ElementType::kBool ? "uint8_t" : CppType(a.type));
        if (list == &outputs_) {
          const std::string expected = "expected" + a.name.substr(6);
          text += fmt::format("  std::vector<{0}> {1}({2}), {3};\n  if (!Read(folder + \"/{3}.bin\", {2}, {3})) return 2;\n", type, a.name, a.elements, expected);
          compare += fmt::format("  if (std::memcmp({0}.data(), {1}.data(), {2} * sizeof({3})) != 0) {{\n"
                                 "    std::fprintf(stderr, \"{0} differs\\n\");\n    ++wrong;\n  }}\n", a.name, expected, a.elements, type);
        } else {
          text += fmt::format("  std::vector<{0}> {1};\n  if (!Read(folder + \"/{1}.bin\", {2}, {1})) return 2;\n", type, a.name, a.elements);
        }
      }
    }
    return text + fmt::format("  {}({});\n  int wrong = 0;\n{}  std::printf(\"%s\\n\", wrong ? \"FAIL\" : \"PASS\");\n  return wrong ? 1 : 0;\n}}\n", name_,
                              arguments, compare);
  }

  const ir::Graph& region_;
  const std::string name_;
  const AcceleratorParams& params_;
  HlsSources sources_;
  std::map<ValueId, std::string> names_;
  std::vector<Argument> inputs_, constants_, outputs_, locals_;
  std::string functions_, calls_, copies_;
};

absl::Status WriteFile(const std::filesystem::path& path, const void* data, size_t bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  file.close();
  if (!file) return ir::UserError("E-HLS-003", fmt::format("cannot write {}", path.string()), "check the folder and the space left");
  return absl::OkStatus();
}

absl::Status WriteTensor(const std::filesystem::path& path, const ir::Tensor& tensor) {
  return WriteFile(path, tensor.data(), static_cast<size_t>(tensor.bytes()));
}

}  // namespace

absl::StatusOr<HlsSources> GenerateHls(const ir::Graph& region, const std::string& name, const AcceleratorParams& params) {
  return KernelWriter(region, name, params).Write();
}

absl::Status WriteHls(const HlsSources& sources, const std::filesystem::path& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  const auto text = [&](const char* file, const std::string& contents) { return WriteFile(directory / file, contents.data(), contents.size()); };
  HEDDLE_RETURN_IF_ERROR(text("kernel.h", sources.kernel_h));
  HEDDLE_RETURN_IF_ERROR(text("kernel.cpp", sources.kernel_cpp));
  HEDDLE_RETURN_IF_ERROR(text("tb.cpp", sources.tb_cpp));
  for (size_t i = 0; i < sources.constants.size(); ++i) {
    HEDDLE_RETURN_IF_ERROR(WriteTensor(directory / fmt::format("constant_{}.bin", i), *sources.constants[i]));
  }
  return absl::OkStatus();
}

absl::Status SimulateHls(const std::filesystem::path& directory, const std::vector<ir::Tensor>& inputs,
                         const std::vector<ir::Tensor>& expected, bool sanitizers) {
  for (size_t i = 0; i < inputs.size(); ++i) HEDDLE_RETURN_IF_ERROR(WriteTensor(directory / fmt::format("input_{}.bin", i), inputs[i]));
  for (size_t i = 0; i < expected.size(); ++i) {
    HEDDLE_RETURN_IF_ERROR(WriteTensor(directory / fmt::format("expected_{}.bin", i), expected[i]));
  }
  std::vector<std::string> compile = {"g++", "-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror", "-Wno-unknown-pragmas"};
  if (sanitizers) compile.insert(compile.end(), {"-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"});
  compile.insert(compile.end(), {"kernel.cpp", "tb.cpp", "-o", "tb"});
  ir::ProcessOptions options;
  options.directory = directory;
  HEDDLE_ASSIGN_OR_RETURN(const ir::ProcessResult compiled, ir::RunProcess(compile, options));
  if (compiled.exit_status != 0) {
    return ir::UserError("E-HLS-001", fmt::format("g++ refuses the HLS C++ in {}:\n{}", directory.string(), compiled.output));
  }
  HEDDLE_ASSIGN_OR_RETURN(const ir::ProcessResult run, ir::RunProcess({(directory / "tb").string(), "."}, options));
  if (run.exit_status != 0) {
    return ir::UserError("E-HLS-002", fmt::format("the C simulation in {} ended with status {}:\n{}", directory.string(), run.exit_status, run.output));
  }
  return absl::OkStatus();
}

}  // namespace heddle::hls
