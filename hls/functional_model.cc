// The instruction set's semantics in plain C++. Kept as close to the wording of isa.h as possible; the only concession to
// speed is that the inner loops run over contiguous int8, so that the compiler vectorises them.

#include "hls/functional_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <random>

#include "ir/check.h"
#include "ir/requantise.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

constexpr int kUnits = 3;  // load, compute, store
constexpr int kTokenLimit = 255;
constexpr const char* kUnitNames[kUnits] = {"load", "compute", "store"};

int UnitOf(Opcode opcode) { return static_cast<int>(opcode) - 1; }
std::array<uint32_t, kUnits> Waits(const HeaderFields& h) { return {h.wait_load, h.wait_compute, h.wait_store}; }
std::array<uint32_t, kUnits> Signals(const HeaderFields& h) { return {h.signal_load, h.signal_compute, h.signal_store}; }

absl::Status OutsideError(const char* what, int64_t address, int64_t size) {
  return ir::UserError("E-PROGRAM-005", fmt::format("{} address {} lies outside the {} bytes there are", what, address, size));
}

int8_t ClampTo(int64_t value, int32_t low, int32_t high) {
  return static_cast<int8_t>(value < low ? low : value > high ? high : value);
}

uint32_t WordAt(const std::vector<uint8_t>& bytes, size_t at) {
  return bytes[at] | bytes[at + 1] << 8 | bytes[at + 2] << 16 | static_cast<uint32_t>(bytes[at + 3]) << 24;
}

// Token counters and the three instruction queues.
struct Units {
  std::array<std::deque<const Instruction*>, kUnits> queues;
  uint32_t tokens[kUnits][kUnits] = {};  // [from][to]

  bool CanRun(int unit) const {
    if (queues[unit].empty()) return false;
    const auto waits = Waits(queues[unit].front()->header);
    for (int from = 0; from < kUnits; ++from) {
      if (tokens[from][unit] < waits[from]) return false;
    }
    return true;
  }
  // Whether the unit's instruction is the first of the program that has not run yet.
  bool IsNext(int unit) const {
    return std::all_of(queues.begin(), queues.end(),
                       [&](const auto& queue) { return queue.empty() || queue.front() >= queues[unit].front(); });
  }
  bool Done() const { return std::all_of(queues.begin(), queues.end(), [](const auto& q) { return q.empty(); }); }
  absl::Status Deadlock() const {
    std::string text = "no unit can go on:";
    for (int unit = 0; unit < kUnits; ++unit) {
      if (queues[unit].empty()) continue;
      text += fmt::format(" {} waits before \"{}\" and has tokens", kUnitNames[unit], Disassemble(*queues[unit].front()));
      for (int from = 0; from < kUnits; ++from) {
        if (from != unit) text += fmt::format(" {}={}", kUnitNames[from], tokens[from][unit]);
      }
      text += ";";
    }
    return ir::UserError("E-PROGRAM-006", text);
  }
};

}  // namespace

FunctionalModel::FunctionalModel(const AcceleratorParams& params)
    : params_(params),
      activations_(params.activation_bytes),
      weights_(static_cast<size_t>(params.weight_words) * params.weight_tile_bytes()),
      parameters_(static_cast<size_t>(params.parameter_blocks) * params.output_lanes),
      lookup_(static_cast<size_t>(params.lookup_tables) * kLookupEntries),
      accumulators_(params.output_lanes),
      window_(static_cast<size_t>(kWindowColumns) * kWindowRows * params.output_lanes) {}

