// Damaged and hostile models: real ones, mutated. Importing, verifying and optimising each ends in a coded error or in a graph that
// verifies, never in a crash (the test would end), a hang (its time limit) or an unnamed error. Run it under the sanitizers
// with `bazel test --config=asan`.
//
// Two kinds of mutation. Of bytes: truncation, flips, splices, and length fields made extreme: most die in protobuf. Of fields:
// the parsed model with a few fields changed by reflection, written out again: these reach everything behind it.
// Each case has a seed of its own, printed when it fails; HEDDLE_FUZZ_SEED and HEDDLE_FUZZ_CASES run others.

#include <google/protobuf/message.h>
#include <gtest/gtest.h>
#include <onnx/onnx_pb.h>

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <limits>
#include <map>
#include <random>

#include "frontend/onnx_import.h"
#include "ir/passes/pass.h"
#include "ir/text.h"
#include "testbench/data_path.h"

namespace heddle::testbench {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Random = std::mt19937_64;

struct Source {
  std::string name;
  std::string bytes;
};

std::string Read(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The bundled models, and where the test data is there models of other opsets and operators.
std::vector<Source> Sources() {
  std::vector<Source> sources;
  for (const char* name : {"digits_int8_qdq.onnx", "digits_fp32.onnx"}) {
    sources.push_back({name, Read(std::filesystem::path("testbench/models/digits") / name)});
  }
  for (const char* name : {"mlperf_tiny_onnx/kws_int8_qdq.onnx", "mlperf_tiny_onnx/kws_int8_qop.onnx", "mnist/mnist.onnx",
                           "onnx_light/light_squeezenet.onnx", "ultraface/Ultraface_version-RFB-320.onnx"}) {
    if (const auto path = DataPath(name)) sources.push_back({name, Read(*path)});
  }
  return sources;
}

uint64_t EnvironmentNumber(const char* name, uint64_t fallback) {
  const char* text = std::getenv(name);
  return text && *text ? std::strtoull(text, nullptr, 10) : fallback;
}

// --- bytes

std::string MutateBytes(std::string bytes, const std::string& other, Random& random) {
  for (uint64_t edits = 1 + random() % 4; edits > 0 && !bytes.empty(); --edits) {
    // Structure lies near the front and the back; weights in between.
    const size_t at = random() % 2 ? random() % bytes.size() : random() % std::min<size_t>(bytes.size(), 4096);
    switch (random() % 6) {
      case 0: bytes.resize(at); break;
      case 1: bytes[at] = static_cast<char>(bytes[at] ^ (1 << (random() % 8))); break;
      case 2: bytes[at] = static_cast<char>(random()); break;
      case 3: bytes.replace(at, random() % 64, other.substr(random() % other.size(), random() % 64)); break;
      case 4: bytes.erase(at, random() % 64); break;
      default: {  // a varint that claims far too much
        static const std::string kLengths[] = {"\xff\xff\xff\xff\x0f", "\xff\xff\xff\xff\x07", "\x80\x80\x80\x80\x08",
                                               "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", std::string("\x80\x00", 2)};
        const std::string& length = kLengths[random() % 5];
        bytes.replace(at, random() % 2 ? 1 : length.size(), length);
      }
    }
  }
  return bytes;
}

// --- fields

struct Place {
  Message* message;
  const FieldDescriptor* field;
};

void CollectPlaces(Message* message, std::vector<Place>& places) {
  const auto* reflection = message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  reflection->ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    places.push_back({message, field});
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      CollectPlaces(reflection->MutableMessage(message, field), places);
      continue;
    }
    for (int i = 0; i < reflection->FieldSize(*message, field); ++i) CollectPlaces(reflection->MutableRepeatedMessage(message, field, i), places);
  }
}

int64_t ExtremeInt(Random& random) {
  static constexpr int64_t kValues[] = {0, 1, -1, 2, 3, 7, -2, 16, 255, 256, -128, 65536, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN,
                                        int64_t{1} << 32, int64_t{1} << 40, int64_t{1} << 62};
  return random() % 4 == 0 ? static_cast<int64_t>(random() % 30) : kValues[random() % std::size(kValues)];
}

