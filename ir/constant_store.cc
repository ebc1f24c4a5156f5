// constants.bin: the magic "HDLCNST1", a count (u64), then for each tensor its element type (u8), rank (u8), extents
// (i64 each) and bytes. Little-endian. Sizes are checked against what the file still holds before anything is allocated.

#include "ir/constant_store.h"

#include <fstream>

#include "ir/sha256.h"

namespace heddle::ir {
namespace {

constexpr std::string_view kMagic = "HDLCNST1";
constexpr int kLastType = static_cast<int>(ElementType::kBool);

template <typename T>
void Put(std::ostream& out, T value) {
  out.write(reinterpret_cast<const char*>(&value), sizeof value);
}

absl::Status Damaged(const std::filesystem::path& path, std::string_view what) {
  return UserError("E-TEXT-021", fmt::format("constants file '{}': {}", path.string(), what),
                   "write the run directory again with heddle compile");
}

// Reads from a stream of known length.
class Reader {
 public:
  Reader(std::istream& in, uint64_t left) : in_(in), left_(left) {}
  uint64_t left() const { return left_; }
  bool Bytes(void* to, uint64_t count) {
    if (count > left_) return false;
    left_ -= count;
    return static_cast<bool>(in_.read(static_cast<char*>(to), static_cast<std::streamsize>(count)));
  }
  template <typename T>
  bool Get(T& value) {
    return Bytes(&value, sizeof value);
  }

 private:
  std::istream& in_;
  uint64_t left_;
};

}  // namespace

std::string TensorDigest(const Tensor& tensor) {
  Sha256 hash;
  hash.Update(fmt::format("{}[{}]", ElementTypeName(tensor.type()), fmt::join(tensor.shape(), "x")));
  hash.Update({reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes())});
  return hash.HexDigest().substr(0, 16);
}

std::string ConstantStore::Add(std::shared_ptr<const Tensor> tensor) {
  std::string digest = TensorDigest(*tensor);
  auto [it, inserted] = tensors_.try_emplace(digest, tensor);
  if (!inserted && !(*it->second == *tensor)) return "";
  return digest;
}

std::shared_ptr<const Tensor> ConstantStore::Find(std::string_view digest) const {
  auto it = tensors_.find(digest);
  return it == tensors_.end() ? nullptr : it->second;
}

absl::Status ConstantStore::Save(const std::filesystem::path& path) const {
  std::filesystem::path temporary = path;
  temporary += ".tmp";
  {
    std::ofstream out(temporary, std::ios::binary);
    out << kMagic;
    Put<uint64_t>(out, tensors_.size());
    for (const auto& [digest, tensor] : tensors_) {
      Put<uint8_t>(out, static_cast<uint8_t>(tensor->type()));
      Put<uint8_t>(out, static_cast<uint8_t>(tensor->rank()));
      for (int64_t extent : tensor->shape()) Put<int64_t>(out, extent);
      out.write(reinterpret_cast<const char*>(tensor->data()), tensor->bytes());
    }
    out.flush();
    if (!out) return UserError("E-TEXT-020", fmt::format("'{}' cannot be written", path.string()), "check the folder and the free space");
  }
  std::error_code error;
  std::filesystem::rename(temporary, path, error);
  if (error) return UserError("E-TEXT-020", fmt::format("'{}' cannot be written: {}", path.string(), error.message()));
  return absl::OkStatus();
}

absl::StatusOr<ConstantStore> ConstantStore::Load(const std::filesystem::path& path) {
  std::error_code error;
  const auto size = std::filesystem::file_size(path, error);
  std::ifstream in(path, std::ios::binary);
  if (error || !in) return Damaged(path, "cannot be read");
  Reader reader(in, size);
  std::string magic(kMagic.size(), '\0');
  uint64_t count = 0;
  if (!reader.Bytes(magic.data(), magic.size()) || magic != kMagic) return Damaged(path, "does not begin with HDLCNST1");
  if (!reader.Get(count)) return Damaged(path, "ends too early");
  ConstantStore store;
  for (uint64_t i = 0; i < count; ++i) {
    uint8_t type = 0, rank = 0;
    if (!reader.Get(type) || !reader.Get(rank)) return Damaged(path, "ends too early");
    if (type > kLastType) return Damaged(path, fmt::format("has an unknown element type {}", type));
    Shape shape(rank);
    for (int64_t& extent : shape) {
      if (!reader.Get(extent)) return Damaged(path, "ends too early");
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t elements, CheckedElementCount(shape));
    if (static_cast<uint64_t>(elements * ElementBytes(static_cast<ElementType>(type))) > reader.left()) {
      return Damaged(path, "ends too early");
    }
    auto tensor = std::make_shared<Tensor>(static_cast<ElementType>(type), std::move(shape));
    if (!reader.Bytes(tensor->data(), static_cast<uint64_t>(tensor->bytes()))) return Damaged(path, "ends too early");
    if (type == kLastType) {
      const auto* raw = reinterpret_cast<const uint8_t*>(tensor->data());
      for (int64_t b = 0; b < tensor->bytes(); ++b) {
        if (raw[b] > 1) return Damaged(path, "holds a bool that is neither 0 nor 1");
      }
    }
    store.Add(std::move(tensor));
  }
  if (store.size() != count || reader.left() != 0) return Damaged(path, "has duplicates or trailing bytes");
  return store;
}

}  // namespace heddle::ir