absl::Status FunctionalModel::Run(const std::vector<Instruction>& program, std::vector<uint8_t>& dram, uint64_t seed) {
  Units units;
  for (const Instruction& instruction : program) {
    if (instruction.header.opcode == Opcode::kEnd) break;
    units.queues[UnitOf(instruction.header.opcode)].push_back(&instruction);
  }
  std::mt19937_64 random(seed);
  while (!units.Done()) {
    std::vector<int> ready;
    for (int unit = 0; unit < kUnits; ++unit) {
      if (units.CanRun(unit) && (seed != 0 || units.IsNext(unit))) ready.push_back(unit);
    }
    if (ready.empty()) return units.Deadlock();
    const int unit = seed == 0 ? ready.front() : ready[random() % ready.size()];
    const Instruction& instruction = *units.queues[unit].front();
    units.queues[unit].pop_front();
    const auto waits = Waits(instruction.header);
    const auto signals = Signals(instruction.header);
    for (int other = 0; other < kUnits; ++other) units.tokens[other][unit] -= waits[other];
    HEDDLE_RETURN_IF_ERROR(Execute(instruction, dram));
    for (int other = 0; other < kUnits; ++other) {
      units.tokens[unit][other] += signals[other];
      if (units.tokens[unit][other] > kTokenLimit) {
        return ir::UserError("E-PROGRAM-007", fmt::format("more than {} tokens from {} to {}", kTokenLimit, kUnitNames[unit],
                                                          kUnitNames[other]));
      }
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionalModel::Execute(const Instruction& instruction, std::vector<uint8_t>& dram) {
  HEDDLE_RETURN_IF_ERROR(CheckInstruction(params_, instruction));
  if (instruction.header.opcode == Opcode::kCompute) return Compute(instruction.compute);
  return Transfer(instruction, dram);
}

absl::Status FunctionalModel::Transfer(const Instruction& instruction, std::vector<uint8_t>& dram) {
  const TransferFields& t = instruction.transfer;
  std::vector<uint8_t> stream;
  for (int64_t plane = 0; plane < t.planes; ++plane) {
    for (int64_t row = 0; row < t.rows; ++row) {
      const int64_t from = int64_t{t.dram_address} + plane * t.dram_plane_step + row * t.dram_row_step;
      if (t.bytes > 0 && (from < 0 || from + t.bytes > static_cast<int64_t>(dram.size()))) {
        return OutsideError("DRAM", from, static_cast<int64_t>(dram.size()));
      }
      const int64_t to = int64_t{t.sram_address} + plane * t.sram_plane_step + row * t.sram_row_step;
      if (t.target != Target::kActivations) {
        stream.insert(stream.end(), dram.begin() + from, dram.begin() + from + t.bytes);
      } else if (instruction.header.opcode == Opcode::kLoad) {
        std::copy_n(reinterpret_cast<const int8_t*>(dram.data()) + from, t.bytes, activations_.begin() + to);
      } else {
        std::copy_n(activations_.begin() + to, t.bytes, reinterpret_cast<int8_t*>(dram.data()) + from);
      }
    }
  }
  return FillWords(t, stream);
}

absl::Status FunctionalModel::FillWords(const TransferFields& fields, const std::vector<uint8_t>& stream) {
  if (stream.empty()) return absl::OkStatus();
  if (fields.target == Target::kLookup) {
    std::copy(stream.begin(), stream.end(), lookup_.begin() + int64_t{fields.sram_address} * kLookupEntries);
  } else if (fields.target == Target::kWeights) {
    const int pitch = params_.weight_word_pitch_bytes();
    const int tile = params_.weight_tile_bytes();
    for (size_t word = 0; word < stream.size() / pitch; ++word) {
      std::copy_n(stream.begin() + word * pitch, tile, weights_.begin() + (fields.sram_address + word) * tile);
    }
  } else {
    const int pitch = params_.parameter_word_pitch_bytes();
    const int lanes = params_.requantise_lanes;
    for (size_t word = 0; word < stream.size() / pitch; ++word) {
      for (int lane = 0; lane < lanes; ++lane) {
        ChannelParameters& channel = parameters_[(fields.sram_address + word) * lanes + lane];
        channel.bias = static_cast<int32_t>(WordAt(stream, word * pitch + 4 * lane));
        channel.multiplier = static_cast<int32_t>(WordAt(stream, word * pitch + 4 * lanes + 4 * lane) & 0x7fffffff);
        channel.shift = stream[word * pitch + 8 * lanes + lane] & 63;
      }
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionalModel::Compute(const ComputeFields& fields) {
  for (int64_t block = 0; block < fields.blocks; ++block) {
    for (int64_t out_row = 0; out_row < fields.out_rows; ++out_row) {
      HEDDLE_RETURN_IF_ERROR(ComputeRow(fields, block, out_row));
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionalModel::ComputeRow(const ComputeFields& f, int64_t block, int64_t out_row) {
  const int64_t steps_per_pixel = int64_t{f.kernel_rows} * f.kernel_columns * f.passes;
  std::fill(window_.begin(), window_.end(), static_cast<int8_t>(f.pad_value));
  for (int64_t x_step = 0; x_step < f.x_steps; ++x_step) {
    if (!f.continue_accumulation) {
      std::fill(accumulators_.begin(), accumulators_.end(), 0);
      fresh_ = true;
    }
    int64_t word = f.weight_base + (f.shared_weights ? 0 : block * steps_per_pixel);
    for (int64_t ky = 0; ky < f.kernel_rows; ++ky) {
      for (int64_t kx = 0; kx < f.kernel_columns; ++kx) {
        for (int64_t pass = 0; pass < f.passes; ++pass) {
          HEDDLE_RETURN_IF_ERROR(RunStep(f, {block, out_row, x_step, ky, kx, pass}, word++));
        }
      }
    }
    if (f.hold_accumulation) continue;
    if (!f.window) {
      HEDDLE_RETURN_IF_ERROR(DrainPixel(f, block, out_row, x_step));
    } else if (x_step >= f.first_emit && (x_step - f.first_emit) % f.emit_stride == 0) {
      HEDDLE_RETURN_IF_ERROR(DrainPixel(f, block, out_row, (x_step - f.first_emit) / f.emit_stride));
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionalModel::RunStep(const ComputeFields& f, const Step& s, int64_t weight_word) {
  const int64_t row = f.first_row + s.out_row * f.row_stride + s.kernel_row * f.kernel_row_stride;
  const int64_t x = f.first_x + s.x_step * f.x_step + s.kernel_column * f.kernel_column_step +
                    s.pass * params_.contraction_lanes;
  // in_base is taken modulo 2^24, so that rows above the tensor need no sign.
  const int64_t address =
      (f.in_base + s.block * f.in_block_step + s.out_row * f.in_row_step + s.kernel_row * f.kernel_row_step + x) & 0xffffff;
  switch (f.reduce) {
    case Reduce::kDot: return DotStep(f, address, row, x, weight_word);
    case Reduce::kLoad: return LoadStep(f, address, row, x);
    case Reduce::kDepthwise:
    case Reduce::kMax: return VectorStep(f, address, row, x, weight_word);
  }
  return absl::OkStatus();
}

absl::Status FunctionalModel::DotStep(const ComputeFields& f, int64_t address, int64_t row, int64_t x, int64_t weight_word) {
  const int lanes = params_.output_lanes;
  const int8_t* tile = &weights_[weight_word * params_.weight_tile_bytes()];
  const bool row_inside = row >= 0 && row < f.in_rows;
  for (int r = 0; r < params_.contraction_lanes; ++r) {
    const int8_t* weight_row = tile + r * lanes;
    int32_t value = f.pad_value;
    if (row_inside && x + r >= 0 && x + r < f.in_row_bytes) {
      const int64_t at = (address + r) & 0xffffff;
      if (Inside(at)) {
        value = activations_[at];
      } else if (std::any_of(weight_row, weight_row + lanes, [](int8_t w) { return w != 0; })) {
        return OutsideError("activation", at, static_cast<int64_t>(activations_.size()));
      }
    }
    for (int c = 0; c < lanes; ++c) {
      accumulators_[c] = static_cast<int32_t>(static_cast<uint32_t>(accumulators_[c]) + static_cast<uint32_t>(value * weight_row[c]));
    }
  }
  return absl::OkStatus();
}

absl::Status FunctionalModel::LoadStep(const ComputeFields& f, int64_t address, int64_t row, int64_t x) {
  for (int c = 0; c < params_.output_lanes; ++c) {
    int8_t value = static_cast<int8_t>(f.pad_value);
    if (row >= 0 && row < f.in_rows && x + c >= 0 && x + c < f.in_row_bytes) {
      const int64_t at = (address + c) & 0xffffff;
      if (Inside(at)) value = activations_[at];
    }
    accumulators_[c] = value;
  }
  return absl::OkStatus();
}

absl::Status FunctionalModel::VectorStep(const ComputeFields& f, int64_t address, int64_t row, int64_t x, int64_t weight_word) {
  const int lanes = params_.output_lanes;
  const int column = kWindowRows * lanes;
  if (f.window) {
    std::copy_backward(window_.begin(), window_.end() - column, window_.end());
  } else {
    std::fill(window_.begin(), window_.end(), static_cast<int8_t>(f.pad_value));
  }
  for (int j = 0; j < kWindowRows; ++j) {
    const int64_t vector_row = row + int64_t{j} * f.vector_row_stride;
    const int64_t at = (address + int64_t{j} * f.vector_row_step) & 0xffffff;
    const bool inside = j < static_cast<int>(f.vector_rows) && vector_row >= 0 && vector_row < f.in_rows && x >= 0 &&
                        x < f.in_row_bytes;
    int8_t* to = &window_[j * lanes];
    if (!inside) {
      std::fill_n(to, lanes, static_cast<int8_t>(f.pad_value));
      continue;
    }
    if (!Inside(at) || !Inside(at + lanes - 1)) return OutsideError("activation", at, static_cast<int64_t>(activations_.size()));
    std::copy_n(activations_.begin() + at, lanes, to);
  }
  ReduceWindow(f, weight_word);
  return absl::OkStatus();
}

void FunctionalModel::ReduceWindow(const ComputeFields& f, int64_t weight_word) {
  const int lanes = params_.output_lanes;
  for (int c = 0; c < lanes; ++c) {
    if (f.reduce == Reduce::kMax) {
      int32_t greatest = fresh_ ? -128 : accumulators_[c];
      for (int age = 0; age < static_cast<int>(f.window_columns); ++age) {
        for (int j = 0; j < static_cast<int>(f.vector_rows); ++j) {
          greatest = std::max<int32_t>(greatest, window_[(age * kWindowRows + j) * lanes + c]);
        }
      }
      accumulators_[c] = greatest;
      continue;
    }
    uint32_t sum = static_cast<uint32_t>(accumulators_[c]);
    const int8_t* tile = &weights_[weight_word * params_.weight_tile_bytes()];
    const int split = params_.split_lanes();
    for (int tap = 0; tap < params_.window_taps(); ++tap) {
      const auto add = [&](int lane, int column) {
        sum += static_cast<uint32_t>(int32_t{window_[tap * lanes + column]} * tile[lane * lanes + c]);
      };
      if (tap < split) {
        add(tap, c);
      } else {
        for (int side = 0; side < 2; ++side) add(params_.depthwise_lane(tap, side), c - c % 2 + side);
      }
    }
    accumulators_[c] = static_cast<int32_t>(sum);
  }
  fresh_ = false;
}

absl::Status FunctionalModel::DrainPixel(const ComputeFields& f, int64_t block, int64_t out_row, int64_t out_x) {
  const int lanes = params_.output_lanes;
  const int channels = block + 1 == f.blocks ? static_cast<int>(f.last_block_channels) : lanes;
  const int64_t b_address = f.b_base + block * f.b_block_step + out_row * f.b_row_step + out_x * f.b_x_step;
  const int64_t out_address = f.out_base + block * f.out_block_step + out_row * f.out_row_step + out_x * f.out_x_step;
  const int64_t parameter = (f.param_base + block * f.param_block_step) * lanes;
  std::vector<int8_t> results(channels);
  for (int c = 0; c < channels; ++c) {
    const int8_t operand_b = f.use_b ? activations_[b_address + c] : int8_t{0};
    const ChannelParameters parameters = f.drain == Drain::kPass ? ChannelParameters{} : parameters_[parameter + c];
    if (f.drain != Drain::kPass && f.rounding == RoundingField::kDoublingHighMul && parameters.shift < 31) {
      return ir::UserError("E-PROGRAM-004", fmt::format("shift of parameter {} is {}; expected 31 to 62 with doubling high "
                                                        "multiply", parameter + c, parameters.shift));
    }
    if (const int64_t sum = DrainSum(f, accumulators_[c], operand_b, parameters);
        f.wide == 0 && (sum > kGreatestNarrowSum || sum < -kGreatestNarrowSum - 1)) {
      return ir::UserError("E-PROGRAM-009", fmt::format("the drain of channel {} in block {} scales {} without wide; expected {} to {}", c,
                                                        block, sum, -kGreatestNarrowSum - 1, kGreatestNarrowSum),
                           "set wide in this instruction");
    }
    results[c] = DrainChannel(f, accumulators_[c], operand_b, parameters);
  }
  std::copy(results.begin(), results.end(), activations_.begin() + out_address);
  return absl::OkStatus();
}

// What is scaled: an int32 that wraps.
int32_t FunctionalModel::DrainSum(const ComputeFields& f, int32_t accumulator, int8_t operand_b, const ChannelParameters& parameters) {
  if (f.drain == Drain::kPass) return accumulator;
  const uint32_t raw = f.drain == Drain::kRequantise
                           ? static_cast<uint32_t>(accumulator)
                           : static_cast<uint32_t>((static_cast<int8_t>(accumulator) - f.a_zero) * (operand_b - f.b_zero));
  return static_cast<int32_t>(raw + static_cast<uint32_t>(parameters.bias));
}

int8_t FunctionalModel::DrainChannel(const ComputeFields& f, int32_t accumulator, int8_t operand_b,
                                     const ChannelParameters& parameters) {
  int32_t y = 0;
  if (f.drain == Drain::kPass) {
    y = ClampTo(accumulator, f.clamp_low, f.clamp_high);
  } else {
    const int32_t sum = DrainSum(f, accumulator, operand_b, parameters);
    const int64_t scaled = ir::ScaleValue(sum, {parameters.multiplier, parameters.shift}, static_cast<ir::Rounding>(f.rounding));
    y = ClampTo(scaled + f.out_zero, f.clamp_low, f.clamp_high);
  }
  if (f.use_lookup) y = lookup_[f.lookup_table * kLookupEntries + y + 128];
  if (f.add_b) {
    const int64_t sum = int64_t{y - f.a_zero} * f.a_multiplier + int64_t{operand_b - f.b_zero} * f.b_multiplier;
    y = ClampTo(ir::ShiftRightHalfEven(sum, static_cast<int>(f.add_shift)) + f.add_zero, f.add_low, f.add_high);
  }
  return static_cast<int8_t>(y);
}

}  // namespace heddle::hls
