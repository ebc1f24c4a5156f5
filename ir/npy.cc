// .npy: the magic, a version, the length of a header, the header (a Python dict literal), then the elements.

#include <algorithm>
#include <charconv>

#include "ir/npz.h"

namespace heddle::ir {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxHeaderBytes = 65536;
constexpr int64_t kMaxElements = int64_t{1} << 40;

absl::Status NotNpy(std::string_view what) { return UserError("E-INPUT-101", fmt::format("not an .npy file: {}", what)); }

struct Header {
  std::string descr;
  bool fortran_order = false;
  Shape shape;
};

// The dict literal that numpy writes: three keys, a string, a bool and a tuple of ints.
class HeaderParser {
 public:
  explicit HeaderParser(std::string_view text) : text_(text) {}

  absl::StatusOr<Header> Parse() {
    Header header;
    int keys = 0;
    if (!Accept('{')) return NotNpy("the header is not a dict");
    while (!Accept('}')) {
      if (keys > 0 && !Accept(',')) return NotNpy("',' is missing in the header");
      if (Accept('}')) break;
      std::string key;
      if (!String(key) || !Accept(':')) return NotNpy("a key is missing in the header");
      const bool good = key == "descr" ? String(header.descr) : key == "fortran_order" ? Bool(header.fortran_order)
                      : key == "shape" ? Tuple(header.shape) : false;
      if (!good) return NotNpy(fmt::format("the header's '{}' is not understood", key));
      ++keys;
    }
    if (keys != 3 || header.descr.empty()) return NotNpy("the header lacks descr, fortran_order or shape");
    return header;
  }

 private:
  void Skip() {
    while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t')) ++pos_;
  }
  bool Accept(char c) {
    Skip();
    if (pos_ >= text_.size() || text_[pos_] != c) return false;
    ++pos_;
    return true;
  }
  bool String(std::string& out) {
    Skip();
    if (pos_ >= text_.size() || (text_[pos_] != '\'' && text_[pos_] != '"')) return false;
    const size_t end = text_.find(text_[pos_], pos_ + 1);
    if (end == std::string_view::npos) return false;
    out = text_.substr(pos_ + 1, end - pos_ - 1);
    pos_ = end + 1;
    return true;
  }
  bool Bool(bool& out) {
    Skip();
    for (const auto& [word, value] : {std::pair<std::string_view, bool>{"True", true}, {"False", false}}) {
      if (!text_.substr(pos_).starts_with(word)) continue;
      pos_ += word.size();
      out = value;
      return true;
    }
    return false;
  }
  bool Tuple(Shape& out) {
    if (!Accept('(')) return false;
    while (!Accept(')')) {
      if (!out.empty() && !Accept(',')) return false;
      if (Accept(')')) break;
      Skip();
      int64_t extent = 0;
      auto [end, error] = std::from_chars(text_.data() + pos_, text_.data() + text_.size(), extent);
      if (error != std::errc() || extent < 0 || out.size() >= 64) return false;
      pos_ = static_cast<size_t>(end - text_.data());
      Accept('L');  // Python 2's long
      out.push_back(extent);
    }
    return true;
  }

  std::string_view text_;
  size_t pos_ = 0;
};

struct Code {
  ElementType type;
  std::string_view code;
};
constexpr Code kCodes[] = {{ElementType::kFloat32, "f4"}, {ElementType::kFloat64, "f8"}, {ElementType::kInt8, "i1"},
                           {ElementType::kUint8, "u1"},   {ElementType::kInt16, "i2"},   {ElementType::kUint16, "u2"},
                           {ElementType::kInt32, "i4"},   {ElementType::kUint32, "u4"},  {ElementType::kInt64, "i8"},
                           {ElementType::kUint64, "u8"},  {ElementType::kBool, "b1"}};

void SwapBytes(Tensor& tensor) {
  const int64_t size = ElementBytes(tensor.type());
  for (int64_t i = 0; i < tensor.elements(); ++i) std::reverse(tensor.data() + i * size, tensor.data() + (i + 1) * size);
}

// From first index fastest to last index fastest.
Tensor FromFortran(const Tensor& fortran) {
  const Shape& shape = fortran.shape();
  const auto size = static_cast<size_t>(ElementBytes(fortran.type()));
  Tensor result(fortran.type(), shape);
  std::vector<int64_t> index(shape.size(), 0), stride(shape.size(), 1);
  for (size_t d = 1; d < shape.size(); ++d) stride[d] = stride[d - 1] * shape[d - 1];
  int64_t from = 0;
  for (int64_t to = 0; to < result.elements(); ++to) {
    std::copy_n(fortran.data() + static_cast<size_t>(from) * size, size, result.data() + static_cast<size_t>(to) * size);
    for (size_t d = shape.size(); d-- > 0;) {
      from += stride[d];
      if (++index[d] < shape[d]) break;
      from -= stride[d] * shape[d];
      index[d] = 0;
    }
  }
  return result;
}

}  // namespace

