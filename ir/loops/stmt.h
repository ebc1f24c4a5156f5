// Statements, functions and modules of the loop IR. Trees are immutable; a transformation builds a new tree that shares what
// it did not change.
#ifndef HEDDLE_IR_LOOPS_STMT_H_
#define HEDDLE_IR_LOOPS_STMT_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/loops/expr.h"

namespace heddle::ir::loops {

enum class StmtKind : uint8_t {
  kFor,       // for var in [0, extent): body
  kStore,     // buffer[indices] = value
  kIf,        // if (condition) then_body else else_body (may be empty)
  kBlock,     // statements in order
  kAllocate,  // buffer lives during body; contents are undefined at the start
  kLet,       // var = value (evaluated once), visible in body
  kBarrier,   // all threads of a block arrive before one leaves; needs gpu thread loops around
};

// Annotations never change the result; a schedule primitive that sets one has checked that.
enum class LoopKind : uint8_t {
  kSerial,
  kParallel,    // iterations are independent and may run on several threads
  kVectorised,  // iterations are independent and become the lanes of a vector
  kUnrolled,    // replicated `extent` times
  kPipelined,   // a new iteration starts every initiation_interval cycles (hardware); serial elsewhere
  kBlockX, kBlockY, kBlockZ,     // GPU: work group index, in OpenCL get_group_id(0..2)
  kThreadX, kThreadY, kThreadZ,  // GPU: index within the work group, get_local_id(0..2)
};
std::string_view LoopKindName(LoopKind kind);  // "serial", "vectorised", "block_x", …
bool IsGpuIndex(LoopKind kind);

// How an array is spread over memories so that several elements can be read in one cycle (hardware).
enum class PartitionKind : uint8_t { kNone, kComplete, kCyclic, kBlock };
struct ArrayPartition {
  PartitionKind kind = PartitionKind::kNone;
  int dimension = 0;   // index into the shape, outermost is 0
  int64_t factor = 1;  // number of banks for kCyclic and kBlock
};

struct StmtNode;

class Stmt {
 public:
  Stmt() = default;
  explicit Stmt(std::shared_ptr<const StmtNode> node) : node_(std::move(node)) {}
  const StmtNode* operator->() const { return node_.get(); }
  const StmtNode& operator*() const { return *node_; }
  const StmtNode* get() const { return node_.get(); }
  explicit operator bool() const { return node_ != nullptr; }

 private:
  std::shared_ptr<const StmtNode> node_;
};

struct StmtNode {
  StmtKind kind = StmtKind::kBlock;
  // kFor
  Expr var;  // also of kLet
  int64_t extent = 0;
  LoopKind loop_kind = LoopKind::kSerial;
  int initiation_interval = 1;  // kPipelined
  std::string annotation;       // "" or the name of a hardware intrinsic that implements this nest (Tensorise)
  // kStore, kAllocate
  Buffer buffer;
  std::vector<Expr> indices;
  std::vector<ArrayPartition> partitions;  // kAllocate
  // kStore, kLet: the value; kIf: the condition
  Expr value;
  // kFor, kAllocate, kLet: the body; kIf: then_body
  Stmt body;
  Stmt else_body;
  std::vector<Stmt> statements;  // kBlock
};

Stmt For(Expr var, int64_t extent, Stmt body, LoopKind kind = LoopKind::kSerial);
Stmt For(std::string_view name, int64_t extent, const std::function<Stmt(Expr)>& body, LoopKind kind = LoopKind::kSerial);
Stmt Store(Buffer buffer, std::vector<Expr> indices, Expr value);
Stmt If(Expr condition, Stmt then_body, Stmt else_body = {});
Stmt Block(std::vector<Stmt> statements);  // nested blocks are flattened, empty statements dropped
Stmt Allocate(Buffer buffer, Stmt body, std::vector<ArrayPartition> partitions = {});
Stmt Let(Expr var, Expr value, Stmt body);
Stmt Barrier();

enum class ParamRole : uint8_t {
  kInput,     // read only, changes from run to run
  kConstant,  // read only, the same in every run (weights)
  kOutput,    // written
};

struct Param {
  Buffer buffer;  // space kGlobal
  ParamRole role = ParamRole::kInput;
};

// One kernel. Distinct buffers do not alias. Tables (buffers with contents) are not parameters: printers emit them.
struct Function {
  std::string name;  // a C identifier
  std::vector<Param> params;
  Stmt body;
};

struct Module {
  std::vector<Function> functions;
};

// The tables that a function reads, in order of first use, each once.
std::vector<Buffer> TablesOf(const Function& function);

}  // namespace heddle::ir::loops

#endif  // HEDDLE_IR_LOOPS_STMT_H_
