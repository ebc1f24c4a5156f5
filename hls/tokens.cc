// Token insertion. Programs are written as if everything ran in order; two instructions of different units that touch the
// same bytes, one of them writing, must keep that order. Each unit is in order itself, so for each pair of units only the
// latest conflicting instruction counts, and a wait that an earlier instruction of the unit made need not be made again.

#include "hls/tokens.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr int kUnits = 3;
constexpr int kTokenLimit = 255;
constexpr int64_t kAddressSpan = int64_t{1} << 24;
constexpr const char* kUnitNames[kUnits] = {"load", "compute", "store"};

int UnitOf(const Instruction& instruction) { return static_cast<int>(instruction.header.opcode) - 1; }

uint32_t& Wait(HeaderFields& h, int from) { return from == 0 ? h.wait_load : from == 1 ? h.wait_compute : h.wait_store; }
uint32_t& Signal(HeaderFields& h, int to) { return to == 0 ? h.signal_load : to == 1 ? h.signal_compute : h.signal_store; }
uint32_t Wait(const HeaderFields& h, int from) { return from == 0 ? h.wait_load : from == 1 ? h.wait_compute : h.wait_store; }
uint32_t Signal(const HeaderFields& h, int to) { return to == 0 ? h.signal_load : to == 1 ? h.signal_compute : h.signal_store; }

Access Strided(Space space, bool write, int64_t base, std::initializer_list<std::pair<int64_t, int64_t>> dims, int64_t bytes) {
  Access access{space, write, base, base + bytes};
  for (const auto& [count, step] : dims) (step < 0 ? access.begin : access.end) += (count - 1) * step;
  return access;
}

void TransferAccesses(const AcceleratorParams& params, const Instruction& instruction, std::vector<Access>& accesses) {
  const TransferFields& t = instruction.transfer;
  if (t.planes == 0 || t.rows == 0 || t.bytes == 0) return;
  const bool load = instruction.header.opcode == Opcode::kLoad;
  accesses.push_back(Strided(Space::kDram, !load, t.dram_address, {{t.rows, t.dram_row_step}, {t.planes, t.dram_plane_step}}, t.bytes));
  if (t.target == Target::kActivations) {
    accesses.push_back(Strided(Space::kActivations, load, t.sram_address, {{t.rows, t.sram_row_step}, {t.planes, t.sram_plane_step}}, t.bytes));
    return;
  }
  const int64_t total = int64_t{t.bytes} * t.rows * t.planes;
  const int64_t pitch = t.target == Target::kLookup    ? kLookupEntries
                        : t.target == Target::kWeights ? params.weight_word_pitch_bytes()
                                                       : params.parameter_word_pitch_bytes();
  const Space space = t.target == Target::kLookup    ? Space::kLookup
                      : t.target == Target::kWeights ? Space::kWeights
                                                     : Space::kParameters;
  accesses.push_back({space, true, t.sram_address, t.sram_address + total / pitch});
}

// Bytes that a step can read inside the input.
void InputAccess(const AcceleratorParams& params, const ComputeFields& c, std::vector<Access>& accesses) {
  const int64_t bytes = c.reduce == Reduce::kDot ? params.contraction_lanes : params.output_lanes;
  int64_t x_low = c.first_x, x_high = c.first_x + bytes + int64_t{c.passes - 1} * params.contraction_lanes;
  for (const auto& [count, step] : {std::pair<int64_t, int64_t>{c.x_steps, c.x_step}, {c.kernel_columns, c.kernel_column_step}}) {
    (step < 0 ? x_low : x_high) += (count - 1) * step;
  }
  const bool vectors = c.reduce == Reduce::kDepthwise || c.reduce == Reduce::kMax;
  x_low = std::max<int64_t>(x_low, 0);
  x_high = std::min<int64_t>(x_high, int64_t{c.in_row_bytes} + (vectors ? bytes - 1 : 0));
  if (x_low >= x_high) return;
  int64_t base = c.in_base;  // modulo 2^24: rows above the tensor may have wrapped
  Access access{Space::kActivations, false, kAddressSpan, 0};
  for (int64_t oy = 0; oy < c.out_rows; ++oy) {
    for (int64_t ky = 0; ky < c.kernel_rows; ++ky) {
      for (int64_t j = 0; j < (vectors ? c.vector_rows : 1); ++j) {
        const int64_t row = c.first_row + oy * c.row_stride + ky * c.kernel_row_stride + j * c.vector_row_stride;
        if (row < 0 || row >= c.in_rows) continue;
        int64_t address = (base + oy * c.in_row_step + ky * c.kernel_row_step + j * c.vector_row_step + x_low) & (kAddressSpan - 1);
        access.begin = std::min(access.begin, address);
        access.end = std::max(access.end, address + x_high - x_low);
      }
    }
  }
  if (access.begin >= access.end) return;
  (c.in_block_step < 0 ? access.begin : access.end) += int64_t{c.blocks - 1} * c.in_block_step;
  access.end = std::min<int64_t>(access.end, params.activation_bytes);
  accesses.push_back(access);
}