absl::StatusOr<Tensor> ReadNpy(std::string_view bytes) {
  if (bytes.size() < 10 || !bytes.starts_with(kMagic)) return NotNpy("the magic is missing");
  const int version = bytes[6];
  if (version < 1 || version > 3) return NotNpy(fmt::format("version {}", version));
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t header_bytes = 0;
  if (bytes.size() < 8 + length_bytes) return NotNpy("it ends too early");
  for (size_t i = 0; i < length_bytes; ++i) header_bytes |= static_cast<size_t>(static_cast<uint8_t>(bytes[8 + i])) << (8 * i);
  const size_t data_at = 8 + length_bytes + header_bytes;
  if (header_bytes > kMaxHeaderBytes || data_at > bytes.size()) return NotNpy("the header ends too early or is too long");
  HEDDLE_ASSIGN_OR_RETURN(const Header header, HeaderParser(bytes.substr(8 + length_bytes, header_bytes)).Parse());

  const char order = header.descr[0];
  const auto* code = std::find_if(std::begin(kCodes), std::end(kCodes), [&](const Code& c) { return c.code == header.descr.substr(1); });
  if (code == std::end(kCodes) || (order != '<' && order != '>' && order != '|' && order != '=')) {
    return UserError("E-INPUT-102", fmt::format("element type '{}' is not supported", header.descr),
                     "use float32, float64, bool or integers of 8 to 64 bits");
  }
  auto count = CheckedElementCount(header.shape, kMaxElements);
  if (!count.ok()) return UserError("E-INPUT-103", std::string(count.status().message()));
  const std::string_view data = bytes.substr(data_at);
  if (static_cast<int64_t>(data.size()) != *count * ElementBytes(code->type)) {
    return UserError("E-INPUT-103", fmt::format("{} bytes of data where shape {} of {} needs {}", data.size(), ShapeText(header.shape),
                                              ElementTypeName(code->type), *count * ElementBytes(code->type)));
  }
  Tensor tensor(code->type, header.shape);
  std::copy_n(reinterpret_cast<const std::byte*>(data.data()), data.size(), tensor.data());
  if (order == '>') SwapBytes(tensor);
  if (code->type == ElementType::kBool) {
    for (int64_t i = 0; i < tensor.bytes(); ++i) tensor.data()[i] = std::byte{tensor.data()[i] != std::byte{0}};
  }
  return header.fortran_order && tensor.rank() > 1 ? FromFortran(tensor) : tensor;
}

std::string WriteNpy(const Tensor& tensor) {
  const auto* code = std::find_if(std::begin(kCodes), std::end(kCodes), [&](const Code& c) { return c.type == tensor.type(); });
  std::string header = fmt::format("{{'descr': '{}{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   ElementBytes(tensor.type()) == 1 ? '|' : '<', code->code, fmt::join(tensor.shape(), ", "),
                                   tensor.rank() == 1 ? "," : "");
  // Magic, version and length take 10 bytes; the data begins at a multiple of 64, after a line end.
  header.append((64 - (10 + header.size() + 1) % 64) % 64, ' ');
  header += '\n';
  std::string out(kMagic);
  out += {'\x01', '\x00', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  out += header;
  out.append(reinterpret_cast<const char*>(tensor.data()), static_cast<size_t>(tensor.bytes()));
  return out;
}

}  // namespace heddle::ir
