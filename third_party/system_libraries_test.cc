// Every library that Heddle uses works beside the others in one process: their versions and language modes agree.

#include <CL/cl.h>
#include <absl/container/flat_hash_map.h>
#include <absl/status/statusor.h>
#include <coin/Cbc_C_Interface.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/Support/TargetSelect.h>
#include <onnx/onnx_pb.h>

#include <CLI/CLI.hpp>
#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/topological_sort.hpp>
#include <nlohmann/json.hpp>

namespace {

TEST(SystemLibraries, AbseilStatusAndMaps) {
  absl::flat_hash_map<int, int> map = {{1, 2}};
  absl::StatusOr<int> value = map.at(1);
  ASSERT_TRUE(value.ok());
  EXPECT_EQ(*value, 2);
}

TEST(SystemLibraries, LlvmJitIsCreated) {
  llvm::InitializeNativeTarget();
  llvm::InitializeNativeTargetAsmPrinter();
  auto jit = llvm::orc::LLJITBuilder().create();
  EXPECT_TRUE(static_cast<bool>(jit));
}

TEST(SystemLibraries, OnnxProtobufRoundTrip) {
  onnx::ModelProto model;
  model.mutable_graph()->set_name("g");
  onnx::ModelProto copy;
  ASSERT_TRUE(copy.ParseFromString(model.SerializeAsString()));
  EXPECT_EQ(copy.graph().name(), "g");
}

TEST(SystemLibraries, OpenClPlatforms) {
  cl_uint count = 0;
  clGetPlatformIDs(0, nullptr, &count);
  EXPECT_GE(count, 1u) << "install pocl-opencl-icd";
}

TEST(SystemLibraries, CbcSolvesAnIntegerProgramme) {
  Cbc_Model* model = Cbc_newModel();
  const CoinBigIndex start[] = {0, 1};
  const int index[] = {0};
  const double value[] = {2.0}, lower[] = {0.0}, upper[] = {10.0}, objective[] = {-1.0};
  const double row_lower[] = {-1e30}, row_upper[] = {7.0};
  Cbc_loadProblem(model, 1, 1, start, index, value, lower, upper, objective, row_lower, row_upper);
  Cbc_setInteger(model, 0);
  Cbc_setParameter(model, "logLevel", "0");
  Cbc_solve(model);
  EXPECT_DOUBLE_EQ(Cbc_getColSolution(model)[0], 3.0);
  Cbc_deleteModel(model);
}

TEST(SystemLibraries, BoostTopologicalSort) {
  boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS> graph(2);
  boost::add_edge(0, 1, graph);
  std::vector<int> order;
  boost::topological_sort(graph, std::back_inserter(order));
  EXPECT_EQ(order, (std::vector<int>{1, 0}));
}

TEST(SystemLibraries, FormattingAndJson) {
  EXPECT_EQ(fmt::format("{:>3}", 7), "  7");
  EXPECT_EQ(nlohmann::json::parse("{\"a\":1}")["a"], 1);
}

}  // namespace
