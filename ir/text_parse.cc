// Reads the textual IR. The text may come from a stranger: nothing is allocated by a number in it before the text itself
// has been seen to hold as much, nesting is bounded, and every error names its line and column.

#include <charconv>

#include "ir/text.h"
#include "ir/text_names.h"

namespace heddle::ir {
namespace {

constexpr int kMaxDepth = 16;
constexpr size_t kMaxRank = 64;
constexpr int64_t kMaxElements = int64_t{1} << 40;

class Parser {
 public:
  Parser(std::string_view text, const ParseOptions& options) : text_(text), options_(options) {}

  absl::StatusOr<Graph> Whole() {
    auto graph = GraphText(0);
    if (!graph.ok()) return graph.status();
    Skip();
    if (pos_ != text_.size()) return Fail("E-TEXT-001", "expected the end of the text");
    return graph;
  }

 private:
  // --- characters

  absl::Status Fail(std::string_view code, std::string_view message) const {
    int line = 1, column = 1;
    for (size_t i = 0; i < token_ && i < text_.size(); ++i) {
      column = text_[i] == '\n' ? 1 : column + 1;
      line += text_[i] == '\n';
    }
    return UserError(code, fmt::format("line {}, column {}: {}", line, column, message));
  }

  char Peek() const { return pos_ < text_.size() ? text_[pos_] : '\0'; }

  // To the next token, past white space and comments.
  void Skip() {
    for (;;) {
      while (pos_ < text_.size() && (text_[pos_] == ' ' || text_[pos_] == '\n' || text_[pos_] == '\t' || text_[pos_] == '\r')) ++pos_;
      if (!text_.substr(pos_).starts_with("//")) break;
      while (pos_ < text_.size() && text_[pos_] != '\n') ++pos_;
    }
    token_ = pos_;
  }

  bool Accept(std::string_view token) {
    Skip();
    if (!text_.substr(pos_).starts_with(token)) return false;
    pos_ += token.size();
    return true;
  }

  // Accept for words: the next character does not continue it.
  bool AcceptWord(std::string_view word) {
    Skip();
    if (!text_.substr(pos_).starts_with(word)) return false;
    if (pos_ + word.size() < text_.size() && IsNameCharacter(text_[pos_ + word.size()])) return false;
    pos_ += word.size();
    return true;
  }

  absl::Status Expect(std::string_view token) {
    if (Accept(token)) return absl::OkStatus();
    return Fail("E-TEXT-001", fmt::format("expected '{}'", token));
  }

  // --- words and numbers

  std::string_view Span(bool (*accepts)(char)) {
    const size_t begin = pos_;
    while (pos_ < text_.size() && accepts(text_[pos_])) ++pos_;
    return text_.substr(begin, pos_ - begin);
  }

  absl::StatusOr<std::string> QuotedString() {
    if (Peek() != '"') return Fail("E-TEXT-001", "expected a quoted string");
    ++pos_;
    std::string result;
    while (pos_ < text_.size() && text_[pos_] != '"') {
      char c = text_[pos_++];
      if (c == '\n') return Fail("E-TEXT-001", "a string ends on its own line");
      if (c == '\\') {
        const char escape = Peek();
        ++pos_;
        if (escape == 'x') {
          unsigned value = 0;
          const std::string_view digits = text_.substr(std::min(pos_, text_.size()), 2);
          auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
          if (digits.size() != 2 || error != std::errc() || end != digits.data() + 2) {
            return Fail("E-TEXT-001", "\\x takes two hexadecimal digits");
          }
          pos_ += 2;
          c = static_cast<char>(value);
        } else if (escape == 'n' || escape == 't' || escape == 'r') {
          c = escape == 'n' ? '\n' : escape == 't' ? '\t' : '\r';
        } else if (escape == '"' || escape == '\\') {
          c = escape;
        } else {
          return Fail("E-TEXT-001", "unknown escape in a string");
        }
      }
      result += c;
    }
    if (pos_ >= text_.size()) return Fail("E-TEXT-001", "a string without its closing quote");
    ++pos_;
    return result;
  }

  absl::StatusOr<std::string> NameText() {
    if (Peek() == '"') return QuotedString();
    const std::string_view name = Span(IsNameCharacter);
    if (name.empty()) return Fail("E-TEXT-001", "expected a name");
    return std::string(name);
  }

