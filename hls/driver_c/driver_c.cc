// Prints what the driver needs to know of the hardware and of a program. The driver's own text are the C files of this folder;
// register offsets and bits come from hls/registers.h and nowhere else.

#include "hls/driver_c/driver_c.h"

#include <fmt/format.h>

#include <algorithm>

#include "hls/driver_c/driver_sources.h"
#include "hls/registers.h"

namespace heddle::hls {
namespace {

std::string Upper(std::string_view text) {
  std::string upper(text);
  std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char c) { return static_cast<char>(std::toupper(c)); });
  return upper;
}

std::string RegistersHeader() {
  std::string text =
      "/* Registers of the Heddle accelerator: byte offsets, each 32 bits. Printed from the description that the hardware is built from. */\n"
      "#ifndef HEDDLE_REGISTERS_H\n#define HEDDLE_REGISTERS_H\n\n";
  text += fmt::format("#define HEDDLE_ID 0x{:08X}u\n\n", kAcceleratorId);
  std::string counters, names;
  int count = 0;
  for (const RegisterSpec& spec : RegisterMap()) {
    text += fmt::format("#define HEDDLE_REGISTER_{:<20} 0x{:02X}u /* {} */\n", Upper(spec.name), spec.offset, std::string(spec.doc));
    if (spec.access != Access::kCounter || spec.name.starts_with("cycles_")) continue;
    counters += fmt::format("{}0x{:02X}u", count ? ", " : "", spec.offset);
    names += fmt::format("{}\"{}\"", count ? ", " : "", std::string(spec.name));
    ++count;
  }
  text += fmt::format("\n#define HEDDLE_CONTROL_START {}u\n#define HEDDLE_CONTROL_INTERRUPT_ENABLE {}u\n", kControlStart, kControlInterruptEnable);
  text += fmt::format("#define HEDDLE_STATUS_BUSY {}u\n#define HEDDLE_STATUS_DONE {}u\n#define HEDDLE_STATUS_ERROR {}u\n", kStatusBusy, kStatusDone, kStatusError);
  text += fmt::format("\n/* Counters beside the cycles, for initialisers of arrays. */\n#define HEDDLE_COUNTER_COUNT {}\n", count);
  text += fmt::format("#define HEDDLE_COUNTER_OFFSETS {{{}}}\n#define HEDDLE_COUNTER_NAMES {{{}}}\n\n#endif\n", counters, names);
  return text;
}

// A C string literal's content.
std::string Quoted(const std::string& text) {
  std::string quoted;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || c == '?') quoted += fmt::format("\\{}", c);
    else if (byte < 32 || byte > 126) quoted += fmt::format("\\{:03o}", byte);
    else quoted += c;
  }
  return quoted;
}

// In a comment, without its end.
std::string Commented(std::string text) {
  for (size_t at; (at = text.find("*/")) != std::string::npos;) text.replace(at, 2, "* /");
  for (size_t at; (at = text.find("/*")) != std::string::npos;) text.replace(at, 2, "/ *");
  return text;
}

std::string ArrayText(const std::vector<uint8_t>& bytes) {
  std::string text;
  for (size_t i = 0; i < bytes.size(); ++i) text += fmt::format("{}{},", i % 32 == 0 ? "\n  " : "", bytes[i]);
  return text;
}

// Axes and descriptions of the tensors of one side; an empty side is a null pointer.
std::string TensorsText(const std::string& side, const std::vector<HostTensor>& tensors) {
  std::string text, table;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const HostTensor& tensor = tensors[i];
    std::vector<HostAxis> axes = tensor.axes;
    if (axes.empty()) axes.push_back({1, 0});
    text += fmt::format("static const heddle_axis {}_{}_axes[] = {{", side, i);
    for (const HostAxis& axis : axes) text += fmt::format("{{{}u, {}}},", axis.extent, axis.stride_bytes);
    text += "};\n";
    table += fmt::format("  {{\"{}\", {}u, 0x{:x}u, {}u, {}u, {}_{}_axes}}, /* int8 [{}] */\n", Quoted(tensor.name), ir::ElementCount(tensor.shape),
                         tensor.dram_address, tensor.bytes, axes.size(), side, i, ir::ShapeText(tensor.shape));
  }
  if (!tensors.empty()) text += fmt::format("static const heddle_tensor {}s[] = {{\n{}}};\n", side, table);
  return text;
}

