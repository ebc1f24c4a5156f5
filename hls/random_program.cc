// Draws programs that obey isa.h. Geometry is that of real convolutions and poolings, so that padding, strides and dilation
// occur as they do in networks; data are random bytes, weights beyond a segment's end included, so that a wrong lane shows.
//
// The activation memory is cut in four: inputs, outputs, the target of loads and the source of stores that run meanwhile.

#include "hls/random_program.h"

#include <algorithm>
#include <random>

#include "ir/check.h"

namespace heddle::hls {
namespace {

constexpr int64_t kProgramBytes = 1 << 16;

int64_t RoundUp(int64_t value, int64_t unit) { return (value + unit - 1) / unit * unit; }

class Generator {
 public:
  Generator(const AcceleratorParams& params, uint64_t seed) : p_(params), random_(seed * 7919 + 1) {
    quarter_ = p_.activation_bytes / 4;
  }

  RandomProgram Make(int compute_instructions) {
    LayOut();
    AddInitialLoads();
    bool is_first = true;  // the only one that takes the loads' token, also where a second continues its accumulation
    for (int i = 0; i < compute_instructions; ++i) {
      Instruction compute = DrawCompute();
      compute.header.wait_load = is_first ? 1 : 0;
      is_first = false;
      compute.header.signal_store = i + 1 == compute_instructions ? 1 : 0;
      compute.compute.tag = static_cast<uint32_t>(i);
      if (Chance(2)) result_.program.push_back(DrawSideTransfer(Opcode::kLoad));
      if (Chance(2)) result_.program.push_back(DrawSideTransfer(Opcode::kStore));
      result_.program.push_back(compute);
      if (compute.compute.hold_accumulation) --i;
    }
    AddFinalStore();
    result_.program.push_back(Instruction{});
    const auto bytes = EncodeProgram(result_.program);
    HEDDLE_CHECK(bytes.ok() && bytes->size() <= kProgramBytes, "random program");
    std::copy(bytes->begin(), bytes->end(), result_.dram.begin());
    return std::move(result_);
  }

 private:
  int64_t Draw(int64_t low, int64_t high) { return low + static_cast<int64_t>(random_() % static_cast<uint64_t>(high - low + 1)); }
  bool Chance(int of) { return Draw(1, of) == 1; }

  void LayOut() {
    activations_ = kProgramBytes;
    weights_ = activations_ + p_.activation_bytes;
    parameters_ = weights_ + RoundUp(int64_t{p_.weight_words} * p_.weight_word_pitch_bytes(), 4096);
    lookup_ = parameters_ + RoundUp(int64_t{p_.parameter_blocks} * p_.parameter_block_pitch_bytes(), 4096);
    results_ = lookup_ + RoundUp(p_.lookup_tables * kLookupEntries, 4096);
    result_.dram.resize(results_ + 2 * p_.activation_bytes);
    for (int64_t i = kProgramBytes; i < results_; ++i) result_.dram[i] = static_cast<uint8_t>(random_());
    result_.result_address = results_;
    result_.result_bytes = 2 * p_.activation_bytes;
    const int lanes = p_.requantise_lanes;
    for (int64_t word = 0; word < int64_t{p_.parameter_blocks} * p_.drain_cycles(); ++word) {
      uint8_t* at = &result_.dram[parameters_ + word * p_.parameter_word_pitch_bytes()];
      for (int lane = 0; lane < lanes; ++lane) {
        // Large biases only where wide drains look for them.
        const bool large = word >= WideBlocks() * p_.drain_cycles();
        const int64_t bias = !Chance(8) ? Draw(-4000, 4000) : large ? static_cast<int32_t>(random_()) : Draw(-(1 << 23), 1 << 23);
        Put(at + 4 * lane, static_cast<uint32_t>(bias));
        Put(at + 4 * lanes + 4 * lane, static_cast<uint32_t>(Chance(4) ? Draw(0, 0x7fffffff) : Draw(1 << 30, 0x7fffffff)));
        // Shifts that scale sums of products into the range of int8, at times any that both rounding modes allow.
        at[8 * lanes + lane] = static_cast<uint8_t>(Chance(8) ? Draw(31, 62) : Draw(36, 44));
      }
    }
  }