double ExtremeDouble(Random& random) {
  static constexpr double kValues[] = {0, -0.0, 1, -1, 1e-30, 1e30, -1e30, 1e-45, 3.4e38, 0.5,
                                       std::numeric_limits<double>::infinity(), std::numeric_limits<double>::quiet_NaN()};
  return kValues[random() % std::size(kValues)];
}

// A string of the model (so that names meet where they should not), or bytes of no meaning, or fewer or more of the same.
std::string OtherString(const std::string& old, const std::vector<std::string>& pool, Random& random) {
  switch (random() % 5) {
    case 0: return "";
    case 1: return old.substr(0, random() % (old.size() + 1));
    case 2: return old + std::string(random() % 9, static_cast<char>(random()));
    default: return pool[random() % pool.size()];
  }
}

void MutateScalar(const Place& place, int index, const std::vector<std::string>& pool, Random& random) {
  Message* m = place.message;
  const FieldDescriptor* f = place.field;
  const auto* r = m->GetReflection();
  const bool many = f->is_repeated();
  const auto extreme = ExtremeInt(random);
  switch (f->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: many ? r->SetRepeatedInt32(m, f, index, static_cast<int32_t>(extreme)) : r->SetInt32(m, f, static_cast<int32_t>(extreme)); break;
    case FieldDescriptor::CPPTYPE_INT64: many ? r->SetRepeatedInt64(m, f, index, extreme) : r->SetInt64(m, f, extreme); break;
    case FieldDescriptor::CPPTYPE_UINT64: many ? r->SetRepeatedUInt64(m, f, index, static_cast<uint64_t>(extreme)) : r->SetUInt64(m, f, static_cast<uint64_t>(extreme)); break;
    case FieldDescriptor::CPPTYPE_FLOAT: many ? r->SetRepeatedFloat(m, f, index, static_cast<float>(ExtremeDouble(random))) : r->SetFloat(m, f, static_cast<float>(ExtremeDouble(random))); break;
    case FieldDescriptor::CPPTYPE_DOUBLE: many ? r->SetRepeatedDouble(m, f, index, ExtremeDouble(random)) : r->SetDouble(m, f, ExtremeDouble(random)); break;
    case FieldDescriptor::CPPTYPE_ENUM: r->SetEnumValue(m, f, static_cast<int>(random() % 14)); break;
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string text = OtherString(many ? r->GetRepeatedString(*m, f, index) : r->GetString(*m, f), pool, random);
      many ? r->SetRepeatedString(m, f, index, text) : r->SetString(m, f, text);
      break;
    }
    default: break;
  }
}

void MutatePlace(const Place& place, const std::vector<std::string>& pool, Random& random) {
  const auto* r = place.message->GetReflection();
  if (!place.field->is_repeated()) {
    if (place.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE || random() % 6 == 0) return r->ClearField(place.message, place.field);
    return MutateScalar(place, 0, pool, random);
  }
  const int size = r->FieldSize(*place.message, place.field);
  if (size == 0) return;
  const auto pick = [&] { return static_cast<int>(random() % static_cast<uint64_t>(size)); };
  switch (random() % 4) {
    case 0: return r->RemoveLast(place.message, place.field);
    case 1: return r->SwapElements(place.message, place.field, pick(), pick());
    case 2:
      if (place.field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const Message& copied = r->GetRepeatedMessage(*place.message, place.field, pick());
        std::unique_ptr<Message> copy(copied.New());
        copy->CopyFrom(copied);
        r->AddAllocatedMessage(place.message, place.field, copy.release());
        return;
      }
      [[fallthrough]];
    default: MutateScalar(place, pick(), pool, random);
  }
}

