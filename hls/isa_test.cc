// Encoding: fields do not overlap, random instructions survive, what does not fit is refused.

#include "hls/isa.h"

#include <gtest/gtest.h>

#include <random>
#include <set>

#include "ir/status.h"

namespace heddle::hls {
namespace {

TEST(IsaTest, FieldsDoNotOverlapOrCrossWords) {
  for (Opcode opcode : {Opcode::kLoad, Opcode::kCompute}) {
    std::set<int> used;
    for (const auto* places : {&HeaderPlaces(), &FieldsOf(opcode)}) {
      for (const FieldPlace& place : *places) {
        EXPECT_EQ(place.offset / 32, (place.offset + place.bits - 1) / 32) << place.name;
        for (int bit = 0; bit < place.bits; ++bit) EXPECT_TRUE(used.insert(place.offset + bit).second) << place.name;
      }
    }
    EXPECT_LT(*used.rbegin(), kInstructionBytes * 8);
  }
}

TEST(IsaTest, RandomWordsDecodeAndEncodeAlike) {
  const uint64_t seed = 7;
  SCOPED_TRACE(seed);
  std::mt19937_64 random(seed);
  for (int i = 0; i < 200; ++i) {
    EncodedInstruction words;
    for (uint32_t& word : words) word = static_cast<uint32_t>(random());
    words[0] = (words[0] & ~0xfu) | static_cast<uint32_t>(random() % 4);
    const auto instruction = Decode(words);
    if (!instruction.ok()) {
      EXPECT_EQ(ir::ErrorCode(instruction.status()), "E-PROGRAM-002");
      continue;
    }
    const auto encoded = Encode(*instruction);
    ASSERT_TRUE(encoded.ok());
    const auto again = Decode(*encoded);
    ASSERT_TRUE(again.ok());
    EXPECT_EQ(*again, *instruction);
  }
}

TEST(IsaTest, ProgramNeedsItsEnd) {
  Instruction load;
  load.header.opcode = Opcode::kLoad;
  load.transfer.dram_row_step = -64;
  const auto bytes = EncodeProgram({load, Instruction{}});
  ASSERT_TRUE(bytes.ok());
  const auto program = DecodeProgram(*bytes);
  ASSERT_TRUE(program.ok());
  ASSERT_EQ(program->size(), 2u);
  EXPECT_EQ(program->front(), load);
  EXPECT_EQ(Disassemble(load), "load dram_row_step=-64");
  std::vector<uint8_t> cut(bytes->begin(), bytes->begin() + kInstructionBytes);
  EXPECT_EQ(ir::ErrorCode(DecodeProgram(cut).status()), "E-PROGRAM-003");
}

TEST(IsaTest, RefusesValuesThatDoNotFit) {
  Instruction compute;
  compute.header.opcode = Opcode::kCompute;
  compute.compute.blocks = 1 << 16;
  EXPECT_EQ(ir::ErrorCode(Encode(compute).status()), "E-PROGRAM-001");
}

TEST(IsaTest, ChecksAlignmentAndBounds) {
  const AcceleratorParams params;
  Instruction load;
  load.header.opcode = Opcode::kLoad;
  load.transfer = {.dram_address = 64, .sram_address = 65536 - 16, .bytes = 17, .rows = 1, .planes = 1};
  EXPECT_EQ(ir::ErrorCode(CheckInstruction(params, load)), "E-PROGRAM-004");
  load.transfer.bytes = 16;
  EXPECT_TRUE(CheckInstruction(params, load).ok());
  load.transfer.dram_address = 4;
  EXPECT_EQ(ir::ErrorCode(CheckInstruction(params, load)), "E-PROGRAM-004");
}

}  // namespace
}  // namespace heddle::hls
