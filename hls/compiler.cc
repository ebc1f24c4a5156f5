// Region to program: layers, the best plan that is found, instructions.

#include "hls/compiler.h"

#include <fmt/format.h>

#include <algorithm>

#include "hls/layer.h"
#include "hls/plan.h"
#include "hls/plan_estimate.h"
#include "hls/plan_search.h"
#include "hls/timing.h"
#include "hls/tokens.h"
#include "ir/check.h"
#include "ir/region.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr int64_t kMostTransferBytes = (int64_t{1} << 24) - 4096;
constexpr int64_t kMostMoveBlocks = 65535;

// Instructions from a plan with addresses.
class Emitter {
 public:
  Emitter(const Network& network, const AcceleratorParams& params, const Plan& plan) : network_(network), params_(params), plan_(plan) {}

  std::vector<Instruction> Setup() {
    for (const Transfer& transfer : plan_.setup_loads) AddTransfer(Opcode::kLoad, transfer);
    return Finish();
  }

  // For each step: loads that are due, compute, stores.
  std::vector<Instruction> Run() {
    std::vector<Transfer> loads = plan_.loads, stores = plan_.stores;
    const auto by_step = [](const Transfer& a, const Transfer& b) { return a.step < b.step; };
    std::stable_sort(loads.begin(), loads.end(), by_step);
    std::stable_sort(stores.begin(), stores.end(), by_step);
    size_t next_load = 0, next_store = 0;
    for (size_t s = 0; s < plan_.steps.size(); ++s) {
      for (; next_load < loads.size() && loads[next_load].step <= static_cast<int>(s); ++next_load) AddTransfer(Opcode::kLoad, loads[next_load]);
      AddMove(plan_.steps[s]);
      AddCompute(plan_.steps[s]);
      for (; next_store < stores.size() && stores[next_store].step <= static_cast<int>(s); ++next_store) AddTransfer(Opcode::kStore, stores[next_store]);
    }
    HEDDLE_CHECK(next_load == loads.size() && next_store == stores.size(), "a transfer belongs to no step");
    return Finish();
  }

 private:
  int64_t Address(int buffer) const { return buffer < 0 ? 0 : plan_.buffers[buffer].address; }

  std::vector<Instruction> Finish() {
    AssignTokens(params_, program_);
    program_.emplace_back();
    return std::move(program_);
  }

  void AddTransfer(Opcode opcode, const Transfer& transfer) {
    const Buffer& buffer = plan_.buffers[transfer.buffer];
    const bool activations = buffer.memory == Target::kActivations;
    const int64_t unit = activations                           ? 1
                         : buffer.memory == Target::kWeights    ? params_.weight_word_pitch_bytes()
                         : buffer.memory == Target::kParameters ? params_.parameter_word_pitch_bytes()
                                                                : kLookupEntries;
    const int64_t most = kMostTransferBytes / unit * unit;
    for (int64_t done = 0; done < transfer.bytes; done += most) {
      Instruction i;
      i.header.opcode = opcode;
      i.transfer.tag = static_cast<uint32_t>(transfer.layer);
      i.transfer.target = buffer.memory;
      i.transfer.dram_address = static_cast<uint32_t>(transfer.dram_address + done);
      const int64_t words = buffer.memory == Target::kParameters ? params_.drain_cycles() : 1;
      i.transfer.sram_address = static_cast<uint32_t>(buffer.address * words + transfer.offset + done / unit);
      i.transfer.bytes = static_cast<uint32_t>(std::min(most, transfer.bytes - done));
      i.transfer.rows = i.transfer.planes = 1;
      program_.push_back(i);
    }
  }

