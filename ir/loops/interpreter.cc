// The interpreter walks the tree and keeps every value as it would stand in its type. Accesses are checked against each
// dimension of the buffer, and temporaries start filled with a pattern, so that a wrong schedule shows.

#include "ir/loops/interpreter.h"

#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <unordered_map>

#include "ir/loops/eval.h"
#include "ir/loops/visit.h"
#include "ir/status.h"

namespace heddle::ir::loops {
namespace {

constexpr int64_t kMaxThreads = 1024;  // of one GPU work group

bool HasBarrier(const Stmt& stmt) {
  bool found = false;
  ForEachStmt(stmt, [&](const Stmt& s) { found = found || s->kind == StmtKind::kBarrier; });
  return found;
}

class Machine {
 public:
  explicit Machine(const InterpretOptions& options) : options_(options) {}

  void Bind(const Buffer& buffer, std::byte* data) { memory_[buffer.get()] = data; }
  const absl::Status& status() const { return status_; }

  void Run(const Stmt& s) {
    if (!s || !status_.ok()) return;
    switch (s->kind) {
      case StmtKind::kFor: return RunFor(s);
      case StmtKind::kStore: {
        const Value value = Eval(s->value);
        if (std::byte* address = Address(s->buffer, s->indices)) Write(s->buffer.type(), address, value);
        return;
      }
      case StmtKind::kIf: return Run(Eval(s->value).integer ? s->body : s->else_body);
      case StmtKind::kBlock:
        for (const Stmt& child : s->statements) Run(child);
        return;
      case StmtKind::kAllocate: {
        const auto bytes = static_cast<size_t>(s->buffer->bytes());
        auto storage = std::make_unique<std::byte[]>(bytes + 1);
        std::memset(storage.get(), 0x5b, bytes);
        std::byte* const outer = memory_[s->buffer.get()];
        memory_[s->buffer.get()] = storage.get();
        Run(s->body);
        memory_[s->buffer.get()] = outer;
        return;
      }
      case StmtKind::kLet:
        vars_[s->var.get()] = Eval(s->value);
        return Run(s->body);
      case StmtKind::kBarrier:
        if (barrier_ != nullptr) barrier_->arrive_and_wait();
        return;
    }
  }

 private:
  void RunFor(const Stmt& s) {
    const bool thread = s->loop_kind >= LoopKind::kThreadX;
    if (thread && barrier_ == nullptr && HasBarrier(s)) return RunThreads(s);
    const bool independent = s->loop_kind == LoopKind::kParallel || s->loop_kind == LoopKind::kVectorised ||
                             IsGpuIndex(s->loop_kind);
    const bool reverse = independent && options_.reverse_independent_loops;
    for (int64_t i = 0; i < s->extent && status_.ok(); ++i) {
      vars_[s->var.get()] = {reverse ? s->extent - 1 - i : i, 0};
      Run(s->body);
    }
  }

  // A nest of thread loops with barriers inside: one thread of ours for each of theirs.
  void RunThreads(const Stmt& outermost) {
    std::vector<Stmt> nest = {outermost};
    int64_t threads = outermost->extent;
    while (nest.back()->body->kind == StmtKind::kFor && nest.back()->body->loop_kind >= LoopKind::kThreadX) {
      nest.push_back(nest.back()->body);
      threads *= nest.back()->extent;
    }
    if (threads > kMaxThreads) {
      Fail("E-LOOPS-013", fmt::format("{} threads in a work group with barriers; at most {}", threads, kMaxThreads));
      return;
    }
    std::barrier<> barrier(static_cast<std::ptrdiff_t>(threads));
    std::vector<Machine> machines(static_cast<size_t>(threads), *this);
    std::vector<std::thread> running;
    for (int64_t t = 0; t < threads; ++t) {
      Machine& machine = machines[static_cast<size_t>(t)];
      machine.barrier_ = &barrier;
      int64_t rest = t;
      for (auto loop = nest.rbegin(); loop != nest.rend(); ++loop) {
        machine.vars_[(*loop)->var.get()] = {rest % (*loop)->extent, 0};
        rest /= (*loop)->extent;
      }
      running.emplace_back([&machine, &barrier, body = nest.back()->body] {
        machine.Run(body);
        barrier.arrive_and_drop();
      });
    }
    for (std::thread& thread : running) thread.join();
    for (const Machine& machine : machines) {
      if (status_.ok()) status_ = machine.status_;
    }
  }

  void Fail(std::string_view code, const std::string& message) {
    if (status_.ok()) status_ = UserError(code, message);
  }

