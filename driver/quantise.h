// `heddle quantise`: a float model becomes an int8 model in QDQ form, with a report of what that cost in accuracy.
#ifndef HEDDLE_DRIVER_QUANTISE_H_
#define HEDDLE_DRIVER_QUANTISE_H_

#include <optional>
#include <string>
#include <vector>

#include "driver/options.h"
#include "ir/quantise/insert.h"
#include "ir/quantise/noise.h"

namespace heddle::driver {

struct QuantiseOptions {
  std::string model;                   // .onnx or .ir
  std::vector<std::string> shapes;     // NAME=1,3,224,224
  std::vector<std::string> calibrate;  // as CalibrationData::Open takes them
  int64_t most_samples = 0;            // 0: all
  ir::quantise::CalibrationOptions calibration;
  std::vector<std::string> keep_float;  // names of nodes
  std::string out = "quantised.onnx";
  int threads = 0;  // 0: as the target says
  bool json = false;
  TalkOptions talk;
};

struct TensorNoise {
  ir::quantise::QuantisedTensor tensor;
  ir::quantise::Noise noise;
};

struct OutputNoise {
  std::string name;
  ir::quantise::Noise noise;
  int64_t classes = 0;  // 0: no vector of classes
  ir::quantise::TopOne top_one;
};

struct FloatNode {
  std::string name, op;
};

struct QuantiseReport {
  static constexpr int kSchemaVersion = 1;
  std::string model, out, method, samples;
  double percentile = 0;  // with that method only
  std::vector<std::string> notes;
  std::vector<TensorNoise> tensors;  // in topological order
  std::vector<OutputNoise> outputs;
  std::vector<FloatNode> float_nodes;  // that compute on floats after legalisation
  int64_t integer_nodes = 0;           // that compute on integers after it
  int64_t layers = 0, weight_bytes = 0, float_weight_bytes = 0;
};

// import → optimise → calibrate on the float graph → quantise → write → import what was written → compare with the
// float graph on the same samples. Both runs are compiled for this machine's CPU; the quantised one after legalisation,
// as `heddle run` has it. Errors E-QUANT-…, E-IMPORT-…, E-EXPORT-…; the file appears when all is done.
absl::StatusOr<QuantiseReport> QuantiseModel(const QuantiseOptions& options);

// The same, printed: a table, or JSON with options.json.
absl::Status QuantiseCommand(const QuantiseOptions& options);

std::string PrintQuantiseText(const QuantiseReport& report);
std::string PrintQuantiseJson(const QuantiseReport& report);

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_QUANTISE_H_