  // The parameters of blocks from here on may make sums of more than 25 bits.
  int64_t WideBlocks() const { return std::max(3, p_.parameter_blocks / 2); }

  static void Put(uint8_t* at, uint32_t value) {
    for (int byte = 0; byte < 4; ++byte) at[byte] = static_cast<uint8_t>(value >> (8 * byte));
  }

  void AddLoad(Target target, int64_t dram, int64_t bytes) {
    Instruction load;
    load.header.opcode = Opcode::kLoad;
    load.transfer = {.target = target, .dram_address = static_cast<uint32_t>(dram), .bytes = static_cast<uint32_t>(bytes),
                     .rows = 1, .planes = 1};
    result_.program.push_back(load);
  }

  void AddInitialLoads() {
    AddLoad(Target::kActivations, activations_, p_.activation_bytes);
    AddLoad(Target::kWeights, weights_, int64_t{p_.weight_words} * p_.weight_word_pitch_bytes());
    AddLoad(Target::kParameters, parameters_, int64_t{p_.parameter_blocks} * p_.parameter_block_pitch_bytes());
    if (p_.lookup) AddLoad(Target::kLookup, lookup_, p_.lookup_tables * kLookupEntries);
    result_.program.back().header.signal_compute = 1;
    result_.program.back().header.signal_store = 1;
    Instruction nothing;  // takes the token, so that the stores that follow find their data loaded
    nothing.header = {.opcode = Opcode::kStore, .wait_load = 1};
    result_.program.push_back(nothing);
  }

  void AddFinalStore() {
    Instruction nothing;
    nothing.header = {.opcode = Opcode::kLoad, .signal_store = 1};
    result_.program.push_back(nothing);
    Instruction store;
    store.header = {.opcode = Opcode::kStore, .wait_load = 1, .wait_compute = 1};
    store.transfer = {.dram_address = static_cast<uint32_t>(results_), .bytes = static_cast<uint32_t>(p_.activation_bytes),
                      .rows = 1, .planes = 1};
    result_.program.push_back(store);
  }

  // A load into the third quarter or a store from the fourth.
  Instruction DrawSideTransfer(Opcode opcode) {
    const int beat = p_.beat_bytes();
    for (;;) {
      Instruction transfer;
      transfer.header.opcode = opcode;
      TransferFields& t = transfer.transfer;
      const int64_t quarter = opcode == Opcode::kLoad ? 2 : 3;
      t.bytes = static_cast<uint32_t>(Draw(0, 200));
      t.rows = static_cast<uint32_t>(Draw(0, 4));
      t.planes = static_cast<uint32_t>(Draw(0, 3));
      t.sram_address = static_cast<uint32_t>(quarter * quarter_ + Draw(0, quarter_ / beat - 1) * beat);
      t.sram_row_step = static_cast<int32_t>(Draw(-20, 20) * beat);
      t.sram_plane_step = static_cast<int32_t>(Draw(-20, 20) * beat);
      const int64_t start = opcode == Opcode::kLoad ? activations_ + p_.activation_bytes / 2 : results_ + 3 * p_.activation_bytes / 2;
      t.dram_address = static_cast<uint32_t>(start + Draw(-40, 40) * beat);
      t.dram_row_step = static_cast<int32_t>(Draw(-6, 6) * 16 * 4);
      t.dram_plane_step = static_cast<int32_t>(Draw(-5, 5) * 16 * 4);
      int64_t low = t.sram_address, high = low + t.bytes;
      for (const auto& [count, step] : {std::pair<int64_t, int64_t>{t.rows, t.sram_row_step}, {t.planes, t.sram_plane_step}}) {
        if (count > 0) (step < 0 ? low : high) += (count - 1) * step;
      }
      if (low < quarter * quarter_ || high > (quarter + 1) * quarter_) continue;
      if (CheckInstruction(p_, transfer).ok()) return transfer;
    }
  }

