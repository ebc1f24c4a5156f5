// Kernels → LLVM IR (ptx_function.cc) → libdevice linked where needed → LLVM's standard optimisations → NVPTX.

#include "gpu/ptx_emitter.h"

#include <llvm/Bitcode/BitcodeReader.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Linker/Linker.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Support/raw_ostream.h>
#include <llvm/Target/TargetMachine.h>
#include <llvm/Transforms/IPO/Internalize.h>

#include <cstdlib>
#include <filesystem>
#include <set>

#include "gpu/ptx_function.h"
#include "ir/check.h"
#include "ir/loops/simplify.h"
#include "ir/status.h"

namespace heddle::gpu {
namespace {

constexpr char kTriple[] = "nvptx64-nvidia-cuda";

void InitialiseNvptx() {
  static const bool done = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    return true;
  }();
  (void)done;
}

absl::StatusOr<std::unique_ptr<llvm::TargetMachine>> MakeTargetMachine(int compute_capability) {
  InitialiseNvptx();
  std::string error;
  const llvm::Target* target = llvm::TargetRegistry::lookupTarget(kTriple, error);
  if (target == nullptr) {
    return ir::UserError("E-GPU-040", "this LLVM has no NVPTX back end: " + error, "Use OpenCL: \"api\": \"opencl\" in the target file.");
  }
  llvm::TargetOptions options;
  return std::unique_ptr<llvm::TargetMachine>(
      target->createTargetMachine(kTriple, "sm_" + std::to_string(compute_capability), "", options, llvm::Reloc::PIC_));
}

std::vector<std::string> MissingFunctions(const llvm::Module& module) {
  std::vector<std::string> missing;
  for (const llvm::Function& function : module) {
    if (function.isDeclaration() && function.getName().starts_with("__nv_")) missing.push_back(function.getName().str());
  }
  return missing;
}

absl::Status LinkLibdevice(const std::string& wanted_path, llvm::Module& module) {
  const std::vector<std::string> missing = MissingFunctions(module);
  if (missing.empty()) return absl::OkStatus();
  const std::string path = wanted_path.empty() ? FindLibdevice() : wanted_path;
  auto refuse = [&](const std::string& why) {
    return ir::UserError("E-GPU-041", fmt::format("the kernels call {}, of CUDA's libdevice.10.bc: {}", fmt::join(missing, ", "), why),
                         "Install a CUDA toolkit and set CUDA_HOME, or use OpenCL: \"api\": \"opencl\" in the target file.");
  };
  if (path.empty()) return refuse("not found");
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file) return refuse(path + ": " + file.getError().message());
  auto library = llvm::parseBitcodeFile(**file, module.getContext());
  if (!library) return refuse(path + ": " + llvm::toString(library.takeError()));
  (*library)->setTargetTriple(module.getTargetTriple());
  (*library)->setDataLayout(module.getDataLayout());
  if (llvm::Linker::linkModules(module, std::move(*library), llvm::Linker::LinkOnlyNeeded)) return refuse(path + ": does not link");
  const std::vector<std::string> still = MissingFunctions(module);
  if (!still.empty()) return refuse(path + " has no " + still[0]);
  return absl::OkStatus();
}

void Optimise(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O2).run(module, modules);
}

std::string PrintAssembly(llvm::Module& module, llvm::TargetMachine& machine) {
  llvm::SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager passes;
  const bool refused = machine.addPassesToEmitFile(passes, stream, nullptr, llvm::CodeGenFileType::AssemblyFile);
  HEDDLE_CHECK(!refused, "NVPTX prints assembly");
  passes.run(module);
  return std::string(text);
}

}  // namespace

std::string FindLibdevice() {
  std::vector<std::string> roots;
  for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const char* root = std::getenv(variable); root != nullptr && *root != '\0') roots.push_back(std::string(root) + "/nvvm/libdevice");
  }
  roots.insert(roots.end(), {"/usr/local/cuda/nvvm/libdevice", "/usr/lib/nvidia-cuda-toolkit/libdevice", "/usr/lib/cuda/nvvm/libdevice"});
  for (const std::string& root : roots) {
    const std::filesystem::path path = std::filesystem::path(root) / "libdevice.10.bc";
    std::error_code error;
    if (std::filesystem::exists(path, error)) return path.string();
  }
  return "";
}

absl::StatusOr<std::string> EmitPtx(const std::vector<ir::loops::Function>& kernels, const PtxOptions& options) {
  HEDDLE_ASSIGN_OR_RETURN(const std::unique_ptr<llvm::TargetMachine> machine, MakeTargetMachine(options.compute_capability));
  llvm::LLVMContext context;
  llvm::Module module("kernels", context);
  module.setTargetTriple(kTriple);
  module.setDataLayout(machine->createDataLayout());
  module.addModuleFlag(llvm::Module::Override, "nvvm-reflect-ftz", 0u);  // libdevice keeps denormals
  std::set<std::string> names;
  for (const ir::loops::Function& kernel : kernels) {
    const ir::loops::Function lowered = LowerFloorDivision(kernel);
    PtxFunction(lowered, module).Emit();
    names.insert(kernel.name);
  }
  std::string error;
  llvm::raw_string_ostream error_stream(error);
  HEDDLE_CHECK(!llvm::verifyModule(module, &error_stream), "invalid LLVM IR: " + error);
  HEDDLE_RETURN_IF_ERROR(LinkLibdevice(options.libdevice, module));
  llvm::internalizeModule(module, [&](const llvm::GlobalValue& value) { return names.contains(value.getName().str()); });
  Optimise(module, *machine);
  return PrintAssembly(module, *machine);
}

}  // namespace heddle::gpu
