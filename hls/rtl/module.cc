// Collects a module's items as Verilog lines while it checks names, drivers and widths.

#include "hls/rtl/module.h"

#include <fmt/format.h>

#include <cctype>

#include "ir/check.h"

namespace heddle::hls::rtl {
namespace {

bool IsKeyword(const std::string& name) {
  static const std::set<std::string>* const keywords = new std::set<std::string>{
      "always", "and",    "assign", "begin",  "buf",    "case",   "default", "defparam", "disable",   "edge",  "else",
      "end",    "event",  "for",    "force",  "fork",   "if",     "initial", "inout",    "input",     "integer", "join",
      "large",  "macromodule", "module", "nand", "negedge", "nor", "not",    "or",       "output",    "parameter", "posedge",
      "real",   "reg",    "release", "repeat", "scalared", "signed", "small", "specify", "strength",  "supply0", "table",
      "task",   "time",   "tri",    "unsigned", "use",  "vectored", "wait",  "wand",     "while",     "wire",  "wor",
      "xnor",   "xor",    "bit",    "byte",   "char",   "class",  "cell",    "config",   "design",    "do",    "enum",
      "final",  "function", "generate", "genvar", "instance", "int", "interface", "library", "local", "logic", "medium",
      "new",    "package", "packed", "program", "property", "pull0", "pull1", "rand", "ref", "return", "sequence", "struct",
      "super",  "this",   "type",   "union",  "var",    "virtual", "void",   "with",     "within",
      "inside", "alias", "always_comb", "always_ff", "always_latch", "assert", "assume", "before", "bind", "bins", "binsof", "break", "chandle", "clocking", "const", "constraint", "context", "continue", "cover", "covergroup", "coverpoint", "cross", "dist", "expect", "export", "extends", "extern", "first_match", "foreach", "forkjoin", "iff", "ignore_bins", "illegal_bins", "import", "intersect", "join_any", "join_none", "longint", "matches", "modport", "null", "priority", "protected", "pure", "randc", "randcase", "randsequence", "shortint", "shortreal", "solve", "static", "string", "tagged", "throughout", "timeprecision", "timeunit", "typedef", "unique", "wait_order", "wildcard", "checker", "accept_on", "reject_on", "eventually", "global", "implies", "let", "nexttime", "restrict", "s_always", "strong", "sync_accept_on", "until", "unique0", "untyped", "weak", "soft", "nettype", "interconnect", "implements", "casex", "casez", "deassign", "endcase", "endfunction", "endgenerate", "endmodule", "endprimitive", "endspecify", "endtable", "endtask", "ifnone", "highz0", "highz1", "incdir", "include", "liblist", "localparam", "noshowcancelled", "notif0", "notif1", "bufif0", "bufif1", "cmos", "nmos", "pmos", "primitive", "pulldown", "pullup", "rcmos", "realtime", "rnmos", "rpmos", "rtran", "rtranif0", "rtranif1", "showcancelled", "specparam", "strong0", "strong1", "supply1", "tran", "tranif0", "tranif1", "tri0", "tri1", "triand", "trior", "trireg", "weak0", "weak1", "automatic"};
  return keywords->count(name) != 0;
}

std::string Range(int width) { return width == 1 ? "" : fmt::format("[{}:0] ", width - 1); }
std::string Note(const std::string& comment) { return comment.empty() ? "" : "  // " + comment; }

}  // namespace

int BitsFor(int64_t count) {
  int bits = 1;
  while ((int64_t{1} << bits) < count) ++bits;
  return bits;
}

Expr ReadMemory(const Memory& memory, const Expr& address) {
  HEDDLE_CHECK(address.width() == memory.address_bits, "address width of memory " + memory.name);
  return Expr(memory.width, fmt::format("{}[{}]", memory.name, address.text()), true);
}

void Block::Set(const Expr& target, const Expr& value) { SetSlice(target, 0, value); }

void Block::SetSlice(const Expr& target, int low, const Expr& value) {
  HEDDLE_CHECK(target.is_signal() && target.signal()->kind == SignalKind::kRegister, "not a register: " + target.text());
  HEDDLE_CHECK(low > 0 || value.width() <= target.width(), "too wide for " + target.text());
  bool known = false;
  for (const auto& signal : registers_) known = known || signal == target.signal();
  if (!known) registers_.push_back(target.signal());
  const bool whole = value.width() == target.width();
  Line((whole ? target.text() : Slice(target, low, value.width()).text()) + " <= " + value.text() + ";");
}

void Block::Write(const Memory& memory, const Expr& address, const Expr& value, int low) {
  HEDDLE_CHECK(address.width() == memory.address_bits, "address width of memory " + memory.name);
  HEDDLE_CHECK(low + value.width() <= memory.width, "data width of memory " + memory.name);
  const std::string part = value.width() == memory.width ? "" : fmt::format("[{}:{}]", low + value.width() - 1, low);
  Line(fmt::format("{}[{}]{} <= {};", memory.name, address.text(), part, value.text()));
}

void Block::Body(const std::function<void()>& body) {
  ++depth_;
  body();
  --depth_;
  Line("end");
}

void Block::If(const Expr& condition, const std::function<void()>& then) {
  HEDDLE_CHECK(condition.width() == 1, "the condition is wider than a bit: " + condition.text());
  Line("if (" + condition.text() + ") begin");
  Body(then);
}

void Block::Else(const std::function<void()>& otherwise) {
  HEDDLE_CHECK(!lines_.empty() && lines_.back().ends_with("end"), "else without if");
  lines_.back() += " else begin";
  Body(otherwise);
}

void Block::ElseIf(const Expr& condition, const std::function<void()>& then) {
  HEDDLE_CHECK(condition.width() == 1, "the condition is wider than a bit: " + condition.text());
  HEDDLE_CHECK(!lines_.empty() && lines_.back().ends_with("end"), "else without if");
  lines_.back() += " else if (" + condition.text() + ") begin";
  Body(then);
}

Module::Module(std::string name, std::string comment) : name_(std::move(name)), comment_(std::move(comment)) {
  TakeName(name_);
}

void Module::TakeName(const std::string& name) {
  bool legal = !name.empty() && (std::isalpha(static_cast<unsigned char>(name[0])) || name[0] == '_');
  for (char c : name) legal = legal && (std::isalnum(static_cast<unsigned char>(c)) || c == '_');
  HEDDLE_CHECK(legal && !IsKeyword(name), "not a Verilog name: " + name + " in module " + name_);
  HEDDLE_CHECK(names_.insert(name).second, "the name " + name + " occurs twice in module " + name_);
}

Expr Module::AddSignal(const std::string& name, int width, SignalKind kind, const std::string& comment) {
  HEDDLE_CHECK(width > 0, "a signal without bits: " + name);
  TakeName(name);
  auto signal = std::make_shared<Signal>();
  signal->name = name;
  signal->width = width;
  signal->kind = kind;
  signal->comment = comment;
  signals_.push_back(signal);
  return Expr(std::shared_ptr<const Signal>(signal));
}

Expr Module::Input(const std::string& name, int width, const std::string& comment) {
  Expr port = AddSignal(name, width, SignalKind::kInput, comment);
  ports_.push_back({port.signal(), true});
  return port;
}

Expr Module::Output(const std::string& name, int width, const std::string& comment) {
  Expr port = AddSignal(name, width, SignalKind::kOutput, comment);
  ports_.push_back({port.signal(), false});
  return port;
}

Expr Module::Wire(const std::string& name, int width, const std::string& comment) {
  Expr wire = AddSignal(name, width, SignalKind::kWire, comment);
  Emit(fmt::format("  wire {}{};{}", Range(width), name, Note(comment)));
  return wire;
}

Expr Module::Name(const std::string& name, const Expr& value) {
  Expr wire = AddSignal(name, value.width(), SignalKind::kWire, "");
  driven_.insert(name);
  Emit(fmt::format("  wire {}{} = {};", Range(value.width()), name, value.text()));
  return wire;
}

Expr Module::Register(const std::string& name, int width, const std::string& comment) {
  Expr reg = AddSignal(name, width, SignalKind::kRegister, comment);
  Emit(fmt::format("  reg {}{};{}", Range(width), name, Note(comment)));
  return reg;
}

Expr Module::ResetRegister(const std::string& name, int width, uint64_t reset_value, const std::string& comment) {
  HEDDLE_CHECK(width > 0, "a register without bits: " + name);
  TakeName(name);
  auto signal = std::make_shared<Signal>(Signal{name, width, SignalKind::kRegister, true, reset_value, comment});
  signals_.push_back(signal);
  Emit(fmt::format("  reg {}{};{}", Range(width), name, Note(comment)));
  return Expr(std::shared_ptr<const Signal>(signal));
}

Memory Module::AddMemory(const std::string& name, int width, int depth, const std::string& comment) {
  TakeName(name);
  TakeName(name + "_index");
  Emit(fmt::format("  reg {}{} [0:{}];{}", Range(width), name, depth - 1, Note(comment)));
  // Block memories start as zero on the device too; a simulator with unknown values then agrees with one without.
  Emit(fmt::format("  integer {}_index;", name));
  Emit(fmt::format("  initial for ({0}_index = 0; {0}_index < {1}; {0}_index = {0}_index + 1) {0}[{0}_index] = {{{2}{{1'b0}}}};",
                   name, depth, width));
  return {name, width, depth, BitsFor(depth)};
}

void Module::Drive(const Expr& target) {
  HEDDLE_CHECK(driven_.insert(target.text()).second, "driven twice: " + target.text() + " in module " + name_);
}

void Module::Assign(const Expr& target, const Expr& value) {
  HEDDLE_CHECK(target.is_signal() && target.signal()->kind != SignalKind::kRegister &&
                   target.signal()->kind != SignalKind::kInput,
               "cannot be assigned: " + target.text());
  HEDDLE_CHECK(target.width() == value.width(), fmt::format("{} has {} bits, its value {}: {}", target.text(), target.width(),
                                                            value.width(), value.text()));
  Drive(target);
  Emit(fmt::format("  assign {} = {};", target.text(), value.text()));
}

void Module::NeedClock(bool reset) {
  has_clock_ = true;
  has_reset_ = has_reset_ || reset;
}

void Module::Clocked(const std::function<void(Block&)>& body) {
  Block block;
  body(block);
  NeedClock(false);
  Emit("  always @(posedge clk) begin");
  for (const std::string& line : block.lines_) Emit(line);
  std::vector<std::string> resets;
  for (const auto& signal : block.registers_) {
    Drive(Expr(signal));
    if (signal->has_reset) resets.push_back(fmt::format("      {} <= {};", signal->name, Const(signal->width, signal->reset_value).text()));
  }
  if (!resets.empty()) {
    NeedClock(true);
    Emit("    if (rst) begin");
    for (const std::string& line : resets) Emit(line);
    Emit("    end");
  }
  Emit("  end");
}

void Module::Instantiate(const Module& child, const std::string& instance_name, const std::map<std::string, Expr>& connections) {
  HEDDLE_CHECK(child.finished_, "instance of an unfinished module " + child.name());
  TakeName(instance_name);
  children_.push_back(&child);
  NeedClock(child.has_reset_);
  has_clock_ = has_clock_ || child.has_clock_;
  std::vector<std::string> lines;
  if (child.has_clock_) lines.push_back("    .clk(clk)");
  if (child.has_reset_) lines.push_back("    .rst(rst)");
  size_t used = 0;
  for (const Port& port : child.ports_) {
    const auto found = connections.find(port.signal->name);
    HEDDLE_CHECK(found != connections.end(), fmt::format("port {} of {} is not connected", port.signal->name, instance_name));
    const Expr& value = found->second;
    ++used;
    HEDDLE_CHECK(value.width() == port.signal->width, fmt::format("port {} of {} has {} bits, connected are {}", port.signal->name,
                                                                  instance_name, port.signal->width, value.width()));
    if (!port.is_input) {
      HEDDLE_CHECK(value.is_signal(), "an output needs a wire: " + value.text());
      Drive(value);
    }
    lines.push_back(fmt::format("    .{}({})", port.signal->name, value.text()));
  }
  HEDDLE_CHECK(used == connections.size(), "connection to a port that does not exist in " + instance_name);
  Emit(fmt::format("  {} {} (", child.name(), instance_name));
  for (size_t i = 0; i < lines.size(); ++i) Emit(lines[i] + (i + 1 < lines.size() ? "," : ""));
  Emit("  );");
}

void Module::Comment(const std::string& text) {
  Emit("");
  Emit("  // " + text);
}

void Module::Ignore(const std::vector<Expr>& values) { ignored_.insert(ignored_.end(), values.begin(), values.end()); }

void Module::Finish() {
  HEDDLE_CHECK(!finished_, "finished twice: " + name_);
  for (const auto& signal : signals_) {
    HEDDLE_CHECK(signal->kind == SignalKind::kInput || driven_.count(signal->name) != 0,
                 "nothing drives " + signal->name + " in module " + name_);
  }
  if (!ignored_.empty()) {
    std::vector<Expr> parts = {Const(1, 0)};
    parts.insert(parts.end(), ignored_.begin(), ignored_.end());
    Comment("Bits that this module ignores.");
    Emit(fmt::format("  wire unused_bits = &{};", Concat(parts).text()));
  }
  finished_ = true;
}

std::string Module::Verilog() const {
  HEDDLE_CHECK(finished_, "not finished: " + name_);
  std::string text = "// " + comment_ + "\nmodule " + name_ + " (\n";
  std::vector<std::pair<std::string, std::string>> ports;
  if (has_clock_) ports.push_back({"input wire clk", ""});
  if (has_reset_) ports.push_back({"input wire rst", ""});
  for (const Port& port : ports_) {
    ports.push_back({fmt::format("{} wire {}{}", port.is_input ? "input" : "output", Range(port.signal->width), port.signal->name),
                     Note(port.signal->comment)});
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    text += "  " + ports[i].first + (i + 1 < ports.size() ? "," : "") + ports[i].second + "\n";
  }
  text += ");\n";
  for (const std::string& line : lines_) text += line + "\n";
  return text + "endmodule\n";
}

Module& Design::Add(const std::string& name, const std::string& comment) {
  for (const auto& module : modules_) HEDDLE_CHECK(module->name() != name, "two modules named " + name);
  modules_.push_back(std::make_unique<Module>(name, comment));
  return *modules_.back();
}

std::map<std::string, std::string> Design::Files() const {
  std::map<std::string, std::string> files;
  for (const auto& module : modules_) {
    files[module->name() + ".v"] = "`default_nettype none\n" + module->Verilog() + "`default_nettype wire\n";
  }
  return files;
}

}  // namespace heddle::hls::rtl