  Instruction DrawCompute() {
    for (;;) {
      Instruction compute;
      compute.header.opcode = Opcode::kCompute;
      compute.compute = {};
      c_ = &compute.compute;
      DrawKind();
      if (!DrawGeometry()) continue;
      DrawDrain();
      if (!CheckInstruction(p_, compute).ok() || !OutputsStayInside()) continue;
      continues_ = c_->hold_accumulation != 0;
      return compute;
    }
  }

  void DrawKind() {
    std::vector<Reduce> kinds = {Reduce::kDot, Reduce::kDot, Reduce::kLoad};
    if (p_.depthwise) kinds.insert(kinds.end(), 2, Reduce::kDepthwise);
    if (p_.pooling) kinds.push_back(Reduce::kMax);
    c_->reduce = kinds[random_() % kinds.size()];
    if (continues_) c_->reduce = Reduce::kDot;
    c_->rounding = static_cast<RoundingField>(Draw(0, 1));
    c_->pad_value = static_cast<int32_t>(Draw(-128, 127));
    c_->continue_accumulation = continues_;
  }

  bool vectors() const { return c_->reduce == Reduce::kDepthwise || c_->reduce == Reduce::kMax; }

  bool DrawGeometry() {
    const bool one_pixel = continues_ || (c_->reduce == Reduce::kDot && Chance(8));
    const int lanes = p_.output_lanes;
    const int64_t height = Draw(1, 7), width = Draw(1, 8);
    const int64_t kernel_h = Draw(1, 4), kernel_w = Draw(1, 4), stride = Draw(1, 3), dilation = Chance(3) ? 2 : 1;
    const int64_t pad_top = Draw(0, 2), pad_left = Draw(0, 2), pad = Draw(0, 2);
    c_->blocks = one_pixel ? 1 : static_cast<uint32_t>(Draw(1, 3));
    const int64_t channels = vectors() ? lanes * c_->blocks : Draw(1, 20);
    const int64_t pixel = channels + (vectors() ? 0 : Draw(0, 1) * Draw(0, 5));
    const int64_t unit = vectors() ? p_.bank_bytes() : 1;
    const int64_t row = RoundUp(width * pixel, unit) + (vectors() ? Draw(0, 3) * unit : Draw(0, 9));
    const int64_t out_h = (height + pad_top + pad - dilation * (kernel_h - 1) - 1) / stride + 1;
    const int64_t out_w = (width + pad_left + pad - dilation * (kernel_w - 1) - 1) / stride + 1;
    if (height + pad_top + pad < dilation * (kernel_h - 1) + 1 || width + pad_left + pad < dilation * (kernel_w - 1) + 1) return false;
    if (height * row > quarter_) return false;
    const int64_t base = Draw(0, (quarter_ - height * row) / unit) * unit;
    c_->out_rows = one_pixel ? 1 : static_cast<uint32_t>(out_h);
    c_->x_steps = one_pixel ? 1 : static_cast<uint32_t>(out_w);
    c_->in_rows = static_cast<uint32_t>(height);
    c_->in_row_bytes = static_cast<uint32_t>(width * pixel);
    c_->first_row = static_cast<int32_t>(-pad_top);
    c_->row_stride = static_cast<uint32_t>(stride);
    c_->in_base = static_cast<uint32_t>(base - pad_top * row) & 0xffffff;
    c_->in_row_step = static_cast<int32_t>(stride * row);
    c_->first_x = static_cast<int32_t>(-pad_left * pixel);
    c_->x_step = static_cast<int32_t>(stride * pixel);
    c_->kernel_rows = static_cast<uint32_t>(kernel_h);
    c_->kernel_row_stride = static_cast<uint32_t>(dilation);
    c_->kernel_row_step = static_cast<int32_t>(dilation * row);
    c_->kernel_columns = static_cast<uint32_t>(kernel_w);
    c_->kernel_column_step = static_cast<int32_t>(dilation * pixel);
    c_->passes = 1;
    c_->in_block_step = vectors() ? lanes : 0;
    if (c_->reduce == Reduce::kDot) {
      const bool merged = dilation == 1 && Chance(2);
      if (merged) c_->kernel_columns = 1;
      c_->passes = static_cast<uint32_t>(((merged ? kernel_w * pixel : channels) + p_.contraction_lanes - 1) / p_.contraction_lanes);
    } else if (vectors()) {
      DrawVectors(kernel_h, kernel_w, stride, dilation, row, pixel, pad_left, out_w);
    } else {
      c_->kernel_rows = c_->kernel_columns = 1;
    }
    const int64_t tiles = int64_t{c_->blocks} * c_->kernel_rows * c_->kernel_columns * c_->passes;
    c_->shared_weights = Chance(4);
    c_->weight_base = tiles <= p_.weight_words ? static_cast<uint32_t>(Draw(0, p_.weight_words - tiles)) : 0;
    return true;
  }