uint32_t LanesRegister(const AcceleratorParams& p) {
  return static_cast<uint32_t>(p.contraction_lanes) | static_cast<uint32_t>(p.output_lanes) << 8 | static_cast<uint32_t>(p.requantise_lanes) << 16 |
         static_cast<uint32_t>(p.beat_bytes()) << 24;
}

std::string ProgramHeader(const CompiledProgram& program, const std::string& name) {
  const std::string upper = Upper(name);
  std::string text = fmt::format("/* {}: {} layers, {} MACs, {} cycles estimated. Input and output packing is described in {}.c and done by the driver. */\n"
                                 "#ifndef HEDDLE_{}_H\n#define HEDDLE_{}_H\n\n#include \"heddle_driver.h\"\n\n",
                                 Commented(program.name), program.layers.size(), program.macs(), program.cycles_estimated, name, upper, upper);
  text += fmt::format("#define HEDDLE_{}_DRAM_BYTES {}u /* memory that the accelerator needs */\n", upper, program.dram_bytes);
  text += fmt::format("#define HEDDLE_{}_IMAGE_BYTES {}u /* weights.bin */\n", upper, program.image.size());
  const auto sizes = [&](const char* side, const std::vector<HostTensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i) {
      text += fmt::format("#define HEDDLE_{}_{}_{}_ELEMENTS {}u /* {}: int8 [{}] */\n", upper, side, i, ir::ElementCount(tensors[i].shape),
                          Commented(tensors[i].name), ir::ShapeText(tensors[i].shape));
    }
  };
  sizes("INPUT", program.inputs);
  sizes("OUTPUT", program.outputs);
  return text + fmt::format("\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\nextern const heddle_program heddle_{};\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n", name);
}

std::string ProgramBody(const CompiledProgram& program, const std::string& name) {
  std::string text = fmt::format("/* Generated: the program {}, its data and how its tensors lie in memory. */\n#include \"{}.h\"\n\n",
                                 Commented(program.name), name);
  const bool as_array = static_cast<int64_t>(program.image.size()) <= kLargestImageArrayBytes;
  if (as_array) {
    text += fmt::format("static const uint8_t image[{}] = {{{}\n}};\n\n", program.image.size(), ArrayText(program.image));
  } else {
    text += fmt::format("/* {} bytes are too many for an array: hand heddle_load() the content of weights.bin. */\n\n", program.image.size());
  }
  text += TensorsText("input", program.inputs) + TensorsText("output", program.outputs);
  text += fmt::format("\nconst heddle_program heddle_{} = {{\n  \"{}\",\n", name, Quoted(program.name));
  text += fmt::format("  0x{:08x}u, /* lanes */\n  0x{:x}u, /* setup */\n  0x{:x}u, /* run */\n  {}, {}u, {}u,\n  {}u, {}u,\n", LanesRegister(program.params),
                      program.setup_address, program.run_address, as_array ? "image" : "NULL", program.image.size(), program.dram_bytes,
                      program.cycles_estimated, static_cast<int64_t>(program.params.clock_mhz * 1000));
  text += fmt::format("  {}u, {},\n  {}u, {}\n}};\n", program.inputs.size(), program.inputs.empty() ? "NULL" : "inputs", program.outputs.size(),
                      program.outputs.empty() ? "NULL" : "outputs");
  return text;
}

std::string Replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) text.replace(at, from.size(), to);
  return text;
}

}  // namespace

std::map<std::string, std::string> DriverSources() {
  std::map<std::string, std::string> sources{{"heddle_registers.h", RegistersHeader()}};
  for (const EmbeddedFile& file : driver_sources::EmbeddedFiles()) {
    if (file.name.starts_with("heddle_")) sources[file.name] = file.text;
  }
  return sources;
}

std::map<std::string, std::string> DriverProgramSources(const CompiledProgram& program, const std::string& name) {
  std::map<std::string, std::string> sources{{name + ".h", ProgramHeader(program, name)}, {name + ".c", ProgramBody(program, name)}};
  for (const EmbeddedFile& file : driver_sources::EmbeddedFiles()) {
    if (!file.name.starts_with("example_")) continue;
    sources[name + "_" + file.name] = Replaced(Replaced(file.text, "REGION_UPPER", Upper(name)), "REGION_NAME", name);
  }
  return sources;
}

}  // namespace heddle::hls
