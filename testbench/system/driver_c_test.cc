// The generated C driver: compiles as strict C99, and runs the bundled digits network on the verilated accelerator through its
// registers with the reference interpreter's results.

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/verify.h"
#include "hls/accelerator/accelerator.h"
#include "hls/driver_c/driver_c.h"
#include "ir/npz.h"
#include "ir/passes/pass.h"
#include "ir/region.h"
#include "ir/sha256.h"
#include "ir/subprocess.h"
#include "sim/accelerator_device.h"

namespace heddle::testbench {
namespace {

namespace fs = std::filesystem;

constexpr char kModel[] = "testbench/models/digits/digits_int8_qdq.onnx";
constexpr char kHeldout[] = "testbench/models/digits/heldout.npz";
constexpr char kHarness[] = "testbench/driver_harness.cc";
const std::vector<std::string>& StrictC() {
  static const auto& flags = *new std::vector<std::string>{"gcc", "-std=c99", "-O2", "-Wall", "-Wextra", "-Werror", "-pedantic", "-Wconversion", "-Wshadow"};
  return flags;
}

std::string ReadText(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void WriteAll(const std::map<std::string, std::string>& files, const fs::path& folder) {
  fs::create_directories(folder);
  for (const auto& [name, text] : files) std::ofstream(folder / name, std::ios::binary) << text;
}

absl::Status CompileC(const fs::path& folder, const std::string& source, std::vector<std::string> flags) {
  flags.insert(flags.end(), {"-c", source, "-o", source + ".o"});
  return ir::RunTool(flags, {.directory = folder}).status();
}

std::vector<uint8_t> BytesOf(const ir::Tensor& tensor) {
  std::vector<uint8_t> bytes(static_cast<size_t>(tensor.bytes()));
  std::memcpy(bytes.data(), tensor.data(), bytes.size());
  return bytes;
}

// The part of the digits network that the accelerator takes.
struct Digits {
  ir::Graph graph;
  driver::DeviceSet devices;
  std::shared_ptr<const ir::Graph> region;
  std::unique_ptr<ir::CompiledRegion> code;

  const sim::AcceleratorDevice& device() const { return dynamic_cast<const sim::AcceleratorDevice&>(*devices.devices[1]); }
  const hls::CompiledProgram& program() const { return dynamic_cast<const sim::AcceleratorRegion&>(*code).program(); }
};

Digits MakeDigits() {
  Digits digits;
  digits.graph = driver::LoadModel(kModel, {}, false).value();
  EXPECT_TRUE(ir::RunDefaultPipeline(digits.graph).ok());
  digits.devices = driver::MakeDevices(driver::LoadTarget("zynq7020").value(), {}, 1).value();
  auto& accelerator = dynamic_cast<sim::AcceleratorDevice&>(*digits.devices.devices[1]);
  accelerator.set_options({{}, {}, sim::Simulator::kFast, {}});
  std::vector<ir::NodeId> taken;
  const std::vector<ir::NodeId> order = digits.graph.TopologicalOrder().value();
  for (ir::NodeId id : order) {
    if (accelerator.Supports(digits.graph, digits.graph.node(id)).supported) taken.push_back(id);
  }
  digits.region = std::make_shared<const ir::Graph>(ir::ExtractRegion(digits.graph, taken));
  digits.code = accelerator.Compile(digits.region, {"region", {}, {}}).value();
  return digits;
}

std::map<std::string, std::string> AllSources(const hls::CompiledProgram& program, const std::string& name) {
  std::map<std::string, std::string> sources = hls::DriverSources();
  sources.merge(hls::DriverProgramSources(program, name));
  return sources;
}

TEST(DriverC, CompilesAsStrictC99) {
  const Digits digits = MakeDigits();
  const fs::path folder = fs::path(testing::TempDir()) / "strict";
  const std::map<std::string, std::string> sources = AllSources(digits.program(), "region_000");
  WriteAll(sources, folder);
  int compiled = 0;
  for (const auto& [name, text] : sources) {
    if (!name.ends_with(".c")) continue;
    ++compiled;
    const absl::Status status = CompileC(folder, name, StrictC());
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(compiled, 5);
  const absl::Status link = ir::RunTool({"gcc", "-o", "linux", "region_000_example_linux.c.o", "heddle_driver.c.o", "heddle_uio.c.o", "region_000.c.o"}, {.directory = folder}).status();
  EXPECT_TRUE(link.ok()) << link;
}

// Names may hold anything that a model's author typed.
TEST(DriverC, NamesAreQuoted) {
  hls::CompiledProgram program = MakeDigits().program();
  program.name = "a */ \"b\" \\ /* ?";
  program.inputs[0].name = "x\"\n*/\xc3\xa4";
  const fs::path folder = fs::path(testing::TempDir()) / "names";
  WriteAll(AllSources(program, "odd"), folder);
  const absl::Status status = CompileC(folder, "odd.c", StrictC());
  EXPECT_TRUE(status.ok()) << status;
}

// The driver and the region as objects of a C99 compiler, kept by content like the simulation that they are linked into.
absl::StatusOr<sim::VerilatedModel> BuildHarness(const Digits& digits) {
  const std::map<std::string, std::string> sources = AllSources(digits.program(), "region");
  std::string all;
  for (const auto& [name, text] : sources) all += name + "\n" + text;
  HEDDLE_ASSIGN_OR_RETURN(const fs::path cache, sim::CacheDirectory());
  const fs::path folder = cache / "driver_test" / ir::Sha256Hex(all).substr(0, 16);
  WriteAll(sources, folder);
  for (const char* source : {"heddle_driver.c", "region.c"}) HEDDLE_RETURN_IF_ERROR(CompileC(folder, source, StrictC()));
  sim::HarnessSpec harness = sim::PlainHarness(false);
  harness.sources["simulator.inc"] = harness.sources.extract("harness.cc").mapped();
  harness.sources["driver_harness.cc"] = ReadText(kHarness);
  for (const char* header : {"heddle_registers.h", "heddle_driver.h", "region.h"}) harness.sources[header] = sources.at(header);
  harness.ldflags = (folder / "heddle_driver.c.o").string() + " " + (folder / "region.c.o").string();
  return sim::VerilatedModel::Build(hls::GenerateVerilog(digits.device().params()), harness, {});
}

TEST(DriverC, RunsTheDigitsNetworkOnTheRtl) {
  const Digits digits = MakeDigits();
  const auto model = BuildHarness(digits);
  ASSERT_TRUE(model.ok()) << model.status();
  const std::vector<ir::NamedTensor> arrays = ir::ReadNpzFile(kHeldout).value();
  const ir::Tensor& pictures = arrays[arrays[0].name == "input" ? 0 : 1].tensor;
  constexpr uint64_t kBase = 0x10000;
  const std::vector<uint8_t> dram(kBase + static_cast<size_t>(digits.program().dram_bytes), 0x5a);
  sim::SimulationRequest request;
  request.image = &dram;
  request.base = kBase;
  request.memory = digits.device().memory();
  std::vector<std::vector<ir::Tensor>> expected;
  constexpr int64_t kCount = 5;
  for (int64_t i = 0; i < kCount; ++i) {
    ir::Tensor picture(pictures.type(), digits.graph.type(digits.graph.inputs()[0]).static_shape());
    std::memcpy(picture.data(), pictures.data() + i * picture.bytes(), static_cast<size_t>(picture.bytes()));
    const driver::Reference reference = driver::ComputeReference(digits.graph, {picture}).value();
    sim::SimulationJob job;
    for (size_t k = 0; k < digits.region->inputs().size(); ++k) {
      const ir::Tensor& tensor = reference.values.at(digits.region->value(digits.region->inputs()[k]).name);
      job.pokes.emplace_back(k, BytesOf(tensor));
    }
    expected.emplace_back();
    for (size_t k = 0; k < digits.region->outputs().size(); ++k) {
      expected.back().push_back(reference.values.at(digits.region->value(digits.region->outputs()[k]).name));
      job.dumps.emplace_back(k, static_cast<uint64_t>(expected.back().back().bytes()));
    }
    request.jobs.push_back(std::move(job));
  }
  const auto result = model->Run(request);
  ASSERT_TRUE(result.ok()) << result.status();
  ASSERT_EQ(result->jobs.size(), static_cast<size_t>(kCount));
  for (int64_t i = 0; i < kCount; ++i) {
    const sim::JobResult& job = result->jobs[static_cast<size_t>(i)];
    for (size_t k = 0; k < job.dumps.size(); ++k) {
      const ir::Tensor& tensor = expected[static_cast<size_t>(i)][k];
      EXPECT_EQ(job.dumps[k], BytesOf(tensor)) << "picture " << i << ", output " << k;
    }
    EXPECT_EQ(job.counters.at("cycles"), result->jobs[0].counters.at("cycles"));
    EXPECT_GT(job.counters.at("compute_steps"), 0);
  }
  const std::map<std::string, int64_t>& counters = result->jobs.back().counters;
  // The values of heddle_status in heddle_driver.h.
  EXPECT_EQ(counters.at("open_wrong_lanes"), 3);
  EXPECT_EQ(counters.at("open_small_memory"), 4);
  EXPECT_EQ(counters.at("open_unaligned"), 4);
  EXPECT_EQ(counters.at("open_absent"), 2);
  EXPECT_EQ(counters.at("input_out_of_range"), 1);
  EXPECT_EQ(counters.at("run_hurried"), 6);
  EXPECT_EQ(counters.at("run_while_busy"), 5);
  EXPECT_EQ(counters.at("interrupts"), kCount - 2);
}

}  // namespace
}  // namespace heddle::testbench
