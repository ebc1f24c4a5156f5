// The accelerator's parameters: the one description that the compiler, the RTL generator, the models, the resource
// estimate and the documents read. Ranges stand in the table of params.cc; what follows from the parameters (word sizes,
// pitches, bank widths) is computed here and nowhere else.
#ifndef HEDDLE_HLS_PARAMS_H_
#define HEDDLE_HLS_PARAMS_H_

#include <absl/status/status.h>
#include <absl/status/statusor.h>

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

namespace heddle::hls {

// Number of banks of the activation memory. Four let three rows of a depthwise window be read in one cycle.
inline constexpr int kActivationBanks = 4;
inline constexpr int kInstructionBytes = 128;
// Rows and columns of the depthwise window: (columns by age) x (rows).
inline constexpr int kWindowRows = 3;
inline constexpr int kWindowColumns = 3;
inline constexpr int kLookupEntries = 256;

struct AcceleratorParams {
  int contraction_lanes = 16;   // R: products that each column adds in a cycle; a multiple of 4
  int output_lanes = 16;        // C: columns, output channels of a block; a power of two
  int requantise_lanes = 4;     // results requantised in a cycle; a power of two, at most C
  int activation_bytes = 65536; // activation memory, a multiple of 4096
  int weight_words = 512;       // weight memory, in tiles of R x C int8
  int parameter_blocks = 64;    // parameter memory, in blocks of C output channels
  int axi_data_bits = 64;       // a power of two
  int axi_address_bits = 32;
  int burst_beats = 16;         // longest AXI burst, a power of two; a burst never crosses 4 KiB
  int outstanding_reads = 4;    // read bursts in flight, a power of two
  int outstanding_writes = 4;   // write bursts in flight
  int load_queue = 4;           // instructions waiting in front of each unit, powers of two
  int compute_queue = 4;
  int store_queue = 4;
  bool depthwise = true;        // reduce = depthwise
  bool pooling = true;          // reduce = max
  bool elementwise = true;      // drain = multiply, add_b, use_b
  bool lookup = true;           // use_lookup
  int lookup_tables = 2;        // 256-entry tables held at once, a power of two
  int soft_multipliers = 0;     // multipliers of the array made of look-up tables; a multiple of 2
  double clock_mhz = 100.0;

  bool operator==(const AcceleratorParams&) const = default;

  // --- What follows ---
  int peak_macs_per_cycle() const { return contraction_lanes * output_lanes; }
  int beat_bytes() const { return axi_data_bits / 8; }
  // Bytes of one word of an activation bank, a power of two >= C: four words hold any R or C bytes, however aligned.
  int bank_bytes() const;
  int line_bytes() const { return kActivationBanks * bank_bytes(); }
  int bank_words() const { return activation_bytes / line_bytes(); }
  // Bytes that an unaligned read delivers: max(R, C).
  int read_bytes() const { return contraction_lanes > output_lanes ? contraction_lanes : output_lanes; }
  // Weight tile: R*C bytes, row-major [R][C]; in DRAM and for LOAD padded to whole beats.
  int weight_tile_bytes() const { return contraction_lanes * output_lanes; }
  int weight_beats_per_word() const { return (weight_tile_bytes() + beat_bytes() - 1) / beat_bytes(); }
  int weight_word_pitch_bytes() const { return weight_beats_per_word() * beat_bytes(); }
  // Cycles that the drain takes for one block of C results, and groups of requantise_lanes channels in a block.
  int drain_cycles() const { return output_lanes / requantise_lanes; }
  // Parameter word: one group of L = requantise_lanes channels, [L] int32 bias, [L] int32 multiplier, [L] uint8 shift,
  // little-endian, padded to whole beats; drain_cycles() words make a block.
  int parameter_word_bytes() const { return 9 * requantise_lanes; }
  int parameter_beats_per_word() const { return (parameter_word_bytes() + beat_bytes() - 1) / beat_bytes(); }
  int parameter_word_pitch_bytes() const { return parameter_beats_per_word() * beat_bytes(); }
  int parameter_block_pitch_bytes() const { return parameter_word_pitch_bytes() * drain_cycles(); }
  // The sliding 3x3 window needs nine multipliers a column.
  bool has_window() const { return contraction_lanes >= kWindowRows * kWindowColumns; }
  // Window bytes that a column multiplies in a depthwise step.
  int window_taps() const { return kWindowRows * (has_window() ? kWindowColumns : 1); }
  // Two columns, 2q and 2q + 1, share each lane's multiplier (two products of one byte), except in these first lanes, where
  // each column has its own: a depthwise step needs a multiplier for every tap of every column.
  int split_lanes() const {
    const int missing = 2 * window_taps() - contraction_lanes;
    return depthwise && missing > 0 ? missing : 0;
  }
  // Multipliers of the array that serve two columns each, and all of them.
  int paired_multipliers() const { return (contraction_lanes - split_lanes()) * output_lanes / 2; }
  int array_multipliers() const { return paired_multipliers() + split_lanes() * output_lanes; }
  // Row of the weight tile in which the depthwise weight of `tap` for `column` stands: beyond the split lanes a tap has two
  // lanes, one for the even and one for the odd columns.
  int depthwise_lane(int tap, int column) const {
    const int split = split_lanes();
    return tap < split ? tap : split + 2 * (tap - split) + column % 2;
  }
};

// One row of the parameter table: name as in JSON, legal range, what it is.
struct ParamRange {
  std::string name;
  int low = 0;
  int high = 0;
  bool power_of_two = false;
  int multiple_of = 1;
  std::string doc;
};
// The integer and boolean parameters in their order of declaration (clock_mhz is the only real one).
const std::vector<ParamRange>& ParamRanges();
// The value of the parameter `name` of ParamRanges() (booleans as 0 or 1).
int ParamValue(const AcceleratorParams& params, const std::string& name);

// Errors: E-ACCEL-001 a value out of its range, E-ACCEL-002 values that do not go together.
absl::Status CheckParams(const AcceleratorParams& params);

// JSON object with the members' names. Absent keys keep their default; an unknown key or a wrong type is E-ACCEL-003.
// requantise_lanes and soft_multipliers are cut to what the lanes leave room for, so that R and C can be changed alone.
// The result has passed CheckParams.
absl::StatusOr<AcceleratorParams> ParamsFromJson(const nlohmann::json& json);
nlohmann::json ParamsToJson(const AcceleratorParams& params);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_PARAMS_H_
