// Constants kept beside the textual IR: the text holds `ref:` and the first 16 digits of a constant's SHA-256.
#ifndef HEDDLE_IR_CONSTANT_STORE_H_
#define HEDDLE_IR_CONSTANT_STORE_H_

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "ir/status.h"
#include "ir/types.h"

namespace heddle::ir {

// The first 16 hexadecimal digits of the SHA-256 of element type, shape and bytes.
std::string TensorDigest(const Tensor& tensor);

class ConstantStore {
 public:
  // Keeps the tensor and returns its digest; "" where another tensor has the same digest already.
  std::string Add(std::shared_ptr<const Tensor> tensor);
  std::shared_ptr<const Tensor> Find(std::string_view digest) const;  // null where absent
  size_t size() const { return tensors_.size(); }

  // One file, sorted by digest, so equal stores give equal bytes. Written under a temporary name, then renamed.
  // E-TEXT-020: cannot be written. E-TEXT-021: cannot be read, or damaged. (A changed tensor gets another digest, so it is not found.)
  absl::Status Save(const std::filesystem::path& path) const;
  static absl::StatusOr<ConstantStore> Load(const std::filesystem::path& path);

 private:
  std::map<std::string, std::shared_ptr<const Tensor>, std::less<>> tensors_;
};

}  // namespace heddle::ir

#endif  // HEDDLE_IR_CONSTANT_STORE_H_
