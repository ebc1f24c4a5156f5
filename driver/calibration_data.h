// Samples that a model is calibrated with.
#ifndef HEDDLE_DRIVER_CALIBRATION_DATA_H_
#define HEDDLE_DRIVER_CALIBRATION_DATA_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace heddle::driver {

// Where samples come from: files are read one after another, so that a folder may be larger than memory.
class CalibrationData {
 public:
  static constexpr int64_t kRandomSamples = 16;  // where neither files nor a number are given

  // `specs`, any number together: FILE.npz (keys named like the inputs; others are ignored; the only key serves the
  // only input), NAME=FILE.npy, FILE.npy (of the only input), a folder of .npz and .npy files, random:SEED. None:
  // random:0. An array is one sample, of the input's shape with or without a leading 1, or many along the leading
  // dimension: [k N, …] for an input [N, …]. At most `most_samples` are used (0: all).
  //   E-QUANT-101 a file or folder cannot be read or has nothing, E-QUANT-102 a spec or seed is not understood,
  //   E-QUANT-103 an input is missing
  static absl::StatusOr<CalibrationData> Open(const ir::Graph& graph, const std::vector<std::string>& specs,
                                              int64_t most_samples);

  // Calls `visit` with one tensor for each graph input, sample after sample in a fixed order; ends early with its
  // error.
  //   E-QUANT-104 type or shape do not fit, E-QUANT-105 NaN or infinity, E-QUANT-106 inputs of a file have different
  //   numbers of samples
  absl::Status ForEach(const std::function<absl::Status(const std::vector<ir::Tensor>& inputs)>& visit) const;

  bool random() const { return random_; }  // nothing but random inputs
  std::string Description() const;         // "500 samples of heldout.npz", after ForEach has counted them

 private:
  // Files that give all inputs together.
  struct Source {
    std::string npz;                         // or
    std::map<std::string, std::string> npy;  // by input name
    std::string name;
  };

  explicit CalibrationData(const ir::Graph& graph) : graph_(graph) {}
  absl::Status AddSpec(const std::string& spec);
  absl::Status AddPath(const std::string& path);
  absl::Status AddFolder(const std::string& folder);
  absl::Status CheckComplete(const Source& source) const;
  absl::StatusOr<std::map<std::string, ir::Tensor>> Read(const Source& source) const;
  absl::Status VisitSource(const Source& source, int64_t& left,
                           const std::function<absl::Status(const std::vector<ir::Tensor>&)>& visit) const;
  absl::Status VisitRandom(int64_t left,
                           const std::function<absl::Status(const std::vector<ir::Tensor>&)>& visit) const;

  const ir::Graph& graph_;
  std::vector<Source> sources_;
  std::vector<std::string> specs_;
  uint64_t seed_ = 0;
  bool random_ = false;
  int64_t most_samples_ = 0;
  mutable int64_t samples_ = 0;
};

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_CALIBRATION_DATA_H_