std::string MutateFields(const std::string& bytes, Random& random) {
  onnx::ModelProto model;
  if (!model.ParseFromString(bytes)) return bytes;
  std::vector<std::string> pool = {"", "x", "NOTSET", "SAME_UPPER"};
  for (const auto& node : model.graph().node()) {
    pool.push_back(node.op_type());
    for (const auto& name : node.input()) pool.push_back(name);
    for (const auto& name : node.output()) pool.push_back(name);
    for (const auto& attribute : node.attribute()) pool.push_back(attribute.name());
  }
  for (uint64_t edits = 1 + random() % 3; edits > 0; --edits) {
    std::vector<Place> places;
    CollectPlaces(&model, places);
    MutatePlace(places[random() % places.size()], pool, random);
  }
  return model.SerializeAsString();
}

// --- the property

struct Outcome {
  std::map<std::string, int> counts;  // by error code, "ok" for none
  double slowest_s = 0;
};

void Count(const absl::Status& status, const std::string& label, Outcome& outcome) {
  const std::string code = ir::ErrorCode(status);
  EXPECT_NE(code, "") << label << ": an error without a code: " << status;
  ++outcome.counts[code];
}

void Try(const std::string& bytes, const std::string& label, Outcome& outcome) {
  const auto start = std::chrono::steady_clock::now();
  frontend::ImportOptions options;
  options.max_constant_bytes = int64_t{1} << 28;
  auto graph = frontend::ImportOnnxBytes(bytes, options);
  if (!graph.ok()) return Count(graph.status(), label, outcome);
  if (const auto status = ir::Verify(*graph); !status.ok()) return Count(status, label, outcome);
  const std::string text = ir::PrintGraph(*graph, {ir::ConstantForm::kReference, nullptr});
  EXPECT_FALSE(text.empty()) << label;
  int64_t constant_bytes = 0, activation_bytes = 0;
  for (ir::ValueId id : graph->ValueIds()) (graph->IsConstant(id) ? constant_bytes : activation_bytes) += graph->type(id).bytes();
  if (activation_bytes < (int64_t{1} << 26)) {  // what a model of tens of MiB does to passes is the business of other tests
    if (const auto status = ir::RunDefaultPipeline(*graph, {.verify_each = true}); !status.ok()) return Count(status, label, outcome);
    EXPECT_TRUE(ir::Verify(*graph).ok()) << label << ": " << ir::Verify(*graph);
  }
  ++outcome.counts["ok"];
  outcome.slowest_s = std::max(outcome.slowest_s, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
}

void RunCases(const char* kind, uint64_t cases) {
  const std::vector<Source> sources = Sources();
  const uint64_t seed = EnvironmentNumber("HEDDLE_FUZZ_SEED", 1);
  cases = EnvironmentNumber("HEDDLE_FUZZ_CASES", cases);
  Outcome outcome;
  for (uint64_t i = 0; i < cases; ++i) {
    Random random(seed * 1000003 + i);
    const Source& source = sources[i % sources.size()];
    ASSERT_FALSE(source.bytes.empty()) << source.name;
    const std::string label = fmt::format("{} mutation of {}, seed {}, case {}", kind, source.name, seed, i);
    // A crash ends the process before any assertion: the last label written says which case it was.
    if (const char* trace = std::getenv("HEDDLE_FUZZ_TRACE"); trace && *trace) std::fprintf(stderr, "%s\n", label.c_str());
    const bool fields = std::string_view(kind) == "field";
    Try(fields ? MutateFields(source.bytes, random) : MutateBytes(source.bytes, sources[random() % sources.size()].bytes, random), label, outcome);
    if (testing::Test::HasFailure()) return;
  }
  std::printf("%s mutations: %llu, slowest accepted %.2f s\n", kind, static_cast<unsigned long long>(cases), outcome.slowest_s);
  for (const auto& [code, count] : outcome.counts) std::printf("  %-14s %d\n", code.c_str(), count);
  EXPECT_GT(outcome.counts.size(), 2u);  // mutations that all end the same way test nothing
}

TEST(HostileModels, DamagedBytes) { RunCases("byte", 1000); }
TEST(HostileModels, ChangedFields) { RunCases("field", 1400); }

}  // namespace
}  // namespace heddle::testbench
