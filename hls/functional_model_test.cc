// The functional model against plain loops: a padded 3x3 convolution, a depthwise window, tokens and their errors.

#include "hls/functional_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "ir/status.h"

namespace heddle::hls {
namespace {

Instruction LoadOf(Target target, uint32_t dram, uint32_t sram, uint32_t bytes) {
  Instruction load;
  load.header.opcode = Opcode::kLoad;
  load.transfer = {.target = target, .dram_address = dram, .sram_address = sram, .bytes = bytes, .rows = 1, .planes = 1};
  return load;
}

// 5 x 6 x 3 input, 3x3 kernel, stride 2, padding 1, 16 output channels; a kernel row is one segment of 9 bytes.
TEST(FunctionalModelTest, PaddedConvolutionEqualsPlainLoops) {
  const AcceleratorParams params;
  std::mt19937 random(3);
  const int height = 5, width = 6, channels = 3, out_height = 3, out_width = 3;
  std::vector<uint8_t> dram(8192);
  for (uint8_t& byte : dram) byte = static_cast<uint8_t>(random());
  const auto weight = [&](int ky, int kx, int i, int o) -> uint8_t& { return dram[1024 + ky * 256 + (kx * channels + i) * 16 + o]; };
  for (int ky = 0; ky < 3; ++ky) std::fill_n(dram.begin() + 1024 + ky * 256 + 9 * 16, 7 * 16, uint8_t{0});
  for (int c = 0; c < 16; ++c) {
    uint8_t* word = &dram[4096 + (c / 4) * params.parameter_word_pitch_bytes()];
    for (int byte = 0; byte < 4; ++byte) {
      word[(c % 4) * 4 + byte] = static_cast<uint8_t>((c * 100) >> (8 * byte));
      word[16 + (c % 4) * 4 + byte] = static_cast<uint8_t>((1 << 20) >> (8 * byte));
    }
    word[32 + c % 4] = 27;
  }
  Instruction conv;
  conv.header = {.opcode = Opcode::kCompute, .wait_load = 3};
  conv.compute = {.blocks = 1, .out_rows = 3, .x_steps = 3, .passes = 1, .in_rows = 5, .first_row = -1,
                  .in_base = (1 << 24) - 18, .kernel_rows = 3, .kernel_columns = 1, .in_row_bytes = 18, .pad_value = 5,
                  .in_row_step = 36, .row_stride = 2, .kernel_row_step = 18, .kernel_row_stride = 1, .first_x = -3, .x_step = 6,
                  .last_block_channels = 16, .out_base = 512, .out_zero = 3, .out_row_step = 48, .clamp_low = -128,
                  .out_x_step = 16, .clamp_high = 127};
  std::vector<Instruction> program = {LoadOf(Target::kActivations, 0, 0, height * width * channels),
                                      LoadOf(Target::kWeights, 1024, 0, 768),
                                      LoadOf(Target::kParameters, 4096, 0, params.parameter_block_pitch_bytes()), conv, {}};
  for (int i = 0; i < 3; ++i) program[i].header.signal_compute = 1;
  FunctionalModel model(params);
  const absl::Status status = model.Run(program, dram);
  ASSERT_TRUE(status.ok()) << status;
  for (int y = 0; y < out_height; ++y) {
    for (int x = 0; x < out_width; ++x) {
      for (int o = 0; o < 16; ++o) {
        int64_t sum = o * 100;
        for (int ky = 0; ky < 3; ++ky) {
          for (int kx = 0; kx < 3; ++kx) {
            for (int i = 0; i < channels; ++i) {
              const int iy = y * 2 - 1 + ky, ix = x * 2 - 1 + kx;
              const bool inside = iy >= 0 && iy < height && ix >= 0 && ix < width;
              const int value = inside ? static_cast<int8_t>(dram[(iy * width + ix) * channels + i]) : 5;
              sum += value * static_cast<int8_t>(weight(ky, kx, i, o));
            }
          }
        }
        const int64_t half = sum * 2;  // 2^20 / 2^27 = 1/128; ties to even
        const int64_t quotient = (half + 128) >> 8;
        const int64_t even = (half & 255) == 128 ? quotient & ~int64_t{1} : quotient;
        EXPECT_EQ(model.activations()[512 + (y * out_width + x) * 16 + o], std::clamp<int64_t>(even + 3, -128, 127));
      }
    }
  }
}

// 4 x 5 pixels of 16 channels, 3x3 window, stride 1, padding 1; rows 6 words apart would collide, 5 do not.
TEST(FunctionalModelTest, DepthwiseMaxWindowEqualsPlainLoops) {
  const AcceleratorParams params;
  std::mt19937 random(4);
  FunctionalModel model(params);
  for (int i = 0; i < 4 * 5 * 16; ++i) model.activations()[i] = static_cast<int8_t>(random());
  Instruction pool;
  pool.header.opcode = Opcode::kCompute;
  pool.compute = {.blocks = 1, .out_rows = 4, .x_steps = 6, .passes = 1, .in_rows = 4, .first_row = -1, .reduce = Reduce::kMax,
                  .drain = Drain::kPass, .window = 1, .vector_rows = 3, .window_columns = 3, .in_base = (1 << 24) - 80,
                  .kernel_rows = 1, .kernel_columns = 1, .in_row_bytes = 80, .pad_value = -128, .in_row_step = 80,
                  .row_stride = 1, .vector_row_step = 80, .vector_row_stride = 1, .first_emit = 1, .x_step = 16,
                  .emit_stride = 1, .last_block_channels = 16, .out_base = 1024, .out_row_step = 80, .clamp_low = -128,
                  .out_x_step = 16, .clamp_high = 127};
  std::vector<uint8_t> dram;
  const absl::Status status = model.Run({pool}, dram);
  ASSERT_TRUE(status.ok()) << status;
  for (int y = 0; y < 4; ++y) {
    for (int x = 0; x < 5; ++x) {
      for (int c = 0; c < 16; ++c) {
        int8_t greatest = -128;
        for (int iy = std::max(0, y - 1); iy <= std::min(3, y + 1); ++iy) {
          for (int ix = std::max(0, x - 1); ix <= std::min(4, x + 1); ++ix) {
            greatest = std::max(greatest, model.activations()[(iy * 5 + ix) * 16 + c]);
          }
        }
        EXPECT_EQ(model.activations()[1024 + (y * 5 + x) * 16 + c], greatest);
      }
    }
  }
  pool.compute.vector_row_step = 64;
  EXPECT_EQ(ir::ErrorCode(model.Run({pool}, dram)), "E-PROGRAM-004");
}

TEST(FunctionalModelTest, NamesADeadlock) {
  Instruction store;
  store.header = {.opcode = Opcode::kStore, .wait_compute = 1};
  std::vector<uint8_t> dram;
  const absl::Status status = FunctionalModel(AcceleratorParams{}).Run({store}, dram);
  EXPECT_EQ(ir::ErrorCode(status), "E-PROGRAM-006");
  EXPECT_NE(std::string(status.message()).find("store waits before"), std::string::npos);
}

}  // namespace
}  // namespace heddle::hls