  absl::StatusOr<std::string> IdentifierText() {
    Skip();
    if (Peek() == '"') return QuotedString();
    const std::string_view name = Span([](char c) { return IsNameCharacter(c) && c != '.' && c != '/' && c != '$' && c != '-'; });
    if (!IsIdentifier(name)) return Fail("E-TEXT-001", "expected an identifier");
    return std::string(name);
  }

  // "%name", just read up to the '%'.
  absl::StatusOr<std::string> ValueName() {
    HEDDLE_RETURN_IF_ERROR(Expect("%"));
    return NameText();
  }

  // The characters of one number, inf and nan included.
  std::string_view NumberText() {
    Skip();
    return Span([](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '.' || c == '-' || c == '+'; });
  }

  template <typename T>
  absl::StatusOr<T> Number(std::string_view digits) {
    T value{};
    auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (digits.empty() || error != std::errc() || end != digits.data() + digits.size()) {
      return Fail("E-TEXT-003", fmt::format("'{}' is not a number in range", digits));
    }
    return value;
  }

  absl::StatusOr<int64_t> Integer() {
    Skip();
    return Number<int64_t>(Span([](char c) { return (c >= '0' && c <= '9') || c == '-'; }));
  }

  // --- types and constants

  absl::StatusOr<Dim> DimText() {
    if (Peek() != '?') {
      const std::string_view digits = Span([](char c) { return c >= '0' && c <= '9'; });
      HEDDLE_ASSIGN_OR_RETURN(const int64_t extent, Number<int64_t>(digits));
      return Dim(extent);
    }
    ++pos_;
    std::string symbol;
    if (Peek() == '"') {
      HEDDLE_ASSIGN_OR_RETURN(symbol, QuotedString());
    } else {
      symbol = Span([](char c) { return c != 'x' && IsNameCharacter(c); });
    }
    if (symbol.empty()) return Fail("E-TEXT-001", "expected the name of a dimension");
    return Dim(symbol);
  }

  absl::StatusOr<Quantisation> QuantisationText() {
    Quantisation q;
    if (Accept("axis=")) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t axis, Integer());
      if (axis < -1 || axis > 63) return Fail("E-TEXT-003", "the axis of a quantisation is -1 to 63");
      q.axis = static_cast<int>(axis);
    }
    while (!Accept(")")) {
      HEDDLE_ASSIGN_OR_RETURN(const float scale, Number<float>(NumberText()));
      HEDDLE_RETURN_IF_ERROR(Expect(":"));
      HEDDLE_ASSIGN_OR_RETURN(const int64_t zero_point, Integer());
      q.scale.push_back(scale);
      q.zero_point.push_back(zero_point);
    }
    return q;
  }

  absl::StatusOr<ValueType> TypeText() {
    HEDDLE_ASSIGN_OR_RETURN(const std::string element, IdentifierText());
    const auto type = ParseElementType(element);
    if (!type) return Fail("E-TEXT-003", fmt::format("unknown element type '{}'", element));
    ValueType result;
    result.element = *type;
    HEDDLE_RETURN_IF_ERROR(Expect("["));
    while (!Accept("]")) {
      if (!result.shape.empty()) HEDDLE_RETURN_IF_ERROR(Expect("x"));
      HEDDLE_ASSIGN_OR_RETURN(Dim dim, DimText());
      result.shape.push_back(std::move(dim));
      if (result.shape.size() > kMaxRank) return Fail("E-TEXT-003", fmt::format("more than {} dimensions", kMaxRank));
    }
    if (result.is_static()) {
      auto count = CheckedElementCount(result.static_shape(), kMaxElements);
      if (!count.ok()) return Fail("E-TEXT-003", std::string(count.status().message()));
    }
    if (Accept("q(")) {
      HEDDLE_ASSIGN_OR_RETURN(result.quantisation, QuantisationText());
    }
    return result;
  }