  // Rows within a rolling buffer, as contiguous bytes; what is read lies behind what is written.
  void AddMove(const PlannedStep& step) {
    const int64_t lanes = params_.output_lanes, most = kMostMoveBlocks * lanes, base = Address(step.out_buffer);
    for (int64_t done = 0; done < step.move.bytes; done += most) {
      const int64_t bytes = std::min(most, step.move.bytes - done);
      Instruction i;
      i.header.opcode = Opcode::kCompute;
      ComputeFields& f = i.compute;
      f.tag = static_cast<uint32_t>(step.layer);
      f.reduce = Reduce::kLoad;
      f.drain = Drain::kPass;
      f.clamp_low = -128, f.clamp_high = 127;
      f.out_rows = f.x_steps = f.passes = f.kernel_rows = f.kernel_columns = f.in_rows = f.window_columns = 1;
      f.in_row_bytes = (1u << 24) - 1;
      f.blocks = static_cast<uint32_t>((bytes + lanes - 1) / lanes);
      f.last_block_channels = static_cast<uint32_t>(bytes - (int64_t{f.blocks} - 1) * lanes);
      if (f.blocks > 1) f.in_block_step = f.out_block_step = static_cast<int32_t>(lanes);
      f.in_base = static_cast<uint32_t>(base + step.move.from + done);
      f.out_base = static_cast<uint32_t>(base + done);
      program_.push_back(i);
    }
  }

  void AddCompute(const PlannedStep& step) {
    const Layer& layer = network_.layers[step.layer];
    const LayerPlan& p = plan_.layers[step.layer];
    Piece piece = step.piece;
    piece.in_base += Address(step.in_buffer);
    piece.b_base += Address(step.b_buffer);
    piece.out_base += Address(step.out_buffer);
    piece.weight_base += Address(step.weight_buffer);
    piece.parameter_base += Address(step.parameter_buffer);
    piece.lookup_table = Address(step.lookup_buffer);
    for (int64_t n = 0; n < step.batches; ++n, ++piece.n) {
      for (Instruction& i : BuildCompute(layer, p.mapping, p.steps, params_, piece)) {
        i.compute.tag = static_cast<uint32_t>(step.layer);
        program_.push_back(i);
      }
    }
  }

  const Network& network_;
  const AcceleratorParams& params_;
  const Plan& plan_;
  std::vector<Instruction> program_;
};

HostTensor HostTensorOf(const Network& network, const Plan& plan, const BoundaryTensor& tensor) {
  Box origin;
  const int root = network.RootOf(tensor.view.storage, origin);
  const StoragePlan& p = plan.storages[root];
  HostTensor host;
  host.name = tensor.name;
  host.shape = tensor.shape;
  host.dram_address = p.dram_address;
  host.bytes = p.bytes;
  for (int axis = 0; axis < 4; ++axis) host.dram_address += (origin[axis] + tensor.view.offset[axis]) * p.strides[axis];
  for (const Atom& atom : tensor.view.atoms) host.axes.push_back({atom.extent, atom.multiple * p.strides[atom.axis]});
  return host;
}

void WriteConstants(const Network& network, const AcceleratorParams& params, const Plan& plan, std::vector<uint8_t>& image) {
  const auto put = [&](int64_t address, const std::vector<uint8_t>& bytes) {
    std::copy(bytes.begin(), bytes.end(), image.begin() + address);
  };
  for (size_t l = 0; l < network.layers.size(); ++l) {
    const Layer& layer = network.layers[l];
    const LayerPlan& p = plan.layers[l];
    put(p.weight_address, PackWeights(layer, p.mapping, p.steps, params));
    put(p.parameter_address, PackParameters(layer, p.mapping, params));
    std::copy(layer.table.begin(), layer.table.end(), image.begin() + p.lookup_address);
  }
  for (size_t i = 0; i < network.storages.size(); ++i) {
    const Storage& storage = network.storages[i];
    const StoragePlan& p = plan.storages[i];
    const Box& e = storage.extents;
    for (size_t k = 0; k < storage.constant.size(); ++k) {
      const int64_t index = static_cast<int64_t>(k), c = index % e[3], w = index / e[3] % e[2], h = index / (e[3] * e[2]) % e[1],
                    n = index / (e[3] * e[2] * e[1]);
      image[static_cast<size_t>(p.dram_address + n * p.strides[0] + h * p.strides[1] + w * p.strides[2] + c)] =
          static_cast<uint8_t>(storage.constant[k]);
    }
  }
}

