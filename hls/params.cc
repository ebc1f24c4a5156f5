// The table of the accelerator's parameters with their ranges, and everything that derives from the table: checks, JSON
// in and out. A parameter is added by one line in kTable and one member.

#include "hls/params.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <nlohmann/json.hpp>

#include "ir/check.h"
#include "ir/status.h"

namespace heddle::hls {
namespace {

struct TableRow {
  ParamRange range;
  int AcceleratorParams::* number = nullptr;
  bool AcceleratorParams::* flag = nullptr;
};

const std::vector<TableRow>& Table() {
  using P = AcceleratorParams;
  static const std::vector<TableRow>* const table = new std::vector<TableRow>{
      {{"contraction_lanes", 4, 64, false, 4, "R: products that each column adds in a cycle"}, &P::contraction_lanes},
      {{"output_lanes", 4, 64, true, 1, "C: columns; output channels of a block"}, &P::output_lanes},
      {{"requantise_lanes", 1, 64, true, 1, "results requantised in a cycle, at most C"}, &P::requantise_lanes},
      {{"activation_bytes", 4096, 1 << 22, false, 4096, "bytes of activation memory"}, &P::activation_bytes},
      {{"weight_words", 16, 1 << 16, false, 1, "R x C tiles of weight memory"}, &P::weight_words},
      {{"parameter_blocks", 2, 4096, false, 1, "blocks of C channels in the parameter memory"}, &P::parameter_blocks},
      {{"axi_data_bits", 32, 512, true, 1, "width of the AXI4 data bus"}, &P::axi_data_bits},
      {{"axi_address_bits", 32, 64, false, 1, "width of the AXI4 address bus"}, &P::axi_address_bits},
      {{"burst_beats", 1, 256, true, 1, "longest burst in beats; times the beat's bytes at most 4096"}, &P::burst_beats},
      {{"outstanding_reads", 1, 64, true, 1, "read bursts in flight"}, &P::outstanding_reads},
      {{"outstanding_writes", 1, 64, true, 1, "write bursts in flight"}, &P::outstanding_writes},
      {{"load_queue", 1, 64, true, 1, "instructions queued for the load unit"}, &P::load_queue},
      {{"compute_queue", 1, 64, true, 1, "instructions queued for the compute unit"}, &P::compute_queue},
      {{"store_queue", 1, 64, true, 1, "instructions queued for the store unit"}, &P::store_queue},
      {{"depthwise", 0, 1, false, 1, "the depthwise window and its read port"}, nullptr, &P::depthwise},
      {{"pooling", 0, 1, false, 1, "max reduction"}, nullptr, &P::pooling},
      {{"elementwise", 0, 1, false, 1, "second operand in the drain: add, multiply"}, nullptr, &P::elementwise},
      {{"lookup", 0, 1, false, 1, "256-entry lookup tables in the drain"}, nullptr, &P::lookup},
      {{"lookup_tables", 1, 16, true, 1, "lookup tables held at once"}, &P::lookup_tables},
      {{"soft_multipliers", 0, 64, false, 2, "multipliers of the array made of look-up tables instead of DSP blocks"}, &P::soft_multipliers},
  };
  return *table;
}

absl::Status CheckRange(const TableRow& row, int value) {
  const ParamRange& range = row.range;
  const bool in_range = value >= range.low && value <= range.high && value % range.multiple_of == 0 &&
                        (!range.power_of_two || std::has_single_bit(static_cast<unsigned>(value)));
  if (in_range) return absl::OkStatus();
  const std::string rule = range.power_of_two       ? "a power of two from "
                           : range.multiple_of != 1 ? fmt::format("a multiple of {} from ", range.multiple_of)
                                                    : "";
  return ir::UserError("E-ACCEL-001",
                       fmt::format("accelerator parameter {} is {}; expected {}{} to {}", range.name, value, rule, range.low,
                                   range.high),
                       "change it in the target file");
}

int ValueOf(const AcceleratorParams& params, const TableRow& row) {
  return row.number ? params.*row.number : static_cast<int>(params.*row.flag);
}

}  // namespace

int AcceleratorParams::bank_bytes() const {
  const int half_read = static_cast<int>(std::bit_ceil(static_cast<unsigned>(contraction_lanes))) / 2;
  return std::max({output_lanes, half_read, beat_bytes() / kActivationBanks});
}

const std::vector<ParamRange>& ParamRanges() {
  static const std::vector<ParamRange>* const ranges = [] {
    auto* result = new std::vector<ParamRange>;
    for (const TableRow& row : Table()) result->push_back(row.range);
    return result;
  }();
  return *ranges;
}

int ParamValue(const AcceleratorParams& params, const std::string& name) {
  for (const TableRow& row : Table()) {
    if (row.range.name == name) return ValueOf(params, row);
  }
  HEDDLE_CHECK(false, "no accelerator parameter " + name);
  return 0;
}

absl::Status CheckParams(const AcceleratorParams& params) {
  for (const TableRow& row : Table()) HEDDLE_RETURN_IF_ERROR(CheckRange(row, ValueOf(params, row)));
  const auto conflict = [](const std::string& message) {
    return ir::UserError("E-ACCEL-002", message, "change one of the two in the target file");
  };
  if (params.requantise_lanes > params.output_lanes) {
    return conflict(fmt::format("requantise_lanes is {}; expected at most output_lanes, {}", params.requantise_lanes,
                                params.output_lanes));
  }
  if (params.burst_beats * params.beat_bytes() > 4096) {
    return conflict(fmt::format("burst_beats {} of {} bytes make {} bytes; expected at most 4096", params.burst_beats,
                                params.beat_bytes(), params.burst_beats * params.beat_bytes()));
  }
  if (params.soft_multipliers > params.paired_multipliers()) {
    return conflict(fmt::format("soft_multipliers is {}; expected at most the {} multipliers that serve two columns", params.soft_multipliers,
                                params.paired_multipliers()));
  }
  if (!(params.clock_mhz > 0 && params.clock_mhz <= 2000)) {
    return ir::UserError("E-ACCEL-001", fmt::format("clock_mhz is {}; expected above 0 to 2000", params.clock_mhz),
                         "change it in the target file");
  }
  return absl::OkStatus();
}

absl::StatusOr<AcceleratorParams> ParamsFromJson(const nlohmann::json& json) {
  const auto wrong = [](const std::string& message) {
    return ir::UserError("E-ACCEL-003", message, "correct the accelerator section of the target file");
  };
  if (!json.is_object()) return wrong("accelerator parameters are not a JSON object");
  AcceleratorParams params;
  for (const auto& [key, value] : json.items()) {
    if (key == "clock_mhz") {
      if (!value.is_number()) return wrong("clock_mhz is not a number");
      params.clock_mhz = value.get<double>();
      continue;
    }
    const auto row = std::find_if(Table().begin(), Table().end(), [&](const TableRow& r) { return r.range.name == key; });
    if (row == Table().end()) return wrong(fmt::format("unknown accelerator parameter {}", key));
    if (row->flag) {
      if (!value.is_boolean()) return wrong(fmt::format("accelerator parameter {} is not true or false", key));
      params.*row->flag = value.get<bool>();
    } else {
      if (!value.is_number_integer()) return wrong(fmt::format("accelerator parameter {} is not an integer", key));
      constexpr int64_t kMost = int64_t{1} << 30;
      const bool huge = value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{kMost};
      params.*row->number = static_cast<int>(huge ? kMost : std::clamp<int64_t>(value.get<int64_t>(), -1, kMost));
    }
  }
  for (const TableRow& row : Table()) HEDDLE_RETURN_IF_ERROR(CheckRange(row, ValueOf(params, row)));
  params.requantise_lanes = std::min(params.requantise_lanes, params.output_lanes);
  params.soft_multipliers = std::min(params.soft_multipliers, params.paired_multipliers());
  HEDDLE_RETURN_IF_ERROR(CheckParams(params));
  return params;
}

nlohmann::json ParamsToJson(const AcceleratorParams& params) {
  nlohmann::json json = nlohmann::json::object();
  for (const TableRow& row : Table()) {
    if (row.flag) {
      json[row.range.name] = params.*row.flag;
    } else {
      json[row.range.name] = params.*row.number;
    }
  }
  json["clock_mhz"] = params.clock_mhz;
  return json;
}

}  // namespace heddle::hls
