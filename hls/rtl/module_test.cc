// The RTL builder: what it prints, and the mistakes that it refuses.

#include "hls/rtl/module.h"

#include <gtest/gtest.h>

namespace heddle::hls::rtl {
namespace {

using ::testing::ExitedWithCode;

TEST(ModuleTest, PrintsACounter) {
  Design design;
  Module& m = design.Add("counter", "Counts.");
  const Expr enable = m.Input("enable", 1);
  const Expr count = m.ResetRegister("count", 4, 3);
  m.Assign(m.Output("value", 4, "now"), count);
  m.Clocked([&](Block& b) {
    b.If(enable, [&] { b.Set(count, count + Const(4, 1)); });
    b.Else([&] { b.SetSlice(count, 0, Const(1, 0)); });
  });
  m.Finish();
  EXPECT_EQ(m.Verilog(), R"(// Counts.
module counter (
  input wire clk,
  input wire rst,
  input wire enable,
  output wire [3:0] value  // now
);
  reg [3:0] count;
  assign value = count;
  always @(posedge clk) begin
    if (enable) begin
      count <= count + 4'd1;
    end else begin
      count[0] <= 1'd0;
    end
    if (rst) begin
      count <= 4'd3;
    end
  end
endmodule
)");
}

TEST(ModuleTest, ConnectsClockAndResetOfInstances) {
  Design design;
  Module& child = design.Add("child", "Delays.");
  const Expr in = child.Input("in", 8);
  const Expr held = child.ResetRegister("held", 8);
  child.Clocked([&](Block& b) { b.Set(held, in); });
  child.Assign(child.Output("out", 8), held);
  child.Finish();
  Module& parent = design.Add("parent", "Holds a child.");
  const Expr wire = parent.Wire("delayed", 8);
  parent.Instantiate(child, "delay", {{"in", parent.Input("data", 8)}, {"out", wire}});
  parent.Assign(parent.Output("sum", 8), wire + Const(8, 1));
  parent.Finish();
  const std::string text = parent.Verilog();
  EXPECT_NE(text.find("child delay (\n    .clk(clk),\n    .rst(rst),\n    .in(data),\n    .out(delayed)\n  );"), std::string::npos) << text;
}

TEST(ExprTest, ExtendsAndSelectsExplicitly) {
  Module m("m", "");
  const Expr a = m.Input("a", 8);
  EXPECT_EQ(SignExtend(a, 10).text(), "{{2{a[7]}}, a}");
  EXPECT_EQ(SignExtend(Slice(a, 0, 4), 6).text(), "{{2{a[3]}}, a[3:0]}");
  EXPECT_EQ(ZeroExtend(a, 9).text(), "{1'd0, a}");
  EXPECT_EQ(Element(a, m.Input("i", 1), 4).text(), "a[{i, 2'd0} +: 4]");
  EXPECT_EQ(MultiplySigned(a, a).width(), 16);
}

TEST(ModuleDeathTest, RefusesDifferentWidths) {
  Module m("m", "");
  const Expr a = m.Input("a", 8), b = m.Input("b", 7);
  EXPECT_EXIT(a + b, ExitedWithCode(1), "have widths 8 and 7");
  EXPECT_EXIT(m.Assign(m.Output("out", 8), b), ExitedWithCode(1), "out has 8 bits, its value 7");
  EXPECT_EXIT(Mux(a, b, b), ExitedWithCode(1), "wider than a bit");
  EXPECT_EXIT(Slice(a, 4, 5), ExitedWithCode(1), "bits 4\\+5 of a, which has 8");
}

TEST(ModuleDeathTest, RefusesUndrivenAndDoublyDrivenSignals) {
  Module m("m", "");
  const Expr a = m.Input("a", 1);
  const Expr reg = m.Register("held", 1);
  EXPECT_EXIT(m.Finish(), ExitedWithCode(1), "nothing drives held");
  m.Clocked([&](Block& b) { b.Set(reg, a); });
  EXPECT_EXIT(m.Clocked([&](Block& b) { b.Set(reg, ~a); }), ExitedWithCode(1), "driven twice: held");
}

TEST(ModuleDeathTest, RefusesBadNames) {
  Module m("m", "");
  m.Input("a", 1);
  EXPECT_EXIT(m.Input("a", 1), ExitedWithCode(1), "occurs twice");
  EXPECT_EXIT(m.Input("reg", 1), ExitedWithCode(1), "not a Verilog name");
  EXPECT_EXIT(m.Input("1st", 1), ExitedWithCode(1), "not a Verilog name");
}

}  // namespace
}  // namespace heddle::hls::rtl
