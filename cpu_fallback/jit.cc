// LLVM around the translation: target, optimisation, ORC JIT and object emission.

#include "cpu_fallback/jit.h"

#include <llvm/ExecutionEngine/Orc/JITTargetMachineBuilder.h>
#include <llvm/ExecutionEngine/Orc/LLJIT.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/SmallVectorMemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/Utils/Cloning.h>
#include <llvm/TargetParser/Host.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <mutex>

#include "cpu_fallback/cpu_target.h"
#include "cpu_fallback/llvm_emit.h"
#include "ir/check.h"
#include "ir/status.h"

namespace heddle::cpu {
namespace {

constexpr size_t kAlignment = 64;

void InitialiseLlvm() {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::InitializeNativeTarget();
    llvm::InitializeNativeTargetAsmPrinter();
    llvm::InitializeNativeTargetAsmParser();
  });
}

absl::Status LlvmError(llvm::Error error) {
  return ir::UserError("E-CPU-002", "LLVM: " + llvm::toString(std::move(error)));
}

llvm::CodeGenOptLevel CodeGenLevel(int level) {
  return level <= 0 ? llvm::CodeGenOptLevel::None : level == 1 ? llvm::CodeGenOptLevel::Less : llvm::CodeGenOptLevel::Default;
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeTargetMachine(const std::string& cpu, int level) {
  InitialiseLlvm();
  auto builder = llvm::orc::JITTargetMachineBuilder::detectHost();
  if (!builder) return LlvmError(builder.takeError());
  if (!cpu.empty()) *builder = llvm::orc::JITTargetMachineBuilder(builder->getTargetTriple());
  if (!cpu.empty()) builder->setCPU(cpu);
  builder->setCodeGenOptLevel(CodeGenLevel(level));
  builder->setRelocationModel(llvm::Reloc::PIC_);
  auto machine = builder->createTargetMachine();
  if (!machine) return LlvmError(machine.takeError());
  return std::move(*machine);
}

void Optimise(llvm::Module& module, llvm::TargetMachine& machine, int level) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager sccs;
  llvm::ModuleAnalysisManager modules;
  llvm::PipelineTuningOptions tuning;
  // Schedules have decided on vectors and register tiles; what is left scalar may still be vectorised.
  tuning.LoopVectorization = level >= 2;
  tuning.LoopInterleaving = true;
  tuning.SLPVectorization = false;
  llvm::PassBuilder builder(&machine, tuning);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(sccs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, sccs, modules);
  const auto optimisation = level <= 0   ? llvm::OptimizationLevel::O0
                            : level == 1 ? llvm::OptimizationLevel::O1
                            : level == 2 ? llvm::OptimizationLevel::O2
                                         : llvm::OptimizationLevel::O3;
  llvm::ModulePassManager passes =
      level <= 0 ? builder.buildO0DefaultPipeline(optimisation) : builder.buildPerModuleDefaultPipeline(optimisation);
  passes.run(module, modules);
}

// The module's functions as optimised LLVM IR; workspace sizes in `bytes`.
absl::StatusOr<std::unique_ptr<llvm::Module>> Build(const ir::loops::Module& module, llvm::LLVMContext& context,
                                                    llvm::TargetMachine& machine, const CompileOptions& options,
                                                    std::vector<int64_t>* bytes) {
  auto result = std::make_unique<llvm::Module>("heddle", context);
  result->setDataLayout(machine.createDataLayout());
  result->setTargetTriple(machine.getTargetTriple().str());
  for (const ir::loops::Function& function : module.functions) {
    HEDDLE_ASSIGN_OR_RETURN(const int64_t workspace, EmitFunction(function, *result));
    bytes->push_back(workspace);
  }
  for (llvm::Function& function : *result) {
    function.addFnAttr("target-cpu", machine.getTargetCPU());
    function.addFnAttr("target-features", machine.getTargetFeatureString());
    function.addFnAttr("no-trapping-math", "true");
  }
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  HEDDLE_CHECK(!llvm::verifyModule(*result, &stream), "invalid LLVM IR: " + stream.str());
  Optimise(*result, machine, options.optimisation_level);
  return result;
}

absl::StatusOr<std::string> EmitFile(llvm::Module& module, llvm::TargetMachine& machine, llvm::CodeGenFileType type) {
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine.addPassesToEmitFile(passes, stream, nullptr, type)) {
    return ir::UserError("E-CPU-002", "LLVM cannot emit this kind of file for this processor");
  }
  passes.run(module);
  return std::string(bytes.begin(), bytes.end());
}

void ParallelFor(const Runtime* runtime, void (*body)(void*, int64_t, int64_t), void* context, int64_t extent) {
  static_cast<ThreadPool*>(runtime->pool)->ParallelFor(body, context, extent);
}

struct FreeDeleter {
  void operator()(void* memory) const { std::free(memory); }
};

}  // namespace

const CpuTarget& HostCpu() {
  static const CpuTarget target = [] {
    CpuTarget cpu;
    cpu.name = llvm::sys::getHostCPUName().str();
    const auto features = llvm::sys::getHostCPUFeatures();
    auto has = [&](const char* name) {
      auto it = features.find(name);
      return it != features.end() && it->second;
    };
    if (has("avx512f") && has("avx512bw") && has("avx512vl")) {
      cpu.vector_bytes = 64;
      cpu.vector_registers = 32;
    } else if (has("avx2")) {
      cpu.vector_bytes = 32;
    } else if (has("neon")) {
      cpu.vector_registers = 32;
    }
    return cpu;
  }();
  return target;
}

