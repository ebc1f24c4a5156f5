// Target files: every preset loads, links resolve through the host, and mistakes are named.

#include "driver/target.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace heddle::driver {
namespace {

TEST(Target, EveryPresetLoadsUnderItsName) {
  EXPECT_GE(PresetNames().size(), 4u);
  for (const std::string& preset : PresetNames()) {
    auto target = LoadTarget(preset);
    ASSERT_TRUE(target.ok()) << target.status().message();
    EXPECT_EQ(target->name, preset);
    EXPECT_FALSE(target->devices.empty());
  }
}

TEST(Target, LinkThroughTheHostAddsLatencies) {
  auto target = ParseTarget(R"({"schema_version":1,"name":"t","devices":[{"name":"c","kind":"cpu"},{"name":"g","kind":"gpu"},
    {"name":"a","kind":"accelerator"}],"links":[{"between":["c","g"],"latency_us":3,"gb_per_s":2},
    {"between":["a","c"],"latency_us":1,"gb_per_s":2}]})", "t");
  ASSERT_TRUE(target.ok()) << target.status().message();
  const TargetLink link = target->LinkBetween("g", "a");
  EXPECT_DOUBLE_EQ(link.latency_us, 4);
  EXPECT_DOUBLE_EQ(link.gb_per_s, 1);
}

TEST(Target, PowerStandsBesideItsSourceAndIsNotTheDevicesToRead) {
  auto target = ParseTarget(R"({"schema_version":1,"name":"t","devices":[{"name":"c","kind":"cpu","active_w":0.5,
    "power_source":"assumed","threads":1},{"name":"g","kind":"gpu"}],"links":[{"between":["c","g"],"gb_per_s":1,"pj_per_byte":40}]})", "t");
  ASSERT_TRUE(target.ok()) << target.status().message();
  EXPECT_DOUBLE_EQ(*target->devices[0].active_w, 0.5);
  EXPECT_FALSE(target->devices[0].section.contains("active_w"));
  EXPECT_FALSE(target->devices[1].active_w.has_value());
  EXPECT_DOUBLE_EQ(target->LinkBetween("g", "c").pj_per_byte, 40);
}

TEST(Target, MistakesAreNamed) {
  auto message = [](const char* text) { return std::string(ParseTarget(text, "t").status().message()); };
  EXPECT_NE(message("{").find("E-TARGET-002"), std::string::npos);
  EXPECT_NE(message(R"({"schema_version":1,"devices":[]})").find("needs a CPU"), std::string::npos);
  EXPECT_NE(message(R"({"schema_version":1,"devices":[{"name":"c","kind":"tpu"}]})").find("tpu"), std::string::npos);
  EXPECT_NE(message(R"({"schema_version":1,"divices":[]})").find("divices"), std::string::npos);
  EXPECT_NE(message(R"({"schema_version":1,"devices":3})").find("expected an array"), std::string::npos);
  const auto with = [&](const char* rest) {
    return message(fmt::format(R"({{"schema_version":1,"devices":[{{"name":"c","kind":"cpu"}},{{"name":"g","kind":"gpu"}}],{}}})", rest).c_str());
  };
  EXPECT_NE(with(R"("links":null)").find("expected an array"), std::string::npos);
  EXPECT_NE(with(R"("limits":[])").find("expected an object"), std::string::npos);
  EXPECT_NE(with(R"("links":[{"between":["c","g"],"latency_us":1e300,"gb_per_s":1}])").find("latency_us"), std::string::npos);
  EXPECT_NE(with(R"("links":[{"between":["c","g"],"latency_us":1,"gb_per_s":1e300}])").find("gb_per_s"), std::string::npos);
  EXPECT_NE(message(R"({"schema_version":1,"devices":[{"name":"c","kind":"cpu","active_w":1}]})").find("go together"), std::string::npos);
  EXPECT_EQ(ir::ErrorCode(LoadTarget("no-such-target").status()), "E-TARGET-001");
  EXPECT_EQ(ir::ErrorCode(LoadTarget(".").status()), "E-TARGET-002");
  EXPECT_EQ(ir::ErrorCode(LoadTarget("/dev/zero").status()), "E-TARGET-002");
}

}  // namespace
}  // namespace heddle::driver
