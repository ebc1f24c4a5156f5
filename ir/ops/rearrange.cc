// Ops that change the order of elements: Transpose, DepthToSpace, SpaceToDepth. The latter two are transpositions between two
// reshapes, and are evaluated as that.

#include <algorithm>
#include <numeric>

#include "ir/ops/all_ops.h"
#include "ir/ops/common.h"

namespace heddle::ir {
namespace {

using loops::Expr;
using loops::Indices;

// out[i] with dimension d of the result being dimension order[d] of `in`.
Tensor Transposed(const Tensor& in, const std::vector<int64_t>& order) {
  const std::vector<int64_t> strides = RowMajorStrides(in.shape());
  Shape shape;
  std::vector<std::vector<int64_t>> tables;
  for (int64_t source : order) {
    const auto s = static_cast<size_t>(source);
    shape.push_back(in.shape()[s]);
    std::vector<int64_t>& table = tables.emplace_back();
    if (in.elements() == 0) continue;  // nothing is copied; extents may be huge
    for (int64_t i = 0; i < in.shape()[s]; ++i) table.push_back(i * strides[s]);
  }
  return CopyByTables(in, shape, tables);
}

class Transpose : public Op {
 public:
  std::string_view name() const override { return "Transpose"; }
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }
  std::string_view doc() const override {
    return "data of any type. Attribute perm (default: dimensions reversed): dimension d of the result is dimension perm[d] of data. "
           "ONNX Transpose 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"perm", AttributeKind::kInts}}));
    std::vector<int64_t> perm = Permutation(c);
    std::sort(perm.begin(), perm.end());
    for (size_t d = 0; d < perm.size(); ++d) {
      if (perm.size() != c.input_shape(0).size() || perm[d] != static_cast<int64_t>(d)) {
        return NodeError("E-OP-004", c.node(), fmt::format("perm is no permutation of {} dimensions", c.input_shape(0).size()));
      }
    }
    return perm.size() == c.input_shape(0).size() ? absl::OkStatus() : NodeError("E-OP-004", c.node(), "perm is empty");
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    Shape shape;
    for (int64_t d : Permutation(c)) shape.push_back(c.input_shape(0)[static_cast<size_t>(d)]);
    return std::vector<ValueType>{ValueType(c.input_type(0).element, shape)};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    return std::vector<Tensor>{Transposed(*in[0], Permutation(c))};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const std::vector<int64_t> perm = Permutation(c);
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      Indices at(i.size());
      for (size_t d = 0; d < i.size(); ++d) at[static_cast<size_t>(perm[d])] = i[d];
      return l.input(0).At(at);
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const Shape shape = b.RandomShape(0, 5, 4);
    Attributes attributes;
    if (!shape.empty() && b.Int(0, 4) != 0) {
      std::vector<int64_t> perm(shape.size());
      std::iota(perm.begin(), perm.end(), 0);
      for (size_t d = perm.size(); d-- > 1;) std::swap(perm[d], perm[static_cast<size_t>(b.Int(0, static_cast<int64_t>(d)))]);
      attributes["perm"] = perm;
    }
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), shape))}, attributes);
  }

 private:
  static std::vector<int64_t> Permutation(const NodeContext& c) {
    std::vector<int64_t> reversed(c.input_shape(0).size());
    std::iota(reversed.rbegin(), reversed.rend(), 0);
    return c.node().Ints("perm", reversed);
  }
};

class BlockRearrange : public Op {
 public:
  OpKind kind(const NodeContext&) const override { return OpKind::kMovement; }

 protected:
  static absl::Status VerifyBlocks(const NodeContext& c) {
    HEDDLE_RETURN_IF_ERROR(ExpectRank(c, 0, 4, 4));
    return ExpectInt(c, "blocksize", 1, int64_t{1} << 15);
  }
  static int64_t Block(const NodeContext& c) { return c.node().Int("blocksize", 1); }
};

