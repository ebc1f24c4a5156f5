// The whole way on the bundled float network: quantise, import, legalise, run; and what bad calibration data is told.

#include "driver/quantise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "driver/calibration_data.h"
#include "driver/compile.h"
#include "driver/devices.h"
#include "driver/exit_codes.h"
#include "frontend/onnx_import.h"
#include "ir/npz.h"
#include "ir/op.h"
#include "ir/passes/pass.h"

namespace heddle::driver {
namespace {

constexpr char kModel[] = "testbench/models/digits/digits_fp32.onnx";
constexpr char kHeldout[] = "testbench/models/digits/heldout.npz";

std::filesystem::path TestFile(const std::string& name) {
  const std::filesystem::path folder =
      std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
  std::filesystem::create_directories(folder);
  return folder / name;
}

// The bundled network on the first `samples` held-out pictures.
QuantiseOptions DigitsOptions(int64_t samples) {
  QuantiseOptions options;
  options.model = kModel;
  options.calibrate = {kHeldout};
  options.most_samples = samples;
  options.out = TestFile("quantised.onnx").string();
  options.talk.verbosity = Verbosity::kQuiet;
  return options;
}

ir::Tensor Heldout(const std::string& name) {
  std::vector<ir::NamedTensor> entries = ir::ReadNpzFile(kHeldout).value();
  for (ir::NamedTensor& entry : entries) {
    if (entry.name == name) return std::move(entry.tensor);
  }
  ADD_FAILURE() << "heldout.npz has no " << name;
  return {};
}

// Per cent of the pictures from `first` on whose digit a model finds.
double Accuracy(const std::string& model, int64_t first) {
  ir::Graph graph = LoadModel(model, {}, false).value();
  EXPECT_TRUE(ir::RunDefaultPipeline(graph).ok());
  DeviceSet set = MakeDevices(LoadTarget("this-machine").value(), {"cpu"}, 1).value();
  auto code = HostOf(set.devices).Compile(std::make_shared<const ir::Graph>(graph), {"digits", {}, {}}).value();
  const ir::Tensor pictures = Heldout("input"), labels = Heldout("labels");
  int64_t right = 0;
  for (int64_t i = first; i < labels.elements(); ++i) {
    ir::Tensor picture(ir::ElementType::kFloat32, {1, 1, 8, 8});
    std::memcpy(picture.data(), pictures.data() + i * picture.bytes(), static_cast<size_t>(picture.bytes()));
    const std::vector<ir::Tensor> outputs = code->Run({picture}).value().outputs;
    const auto scores = outputs[0].as<float>();
    if (std::max_element(scores.begin(), scores.end()) - scores.begin() == labels.at_int(i)) ++right;
  }
  return 100.0 * static_cast<double>(right) / static_cast<double>(labels.elements() - first);
}

class QuantiseDigits : public testing::TestWithParam<ir::quantise::Method> {};

// Calibrated on the first 100 pictures, judged on the 400 others.
TEST_P(QuantiseDigits, KeepsItsAccuracy) {
  QuantiseOptions options = DigitsOptions(100);
  options.calibration.method = GetParam();
  options.calibration.percentile = 99.99;
  const auto report = QuantiseModel(options);
  ASSERT_TRUE(report.ok()) << report.status();
  const double accuracy_float = Accuracy(kModel, 100), accuracy_int8 = Accuracy(options.out, 100);
  std::printf("%s", PrintQuantiseText(*report).c_str());
  std::printf("accuracy on 400 other pictures: float %.2f %%, int8 %.2f %%\n", accuracy_float, accuracy_int8);
  EXPECT_GE(accuracy_int8, 97.0);
  EXPECT_GE(accuracy_int8, accuracy_float - 1);
  // Every layer is an integer op: the network is of nothing else.
  EXPECT_TRUE(report->float_nodes.empty()) << report->float_nodes[0].name;
  EXPECT_TRUE(report->notes.empty());
  ASSERT_EQ(report->outputs.size(), 1u);
  EXPECT_EQ(report->outputs[0].classes, 10);
  EXPECT_EQ(report->outputs[0].top_one.total, 100);
  EXPECT_GE(report->outputs[0].top_one.equal, 97);
  for (const TensorNoise& entry : report->tensors) {
    if (entry.tensor.moved) continue;
    EXPECT_GT(entry.noise.elements, 0) << entry.tensor.value << " was not compared";
    EXPECT_GT(entry.noise.sqnr_db(), 15) << entry.tensor.value;
  }
}
INSTANTIATE_TEST_SUITE_P(Methods, QuantiseDigits,
                         testing::Values(ir::quantise::Method::kMinMax, ir::quantise::Method::kPercentile,
                                         ir::quantise::Method::kMse),
                         [](const auto& info) { return std::string(ir::quantise::MethodName(info.param)); });

TEST(QuantiseModel, IsTheSameEveryTime) {
  const auto read = [](const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    return std::string{std::istreambuf_iterator<char>(in), {}};
  };
  const QuantiseOptions options = DigitsOptions(5);
  ASSERT_TRUE(QuantiseModel(options).ok());
  const std::string once = read(options.out);
  ASSERT_TRUE(QuantiseModel(options).ok());
  EXPECT_FALSE(once.empty());
  EXPECT_EQ(once, read(options.out));
}

TEST(QuantiseModel, SaysThatRandomSamplesSayLittle) {
  QuantiseOptions options = DigitsOptions(3);
  options.calibrate.clear();
  const auto report = QuantiseModel(options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->notes.size(), 1u);
  EXPECT_NE(report->notes[0].find("3 random samples"), std::string::npos) << report->notes[0];
  const nlohmann::json json = nlohmann::json::parse(PrintQuantiseJson(*report));
  EXPECT_EQ(json["notes"].size(), 1u);
  EXPECT_EQ(json["tensors"].size(), report->tensors.size());
  EXPECT_EQ(json["outputs"][0]["top1"]["total"], 3);
  EXPECT_GT(json["layers"], 0);
}

TEST(QuantiseModel, KeepsNodesInFloat) {
  QuantiseOptions options = DigitsOptions(3);
  options.keep_float = {"head/softmax"};
  const auto report = QuantiseModel(options);
  ASSERT_TRUE(report.ok()) << report.status();
  ASSERT_EQ(report->float_nodes.size(), 1u);
  EXPECT_EQ(report->float_nodes[0].op, "Softmax");
  options.keep_float = {"no/such/node"};
  EXPECT_EQ(ir::ErrorCode(QuantiseModel(options).status()), "E-QUANT-003");
}

// The model's own names, and no file where it fails.
TEST(QuantiseModel, RefusesQuantisedModels) {
  QuantiseOptions options = DigitsOptions(3);
  options.model = "testbench/models/digits/digits_int8_qdq.onnx";
  const auto report = QuantiseModel(options);
  EXPECT_EQ(ir::ErrorCode(report.status()), "E-QUANT-001");
  EXPECT_EQ(ExitCodeOf(report.status()), kExitBadModel);
  EXPECT_FALSE(std::filesystem::exists(options.out));
}

// ---- Calibration data

std::string CodeFor(const std::vector<std::string>& calibrate) {
  QuantiseOptions options = DigitsOptions(0);
  options.calibrate = calibrate;
  const auto report = QuantiseModel(options);
  EXPECT_FALSE(std::filesystem::exists(options.out));
  EXPECT_EQ(ExitCodeOf(report.status()), kExitUsage) << report.status();
  return ir::ErrorCode(report.status());
}

std::string WriteNpz(const std::string& name, const std::vector<ir::NamedTensor>& tensors) {
  const std::filesystem::path path = TestFile(name);
  EXPECT_TRUE(ir::WriteNpzFile(path, tensors).ok());
  return path.string();
}

TEST(CalibrationData, RefusesBadFiles) {
  ir::Tensor picture(ir::ElementType::kFloat32, {1, 1, 8, 8});
  picture.as<float>()[17] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(CodeFor({WriteNpz("nan.npz", {{"input", picture}})}), "E-QUANT-105");
  picture.as<float>()[17] = std::numeric_limits<float>::infinity();
  EXPECT_EQ(CodeFor({WriteNpz("inf.npz", {{"input", picture}})}), "E-QUANT-105");
  picture.as<float>()[17] = 0;
  EXPECT_EQ(CodeFor({WriteNpz("name.npz", {{"image", picture}, {"label", picture}})}), "E-QUANT-103");
  EXPECT_EQ(CodeFor({WriteNpz("shape.npz", {{"input", picture.Reshaped({1, 1, 4, 16})}})}), "E-QUANT-104");
  EXPECT_EQ(CodeFor({WriteNpz("rank.npz", {{"input", picture.Reshaped({64})}})}), "E-QUANT-104");
  EXPECT_EQ(CodeFor({WriteNpz("empty.npz", {{"input", ir::Tensor(ir::ElementType::kFloat32, {0, 1, 8, 8})}})}),
            "E-QUANT-104");
  EXPECT_EQ(CodeFor({WriteNpz("type.npz", {{"input", ir::Tensor(ir::ElementType::kInt8, {1, 1, 8, 8})}})}),
            "E-QUANT-104");
  EXPECT_EQ(CodeFor({TestFile("absent.npz").string()}), "E-QUANT-101");
  std::ofstream(TestFile("text.txt")) << "no array";
  EXPECT_EQ(CodeFor({TestFile("text.txt").string()}), "E-QUANT-101");
  std::filesystem::create_directories(TestFile("nothing"));
  EXPECT_EQ(CodeFor({TestFile("nothing").string()}), "E-QUANT-101");
  EXPECT_EQ(CodeFor({"random:x"}), "E-QUANT-102");
  EXPECT_EQ(CodeFor({"picture=file.npy"}), "E-QUANT-102");
}

// Samples by every way of giving them.
TEST(CalibrationData, CountsSamples) {
  ir::Graph graph("g");
  graph.AddInput("a", ir::ValueType(ir::ElementType::kFloat32, ir::Shape{1, 2}));
  graph.AddInput("b", ir::ValueType(ir::ElementType::kFloat32, ir::Shape{2, 2}));
  const auto count = [&](const std::vector<std::string>& specs, int64_t most = 0) -> int64_t {
    auto data = CalibrationData::Open(graph, specs, most);
    EXPECT_TRUE(data.ok()) << data.status();
    int64_t samples = 0;
    const absl::Status status = data->ForEach([&](const std::vector<ir::Tensor>& inputs) {
      EXPECT_EQ(inputs.size(), 2u);
      EXPECT_EQ(inputs[1].shape(), (ir::Shape{2, 2}));
      ++samples;
      return absl::OkStatus();
    });
    if (!status.ok()) return -1;
    return samples;
  };
  const auto zeros = [](const ir::Shape& shape) { return ir::Tensor(ir::ElementType::kFloat32, shape); };
  std::filesystem::create_directories(TestFile("set"));
  const std::string file = WriteNpz("set/one.npz", {{"a", zeros({2})}, {"b", zeros({2, 2})}});
  const std::string many = WriteNpz("set/two.npz", {{"a", zeros({3, 2})}, {"b", zeros({6, 2})}, {"other", zeros({9})}});
  EXPECT_EQ(count({file}), 1);
  EXPECT_EQ(count({many}), 3);
  EXPECT_EQ(count({TestFile("set").string()}), 4);
  EXPECT_EQ(count({TestFile("set").string()}, 2), 2);
  EXPECT_EQ(count({}), CalibrationData::kRandomSamples);
  EXPECT_EQ(count({"random:7"}, 5), 5);
  ASSERT_TRUE(ir::WriteNpyFile(TestFile("a.npy"), zeros({1, 2})).ok());
  ASSERT_TRUE(ir::WriteNpyFile(TestFile("b.npy"), zeros({4, 2})).ok());
  EXPECT_EQ(count({"a=" + TestFile("a.npy").string(), "b=" + TestFile("b.npy").string()}), -1) << "one and two samples";
  EXPECT_EQ(ir::ErrorCode(CalibrationData::Open(graph, {"a=" + TestFile("a.npy").string()}, 0).status()),
            "E-QUANT-103");
  EXPECT_EQ(ir::ErrorCode(CalibrationData::Open(graph, {TestFile("a.npy").string()}, 0).status()), "E-QUANT-103");
}

// ---- ONNX's own tools, where they are.
TEST(QuantiseModel, OnnxRuntimeAgrees) {
  const char* venv = std::getenv("HEDDLE_VENV");
  if (!venv || !*venv) GTEST_SKIP() << "HEDDLE_VENV names no Python environment with onnx and onnxruntime";
  const QuantiseOptions options = DigitsOptions(100);
  ASSERT_TRUE(QuantiseModel(options).ok());
  std::ofstream(TestFile("check.py")) << R"(import sys
import numpy as np, onnx, onnxruntime
model = onnx.load(sys.argv[1])
onnx.checker.check_model(model, full_check=True)
assert all(node.op_type != "BatchNormalization" for node in model.graph.node)
data = np.load(sys.argv[2])
options = onnxruntime.SessionOptions()
options.add_session_config_entry("session.x64quantprecision", "1")  # without it sums may saturate where there is no VNNI
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
scores = np.concatenate([session.run(None, {"input": picture[None]})[0] for picture in data["input"]])
np.save(sys.argv[3], scores.astype(np.float32))
right = (scores.argmax(1) == data["labels"]).mean()
print("ONNX Runtime:", right)
assert right >= 0.97
)";
  const std::string scores_file = TestFile("scores.npy").string();
  const std::string command = fmt::format("'{}/bin/python' '{}' '{}' '{}' '{}'", venv, TestFile("check.py").string(),
                                          options.out, kHeldout, scores_file);
  ASSERT_EQ(std::system(command.c_str()), 0) << command;
  // Near ties fall otherwise in float32 sums: most of the numbers are equal, none is further away than a few steps.
  ir::Graph graph = LoadModel(options.out, {}, false).value();
  ASSERT_TRUE(ir::RunDefaultPipeline(graph).ok());
  DeviceSet set = MakeDevices(LoadTarget("this-machine").value(), {"cpu"}, 1).value();
  auto code = HostOf(set.devices).Compile(std::make_shared<const ir::Graph>(graph), {"digits", {}, {}}).value();
  const ir::Tensor scores = ir::ReadNpyFile(scores_file).value(), pictures = Heldout("input");
  int64_t different = 0;
  double largest = 0;
  for (int64_t i = 0; i < pictures.shape()[0]; ++i) {
    ir::Tensor picture(ir::ElementType::kFloat32, {1, 1, 8, 8});
    std::memcpy(picture.data(), pictures.data() + i * picture.bytes(), static_cast<size_t>(picture.bytes()));
    const std::vector<ir::Tensor> outputs = code->Run({picture}).value().outputs;
    for (int64_t c = 0; c < 10; ++c) {
      const double difference = std::abs(outputs[0].at_double(c) - scores.at_double(10 * i + c));
      largest = std::max(largest, difference);
      if (difference > 1e-6) ++different;
    }
  }
  std::printf("%lld of %lld probabilities differ, by %.4f at most\n", static_cast<long long>(different),
              static_cast<long long>(scores.elements()), largest);
  EXPECT_LT(different, scores.elements() / 50);
  EXPECT_LT(largest, 0.05);
}

}  // namespace
}  // namespace heddle::driver