void DescribeLayers(const Network& network, const AcceleratorParams& params, const Plan& plan, CompiledProgram& program) {
  for (size_t l = 0; l < network.layers.size(); ++l) {
    const Layer& layer = network.layers[l];
    const LayerPlan& p = plan.layers[l];
    ProgramLayer description;
    description.name = layer.name;
    description.nodes = layer.nodes;
    description.kind = layer.kind_name;
    description.macs = layer.macs;
    description.weight_bytes = p.mapping.weight_words() * params.weight_word_pitch_bytes();
    description.weights_resident = p.mapping.has_weights() && p.weights_resident;
    description.tiles = p.last_step - p.first_step + 1;
    program.layers.push_back(std::move(description));
  }
}

MemoryPlan SummariseMemory(const Network& network, const Plan& plan) {
  MemoryPlan summary;
  for (const Buffer& buffer : plan.buffers) {
    const int64_t end = buffer.address + buffer.size;
    if (buffer.memory == Target::kActivations) summary.activation_bytes_used = std::max(summary.activation_bytes_used, end);
    if (buffer.memory == Target::kWeights) summary.weight_words_used = std::max(summary.weight_words_used, end);
    if (buffer.memory == Target::kParameters) summary.parameter_blocks_used = std::max(summary.parameter_blocks_used, end);
    if (buffer.memory == Target::kWeights && plan.layers[buffer.layer].weights_resident) summary.weight_words_resident += buffer.size;
  }
  for (size_t i = 0; i < network.storages.size(); ++i) {
    if (plan.storages[i].rolling_rows > 0) ++summary.rolling_tensors;
    if (!plan.storages[i].spilled) continue;
    summary.activations_spilled_bytes += plan.storages[i].bytes;
    ++summary.spilled_tensors;
  }
  return summary;
}

// The plan's program. `with_image`: false leaves the constants out, for estimates.
absl::StatusOr<CompiledProgram> MakeProgram(const Network& network, const AcceleratorParams& params, const MemoryModel& memory,
                                            PlanOptions options, Plan plan, bool with_image) {
  CompiledProgram program;
  program.setup = Emitter(network, params, plan).Setup();
  program.run = Emitter(network, params, plan).Run();
  // The number of instructions moves what lies behind them; addresses do not change it.
  options.first_dram_address = static_cast<int64_t>(program.setup.size() + program.run.size()) * kInstructionBytes;
  HEDDLE_ASSIGN_OR_RETURN(plan, PlanNetwork(network, params, options, &plan));
  program.setup = Emitter(network, params, plan).Setup();
  program.run = Emitter(network, params, plan).Run();
  if (plan.dram_end >= (int64_t{1} << 31)) return ir::UserError("E-ACC-016", fmt::format("the program needs {} bytes of DRAM; expected less than 2 GiB", plan.dram_end));
  program.params = params;
  program.memory = memory;
  program.run_address = static_cast<int64_t>(program.setup.size()) * kInstructionBytes;
  program.dram_bytes = plan.dram_end;
  DescribeLayers(network, params, plan, program);
  program.plan = SummariseMemory(network, plan);
  for (const BoundaryTensor& tensor : network.inputs) program.inputs.push_back(HostTensorOf(network, plan, tensor));
  for (const BoundaryTensor& tensor : network.outputs) program.outputs.push_back(HostTensorOf(network, plan, tensor));
  HEDDLE_ASSIGN_OR_RETURN(const ProgramTiming timing, EstimateProgram(params, memory, program.run, {.program_address = program.run_address, .layer_names = {}}));
  HEDDLE_ASSIGN_OR_RETURN(const ProgramTiming setup_timing, EstimateProgram(params, memory, program.setup));
  program.cycles_estimated = timing.total_cycles;
  program.setup_cycles_estimated = setup_timing.total_cycles;
  program.dram_bytes_read = timing.dram_bytes_read;
  program.dram_bytes_written = timing.dram_bytes_written;
  for (size_t l = 0; l < std::min(program.layers.size(), timing.tags.size()); ++l) {
    program.layers[l].kinds = timing.tags[l];
    program.layers[l].cycles_estimated = timing.tags[l].total_cycles();
  }
  if (!with_image) return program;
  program.image.resize(static_cast<size_t>(plan.constants_end));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<uint8_t> setup, EncodeProgram(program.setup));
  HEDDLE_ASSIGN_OR_RETURN(const std::vector<uint8_t> run, EncodeProgram(program.run));
  std::copy(setup.begin(), setup.end(), program.image.begin());
  std::copy(run.begin(), run.end(), program.image.begin() + program.run_address);
  WriteConstants(network, params, plan, program.image);
  HEDDLE_RETURN_IF_ERROR(VerifyProgram(params, program.setup, program.dram_bytes));
  HEDDLE_RETURN_IF_ERROR(VerifyProgram(params, program.run, program.dram_bytes));
  return program;
}

