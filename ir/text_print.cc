// Prints a graph as text. Floats are printed by fmt's shortest form that reads back as the same number.

#include <algorithm>
#include <cmath>

#include "ir/check.h"
#include "ir/text.h"
#include "ir/text_names.h"

namespace heddle::ir {
namespace {

bool IsUtf8(std::string_view s) {
  for (size_t i = 0; i < s.size();) {
    const auto c = static_cast<unsigned char>(s[i]);
    const int length = c < 0x80 ? 1 : c >= 0xc2 && c < 0xe0 ? 2 : c >= 0xe0 && c < 0xf0 ? 3 : c >= 0xf0 && c < 0xf5 ? 4 : 0;
    if (length == 0 || i + static_cast<size_t>(length) > s.size()) return false;
    for (int k = 1; k < length; ++k) {
      if ((static_cast<unsigned char>(s[i + static_cast<size_t>(k)]) & 0xc0) != 0x80) return false;
    }
    i += static_cast<size_t>(length);
  }
  return true;
}

std::string Quoted(std::string_view s) {
  const bool keep_high_bytes = IsUtf8(s);
  std::string out = "\"";
  for (char c : s) {
    const auto byte = static_cast<unsigned char>(c);
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\t': out += "\\t"; break;
      case '\r': out += "\\r"; break;
      default:
        if (byte < 0x20 || byte == 0x7f || (byte >= 0x80 && !keep_high_bytes)) {
          out += fmt::format("\\x{:02x}", byte);
        } else {
          out += c;
        }
    }
  }
  return out + "\"";
}

std::string Name(std::string_view name) { return IsBareName(name) ? std::string(name) : Quoted(name); }
std::string Identifier(std::string_view name) { return IsIdentifier(name) ? std::string(name) : Quoted(name); }

std::string FloatText(double value) {
  std::string text = std::isnan(value) ? "nan" : fmt::format("{}", value);
  const bool integral = text.find_first_of(".en") == std::string::npos;  // 'n' of nan and inf
  return integral ? text + ".0" : text;
}

std::string Type(const ValueType& type) {
  std::string dims;
  for (const Dim& dim : type.shape) {
    if (!dims.empty()) dims += "x";
    if (dim.is_constant()) {
      dims += std::to_string(dim.extent);
    } else {
      dims += "?" + (IsBareSymbol(dim.symbol) ? dim.symbol : Quoted(dim.symbol));
    }
  }
  std::string text = fmt::format("{}[{}]", ElementTypeName(type.element), dims);
  if (!type.quantisation) return text;
  const Quantisation& q = *type.quantisation;
  text += " q(";
  if (q.axis != -1) text += fmt::format("axis={} ", q.axis);
  for (size_t i = 0; i < q.scale.size(); ++i) {
    text += fmt::format("{}{}:{}", i ? " " : "", q.scale[i], i < q.zero_point.size() ? q.zero_point[i] : 0);
  }
  return text + ")";
}

// Whether values read back to the same bytes: a NaN has bits that its text does not show.
bool TextKeepsBits(const Tensor& tensor) {
  if (!IsFloat(tensor.type())) return true;
  for (int64_t i = 0; i < tensor.elements(); ++i) {
    if (std::isnan(tensor.at_double(i))) return false;
  }
  return true;
}

std::string ElementText(const Tensor& tensor, int64_t i) {
  switch (tensor.type()) {
    case ElementType::kFloat32: return fmt::format("{}", tensor.as<float>()[static_cast<size_t>(i)]);
    case ElementType::kFloat64: return fmt::format("{}", tensor.as<double>()[static_cast<size_t>(i)]);
    case ElementType::kUint64: return fmt::format("{}", tensor.as<uint64_t>()[static_cast<size_t>(i)]);
    default: return fmt::format("{}", tensor.at_int(i));
  }
}

std::string HexText(const Tensor& tensor) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text = "hex:";
  text.reserve(4 + 2 * static_cast<size_t>(tensor.bytes()));
  for (int64_t i = 0; i < tensor.bytes(); ++i) {
    const auto byte = static_cast<unsigned char>(tensor.data()[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

class Printer {
 public:
  explicit Printer(const PrintOptions& options) : options_(options) {}
  std::string Take() { return std::move(out_); }

  void Graph(const ir::Graph& graph, int indent) {
    out_ += "graph " + Quoted(graph.name()) + " {\n";
    const std::string margin(static_cast<size_t>(indent) + 2, ' ');
    for (ValueId id : graph.inputs()) {
      const Value& value = graph.value(id);
      out_ += fmt::format("{}input %{} : {}", margin, Name(value.name), Type(value.type));
      if (value.constant) out_ += " = " + Constant(value.constant);
      out_ += "\n";
    }
    for (ValueId id : graph.ValueIds()) {
      const Value& value = graph.value(id);
      if (!value.constant || std::count(graph.inputs().begin(), graph.inputs().end(), id) != 0) continue;
      out_ += fmt::format("{}const %{} : {} = {}\n", margin, Name(value.name), Type(value.type), Constant(value.constant));
    }
    auto order = graph.TopologicalOrder();
    for (NodeId id : order.ok() ? *order : graph.NodeIds()) NodeLine(graph, graph.node(id), indent + 2);
    for (ValueId id : graph.outputs()) out_ += fmt::format("{}output {}\n", margin, Reference(graph, id));
    out_ += std::string(static_cast<size_t>(indent), ' ') + "}";
  }

 private:
  static std::string Reference(const ir::Graph& graph, ValueId id) {
    return id == kNoValue ? "_" : "%" + Name(graph.value(id).name);
  }

  void NodeLine(const ir::Graph& graph, const Node& node, int indent) {
    out_ += std::string(static_cast<size_t>(indent), ' ');
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      const Value& value = graph.value(node.outputs[i]);
      out_ += fmt::format("{}%{} : {}", i ? ", " : "", Name(value.name), Type(value.type));
    }
    out_ += (node.outputs.empty() ? "= " : " = ") + Identifier(node.op) + "(";
    for (size_t i = 0; i < node.inputs.size(); ++i) out_ += (i ? ", " : "") + Reference(graph, node.inputs[i]);
    out_ += ")";
    if (!node.attributes.empty()) {
      out_ += " {";
      bool first = true;
      for (const auto& [key, attribute] : node.attributes) {
        out_ += (first ? "" : ", ") + Identifier(key) + " = ";
        AttributeValue(attribute, indent);
        first = false;
      }
      out_ += "}";
    }
    out_ += " @" + Name(node.name);
    if (node.fusion_group != -1) out_ += fmt::format(" group={}", node.fusion_group);
    if (node.source_names != std::vector<std::string>{node.name}) {
      out_ += " from [";
      for (size_t i = 0; i < node.source_names.size(); ++i) out_ += (i ? ", " : "") + Quoted(node.source_names[i]);
      out_ += "]";
    }
    out_ += "\n";
  }

  template <typename T, typename F>
  void List(std::string_view empty, const std::vector<T>& values, F text) {
    if (values.empty()) {
      out_ += empty;
      return;
    }
    out_ += "[";
    for (size_t i = 0; i < values.size(); ++i) out_ += (i ? ", " : "") + text(values[i]);
    out_ += "]";
  }

  void AttributeValue(const Attribute& attribute, int indent) {
    if (const auto* i = std::get_if<int64_t>(&attribute)) {
      out_ += std::to_string(*i);
    } else if (const auto* f = std::get_if<double>(&attribute)) {
      out_ += FloatText(*f);
    } else if (const auto* s = std::get_if<std::string>(&attribute)) {
      out_ += Quoted(*s);
    } else if (const auto* ints = std::get_if<std::vector<int64_t>>(&attribute)) {
      List("[]", *ints, [](int64_t v) { return std::to_string(v); });
    } else if (const auto* floats = std::get_if<std::vector<double>>(&attribute)) {
      List("floats[]", *floats, FloatText);
    } else if (const auto* strings = std::get_if<std::vector<std::string>>(&attribute)) {
      List("strings[]", *strings, Quoted);
    } else if (const auto* tensor = std::get_if<std::shared_ptr<const Tensor>>(&attribute)) {
      out_ += fmt::format("tensor {} = {}", Type(ValueType((*tensor)->type(), (*tensor)->shape())), Constant(*tensor));
    } else {
      Graph(**std::get_if<std::shared_ptr<const ir::Graph>>(&attribute), indent);
    }
  }

  std::string Constant(const std::shared_ptr<const Tensor>& tensor) {
    if (tensor->elements() <= options_.inline_elements && TextKeepsBits(*tensor)) {
      std::string text = "[";
      for (int64_t i = 0; i < tensor->elements(); ++i) text += (i ? ", " : "") + ElementText(*tensor, i);
      return text + "]";
    }
    if (options_.form == ConstantForm::kReference) {
      const std::string digest = options_.store ? options_.store->Add(tensor) : TensorDigest(*tensor);
      if (!digest.empty()) return "ref:" + digest;
    }
    return HexText(*tensor);
  }

  const PrintOptions& options_;
  std::string out_;
};

using ValueNames = std::vector<std::string>;

ValueNames NamesOf(const Graph& graph, const std::vector<ValueId>& ids) {
  ValueNames names;
  for (ValueId id : ids) names.push_back(id == kNoValue ? "" : graph.value(id).name);
  return names;
}

}  // namespace

std::string PrintGraph(const Graph& graph, const PrintOptions& options) {
  Printer printer(options);
  printer.Graph(graph, 0);
  return printer.Take() + "\n";
}

// Equal text with every constant's bytes in it is equality of everything the text holds, and the text holds everything:
// the parser tests check that by parsing it back. Names and order are compared first because that is cheap.
bool StructurallyEqual(const Graph& a, const Graph& b) {
  if (NamesOf(a, a.inputs()) != NamesOf(b, b.inputs()) || NamesOf(a, a.outputs()) != NamesOf(b, b.outputs())) return false;
  const PrintOptions bytes{ConstantForm::kHex, nullptr, 0};
  return PrintGraph(a, bytes) == PrintGraph(b, bytes);
}

}  // namespace heddle::ir
