// Modules of the RTL builder. A module is filled in reading order (ports, signals, assignments, clocked blocks,
// instances) and printed in the same order as Verilog-2005 with packed vectors only.
//
// Checked by Finish(): every wire and output is driven once, every register is set in exactly one clocked block, every
// input of an instance is connected, names are unique identifiers and no keywords. Widths are checked as things are built.
#ifndef HEDDLE_HLS_RTL_MODULE_H_
#define HEDDLE_HLS_RTL_MODULE_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "hls/rtl/expr.h"

namespace heddle::hls::rtl {

// A memory inside a module: `depth` words of `width` bits, zero at start. Read in a clocked block it is a synchronous port.
struct Memory {
  std::string name;
  int width = 0;
  int depth = 0;
  int address_bits = 1;
};
// The word at `address`.
Expr ReadMemory(const Memory& memory, const Expr& address);

// Statements of a clocked block.
class Block {
 public:
  // target <= value, from the next edge on.
  void Set(const Expr& target, const Expr& value);
  void SetSlice(const Expr& target, int low, const Expr& value);
  // Writes bits low .. low + value.width() - 1 of a word.
  void Write(const Memory& memory, const Expr& address, const Expr& value, int low = 0);
  void If(const Expr& condition, const std::function<void()>& then);
  // Belongs to the If just before.
  void Else(const std::function<void()>& otherwise);
  void ElseIf(const Expr& condition, const std::function<void()>& then);

 private:
  friend class Module;
  void Line(const std::string& text) { lines_.push_back(std::string(2 * depth_, ' ') + text); }
  void Body(const std::function<void()>& body);

  std::vector<std::string> lines_;
  std::vector<std::shared_ptr<const Signal>> registers_;  // in the order of their first assignment
  int depth_ = 2;
};

class Module {
 public:
  Module(std::string name, std::string comment);
  Module(const Module&) = delete;
  Module& operator=(const Module&) = delete;

  const std::string& name() const { return name_; }

  Expr Input(const std::string& name, int width, const std::string& comment = "");
  // To be driven by Assign, or by a clocked block if `is_register`.
  Expr Output(const std::string& name, int width, const std::string& comment = "");
  // To be driven by Assign or an instance.
  Expr Wire(const std::string& name, int width, const std::string& comment = "");
  // A wire with its value.
  Expr Name(const std::string& name, const Expr& value);
  Expr Register(const std::string& name, int width, const std::string& comment = "");
  Expr ResetRegister(const std::string& name, int width, uint64_t reset_value = 0, const std::string& comment = "");
  Memory AddMemory(const std::string& name, int width, int depth, const std::string& comment = "");

  void Assign(const Expr& target, const Expr& value);
  // One always block at the rising edge of clk; registers with a reset get it at its end.
  void Clocked(const std::function<void(Block&)>& body);
  // Connects ports by name; clk and rst connect by themselves.
  void Instantiate(const Module& child, const std::string& instance_name, const std::map<std::string, Expr>& connections);
  // A comment above what comes next.
  void Comment(const std::string& text);
  // States that these bits are ignored on purpose.
  void Ignore(const std::vector<Expr>& values);

  // Checks; a violation is a bug of the generator. Must be called once, at the end.
  void Finish();
  std::string Verilog() const;

  struct Port {
    std::shared_ptr<const Signal> signal;
    bool is_input = true;
  };
  const std::vector<Port>& ports() const { return ports_; }
  const std::vector<const Module*>& children() const { return children_; }

 private:
  Expr AddSignal(const std::string& name, int width, SignalKind kind, const std::string& comment);
  void TakeName(const std::string& name);
  void Drive(const Expr& target);
  void NeedClock(bool reset);
  void Emit(const std::string& line) { lines_.push_back(line); }

  std::string name_;
  std::string comment_;
  std::vector<Port> ports_;
  std::vector<std::string> lines_;
  std::vector<std::shared_ptr<const Signal>> signals_;
  std::vector<const Module*> children_;
  std::set<std::string> names_;
  std::set<std::string> driven_;
  std::vector<Expr> ignored_;
  bool has_clock_ = false;
  bool has_reset_ = false;
  bool finished_ = false;
};

// All modules of a design, in the order in which they were added.
class Design {
 public:
  Module& Add(const std::string& name, const std::string& comment);
  const std::vector<std::unique_ptr<Module>>& modules() const { return modules_; }
  // File name to content: one module a file.
  std::map<std::string, std::string> Files() const;

 private:
  std::vector<std::unique_ptr<Module>> modules_;
};

// Bits that hold values 0 .. count - 1, at least one.
int BitsFor(int64_t count);

}  // namespace heddle::hls::rtl

#endif  // HEDDLE_HLS_RTL_MODULE_H_
