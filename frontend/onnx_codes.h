// Numbers of ONNX's TensorProto.DataType, without protobuf.
#ifndef HEDDLE_FRONTEND_ONNX_CODES_H_
#define HEDDLE_FRONTEND_ONNX_CODES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "ir/types.h"

namespace heddle::frontend {

// The element type of a TensorProto.DataType; nullopt where Heddle has none (float16, strings, …).
std::optional<ir::ElementType> ElementOfCode(int64_t code);
int64_t CodeOfElement(ir::ElementType type);
// The code of a name such as "FLOAT"; 0 for an unknown one.
int64_t DataTypeCode(const std::string& name);
// "f32", or "float16" for what ElementOfCode refuses: for messages.
std::string DataTypeText(int64_t code);

}  // namespace heddle::frontend

#endif  // HEDDLE_FRONTEND_ONNX_CODES_H_