absl::StatusOr<int64_t> PlanCycles(const Network& network, const AcceleratorParams& params, const MemoryModel& memory, const Plan& plan) {
  return QuickProgramCycles(params, memory, Emitter(network, params, plan).Run());
}

struct Candidate {
  PlanOptions options;
  Plan plan;
  int64_t cycles = 0;
};

// What of the memories would do, for a network that they cannot hold: the first doubling of one of them with which there is a
// plan, as ": activation_bytes 8192 instead of 4096 would do"; "" where no single memory is enough.
std::string EnoughMemory(const Network& network, const AcceleratorParams& params) {
  for (const auto& [name, memory] : {std::pair<const char*, int AcceleratorParams::*>{"activation_bytes", &AcceleratorParams::activation_bytes},
                                     {"weight_words", &AcceleratorParams::weight_words},
                                     {"parameter_blocks", &AcceleratorParams::parameter_blocks}}) {
    AcceleratorParams larger = params;
    for (larger.*memory *= 2; CheckParams(larger).ok(); larger.*memory *= 2) {
      if (PlanNetwork(network, larger, {}).ok()) return fmt::format(": {} {} instead of {} would do", name, larger.*memory, params.*memory);
    }
  }
  return "";
}

// The status of a plan that failed, with the memory that would do before the next step.
absl::Status WithEnoughMemory(const absl::Status& status, const Network& network, const AcceleratorParams& params) {
  const std::string code = ir::ErrorCode(status), message(status.message());
  if (code != "E-ACC-012" && code != "E-ACC-013") return status;
  const size_t end = std::min(message.find('\n'), message.size());
  return absl::InvalidArgumentError(message.substr(0, end) + EnoughMemory(network, params) + message.substr(end));
}

// The best plan that is found, by the quick estimate's verdict: pieces for the first and the last layer, doubled as long as that
// helps; the part of the weight memory for weights that stay; then one decision at a time (hls/plan_search.h).
absl::StatusOr<Candidate> FindPlan(const Network& network, const AcceleratorParams& params, const MemoryModel& memory) {
  Candidate best;
  best.options.bytes_per_cycle = memory.bytes_per_cycle;
  const auto plan = [&](Candidate& candidate) -> absl::Status {
    HEDDLE_ASSIGN_OR_RETURN(candidate.plan, PlanNetwork(network, params, candidate.options));
    HEDDLE_ASSIGN_OR_RETURN(candidate.cycles, PlanCycles(network, params, memory, candidate.plan));
    return absl::OkStatus();
  };
  if (const absl::Status first = plan(best); !first.ok()) return WithEnoughMemory(first, network, params);
  const auto better = [&](const PlanOptions& options) {
    Candidate candidate;
    candidate.options = options;
    if (!plan(candidate).ok() || candidate.cycles >= best.cycles) return false;
    best = std::move(candidate);
    return true;
  };
  for (int PlanOptions::*pieces : {&PlanOptions::input_pieces, &PlanOptions::output_pieces}) {
    for (int count = 2; count <= 16; count *= 2) {
      PlanOptions options = best.options;
      options.*pieces = count;
      if (!better(options)) break;
    }
  }
  const bool all_resident = std::all_of(best.plan.layers.begin(), best.plan.layers.end(), [](const LayerPlan& p) { return p.weights_resident; });
  for (const double part : {0.25, 0.5, 0.75}) {
    PlanOptions options = best.options;
    options.resident_part = part;
    if (!all_resident) better(options);
  }
  const PlanCost cost = [&](const Plan& candidate) { return PlanCycles(network, params, memory, candidate); };
  HEDDLE_ASSIGN_OR_RETURN(best.plan, ImprovePlan(network, params, best.options, std::move(best.plan), cost));
  return best;
}

}  // namespace