  void DrawVectors(int64_t kernel_h, int64_t kernel_w, int64_t stride, int64_t dilation, int64_t row, int64_t pixel,
                   int64_t pad_left, int64_t out_w) {
    const int64_t group = std::min<int64_t>(kernel_h, Draw(1, 3));
    c_->vector_rows = static_cast<uint32_t>(group);
    c_->vector_row_step = static_cast<int32_t>(dilation * row);
    c_->vector_row_stride = static_cast<uint32_t>(dilation);
    c_->kernel_rows = static_cast<uint32_t>((kernel_h + group - 1) / group);
    c_->kernel_row_step = static_cast<int32_t>(group * dilation * row);
    c_->kernel_row_stride = static_cast<uint32_t>(group * dilation);
    c_->window_columns = 1;
    if (!p_.has_window() || kernel_h != group || kernel_w > 3 || dilation != 1 || Chance(3)) return;
    c_->window = 1;
    c_->window_columns = static_cast<uint32_t>(kernel_w);
    c_->kernel_rows = c_->kernel_columns = 1;
    c_->x_step = static_cast<int32_t>(pixel);
    c_->first_emit = static_cast<uint32_t>(kernel_w - 1);
    if (pad_left == 1 && kernel_w >= 2 && Chance(2)) {
      c_->first_x = 0;
      c_->first_emit -= 1;
    }
    c_->emit_stride = static_cast<uint32_t>(stride);
    c_->x_steps = static_cast<uint32_t>(c_->first_emit + (out_w - 1) * stride + 1);
  }

  void DrawDrain() {
    const int lanes = p_.output_lanes;
    c_->hold_accumulation = c_->reduce == Reduce::kDot && c_->blocks == 1 && c_->out_rows == 1 && c_->x_steps == 1 && Chance(2);
    c_->drain = Chance(4) ? Drain::kPass : Drain::kRequantise;
    c_->use_b = p_.elementwise && !c_->hold_accumulation && Chance(2);
    if (c_->use_b) {
      c_->add_b = Chance(2);
      if (c_->reduce == Reduce::kLoad && Chance(2)) c_->drain = Drain::kMultiply;
    }
    c_->use_lookup = p_.lookup && Chance(3);
    c_->lookup_table = static_cast<uint32_t>(Draw(0, p_.lookup_tables - 1));
    c_->param_block_step = static_cast<uint32_t>(Draw(0, 1));
    c_->param_base = static_cast<uint32_t>(Draw(0, std::max(0, p_.parameter_blocks - 3)));
    const bool must_be_wide = c_->continue_accumulation || c_->param_base + (c_->blocks - 1) * c_->param_block_step >= WideBlocks();
    c_->wide = must_be_wide || Chance(3);
    c_->out_zero = static_cast<int32_t>(Draw(-128, 127));
    c_->clamp_low = static_cast<int32_t>(Chance(2) ? -128 : Draw(-128, 0));
    c_->clamp_high = static_cast<int32_t>(Chance(2) ? 127 : Draw(0, 127));
    c_->a_zero = static_cast<int32_t>(Draw(-128, 127));
    c_->b_zero = static_cast<int32_t>(Draw(-128, 127));
    c_->a_multiplier = static_cast<uint32_t>(Draw(0, (1 << 20) - 1));
    c_->b_multiplier = static_cast<uint32_t>(Draw(0, (1 << 20) - 1));
    c_->add_shift = static_cast<uint32_t>(Chance(4) ? Draw(0, 40) : Draw(17, 23));
    c_->add_zero = static_cast<int32_t>(Draw(-128, 127));
    c_->add_low = static_cast<int32_t>(Chance(2) ? -128 : Draw(-128, 0));
    c_->add_high = static_cast<int32_t>(Chance(2) ? 127 : Draw(0, 127));
    c_->last_block_channels = static_cast<uint32_t>(Chance(2) ? lanes : Draw(1, lanes));
    c_->out_base = static_cast<uint32_t>(quarter_ + Draw(0, quarter_ - 1));
    c_->out_block_step = static_cast<int32_t>(lanes);
    c_->out_x_step = static_cast<int32_t>(lanes * c_->blocks + Draw(0, 1) * Draw(0, 7));
    c_->out_row_step = static_cast<int32_t>(c_->out_x_step * c_->x_steps + Draw(0, 5));
    c_->b_base = static_cast<uint32_t>(Draw(0, quarter_ - 1));
    c_->b_block_step = static_cast<int32_t>(Draw(0, lanes));
    c_->b_x_step = static_cast<int32_t>(Draw(-3, 40));
    c_->b_row_step = static_cast<int32_t>(Draw(-3, 200));
  }