void ComputeAccesses(const AcceleratorParams& params, const ComputeFields& c, std::vector<Access>& accesses) {
  InputAccess(params, c, accesses);
  if (c.reduce == Reduce::kDot || c.reduce == Reduce::kDepthwise) {
    const int64_t words = int64_t{c.shared_weights ? 1 : c.blocks} * c.kernel_rows * c.kernel_columns * c.passes;
    accesses.push_back({Space::kWeights, false, c.weight_base, c.weight_base + words});
  }
  if (c.hold_accumulation) return;
  const int64_t pixels = c.window ? (c.x_steps - 1 - c.first_emit) / c.emit_stride + 1 : c.x_steps;
  const auto box = [&](bool write, int64_t base, int64_t x, int64_t row, int64_t block) {
    Access access = Strided(Space::kActivations, write, base, {{pixels, x}, {c.out_rows, row}, {c.blocks, block}}, c.last_block_channels);
    if (c.blocks > 1) {
      const Access others = Strided(Space::kActivations, write, base, {{pixels, x}, {c.out_rows, row}, {c.blocks - 1, block}}, params.output_lanes);
      access.begin = std::min(access.begin, others.begin);
      access.end = std::max(access.end, others.end);
    }
    accesses.push_back(access);
  };
  box(true, c.out_base, c.out_x_step, c.out_row_step, c.out_block_step);
  if (c.use_b) box(false, c.b_base, c.b_x_step, c.b_row_step, c.b_block_step);
  if (c.drain != Drain::kPass) {
    const int64_t words = params.drain_cycles();
    accesses.push_back({Space::kParameters, false, c.param_base * words, (c.param_base + int64_t{c.blocks - 1} * c.param_block_step + 1) * words});
  }
  if (c.use_lookup) accesses.push_back({Space::kLookup, false, c.lookup_table, int64_t{c.lookup_table} + 1});
}

bool Conflict(const std::vector<Access>& a, const std::vector<Access>& b) {
  for (const Access& x : a) {
    for (const Access& y : b) {
      if (x.space == y.space && (x.write || y.write) && x.begin < y.end && y.begin < x.end) return true;
    }
  }
  return false;
}

// The instructions of a program by unit, and what each touches.
struct ByUnit {
  std::array<std::vector<int>, kUnits> order;  // indices into the program
  std::vector<std::vector<Access>> accesses;

  ByUnit(const AcceleratorParams& params, const std::vector<Instruction>& program) : accesses(program.size()) {
    for (size_t i = 0; i < program.size(); ++i) accesses[i] = AccessesOf(params, program[i]);
  }
  // Position in `unit`'s order of the latest instruction so far that conflicts with i; -1, or at most `known`, where none above it.
  int LatestConflict(int unit, int i, int known) const {
    for (int k = static_cast<int>(order[unit].size()) - 1; k > known; --k) {
      if (Conflict(accesses[order[unit][k]], accesses[i])) return k;
    }
    return known;
  }
};

}  // namespace

std::vector<Access> AccessesOf(const AcceleratorParams& params, const Instruction& instruction) {
  std::vector<Access> accesses;
  if (instruction.header.opcode == Opcode::kCompute) {
    ComputeAccesses(params, instruction.compute, accesses);
  } else if (instruction.header.opcode != Opcode::kEnd) {
    TransferAccesses(params, instruction, accesses);
  }
  return accesses;
}