absl::StatusOr<CompiledProgram> CompileRegion(const ir::Graph& region, const AcceleratorParams& params, const MemoryModel& memory) {
  HEDDLE_RETURN_IF_ERROR(CheckParams(params));
  HEDDLE_ASSIGN_OR_RETURN(const Network network, LowerRegion(region, params));
  HEDDLE_ASSIGN_OR_RETURN(Candidate found, FindPlan(network, params, memory));
  HEDDLE_ASSIGN_OR_RETURN(CompiledProgram program, MakeProgram(network, params, memory, found.options, std::move(found.plan), true));
  program.name = region.name();
  return program;
}

ir::Support SupportsNode(const ir::Graph& graph, const ir::Node& node, const AcceleratorParams& params) {
  const ir::Graph region = ir::ExtractRegion(graph, {node.id});
  const auto network = LowerRegion(region, params);
  absl::Status status = network.status();
  if (network.ok()) status = WithEnoughMemory(PlanNetwork(*network, params, {}).status(), *network, params);
  if (status.ok()) return ir::Support::Yes();
  const std::string code = ir::ErrorCode(status), message(status.message());
  return ir::Support::No(code, message.substr(std::min(message.size(), code.size() + 2)));
}

namespace {

// From the first compute instruction's start to the last one's end.
int64_t ComputeSpan(const CompiledProgram& program, const ProgramTiming& timing) {
  int64_t first = timing.total_cycles, last = 0;
  for (size_t i = 0; i < timing.instructions.size(); ++i) {
    if (program.run[i].header.opcode != Opcode::kCompute) continue;
    first = std::min(first, timing.instructions[i].start_cycles);
    last = std::max(last, timing.instructions[i].end_cycles);
  }
  return std::max<int64_t>(0, last - first);
}

}  // namespace

absl::StatusOr<ir::Cost> EstimateRegionCost(const ir::Graph& graph, const std::vector<ir::NodeId>& nodes, const AcceleratorParams& params,
                                            const MemoryModel& memory) {
  const ir::Graph region = ir::ExtractRegion(graph, nodes);
  HEDDLE_ASSIGN_OR_RETURN(const Network network, LowerRegion(region, params));
  PlanOptions options;
  options.bytes_per_cycle = memory.bytes_per_cycle;
  HEDDLE_ASSIGN_OR_RETURN(Plan plan, PlanNetwork(network, params, options));
  HEDDLE_ASSIGN_OR_RETURN(const CompiledProgram program, MakeProgram(network, params, memory, options, std::move(plan), false));
  HEDDLE_ASSIGN_OR_RETURN(const ProgramTiming timing, EstimateProgram(params, memory, program.run));
  ir::Cost cost;
  cost.cycles = ComputeSpan(program, timing);
  cost.time_us = static_cast<double>(cost.cycles) / params.clock_mhz;
  cost.provenance = ir::Provenance::kModelled;
  cost.source = fmt::format("fast model: {} cycles at {} MHz, its input on chip", cost.cycles, params.clock_mhz);
  cost.bytes_moved = program.dram_bytes_read + program.dram_bytes_written;
  return cost;
}

}  // namespace heddle::hls
