// Around the instructions: packing tensors into DRAM and out again, text, and the verifier.

#include "hls/program.h"

#include <fmt/format.h>

#include <algorithm>

#include "hls/functional_model.h"
#include "hls/tokens.h"
#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

// Calls f(row-major element index, DRAM address) for every element.
template <typename F>
void ForEachElement(const HostTensor& tensor, F f) {
  const std::vector<HostAxis>& axes = tensor.axes;
  std::vector<int64_t> digits(axes.size(), 0);
  int64_t address = tensor.dram_address;
  const int64_t elements = ir::ElementCount(tensor.shape);
  for (int64_t i = 0; i < elements; ++i) {
    f(i, address);
    for (size_t d = axes.size(); d-- > 0;) {
      address += axes[d].stride_bytes;
      if (++digits[d] < axes[d].extent) break;
      address -= axes[d].extent * axes[d].stride_bytes;
      digits[d] = 0;
    }
  }
}

std::string PlaceText(const char* role, const HostTensor& t) {
  std::string text = fmt::format("{} {} i8[{}] at 0x{:x}, {} bytes, strides", role, t.name, ir::ShapeText(t.shape), t.dram_address, t.bytes);
  for (const HostAxis& axis : t.axes) text += fmt::format(" {}:{}", axis.extent, axis.stride_bytes);
  return text + "\n";
}

std::string ListingText(const CompiledProgram& program, const char* title, int64_t address, const std::vector<Instruction>& instructions) {
  std::string text = fmt::format("\n{}:\n", title);
  for (const Instruction& instruction : instructions) {
    const bool compute = instruction.header.opcode == Opcode::kCompute;
    const uint32_t tag = compute ? instruction.compute.tag : instruction.transfer.tag;
    const bool end = instruction.header.opcode == Opcode::kEnd;
    const std::string layer = end || tag >= program.layers.size() ? "" : program.layers[tag].name;
    text += fmt::format("  0x{:06x}  {:<24}  {}\n", address, layer, Disassemble(instruction));
    address += kInstructionBytes;
  }
  return text;
}

}  // namespace

int64_t CompiledProgram::macs() const {
  int64_t total = 0;
  for (const ProgramLayer& layer : layers) total += layer.macs;
  return total;
}

std::vector<uint8_t> InitialDram(const CompiledProgram& program) {
  std::vector<uint8_t> dram = program.image;
  dram.resize(static_cast<size_t>(program.dram_bytes));
  return dram;
}

absl::Status PackInputs(const CompiledProgram& program, const std::vector<ir::Tensor>& tensors, std::vector<uint8_t>& dram) {
  if (tensors.size() != program.inputs.size()) {
    return ir::UserError("E-ACC-090", fmt::format("the program has {} inputs, found {}", program.inputs.size(), tensors.size()));
  }
  for (size_t i = 0; i < tensors.size(); ++i) {
    const HostTensor& place = program.inputs[i];
    if (tensors[i].type() != ir::ElementType::kInt8 || tensors[i].shape() != place.shape) {
      return ir::UserError("E-ACC-090", fmt::format("input '{}' is {}[{}]; expected i8[{}]", place.name,
                                                    std::string(ir::ElementTypeName(tensors[i].type())), ir::ShapeText(tensors[i].shape()),
                                                    ir::ShapeText(place.shape)));
    }
    const auto values = tensors[i].as<int8_t>();
    ForEachElement(place, [&](int64_t index, int64_t address) {
      dram[static_cast<size_t>(address)] = static_cast<uint8_t>(values[static_cast<size_t>(index)]);
    });
  }
  return absl::OkStatus();
}

std::vector<ir::Tensor> UnpackOutputs(const CompiledProgram& program, const std::vector<uint8_t>& dram) {
  std::vector<ir::Tensor> tensors;
  for (const HostTensor& place : program.outputs) {
    ir::Tensor tensor(ir::ElementType::kInt8, place.shape);
    const auto values = tensor.as<int8_t>();
    ForEachElement(place, [&](int64_t index, int64_t address) {
      values[static_cast<size_t>(index)] = static_cast<int8_t>(dram[static_cast<size_t>(address)]);
    });
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

absl::Status RunFunctional(const CompiledProgram& program, std::vector<uint8_t>& dram, uint64_t seed) {
  FunctionalModel model(program.params);
  HEDDLE_RETURN_IF_ERROR(model.Run(program.setup, dram, seed));
  return model.Run(program.run, dram, seed);
}

std::string ProgramText(const CompiledProgram& program) {
  std::string text = fmt::format("program {}: {} layers, {} instructions, image {} bytes, DRAM {} bytes\n", program.name, program.layers.size(),
                                 program.run.size(), program.image.size(), program.dram_bytes);
  for (const HostTensor& tensor : program.inputs) text += PlaceText("input", tensor);
  for (const HostTensor& tensor : program.outputs) text += PlaceText("output", tensor);
  for (size_t l = 0; l < program.layers.size(); ++l) {
    const ProgramLayer& layer = program.layers[l];
    text += fmt::format("layer {} {} ({}): {} MACs, {} weight bytes{}, {} tiles, {} cycles estimated\n", l, layer.name, layer.kind, layer.macs,
                        layer.weight_bytes, layer.weights_resident ? " resident" : "", layer.tiles, layer.cycles_estimated);
  }
  text += ListingText(program, "setup", program.setup_address, program.setup);
  return text + ListingText(program, "run", program.run_address, program.run);
}

absl::Status VerifyProgram(const AcceleratorParams& params, const std::vector<Instruction>& program, int64_t dram_bytes) {
  for (size_t i = 0; i < program.size(); ++i) {
    if (program[i].header.opcode == Opcode::kEnd) break;
    const absl::Status status = CheckInstruction(params, program[i]);
    if (!status.ok()) {
      return ir::UserError(ir::ErrorCode(status), fmt::format("instruction {} \"{}\": {}", i, Disassemble(program[i]), std::string(status.message())));
    }
    for (const Access& access : AccessesOf(params, program[i])) {
      const int64_t limit = access.space == Space::kDram ? dram_bytes : access.space == Space::kActivations ? params.activation_bytes : INT64_MAX;
      if (access.begin < 0 || access.end > limit) {
        return ir::UserError("E-PROGRAM-005", fmt::format("instruction {} \"{}\" reaches {} to {} of {} bytes", i, Disassemble(program[i]),
                                                          access.begin, access.end, limit));
      }
    }
  }
  return CheckTokens(params, program);
}

}  // namespace heddle::hls