void AssignTokens(const AcceleratorParams& params, std::vector<Instruction>& program) {
  ByUnit units(params, program);
  int known[kUnits][kUnits];  // [unit][other]: position of the other's latest instruction that the unit has waited for
  for (auto& row : known) std::fill(std::begin(row), std::end(row), -1);
  for (size_t i = 0; i < program.size(); ++i) {
    if (program[i].header.opcode == Opcode::kEnd) break;
    const int unit = UnitOf(program[i]);
    for (int other = 0; other < kUnits; ++other) {
      Wait(program[i].header, other) = Signal(program[i].header, other) = 0;
      if (other == unit) continue;
      const int latest = units.LatestConflict(other, static_cast<int>(i), known[unit][other]);
      if (latest <= known[unit][other]) continue;
      known[unit][other] = latest;
      Wait(program[i].header, other) = 1;
      Signal(program[units.order[other][latest]].header, unit) = 1;
    }
    units.order[unit].push_back(static_cast<int>(i));
  }
}

absl::Status CheckTokens(const AcceleratorParams& params, const std::vector<Instruction>& program) {
  const auto error = [&](const char* code, size_t i, const std::string& text) {
    return ir::UserError(code, fmt::format("instruction {} \"{}\": {}", i, Disassemble(program[i]), text));
  };
  ByUnit units(params, program);
  // finished[i][u]: position of the latest instruction of unit u that is certain to have finished before i starts.
  std::vector<std::array<int, kUnits>> finished(program.size());
  std::array<std::array<std::vector<int>, kUnits>, kUnits> givers;  // [from][to]: program index of the giver of each token
  int64_t taken[kUnits][kUnits] = {};                               // [from][to]
  std::vector<std::array<int64_t, kUnits>> taken_by(program.size());  // tokens of each unit taken up to and by an instruction
  for (size_t i = 0; i < program.size(); ++i) {
    const HeaderFields& h = program[i].header;
    if (h.opcode == Opcode::kEnd) break;
    const int unit = UnitOf(program[i]);
    finished[i].fill(-1);
    const auto learn = [&](int index) {  // that instruction, and what it knew, has finished
      for (int u = 0; u < kUnits; ++u) finished[i][u] = std::max(finished[i][u], finished[index][u]);
    };
    if (!units.order[unit].empty()) {
      learn(units.order[unit].back());
      finished[i][unit] = static_cast<int>(units.order[unit].size()) - 1;
    }
    for (int from = 0; from < kUnits; ++from) {
      if (from == unit || Wait(h, from) == 0) continue;
      taken[from][unit] += Wait(h, from);
      const auto& list = givers[from][unit];
      if (taken[from][unit] > static_cast<int64_t>(list.size())) {
        return error("E-PROGRAM-006", i, fmt::format("waits for a token of {} that none before it gives", kUnitNames[from]));
      }
      const int giver = list[static_cast<size_t>(taken[from][unit] - 1)];
      learn(giver);
      const auto& order = units.order[from];
      finished[i][from] = std::max<int>(finished[i][from], static_cast<int>(std::lower_bound(order.begin(), order.end(), giver) - order.begin()));
    }
    for (int from = 0; from < kUnits; ++from) taken_by[i][from] = taken[from][unit];
    for (int other = 0; other < kUnits; ++other) {
      if (other == unit) continue;
      const int latest = units.LatestConflict(other, static_cast<int>(i), finished[i][other]);
      if (latest > finished[i][other]) {
        return error("E-PROGRAM-008", i, fmt::format("touches the same bytes as instruction {} of unit {}, and nothing orders the two",
                                                     units.order[other][latest], kUnitNames[other]));
      }
      for (uint32_t token = 0; token < Signal(h, other); ++token) givers[unit][other].push_back(static_cast<int>(i));
      // The other unit may lag: only what it is certain to have taken counts.
      const int certain = finished[i][other];
      const int64_t gone = certain < 0 ? 0 : taken_by[units.order[other][certain]][unit];
      if (static_cast<int64_t>(givers[unit][other].size()) - gone > kTokenLimit) {
        return error("E-PROGRAM-007", i, fmt::format("more than {} tokens from {} to {}", kTokenLimit, kUnitNames[unit], kUnitNames[other]));
      }
    }
    units.order[unit].push_back(static_cast<int>(i));
  }
  return absl::OkStatus();
}

}  // namespace heddle::hls