class CompiledModule::Code {
 public:
  using Entry = void (*)(void* const*, void*, const Runtime*);
  std::unique_ptr<llvm::orc::LLJIT> jit;
  std::vector<std::string> names;
  std::vector<Entry> entries;
  std::vector<int64_t> workspace_bytes;
  std::string object, llvm_ir, assembly;
};

CompiledModule::CompiledModule(std::unique_ptr<Code> code) : code_(std::move(code)) {}
CompiledModule::CompiledModule(CompiledModule&&) noexcept = default;
CompiledModule& CompiledModule::operator=(CompiledModule&&) noexcept = default;
CompiledModule::~CompiledModule() = default;

int CompiledModule::num_functions() const { return static_cast<int>(code_->entries.size()); }

int CompiledModule::FindFunction(std::string_view name) const {
  auto it = std::find(code_->names.begin(), code_->names.end(), name);
  return it == code_->names.end() ? -1 : static_cast<int>(it - code_->names.begin());
}

int64_t CompiledModule::WorkspaceBytes(int function) const { return code_->workspace_bytes[static_cast<size_t>(function)]; }

void CompiledModule::Run(int function, std::span<void* const> buffers, void* workspace, ThreadPool* pool) const {
  const Runtime runtime{&ParallelFor, pool};
  const bool threaded = pool != nullptr && pool->threads() > 1;
  code_->entries[static_cast<size_t>(function)](buffers.data(), workspace, threaded ? &runtime : nullptr);
}

void CompiledModule::Run(int function, std::span<void* const> buffers, ThreadPool* pool) const {
  const auto bytes = (static_cast<size_t>(WorkspaceBytes(function)) / kAlignment + 1) * kAlignment;
  std::unique_ptr<void, FreeDeleter> workspace(std::aligned_alloc(kAlignment, bytes));
  Run(function, buffers, workspace.get(), pool);
}

const std::string& CompiledModule::object() const { return code_->object; }
const std::string& CompiledModule::llvm_ir() const { return code_->llvm_ir; }
const std::string& CompiledModule::assembly() const { return code_->assembly; }

absl::StatusOr<CompiledModule> Compile(const ir::loops::Module& module, const CompileOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(auto machine, MakeTargetMachine("", options.optimisation_level));
  auto code = std::make_unique<CompiledModule::Code>();
  auto context = std::make_unique<llvm::LLVMContext>();
  HEDDLE_ASSIGN_OR_RETURN(auto built, Build(module, *context, *machine, options, &code->workspace_bytes));
  if (options.keep_llvm_ir) {
    llvm::raw_string_ostream stream(code->llvm_ir);
    built->print(stream, nullptr);
  }
  if (options.keep_assembly) {
    HEDDLE_ASSIGN_OR_RETURN(code->assembly, EmitFile(*llvm::CloneModule(*built), *machine, llvm::CodeGenFileType::AssemblyFile));
  }
  HEDDLE_ASSIGN_OR_RETURN(code->object, EmitFile(*built, *machine, llvm::CodeGenFileType::ObjectFile));
  auto jit = llvm::orc::LLJITBuilder().create();
  if (!jit) return LlvmError(jit.takeError());
  code->jit = std::move(*jit);
  auto process = llvm::orc::DynamicLibrarySearchGenerator::GetForCurrentProcess(code->jit->getDataLayout().getGlobalPrefix());
  if (!process) return LlvmError(process.takeError());
  code->jit->getMainJITDylib().addGenerator(std::move(*process));
  if (auto error = code->jit->addObjectFile(llvm::MemoryBuffer::getMemBufferCopy(code->object, "heddle"))) return LlvmError(std::move(error));
  for (const ir::loops::Function& function : module.functions) {
    auto address = code->jit->lookup(function.name);
    if (!address) return LlvmError(address.takeError());
    code->names.push_back(function.name);
    code->entries.push_back(address->toPtr<CompiledModule::Code::Entry>());
  }
  return CompiledModule(std::move(code));
}

absl::StatusOr<std::string> CompileToObject(const ir::loops::Module& module, const std::string& cpu, const CompileOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(auto machine, MakeTargetMachine(cpu, options.optimisation_level));
  llvm::LLVMContext context;
  std::vector<int64_t> bytes;
  HEDDLE_ASSIGN_OR_RETURN(auto built, Build(module, context, *machine, options, &bytes));
  return EmitFile(*built, *machine, llvm::CodeGenFileType::ObjectFile);
}

double TimeFunction(const CompiledModule& module, int function, std::span<void* const> buffers, ThreadPool* pool, int min_runs,
                    double min_us) {
  using Clock = std::chrono::steady_clock;
  const auto bytes = (static_cast<size_t>(module.WorkspaceBytes(function)) / kAlignment + 1) * kAlignment;
  std::unique_ptr<void, FreeDeleter> workspace(std::aligned_alloc(kAlignment, bytes));
  module.Run(function, buffers, workspace.get(), pool);  // first touch of memory and caches
  std::vector<double> times;
  double total = 0;
  while (static_cast<int>(times.size()) < min_runs || total < min_us) {
    const auto start = Clock::now();
    module.Run(function, buffers, workspace.get(), pool);
    times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    total += times.back();
  }
  std::nth_element(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2), times.end());
  return times[times.size() / 2];
}

}  // namespace heddle::cpu