  absl::Status Element(Tensor& tensor, int64_t i, std::string_view digits) {
    const auto index = static_cast<size_t>(i);
    switch (tensor.type()) {
      case ElementType::kFloat32: {
        HEDDLE_ASSIGN_OR_RETURN(tensor.as<float>()[index], Number<float>(digits));
        return absl::OkStatus();
      }
      case ElementType::kFloat64: {
        HEDDLE_ASSIGN_OR_RETURN(tensor.as<double>()[index], Number<double>(digits));
        return absl::OkStatus();
      }
      case ElementType::kUint64: {
        HEDDLE_ASSIGN_OR_RETURN(tensor.as<uint64_t>()[index], Number<uint64_t>(digits));
        return absl::OkStatus();
      }
      default: break;
    }
    HEDDLE_ASSIGN_OR_RETURN(const int64_t value, Number<int64_t>(digits));
    if (tensor.type() == ElementType::kBool && value != 0 && value != 1) return Fail("E-TEXT-003", "a bool is 0 or 1");
    tensor.set_int(i, value);
    if (tensor.at_int(i) != value) {
      return Fail("E-TEXT-003", fmt::format("{} does not fit {}", value, ElementTypeName(tensor.type())));
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::shared_ptr<const Tensor>> ValuesConstant(const ValueType& type) {
    std::vector<std::string_view> values;
    while (!Accept("]")) {
      if (!values.empty()) HEDDLE_RETURN_IF_ERROR(Expect(","));
      values.push_back(NumberText());
      if (values.back().empty()) return Fail("E-TEXT-001", "expected a number or ']'");
    }
    if (static_cast<int64_t>(values.size()) != type.elements()) {
      return Fail("E-TEXT-003", fmt::format("{} values where the type has {}", values.size(), type.elements()));
    }
    auto tensor = std::make_shared<Tensor>(type.element, type.static_shape());
    for (size_t i = 0; i < values.size(); ++i) HEDDLE_RETURN_IF_ERROR(Element(*tensor, static_cast<int64_t>(i), values[i]));
    return tensor;
  }

  absl::StatusOr<std::shared_ptr<const Tensor>> HexConstant(const ValueType& type) {
    const std::string_view digits = Span([](char c) { return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'); });
    if (static_cast<int64_t>(digits.size() / 2) != type.bytes() || digits.size() % 2 != 0) {
      return Fail("E-TEXT-003", fmt::format("{} hexadecimal digits where the type has {} bytes", digits.size(), type.bytes()));
    }
    auto tensor = std::make_shared<Tensor>(type.element, type.static_shape());
    auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
    for (size_t i = 0; i < digits.size() / 2; ++i) {
      const int byte = digit(digits[2 * i]) * 16 + digit(digits[2 * i + 1]);
      if (type.element == ElementType::kBool && byte > 1) return Fail("E-TEXT-003", "a bool is 0 or 1");
      tensor->data()[i] = static_cast<std::byte>(byte);
    }
    return tensor;
  }

  absl::StatusOr<std::shared_ptr<const Tensor>> Constant(const ValueType& type) {
    if (!type.is_static()) return Fail("E-TEXT-003", "a constant needs known dimensions");
    if (Accept("[")) return ValuesConstant(type);
    if (Accept("hex:")) return HexConstant(type);
    if (!Accept("ref:")) return Fail("E-TEXT-001", "expected a constant: [values], hex:… or ref:…");
    const std::string_view digest = Span(IsNameCharacter);
    auto tensor = options_.store ? options_.store->Find(digest) : nullptr;
    if (!tensor) {
      return Fail("E-TEXT-005", fmt::format("constant ref:{} is not at hand (read the text together with its constants.bin)", digest));
    }
    if (tensor->type() != type.element || tensor->shape() != type.static_shape()) {
      return Fail("E-TEXT-003", fmt::format("constant ref:{} has another type", digest));
    }
    return tensor;
  }

  // --- attributes

  absl::StatusOr<Attribute> NumberAttribute() {
    const std::string_view digits = NumberText();
    if (digits.find_first_of(".en") == std::string_view::npos) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t value, Number<int64_t>(digits));
      return Attribute(value);
    }
    HEDDLE_ASSIGN_OR_RETURN(const double value, Number<double>(digits));
    return Attribute(value);
  }

  absl::StatusOr<std::vector<std::string>> Strings() {
    std::vector<std::string> values;
    while (!Accept("]")) {
      if (!values.empty()) HEDDLE_RETURN_IF_ERROR(Expect(","));
      Skip();
      HEDDLE_ASSIGN_OR_RETURN(std::string value, QuotedString());
      values.push_back(std::move(value));
    }
    return values;
  }

  // After the '['.
  absl::StatusOr<Attribute> ListAttribute() {
    Skip();
    if (Peek() == '"') {
      HEDDLE_ASSIGN_OR_RETURN(auto strings, Strings());
      return Attribute(std::move(strings));
    }
    std::vector<int64_t> ints;
    std::vector<double> floats;
    while (!Accept("]")) {
      if (!ints.empty() || !floats.empty()) HEDDLE_RETURN_IF_ERROR(Expect(","));
      HEDDLE_ASSIGN_OR_RETURN(const Attribute value, NumberAttribute());
      if (const auto* i = std::get_if<int64_t>(&value)) ints.push_back(*i);
      if (const auto* f = std::get_if<double>(&value)) floats.push_back(*f);
      if (!ints.empty() && !floats.empty()) return Fail("E-TEXT-003", "a list holds integers or floats, not both");
    }
    return floats.empty() ? Attribute(std::move(ints)) : Attribute(std::move(floats));
  }

  absl::StatusOr<Attribute> AttributeText(int depth) {
    Skip();
    if (Peek() == '"') {
      HEDDLE_ASSIGN_OR_RETURN(std::string value, QuotedString());
      return Attribute(std::move(value));
    }
    if (Accept("floats[]")) return Attribute(std::vector<double>());
    if (Accept("strings[]")) return Attribute(std::vector<std::string>());
    if (Accept("[")) return ListAttribute();
    if (AcceptWord("tensor")) {
      HEDDLE_ASSIGN_OR_RETURN(const ValueType type, TypeText());
      HEDDLE_RETURN_IF_ERROR(Expect("="));
      HEDDLE_ASSIGN_OR_RETURN(auto tensor, Constant(type));
      return Attribute(std::move(tensor));
    }
    if (text_.substr(pos_).starts_with("graph")) {
      HEDDLE_ASSIGN_OR_RETURN(Graph graph, GraphText(depth + 1));
      return Attribute(std::make_shared<const Graph>(std::move(graph)));
    }
    return NumberAttribute();
  }

  absl::StatusOr<Attributes> AttributesText(int depth) {
    Attributes attributes;
    if (!Accept("{")) return attributes;
    while (!Accept("}")) {
      if (!attributes.empty()) HEDDLE_RETURN_IF_ERROR(Expect(","));
      HEDDLE_ASSIGN_OR_RETURN(std::string key, IdentifierText());
      if (attributes.contains(key)) return Fail("E-TEXT-002", fmt::format("attribute '{}' is given twice", key));
      HEDDLE_RETURN_IF_ERROR(Expect("="));
      HEDDLE_ASSIGN_OR_RETURN(Attribute value, AttributeText(depth));
      attributes.emplace(std::move(key), std::move(value));
    }
    return attributes;
  }

  // --- lines

  // "%name : type" of something new.
  absl::StatusOr<std::pair<std::string, ValueType>> Definition(const Graph& graph) {
    HEDDLE_ASSIGN_OR_RETURN(std::string name, ValueName());
    if (name.empty() || graph.FindValue(name)) return Fail("E-TEXT-002", fmt::format("value '{}' is empty or defined twice", name));
    HEDDLE_RETURN_IF_ERROR(Expect(":"));
    HEDDLE_ASSIGN_OR_RETURN(ValueType type, TypeText());
    return std::pair(std::move(name), std::move(type));
  }

  absl::StatusOr<ValueId> ReferenceText(const Graph& graph) {
    if (AcceptWord("_")) return kNoValue;
    HEDDLE_ASSIGN_OR_RETURN(const std::string name, ValueName());
    const auto id = graph.FindValue(name);
    if (!id) return Fail("E-TEXT-002", fmt::format("value '{}' is not defined above its use", name));
    return *id;
  }

  absl::Status InputLine(Graph& graph) {
    HEDDLE_ASSIGN_OR_RETURN(auto definition, Definition(graph));
    const ValueType type = definition.second;
    const ValueId id = graph.AddInput(std::move(definition.first), std::move(definition.second));
    if (!Accept("=")) return absl::OkStatus();
    HEDDLE_ASSIGN_OR_RETURN(auto tensor, Constant(type));
    graph.MakeConstant(id, std::move(tensor));
    return absl::OkStatus();
  }

  absl::Status ConstantLine(Graph& graph) {
    HEDDLE_ASSIGN_OR_RETURN(auto definition, Definition(graph));
    HEDDLE_RETURN_IF_ERROR(Expect("="));
    HEDDLE_ASSIGN_OR_RETURN(auto tensor, Constant(definition.second));
    graph.AddConstant(std::move(definition.first), std::move(tensor), std::move(definition.second.quantisation));
    return absl::OkStatus();
  }

  absl::Status NodeTail(Node& node) {
    if (Accept("group=")) {
      HEDDLE_ASSIGN_OR_RETURN(const int64_t group, Integer());
      if (group < -1 || group > INT32_MAX) return Fail("E-TEXT-003", "a group is -1 to 2147483647");
      node.fusion_group = static_cast<int>(group);
    }
    node.source_names = {node.name};
    if (!AcceptWord("from")) return absl::OkStatus();
    HEDDLE_RETURN_IF_ERROR(Expect("["));
    HEDDLE_ASSIGN_OR_RETURN(node.source_names, Strings());
    return absl::OkStatus();
  }

  absl::Status NodeLine(Graph& graph, int depth) {
    std::vector<std::string> names;
    std::vector<ValueType> types;
    while (!Accept("=")) {
      if (!names.empty()) HEDDLE_RETURN_IF_ERROR(Expect(","));
      HEDDLE_ASSIGN_OR_RETURN(auto definition, Definition(graph));
      for (const std::string& other : names) {
        if (other == definition.first) return Fail("E-TEXT-002", fmt::format("value '{}' is defined twice", other));
      }
      names.push_back(std::move(definition.first));
      types.push_back(std::move(definition.second));
    }
    HEDDLE_ASSIGN_OR_RETURN(std::string op, IdentifierText());
    HEDDLE_RETURN_IF_ERROR(Expect("("));
    std::vector<ValueId> inputs;
    while (!Accept(")")) {
      if (!inputs.empty()) HEDDLE_RETURN_IF_ERROR(Expect(","));
      HEDDLE_ASSIGN_OR_RETURN(const ValueId input, ReferenceText(graph));
      inputs.push_back(input);
    }
    HEDDLE_ASSIGN_OR_RETURN(Attributes attributes, AttributesText(depth));
    HEDDLE_RETURN_IF_ERROR(Expect("@"));
    HEDDLE_ASSIGN_OR_RETURN(std::string name, NameText());
    if (name.empty() || graph.FindNode(name)) return Fail("E-TEXT-002", fmt::format("node '{}' is empty or defined twice", name));
    const NodeId id = graph.AddNode(std::move(op), std::move(name), std::move(inputs), std::move(names), std::move(attributes));
    for (size_t i = 0; i < types.size(); ++i) graph.set_type(graph.node(id).outputs[i], std::move(types[i]));
    return NodeTail(graph.node(id));
  }

  absl::StatusOr<Graph> GraphText(int depth) {
    if (depth > kMaxDepth) return Fail("E-TEXT-004", fmt::format("graphs nested deeper than {}", kMaxDepth));
    if (!AcceptWord("graph")) return Fail("E-TEXT-001", "expected 'graph'");
    Skip();
    HEDDLE_ASSIGN_OR_RETURN(std::string name, QuotedString());
    Graph graph(std::move(name));
    HEDDLE_RETURN_IF_ERROR(Expect("{"));
    while (!Accept("}")) {
      if (AcceptWord("input")) {
        HEDDLE_RETURN_IF_ERROR(InputLine(graph));
      } else if (AcceptWord("const")) {
        HEDDLE_RETURN_IF_ERROR(ConstantLine(graph));
      } else if (AcceptWord("output")) {
        HEDDLE_ASSIGN_OR_RETURN(const ValueId id, ReferenceText(graph));
        if (id == kNoValue) return Fail("E-TEXT-002", "an output is a value");
        graph.MarkOutput(id);
      } else {
        HEDDLE_RETURN_IF_ERROR(NodeLine(graph, depth));
      }
    }
    return graph;
  }

  std::string_view text_;
  const ParseOptions& options_;
  size_t pos_ = 0;
  size_t token_ = 0;  // where the token last looked at begins, for messages
};

}  // namespace

absl::StatusOr<Graph> ParseGraph(std::string_view text, const ParseOptions& options) {
  return Parser(text, options).Whole();
}

}  // namespace heddle::ir
