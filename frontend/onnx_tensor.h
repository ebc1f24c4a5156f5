// TensorProto. Internal to frontend/: includes protobuf.
#ifndef HEDDLE_FRONTEND_ONNX_TENSOR_H_
#define HEDDLE_FRONTEND_ONNX_TENSOR_H_

#include <onnx/onnx_pb.h>

#include <filesystem>
#include <string>

#include "ir/status.h"
#include "ir/types.h"

namespace heddle::frontend {

// Reads any storage form. `budget_bytes` is lowered by the tensor's bytes, and nothing is allocated before the data is known
// to be there. External data is read from inside `folder` only. E-IMPORT-003 element type, 020 sizes, 021 external, 050 budget.
absl::StatusOr<ir::Tensor> TensorFromProto(const onnx::TensorProto& proto, const std::filesystem::path& folder,
                                           int64_t& budget_bytes);

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_ONNX_TENSOR_H_
