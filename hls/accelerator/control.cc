// AXI4-Lite registers, counters, start and end of a program. The register file is generated from the table of registers.h.

#include <map>

#include "hls/accelerator/parts.h"
#include "hls/registers.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

class ControlBuilder {
 public:
  ControlBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), m_(design.Add("heddle_control", "AXI4-Lite registers, counters, start and end of a program.")) {}

  Module& Build() {
    AddWritePort();
    AddProgramState();
    AddCounters();
    AddReadPort();
    m_.Finish();
    return m_;
  }

 private:
  Expr Writes(std::string_view name) {
    const Expr address = Concat({Slice(write_address_, 2, kRegisterAddressBits - 2), Zeros(2)});
    return writes_ & Equal(address, Const(kRegisterAddressBits, RegisterOffset(name)));
  }

  void AddWritePort() {
    write_address_ = m_.Input("awaddr", kRegisterAddressBits);
    const Expr awvalid = m_.Input("awvalid", 1);
    data_ = m_.Input("wdata", 32);
    const Expr wvalid = m_.Input("wvalid", 1);
    const Expr bready = m_.Input("bready", 1);
    const Expr responds = m_.ResetRegister("responds", 1);
    writes_ = m_.Name("writes", AllOf({awvalid, wvalid, ~responds}));
    m_.Assign(m_.Output("awready", 1), writes_);
    m_.Assign(m_.Output("wready", 1), writes_);
    m_.Assign(m_.Output("bvalid", 1), responds);
    m_.Clocked([&](Block& b) {
      b.If(writes_, [&] { b.Set(responds, Const(1, 1)); });
      b.ElseIf(bready, [&] { b.Set(responds, Const(1, 0)); });
    });
    m_.Ignore({write_address_});
  }

  void AddProgramState() {
    m_.Comment("The program's state.");
    busy_ = m_.ResetRegister("busy", 1);
    const Expr done = m_.ResetRegister("done", 1);
    const Expr error = m_.ResetRegister("error", 1);
    const Expr enabled = m_.ResetRegister("interrupt_enabled", 1);
    const Expr base_low = m_.ResetRegister("base_low", 32);
    const Expr base_high = m_.ResetRegister("base_high", 32);
    const Expr program = m_.ResetRegister("program_offset", 32);
    const Expr all_idle = m_.Input("all_idle", 1, "fetch is done and every unit has finished");
    const Expr new_error = m_.Input("new_error", 1);
    start_ = m_.Name("starts", AllOf({Writes("control"), Bit(data_, 0), ~busy_}));
    // Fetch needs a cycle to leave its idle state.
    const Expr young = m_.ResetRegister("started_just_now", 1);
    const Expr ends = m_.Name("ends", AllOf({busy_, all_idle, ~young}));
    m_.Clocked([&](Block& b) {
      b.Set(young, start_);
      b.If(Writes("base_low"), [&] { b.Set(base_low, data_); });
      b.If(Writes("base_high"), [&] { b.Set(base_high, data_); });
      b.If(Writes("program"), [&] { b.Set(program, data_); });
      b.If(Writes("control"), [&] { b.Set(enabled, Bit(data_, 1)); });
      b.If(start_, [&] {
        b.Set(busy_, Const(1, 1));
        b.Set(done, Const(1, 0));
        b.Set(error, Const(1, 0));
      });
      b.ElseIf(ends, [&] {
        b.Set(busy_, Const(1, 0));
        b.Set(done, Const(1, 1));
      });
      b.ElseIf(Writes("status") & Bit(data_, 1), [&] { b.Set(done, Const(1, 0)); });
      b.If(new_error & ~start_, [&] { b.Set(error, Const(1, 1)); });
    });
    const Expr base = m_.Name("base_address", Concat({base_high, base_low}));
    m_.Assign(m_.Output("base", p_.axi_address_bits), Slice(base, 0, p_.axi_address_bits));
    m_.Assign(m_.Output("program_at", 32), program);
    m_.Assign(m_.Output("start", 1), start_);
    m_.Assign(m_.Output("irq", 1), done & enabled);
    if (p_.axi_address_bits < 64) m_.Ignore({base});
    const Expr waiting = m_.Input("waiting", 11);
    values_["control"] = Concat({Zeros(30), enabled, Zeros(1)});
    values_["status"] = Concat({Zeros(29), error, done, busy_});
    values_["base_low"] = base_low;
    values_["base_high"] = base_high;
    values_["program"] = program;
    values_["waiting"] = ZeroExtend(waiting, 32);
    values_["id"] = Const(32, kAcceleratorId);
    values_["lanes"] = Concat({Const(8, p_.beat_bytes()), Const(8, p_.requantise_lanes), Const(8, p_.output_lanes),
                               Const(8, p_.contraction_lanes)});
  }

  void AddCounters() {
    m_.Comment("Counters.");
    const Expr cycles = m_.Register("cycles", 64);
    values_["cycles_low"] = Slice(cycles, 0, 32);
    values_["cycles_high"] = Slice(cycles, 32, 32);
    std::vector<std::pair<Expr, Expr>> counters;
    for (const RegisterSpec& spec : RegisterMap()) {
      const std::string name(spec.name);
      if (spec.access != Access::kCounter || values_.count(name)) continue;
      const Expr event = m_.Input("event_" + name, 1);
      const Expr count = m_.Register(name, 32);
      counters.push_back({event, count});
      values_[name] = count;
    }
    m_.Clocked([&](Block& b) {
      b.If(start_, [&] {
        b.Set(cycles, Zeros(64));
        for (const auto& [event, count] : counters) b.Set(count, Zeros(32));
      });
      b.ElseIf(busy_, [&] {
        b.Set(cycles, cycles + Const(64, 1));
        for (const auto& [event, count] : counters) {
          b.If(event, [&, c = count] { b.Set(c, c + Const(32, 1)); });
        }
      });
    });
  }

  void AddReadPort() {
    m_.Comment("Reads.");
    const Expr address = m_.Input("araddr", kRegisterAddressBits);
    const Expr arvalid = m_.Input("arvalid", 1);
    const Expr rready = m_.Input("rready", 1);
    const Expr valid = m_.ResetRegister("read_valid", 1);
    const Expr data = m_.Register("read_data", 32);
    const Expr reads = m_.Name("reads", arvalid & ~valid);
    m_.Assign(m_.Output("arready", 1), reads);
    m_.Assign(m_.Output("rvalid", 1), valid);
    m_.Assign(m_.Output("rdata", 32), data);
    m_.Clocked([&](Block& b) {
      b.If(reads, [&] {
        b.Set(valid, Const(1, 1));
        b.Set(data, Zeros(32));
        for (const RegisterSpec& spec : RegisterMap()) {
          b.If(Equal(Slice(address, 2, kRegisterAddressBits - 2), Const(kRegisterAddressBits - 2, spec.offset / 4)),
               [&] { b.Set(data, values_.at(std::string(spec.name))); });
        }
      });
      b.ElseIf(rready, [&] { b.Set(valid, Const(1, 0)); });
    });
    m_.Ignore({address});
  }

  const AcceleratorParams& p_;
  Module& m_;
  Expr write_address_, data_, writes_, busy_, start_;
  std::map<std::string, Expr> values_;
};

}  // namespace

Module& AddControl(Design& design, const AcceleratorParams& params) { return ControlBuilder(design, params).Build(); }

}  // namespace heddle::hls