  std::byte* Address(const Buffer& buffer, const std::vector<Expr>& indices) {
    int64_t flat = 0;
    for (size_t d = 0; d < indices.size(); ++d) {
      const int64_t index = Eval(indices[d]).integer, extent = buffer.shape()[d];
      if (status_.ok() && (index < 0 || index >= extent)) {
        Fail("E-LOOPS-011", fmt::format("index {} of dimension {} of {}, which has {} elements", index, d, buffer->name, extent));
      }
      if (!status_.ok()) return nullptr;
      flat = flat * extent + index;
    }
    std::byte* base = buffer->contents ? const_cast<std::byte*>(buffer->contents->data()) : nullptr;
    if (base == nullptr) {
      auto it = memory_.find(buffer.get());
      if (it == memory_.end() || it->second == nullptr) {
        Fail("E-LOOPS-010", buffer->name + " is neither a parameter nor allocated here");
        return nullptr;
      }
      base = it->second;
    }
    return base + flat * ElementBytes(buffer.type());
  }

  static Value Read(ElementType type, const std::byte* address) {
    auto read = [&](auto zero) {
      std::memcpy(&zero, address, sizeof(zero));
      return zero;
    };
    switch (type) {
      case ElementType::kFloat32: return {0, read(0.0f)};
      case ElementType::kFloat64: return {0, read(0.0)};
      case ElementType::kInt8: return {read(int8_t{}), 0};
      case ElementType::kUint8: return {read(uint8_t{}), 0};
      case ElementType::kInt16: return {read(int16_t{}), 0};
      case ElementType::kUint16: return {read(uint16_t{}), 0};
      case ElementType::kInt32: return {read(int32_t{}), 0};
      case ElementType::kUint32: return {read(uint32_t{}), 0};
      case ElementType::kInt64:
      case ElementType::kUint64: return {read(int64_t{}), 0};
      case ElementType::kBool: return {read(uint8_t{}) != 0, 0};
    }
    return {};
  }

  static void Write(ElementType type, std::byte* address, Value value) {
    if (type == ElementType::kFloat32) {
      const auto real = static_cast<float>(value.real);
      std::memcpy(address, &real, sizeof(real));
    } else if (type == ElementType::kFloat64) {
      std::memcpy(address, &value.real, sizeof(double));
    } else {  // little-endian: the low bytes
      std::memcpy(address, &value.integer, static_cast<size_t>(ElementBytes(type)));
    }
  }

  Value Eval(const Expr& e) {
    if (!status_.ok()) return {};
    switch (e->kind) {
      case ExprKind::kIntImm: return {e->int_value, 0};
      case ExprKind::kFloatImm: return {0, e->float_value};
      case ExprKind::kVar: return vars_[e.get()];
      case ExprKind::kLoad: {
        const std::byte* address = Address(e->buffer, e->operands);
        return address == nullptr ? Value{} : Read(e.type(), address);
      }
      case ExprKind::kSelect: return Eval(Eval(e->operands[0]).integer ? e->operands[1] : e->operands[2]);
      case ExprKind::kCall:
        return EvaluateCall(e->intrinsic, e.type(), Eval(e->operands[0]), e->operands.size() > 1 ? Eval(e->operands[1]) : Value{});
      case ExprKind::kBinary:
        return Defined(e, EvaluateBinary(e->binary, e->operands[0].type(), Eval(e->operands[0]), Eval(e->operands[1])));
      case ExprKind::kCast: return Defined(e, EvaluateCast(e.type(), e->operands[0].type(), Eval(e->operands[0])));
    }
    return {};
  }

  Value Defined(const Expr& e, const std::optional<Value>& value) {
    if (value) return *value;
    Fail("E-LOOPS-012", e->kind == ExprKind::kCast ? "a float out of the range of the integer it is converted to"
                                                   : fmt::format("{} is undefined for its operands", BinaryOpName(e->binary)));
    return {};
  }

  InterpretOptions options_;
  absl::Status status_;
  std::unordered_map<const ExprNode*, Value> vars_;
  std::unordered_map<const BufferNode*, std::byte*> memory_;
  std::barrier<>* barrier_ = nullptr;
};

}  // namespace

absl::Status Interpret(const Function& function, const std::vector<Tensor*>& arguments, const InterpretOptions& options) {
  if (arguments.size() != function.params.size()) {
    return UserError("E-LOOPS-010", fmt::format("{} takes {} arguments; {} were given", function.name, function.params.size(),
                                                arguments.size()));
  }
  Machine machine(options);
  for (size_t i = 0; i < arguments.size(); ++i) {
    const Buffer& buffer = function.params[i].buffer;
    if (arguments[i]->type() != buffer.type() || arguments[i]->elements() != buffer->elements()) {
      return UserError("E-LOOPS-010", fmt::format("argument {} of {} is {} {}, expected {} {}", buffer->name, function.name,
                                                  ElementTypeName(arguments[i]->type()), ShapeText(arguments[i]->shape()),
                                                  ElementTypeName(buffer.type()), ShapeText(buffer.shape())));
    }
    machine.Bind(buffer, arguments[i]->data());
  }
  machine.Run(function.body);
  return machine.status();
}

}  // namespace heddle::ir::loops