  // Everything written lies in the second quarter; operand b in the first.
  bool OutputsStayInside() const {
    const auto inside = [&](int64_t base, int64_t x, int64_t row, int64_t block, int64_t low, int64_t high) {
      int64_t least = base, most = base + p_.output_lanes;
      for (const auto& [count, step] : {std::pair<int64_t, int64_t>{c_->x_steps, x}, {c_->out_rows, row}, {c_->blocks, block}}) {
        (step < 0 ? least : most) += (count - 1) * step;
      }
      return least >= low && most <= high;
    };
    if (!inside(c_->out_base, c_->out_x_step, c_->out_row_step, c_->out_block_step, quarter_, 2 * quarter_)) return false;
    return !c_->use_b || inside(c_->b_base, c_->b_x_step, c_->b_row_step, c_->b_block_step, 0, quarter_);
  }

  const AcceleratorParams& p_;
  std::mt19937_64 random_;
  RandomProgram result_;
  ComputeFields* c_ = nullptr;
  bool continues_ = false;
  int64_t quarter_ = 0, activations_ = 0, weights_ = 0, parameters_ = 0, lookup_ = 0, results_ = 0;
};

}  // namespace

RandomProgram MakeRandomProgram(const AcceleratorParams& params, uint64_t seed, int compute_instructions) {
  return Generator(params, seed).Make(compute_instructions);
}

AcceleratorParams MakeSmallParams(uint64_t seed) {
  std::mt19937_64 random(seed * 104729 + 3);
  const auto draw = [&](int low, int high) { return low + static_cast<int>(random() % static_cast<uint64_t>(high - low + 1)); };
  for (;;) {
    AcceleratorParams p;
    p.contraction_lanes = 4 * draw(1, 7);
    p.output_lanes = 4 << draw(0, 2);
    p.requantise_lanes = 1 << draw(0, 4);
    p.activation_bytes = 4096 * draw(2, 8);
    p.weight_words = draw(40, 120);
    p.parameter_blocks = draw(3, 20);
    p.axi_data_bits = 32 << draw(0, 4);
    p.axi_address_bits = draw(32, 64);
    p.burst_beats = 1 << draw(0, 6);
    p.outstanding_reads = 1 << draw(0, 4);
    p.outstanding_writes = 1 << draw(0, 3);
    p.load_queue = 1 << draw(0, 3);
    p.compute_queue = 1 << draw(0, 3);
    p.store_queue = 1 << draw(0, 3);
    p.depthwise = draw(0, 3) != 0;
    p.pooling = draw(0, 3) != 0;
    p.elementwise = draw(0, 3) != 0;
    p.lookup = draw(0, 3) != 0;
    p.lookup_tables = 1 << draw(0, 2);
    p.soft_multipliers = 2 * draw(0, 3);
    if (CheckParams(p).ok()) return p;
  }
}

}  // namespace heddle::hls
