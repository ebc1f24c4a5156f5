// Parameter checks and JSON.

#include "hls/params.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "ir/status.h"

namespace heddle::hls {
namespace {

TEST(ParamsTest, DefaultsAreLegalAndSurviveJson) {
  const AcceleratorParams params;
  EXPECT_TRUE(CheckParams(params).ok());
  const auto again = ParamsFromJson(ParamsToJson(params));
  ASSERT_TRUE(again.ok()) << again.status();
  EXPECT_EQ(*again, params);
}

TEST(ParamsTest, RefusesWhatIsOutOfRange) {
  AcceleratorParams params;
  params.contraction_lanes = 18;
  EXPECT_EQ(ir::ErrorCode(CheckParams(params)), "E-ACCEL-001");
  params = {};
  params.output_lanes = 24;
  EXPECT_EQ(ir::ErrorCode(CheckParams(params)), "E-ACCEL-001");
  params = {};
  params.requantise_lanes = 32;
  EXPECT_EQ(ir::ErrorCode(CheckParams(params)), "E-ACCEL-002");
  EXPECT_EQ(ir::ErrorCode(ParamsFromJson(nlohmann::json{{"rows", 3}}).status()), "E-ACCEL-003");
  EXPECT_EQ(ir::ErrorCode(ParamsFromJson(nlohmann::json{{"output_lanes", "x"}}).status()), "E-ACCEL-003");
}

TEST(ParamsTest, LanesOfAFileCanBeLoweredAlone) {
  const auto params = ParamsFromJson({{"contraction_lanes", 4}, {"output_lanes", 4}, {"requantise_lanes", 16}, {"soft_multipliers", 64}});
  ASSERT_TRUE(params.ok()) << params.status();
  EXPECT_EQ(params->requantise_lanes, 4);
  EXPECT_LE(params->soft_multipliers, params->paired_multipliers());
  EXPECT_EQ(ir::ErrorCode(ParamsFromJson(nlohmann::json{{"requantise_lanes", 128}}).status()), "E-ACCEL-001");
  EXPECT_EQ(ir::ErrorCode(ParamsFromJson(nlohmann::json{{"requantise_lanes", uint64_t{1} << 63}}).status()), "E-ACCEL-001");
}

TEST(ParamsTest, FourBankWordsHoldAnyUnalignedRead) {
  for (int rows = 4; rows <= 64; rows += 4) {
    for (int columns = 4; columns <= 64; columns *= 2) {
      AcceleratorParams params;
      params.contraction_lanes = rows;
      params.output_lanes = columns;
      EXPECT_GE((kActivationBanks - 1) * params.bank_bytes() + 1, params.read_bytes());
      EXPECT_GE(params.bank_bytes(), columns);
      EXPECT_GE(params.line_bytes(), params.beat_bytes());
    }
  }
}

}  // namespace
}  // namespace heddle::hls
