// Sweeps as text, and what an exploration's points are judged by.

#include <gtest/gtest.h>

#include "driver/explore.h"

namespace heddle::driver {
namespace {

TEST(SweepTest, NamesBeginAParameter) {
  const auto axes = ParseSweep({"rows=8,16,24,cols=4", "requantise_lanes=2,2"});
  ASSERT_TRUE(axes.ok()) << axes.status();
  ASSERT_EQ(axes->size(), 3u);
  EXPECT_EQ((*axes)[0].name, "contraction_lanes");
  EXPECT_EQ((*axes)[0].values, (std::vector<double>{8, 16, 24}));
  EXPECT_EQ((*axes)[1].name, "output_lanes");
  EXPECT_EQ((*axes)[2].values, (std::vector<double>{2}));
  const std::vector<nlohmann::json> all = Combinations(*axes);
  ASSERT_EQ(all.size(), 3u);
  EXPECT_EQ(all[1].dump(), R"({"contraction_lanes":16,"output_lanes":4,"requantise_lanes":2})");
}

TEST(SweepTest, WrongSweepsAreCoded) {
  for (const char* text : {"", "8", "lanes=8", "rows=", "rows=x", "rows=8,contraction_lanes=16", "rows=nan", "rows=1e999"}) {
    const auto axes = ParseSweep({text});
    EXPECT_EQ(ir::ErrorCode(axes.status()), "E-USAGE-014") << text;
  }
  EXPECT_EQ(ir::ErrorCode(ParseSweep({}).status()), "E-USAGE-014");
}

ExplorePoint Point(int64_t cycles, int64_t dsp, int64_t lut, int64_t macs = 1000) {
  ExplorePoint point;
  point.parameters = {{"contraction_lanes", cycles}};
  point.cycles_estimated = cycles;
  point.resources.dsp = dsp;
  point.resources.lut = lut;
  point.macs = macs;
  return point;
}

TEST(ExploreTest, FrontAndBest) {
  Exploration exploration;
  exploration.axes = {{"contraction_lanes", {1}}};
  exploration.points = {Point(100, 50, 500), Point(200, 20, 300), Point(200, 30, 300), Point(90, 400, 900), Point(10, 5, 10, 500)};
  exploration.points[3].fits = false;
  Judge(exploration);
  EXPECT_TRUE(exploration.points[0].on_front);
  EXPECT_TRUE(exploration.points[1].on_front);
  EXPECT_FALSE(exploration.points[2].on_front) << "20 DSP give the same cycles";
  EXPECT_TRUE(exploration.points[3].on_front) << "too large, and still the fastest";
  EXPECT_TRUE(exploration.points[4].less_work);
  EXPECT_FALSE(exploration.points[4].on_front) << "half the work is no competitor";
  ASSERT_TRUE(exploration.best.has_value());
  EXPECT_EQ(*exploration.best, 0u);
}

TEST(ExploreTest, Printed) {
  Exploration exploration;
  exploration.model = "<m>.onnx";
  exploration.target = "t";
  exploration.axes = {{"contraction_lanes", {100, 200}}};
  exploration.max_dsp = 220;
  exploration.points = {Point(100, 50, 500), Point(200, 20, 300)};
  exploration.illegal = {{{{"contraction_lanes", 7}}, "E-ACCEL-001", "contraction_lanes is 7"}};
  Judge(exploration);
  const std::string text = PrintExplorationText(exploration);
  EXPECT_NE(text.find("front, best"), std::string::npos) << text;
  EXPECT_NE(text.find("not possible: contraction_lanes=7: E-ACCEL-001"), std::string::npos) << text;
  const nlohmann::json json = nlohmann::json::parse(PrintExplorationJson(exploration));
  EXPECT_EQ(json["schema_version"], 1);
  EXPECT_EQ(json["points"][0]["cycles_estimated"], 100);
  EXPECT_EQ(json["best"], 0);
  EXPECT_TRUE(json["confirmation"].is_null());
  const std::string html = PrintExplorationHtml(exploration);
  EXPECT_NE(html.find("&lt;m&gt;.onnx"), std::string::npos);
  EXPECT_EQ(html.find("<m>"), std::string::npos);
  EXPECT_NE(html.find("class=\"dot best\""), std::string::npos);
}

}  // namespace
}  // namespace heddle::driver
