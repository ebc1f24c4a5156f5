// NumPy's .npy and .npz files: how inputs come in and results go out.
//
// Format: numpy/lib/format.py (NEP 1), versions 1 to 3; .npz is a zip of .npy entries, stored or deflated. Both byte orders
// and both memory orders are read; C order and little-endian are written. The bytes may come from a stranger: claimed sizes
// are compared with what is there, and with `max_bytes`, before memory is taken.
#ifndef HEDDLE_IR_NPZ_H_
#define HEDDLE_IR_NPZ_H_

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "ir/status.h"
#include "ir/types.h"

namespace heddle::ir {

struct NamedTensor {
  std::string name;
  Tensor tensor;
};

inline constexpr int64_t kMaxNpzBytes = int64_t{4} << 30;  // of all tensors of a file together

// E-INPUT-101 not an .npy, 102 element type not supported, 103 sizes do not fit.
absl::StatusOr<Tensor> ReadNpy(std::string_view bytes);
std::string WriteNpy(const Tensor& tensor);

// In the order of the file; names without ".npy". E-INPUT-110 not a zip or damaged, 111 a form of zip that is not supported,
// 112 an entry given twice, 113 more than max_bytes. Errors of an entry name it. Entries of an element type that is not
// supported (texts, say) are left out and their names put into `skipped`, where given.
absl::StatusOr<std::vector<NamedTensor>> ReadNpz(std::string_view bytes, int64_t max_bytes = kMaxNpzBytes,
                                                 std::vector<std::string>* skipped = nullptr);
// Stored, without timestamps: equal tensors give equal bytes. E-INPUT-114 from 4 GiB on.
absl::StatusOr<std::string> WriteNpz(const std::vector<NamedTensor>& tensors);

// The same on files. E-INPUT-120 the file cannot be read, 121 it cannot be written (written under a temporary name, renamed).
absl::StatusOr<Tensor> ReadNpyFile(const std::filesystem::path& path);
absl::StatusOr<std::vector<NamedTensor>> ReadNpzFile(const std::filesystem::path& path);
absl::Status WriteNpyFile(const std::filesystem::path& path, const Tensor& tensor);
absl::Status WriteNpzFile(const std::filesystem::path& path, const std::vector<NamedTensor>& tensors);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_NPZ_H_
