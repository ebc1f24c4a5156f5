// The compute unit: one instruction at a time through sequencer, operands, array and drain; holds the weight memory.
//
// An instruction is over when its last result is written. Its fields are constants for every stage meanwhile, so no stage
// carries them along.

#include "hls/accelerator/unit_front.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

constexpr int kStagesToAccumulator = 4;  // from issue to a finished accumulator
constexpr int kInFlightBits = 7;

class ComputeBuilder {
 public:
  ComputeBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), design_(design), m_(design.Add("heddle_compute", "The compute unit.")) {}

  Module& Build() {
    start_ = m_.Wire("start", 1);
    const UnitFront front = AddUnitFront(m_, w_.compute_bits, start_);
    m_.Assign(m_.Output("started", 1), start_);
    m_.Comment("The instruction in execution.");
    active_ = m_.ResetRegister("active", 1);
    setup_ = m_.ResetRegister("setup", 1);
    instruction_ = m_.Register("instruction", w_.compute_bits);
    finish_ = m_.Wire("finish", 1);
    m_.Assign(start_, front.ready & ~active_);
    m_.Clocked([&](Block& b) {
      b.Set(setup_, start_);
      b.If(start_, [&] {
        b.Set(instruction_, front.head);
        b.Set(active_, Const(1, 1));
      });
      b.ElseIf(finish_, [&] { b.Set(active_, Const(1, 0)); });
    });
    AddSequencerInstance();
    AddWeights();
    AddDatapath();
    AddDrainInstance();
    AddCompletion();
    m_.Finish();
    return m_;
  }

 private:
  Expr Wire(const std::string& name, int width) { return wires_[name] = m_.Wire(name, width); }

  // Connects the ports of `child` to wires of the same names, which are made where they do not exist yet.
  void Connect(const std::string& module, const std::string& instance, std::map<std::string, Expr> ports) {
    const Module& child = Find(design_, module);
    for (const Module::Port& port : child.ports()) {
      if (ports.count(port.signal->name)) continue;
      const auto known = wires_.find(port.signal->name);
      ports[port.signal->name] = known != wires_.end() ? known->second : Wire(port.signal->name, port.signal->width);
    }
    m_.Instantiate(child, instance, ports);
  }

  void AddSequencerInstance() {
    m_.Comment("Stage I: steps and their reads.");
    wires_["instruction"] = instruction_;
    wires_["setup"] = setup_;
    wires_["go"] = m_.Input("go", 1, "the activation memory grants the reads");
    Connect("heddle_sequencer", "sequencer", {{"want", Wire("step_want", 1)}});
    m_.Assign(m_.Output("want", 1), wires_["step_want"]);
    m_.Assign(m_.Output("read_banks", kActivationBanks), wires_["banks"]);
    m_.Assign(m_.Output("read_address", kActivationBanks * w_.bank_address), wires_["bank_address"]);
  }

  void AddWeights() {
    m_.Comment("Weight memory, read in stage R for stage A.");
    const Expr write = m_.Input("weight_write", 1);
    const int beats = p_.weight_beats_per_word();
    const Expr beat = m_.Input("weight_beat", BitsFor(beats), "beat of the tile");
    const Expr word = m_.Input("weight_word", w_.weight_address);
    load_data_ = m_.Input("load_data", w_.beat);
    const int bits = p_.weight_tile_bytes() * 8;
    const Memory memory = m_.AddMemory("weight_tiles", bits, p_.weight_words);
    const Expr address = m_.Register("weight_address_r", w_.weight_address);
    const Expr valid = m_.ResetRegister("weight_valid_r", 1);
    const Expr tile = m_.Register("weights_a", bits);
    m_.Clocked([&](Block& b) {
      b.Set(valid, wires_["go"]);
      b.If(wires_["go"], [&] { b.Set(address, wires_["weight_address"]); });
      b.If(valid, [&] { b.Set(tile, ReadMemory(memory, address)); });
      b.If(write, [&] {
        for (int i = 0; i < beats; ++i) {
          const int from = i * w_.beat, width = std::min(w_.beat, bits - from);
          const auto body = [&] { b.Write(memory, word, Slice(load_data_, 0, width), from); };
          if (beats == 1) {
            body();
          } else {
            b.If(Equal(beat, Const(beat.width(), i)), body);
          }
        }
      });
    });
    wires_["weights"] = tile;
    m_.Ignore({beat, load_data_});
  }

  void AddDatapath() {
    m_.Comment("Stages R and A, then M and S.");
    wires_["line"] = m_.Input("line", p_.line_bytes() * 8);
    Connect("heddle_operands", "operands",
            {{"busy", Wire("operands_busy", 1)}, {"out_valid", Wire("valid_a", 1)}, {"out_b", Wire("b_a", 1)},
             {"out_first", Wire("first_a", 1)}, {"out_last", Wire("last_a", 1)}, {"out_by_vector", Wire("by_vector_a", 1)}});
    Connect("heddle_array", "multipliers",
            {{"busy", Wire("array_busy", 1)}, {"valid", wires_["valid_a"]}, {"step_b", wires_["b_a"]},
             {"step_first", wires_["first_a"]}, {"step_last", wires_["last_a"]}, {"by_vector", wires_["by_vector_a"]},
             {"operand_b", Wire("finished_b", p_.output_lanes * 8)}});
    m_.Ignore({wires_["vector_valid"], wires_["vector_index"], wires_["finished_b"]});
  }

  void AddDrainInstance() {
    m_.Comment("Where each pixel goes travels beside it.");
    const int entry = w_.address + w_.parameter_block + 1;
    const Expr places = m_.Register("places", kStagesToAccumulator * entry);
    m_.Clocked([&](Block& b) {
      b.Set(places, Concat({Slice(places, 0, (kStagesToAccumulator - 1) * entry), wires_["last_block"], wires_["parameter_block"],
                            wires_["out_address"]}));
    });
    const int top = (kStagesToAccumulator - 1) * entry;
    const Expr out_address = Slice(places, top, w_.address);
    const Expr block = Slice(places, top + w_.address, w_.parameter_block);
    std::map<std::string, Expr> ports = {{"out_address", out_address}, {"parameter_block", block},
                                         {"last_block", Slice(places, top + entry - 1, 1)}, {"load_data", load_data_}};
    for (const Module::Port& port : Find(design_, "heddle_drain").ports()) {
      const std::string& name = port.signal->name;
      if (name.starts_with("parameter_write") || name == "parameter_beat" || name == "parameter_word" ||
          name.starts_with("lookup_")) {
        ports[name] = m_.Input(name, port.signal->width);
      }
    }
    if (p_.elementwise) ports["operand_b"] = wires_["finished_b"];
    Connect("heddle_drain", "drain", ports);
    for (const char* name : {"write_valid", "write_address", "write_data", "write_mask"}) {
      m_.Assign(m_.Output(std::string("drain_") + name, wires_[name].width()), wires_[name]);
    }
  }

  void AddCompletion() {
    m_.Comment("Pixels between issue and write; the end of the instruction.");
    const Expr in_flight = m_.ResetRegister("in_flight", kInFlightBits);
    const Expr enters = m_.Name("enters", wires_["go"] & wires_["step_last"]);
    const Expr leaves = wires_["write_valid"];
    m_.Clocked([&](Block& b) {
      b.If(enters & ~leaves, [&] { b.Set(in_flight, in_flight + Const(kInFlightBits, 1)); });
      b.ElseIf(leaves & ~enters, [&] { b.Set(in_flight, in_flight - Const(kInFlightBits, 1)); });
    });
    m_.Assign(finish_, AllOf({active_, ~setup_, ~wires_["running"], ~wires_["operands_busy"], ~wires_["array_busy"],
                              Equal(in_flight, Zeros(kInFlightBits))}));
    m_.Assign(m_.Output("finished", 1), finish_);
    m_.Assign(m_.Output("finish_signals", kUnits * 4), SignalsOf(instruction_));
    m_.Assign(m_.Output("is_active", 1), active_);
    m_.Assign(m_.Output("tag", 16), Field(instruction_, Opcode::kCompute, "tag"));
    m_.Assign(m_.Output("event_wait_drain", 1), wires_["wait_drain"]);
    m_.Ignore({instruction_});
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Design& design_;
  Module& m_;
  Expr start_, active_, setup_, instruction_, finish_, load_data_;
  std::map<std::string, Expr> wires_;
};

}  // namespace

Module& AddCompute(Design& design, const AcceleratorParams& params) { return ComputeBuilder(design, params).Build(); }

}  // namespace heddle::hls