class DepthToSpace : public BlockRearrange {
 public:
  std::string_view name() const override { return "DepthToSpace"; }
  std::string_view doc() const override {
    return "input [N, C, H, W] of any type. Attributes blocksize b, mode: \"DCR\" (default, the block index is the outer part of the "
           "channel) or \"CRD\" (the inner part). [N, C/b², H·b, W·b]. ONNX DepthToSpace 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"blocksize", AttributeKind::kInt, true}, {"mode", AttributeKind::kString}}));
    HEDDLE_RETURN_IF_ERROR(ExpectString(c, "mode", {"DCR", "CRD"}));
    HEDDLE_RETURN_IF_ERROR(VerifyBlocks(c));
    if (c.input_shape(0)[1] % (Block(c) * Block(c)) == 0) return absl::OkStatus();
    return NodeError("E-OP-003", c.node(), fmt::format("{} channels do not divide by {}²", c.input_shape(0)[1], Block(c)));
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const Shape x = c.input_shape(0);
    const int64_t b = Block(c);
    return std::vector<ValueType>{ValueType(c.input_type(0).element, Shape{x[0], x[1] / (b * b), x[2] * b, x[3] * b})};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Shape x = in[0]->shape();
    const int64_t b = Block(c), depth = x[1] / (b * b);
    const Tensor y = IsDcr(c) ? Transposed(in[0]->Reshaped({x[0], b, b, depth, x[2], x[3]}), {0, 3, 4, 1, 5, 2})
                              : Transposed(in[0]->Reshaped({x[0], depth, b, b, x[2], x[3]}), {0, 1, 4, 2, 5, 3});
    return std::vector<Tensor>{y.Reshaped(c.output_shape())};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const int64_t b = Block(c), depth = c.output_shape()[1];
    const bool dcr = IsDcr(c);
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      const Expr block = loops::FloorMod(i[2], b) * b + loops::FloorMod(i[3], b);
      const Expr channel = dcr ? block * depth + i[1] : i[1] * (b * b) + block;
      return l.input(0)(i[0], channel, loops::FloorDiv(i[2], b), loops::FloorDiv(i[3], b));
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const int64_t block = b.Int(1, 3);
    Attributes attributes = {{"blocksize", block}};
    if (b.Coin()) attributes["mode"] = std::string(b.Coin() ? "DCR" : "CRD");
    const Shape shape = {b.Int(1, 2), block * block * b.Int(1, 3), b.Int(1, 4), b.Int(1, 4)};
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), shape, 0, 100))}, attributes);
  }

 private:
  static bool IsDcr(const NodeContext& c) { return c.node().String("mode", "DCR") == "DCR"; }
};

class SpaceToDepth : public BlockRearrange {
 public:
  std::string_view name() const override { return "SpaceToDepth"; }
  std::string_view doc() const override {
    return "input [N, C, H, W] of any type. Attribute blocksize b. [N, C·b², H/b, W/b], the block index the outer part of the channel. "
           "ONNX SpaceToDepth 13.";
  }
  absl::Status Verify(const NodeContext& c) const override {
    HEDDLE_RETURN_IF_ERROR(VerifySignature(c, 1, 1, {{"blocksize", AttributeKind::kInt, true}}));
    HEDDLE_RETURN_IF_ERROR(VerifyBlocks(c));
    const Shape x = c.input_shape(0);
    if (x[2] % Block(c) == 0 && x[3] % Block(c) == 0) return absl::OkStatus();
    return NodeError("E-OP-003", c.node(), fmt::format("{} does not divide into blocks of {}", ShapeText(x), Block(c)));
  }
  absl::StatusOr<std::vector<ValueType>> InferTypes(const NodeContext& c) const override {
    const Shape x = c.input_shape(0);
    const int64_t b = Block(c);
    return std::vector<ValueType>{ValueType(c.input_type(0).element, Shape{x[0], x[1] * b * b, x[2] / b, x[3] / b})};
  }
  absl::StatusOr<std::vector<Tensor>> Evaluate(const NodeContext& c, std::span<const Tensor* const> in) const override {
    const Shape x = in[0]->shape();
    const int64_t b = Block(c);
    const Tensor y = Transposed(in[0]->Reshaped({x[0], x[1], x[2] / b, b, x[3] / b, b}), {0, 3, 5, 1, 2, 4});
    return std::vector<Tensor>{y.Reshaped(c.output_shape())};
  }
  absl::Status Lower(const NodeContext& c, loops::OpLowering& l) const override {
    const int64_t b = Block(c), channels = c.input_shape(0)[1];
    l.Add(loops::Compute(l.output(), [&](const Indices& i) {
      const Expr block = loops::FloorDiv(i[1], channels);
      return l.input(0)(i[0], loops::FloorMod(i[1], channels), i[2] * b + loops::FloorDiv(block, b),
                        i[3] * b + loops::FloorMod(block, b));
    }));
    return absl::OkStatus();
  }
  std::optional<RandomCase> Sample(Random& random) const override {
    CaseBuilder b(random);
    const int64_t block = b.Int(1, 3);
    const Shape shape = {b.Int(1, 2), b.Int(1, 3), block * b.Int(1, 3), block * b.Int(1, 3)};
    return b.Finish(name(), {b.Input(b.RandomTensor(b.AnyType(), shape, 0, 100))}, {{"blocksize", block}});
  }
};

}  // namespace

void AddRearrange(OpList& ops) {
  ops.push_back(std::make_unique<Transpose>());
  ops.push_back(std::make_unique<DepthToSpace>());
  ops.push_back(std::make_unique<SpaceToDepth>());
}

}  // namespace heddle::ir
