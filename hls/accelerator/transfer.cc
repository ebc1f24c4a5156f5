// The load unit: one side asks for bursts, the other writes what comes back; they may be one instruction apart, so that the
// latency of memory is paid once and not per instruction.

#include "hls/accelerator/unit_front.h"

#include <bit>

namespace heddle::hls {

using namespace rtl;  // NOLINT

namespace {

Expr One() { return Const(kBeatCountBits, 1); }

class LoadBuilder {
 public:
  LoadBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), m_(design.Add("heddle_load", "The load unit.")) {}

  Module& Build() {
    const Expr start = m_.Wire("start", 1);
    const UnitFront front = AddUnitFront(m_, w_.transfer_bits, start);
    m_.Assign(m_.Output("started", 1), start);
    AddAddressSide(front, start);
    AddDataSide();
    AddActivationTarget();
    AddWordTargets();
    m_.Ignore({asked_, written_});
    m_.Finish();
    return m_;
  }

 private:
  void AddAddressSide(const UnitFront& front, const Expr& start) {
    m_.Comment("Address side: bursts of the instruction `asked`; `waiting` says that the data side has not taken it yet.");
    asked_ = m_.Register("asked", w_.transfer_bits);
    waiting_ = m_.ResetRegister("waiting", 1);
    takes_ = m_.Wire("data_side_takes", 1);
    TransferWalk walk(m_, p_, "ask", "dram", asked_, 32);
    m_.Assign(start, AllOf({front.ready, ~waiting_, ~walk.active}));
    const Expr want = m_.Output("read_want", 1);
    const Expr take = m_.Input("read_take", 1);
    m_.Assign(m_.Output("read_address", 32, "bytes from the base"), walk.address);
    const Expr burst = AddBurst(m_, p_, walk);
    m_.Assign(m_.Output("read_beats", kBeatCountBits), burst);
    m_.Assign(want, walk.active);
    m_.Clocked([&](Block& b) {
      b.If(start, [&] { b.Set(asked_, front.head); });
      b.If(start, [&] { b.Set(waiting_, Const(1, 1)); });
      b.ElseIf(takes_, [&] { b.Set(waiting_, Const(1, 0)); });
      b.If(start, [&] { walk.Begin(b, front.head); });
      b.ElseIf(take, [&] { walk.Advance(b, burst); });
    });
    ask_active_ = walk.active;
  }

 public:
  // Beats of the next burst: to the end of the row, to the longest burst, to the next 4 KiB.
  static Expr AddBurst(Module& m, const AcceleratorParams& p, const TransferWalk& walk) {
    const int shift = std::countr_zero(static_cast<unsigned>(p.beat_bytes()));
    const Expr in_page = ZeroExtend(Slice(walk.address, shift, 12 - shift), kBeatCountBits);
    const Expr to_page = m.Name("beats_to_page", Const(kBeatCountBits, 4096 / p.beat_bytes()) - in_page);
    const Expr longest = Const(kBeatCountBits, p.burst_beats);
    const Expr limit = m.Name("burst_limit", Mux(Less(to_page, longest), to_page, longest));
    m.Ignore({walk.address});
    return m.Name("burst", Mux(Less(walk.beats_left, limit), walk.beats_left, limit));
  }

 private:
  void AddDataSide() {
    m_.Comment("Data side: the instruction `written`.");
    written_ = m_.Register("written", w_.transfer_bits);
    holds_ = m_.ResetRegister("holds", 1);
    data_valid_ = m_.Input("data_valid", 1, "read data for this unit");
    data_ = m_.Input("data", w_.beat);
    data_ready_ = m_.Output("data_ready", 1);
    beat_ = m_.Wire("beat_taken", 1);
    m_.Assign(takes_, waiting_ & ~holds_);
    walk_ = std::make_unique<TransferWalk>(m_, p_, "write", "sram", written_, 24);
    const Expr done = m_.Name("done", holds_ & ~walk_->active);
    word_start_ = m_.ResetRegister("first_beat", 1, 1, "the next beat is the instruction's first");
    m_.Clocked([&](Block& b) {
      b.If(takes_, [&] {
        b.Set(written_, asked_);
        b.Set(holds_, Const(1, 1));
        walk_->Begin(b, asked_);
        b.Set(word_start_, Const(1, 1));
      });
      b.ElseIf(done, [&] { b.Set(holds_, Const(1, 0)); });
      b.ElseIf(beat_, [&] {
        walk_->Advance(b, One());
        b.Set(word_start_, Const(1, 0));
      });
    });
    m_.Assign(m_.Output("finished", 1), done);
    m_.Assign(m_.Output("finish_signals", kUnits * 4), SignalsOf(written_));
    m_.Assign(m_.Output("is_active", 1), AnyOf({holds_, waiting_, ask_active_}));
    m_.Assign(m_.Output("tag", 16), Field(written_, Opcode::kLoad, "tag"));
    m_.Assign(m_.Output("event_wait_data", 1), walk_->active & ~data_valid_);
    m_.Assign(m_.Output("event_beat", 1), beat_);
  }

  Expr TargetIs(Target target) {
    return Equal(Field(written_, Opcode::kLoad, "target"), Const(2, static_cast<int>(target)));
  }

  void AddActivationTarget() {
    m_.Comment("Activations: byte addresses; the last beat of a row is written in part.");
    const Expr valid = m_.Name("has_beat", walk_->active & data_valid_);
    const Expr to_activations = m_.Name("to_activations", TargetIs(Target::kActivations));
    m_.Assign(m_.Output("activation_valid", 1), valid & to_activations);
    const Expr go = m_.Input("activation_go", 1);
    m_.Assign(data_ready_, walk_->active & (go | ~to_activations));
    m_.Assign(beat_, valid & (go | ~to_activations));
    m_.Assign(m_.Output("event_wait_bank", 1), AllOf({valid, to_activations, ~go}));
    m_.Assign(m_.Output("activation_address", w_.address), Slice(walk_->address, 0, w_.address));
    m_.Assign(m_.Output("activation_mask", p_.beat_bytes()), LastBeatMask(m_, p_, written_, walk_->CompletesRow(One())));
    word_valid_ = m_.Name("word_valid", valid & ~to_activations);
    m_.Assign(m_.Output("load_data", w_.beat), data_);
    m_.Ignore({walk_->address});
  }

 public:
  // All bytes, or in a row's last beat those that the row still has.
  static Expr LastBeatMask(Module& m, const AcceleratorParams& p, const Expr& instruction, const Expr& last) {
    const int bits = std::countr_zero(static_cast<unsigned>(p.beat_bytes()));
    const Expr rest = m.Name("bytes_of_last_beat", FieldTo(instruction, Opcode::kLoad, "bytes", bits));
    return Mux(last & AnyBit(rest), ~ShiftLeft(Ones(p.beat_bytes()), rest), Ones(p.beat_bytes()));
  }

 private:
  // Counts beats into words of `beats` beats from the instruction's word address on.
  void AddWords(const std::string& name, Target target, int beats, int word_bits) {
    const Expr is_target = m_.Name(name + "_chosen", word_valid_ & TargetIs(target));
    const int bits = BitsFor(beats);
    const Expr beat = m_.Register(name + "_next_beat", bits);
    const Expr word = m_.Register(name + "_next_word", word_bits);
    const Expr at_beat = m_.Name(name + "_at_beat", Mux(word_start_, Zeros(bits), beat));
    const Expr at_word = m_.Name(name + "_at_word", Mux(word_start_, FieldTo(written_, Opcode::kLoad, "sram_address", word_bits), word));
    const Expr last = m_.Name(name + "_word_ends", Equal(at_beat, Const(bits, beats - 1)));
    m_.Clocked([&](Block& b) {
      b.If(is_target, [&] {
        b.Set(beat, Mux(last, Zeros(bits), at_beat + Const(bits, 1)));
        b.Set(word, at_word + ZeroExtend(last, word_bits));
      });
    });
    m_.Assign(m_.Output(name + "_write", 1), is_target);
    m_.Assign(m_.Output(name + "_beat", bits), at_beat);
    m_.Assign(m_.Output(name + "_word", word_bits), at_word);
  }

  void AddWordTargets() {
    m_.Comment("Weights, parameters, lookup tables: words of whole beats.");
    AddWords("weight", Target::kWeights, p_.weight_beats_per_word(), w_.weight_address);
    AddWords("parameter", Target::kParameters, p_.parameter_beats_per_word(),
             BitsFor(int64_t{p_.parameter_blocks} * p_.drain_cycles()));
    if (p_.lookup) AddWords("lookup", Target::kLookup, kLookupEntries / p_.beat_bytes(), BitsFor(p_.lookup_tables));
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Module& m_;
  Expr asked_, waiting_, takes_, ask_active_, written_, holds_, data_valid_, data_, data_ready_, beat_, word_start_, word_valid_;
  std::unique_ptr<TransferWalk> walk_;
};

// The store unit: its address side runs ahead of its data side by the bursts in a small queue.
class StoreBuilder {
 public:
  StoreBuilder(Design& design, const AcceleratorParams& params)
      : p_(params), w_(params), bursts_(AddQueue(design, "heddle_burst_queue", 8, 4, "Lengths of the bursts whose data follow.")),
        data_queue_(AddQueue(design, "heddle_write_queue", w_.beat + p_.beat_bytes() + 1, kDataDepth, "Write data on their way out.")),
        m_(design.Add("heddle_store", "The store unit.")) {}

  Module& Build() {
    const Expr start = m_.Wire("start", 1);
    const UnitFront front = AddUnitFront(m_, w_.transfer_bits, start);
    m_.Assign(m_.Output("started", 1), start);
    active_ = m_.ResetRegister("active", 1);
    setup_ = m_.ResetRegister("setup", 1);
    instruction_ = m_.Register("instruction", w_.transfer_bits);
    finish_ = m_.Wire("finish", 1);
    m_.Assign(start, front.ready & ~active_);
    m_.Clocked([&](Block& b) {
      b.Set(setup_, start);
      b.If(start, [&] {
        b.Set(active_, Const(1, 1));
        b.Set(instruction_, front.head);
      });
      b.ElseIf(finish_, [&] { b.Set(active_, Const(1, 0)); });
    });
    AddAddressSide();
    AddReads();
    AddWriteData();
    AddCompletion();
    m_.Ignore({instruction_});
    m_.Finish();
    return m_;
  }

 private:
  static constexpr int kDataDepth = 4;

  void AddAddressSide() {
    m_.Comment("Addresses of the bursts.");
    const Expr base = m_.Input("base", p_.axi_address_bits);
    const Expr ready = m_.Input("awready", 1);
    const Expr valid = m_.ResetRegister("address_valid", 1);
    const Expr address = m_.Register("address", p_.axi_address_bits);
    const Expr length = m_.Register("length", 8);
    const int bits = BitsFor(p_.outstanding_writes + 1);
    in_flight_ = m_.ResetRegister("in_flight", bits, 0, "bursts without a response");
    const Expr response = m_.Input("bvalid", 1);
    walk_address_ = std::make_unique<TransferWalk>(m_, p_, "ask", "dram", instruction_, 32);
    const Expr burst = LoadBuilder::AddBurst(m_, p_, *walk_address_);
    const Expr can_push = m_.Wire("can_push_burst", 1);
    const Expr push = m_.Name("push_burst", AllOf({walk_address_->active, can_push, ~valid | ready,
                                                   NotEqual(in_flight_, Const(bits, p_.outstanding_writes))}));
    const Expr beats_less_one = m_.Name("beats_less_one", burst - One());
    m_.Ignore({beats_less_one});
    m_.Clocked([&](Block& b) {
      b.If(push, [&] {
        b.Set(valid, Const(1, 1));
        b.Set(address, base + ZeroExtend(walk_address_->address, p_.axi_address_bits));
        b.Set(length, Slice(beats_less_one, 0, 8));
      });
      b.ElseIf(ready, [&] { b.Set(valid, Const(1, 0)); });
      b.If(push & ~response, [&] { b.Set(in_flight_, in_flight_ + Const(bits, 1)); });
      b.ElseIf(response & ~push, [&] { b.Set(in_flight_, in_flight_ - Const(bits, 1)); });
      b.If(setup_, [&] { walk_address_->Begin(b, instruction_); });
      b.ElseIf(push, [&] { walk_address_->Advance(b, burst); });
    });
    m_.Assign(m_.Output("awvalid", 1), valid);
    m_.Assign(m_.Output("awaddr", p_.axi_address_bits), address);
    m_.Assign(m_.Output("awlen", 8), length);
    burst_valid_ = m_.Wire("next_burst_valid", 1);
    burst_length_ = m_.Wire("next_burst", 8);
    burst_pop_ = m_.Wire("next_burst_pop", 1);
    m_.Instantiate(bursts_, "bursts", {{"push", push}, {"push_data", Slice(beats_less_one, 0, 8)}, {"can_push", can_push},
                                       {"valid", burst_valid_}, {"data", burst_length_}, {"pop", burst_pop_}});
  }

  void AddReads() {
    m_.Comment("Reads of the activation memory, as far as the write queue has room.");
    walk_data_ = std::make_unique<TransferWalk>(m_, p_, "beat", "sram", instruction_, 24);
    const Expr go = m_.Input("read_go", 1);
    const Expr room = m_.ResetRegister("room", BitsFor(kDataDepth + 1), kDataDepth, "free places in the write queue");
    const Expr position = m_.ResetRegister("burst_position", 8, 0, "beats of the burst that are read");
    const Expr want = m_.Name("wants_beat", AllOf({walk_data_->active, burst_valid_, NotEqual(room, Zeros(room.width()))}));
    const Expr burst_ends = m_.Name("burst_ends", Equal(position, burst_length_));
    m_.Assign(m_.Output("read_want", 1), want);
    m_.Assign(m_.Output("read_address", w_.address), Slice(walk_data_->address, 0, w_.address));
    m_.Ignore({walk_data_->address});
    m_.Assign(burst_pop_, go & burst_ends);
    sent_ = m_.Wire("beat_sent", 1);
    arrives_ = m_.ResetRegister("arrives", 1, 0, "the beat read one cycle ago");
    arrives_last_ = m_.Register("arrives_last", 1);
    arrives_mask_ = m_.Register("arrives_mask", p_.beat_bytes());
    const Expr mask = m_.Name("mask", LoadBuilder::LastBeatMask(m_, p_, instruction_, walk_data_->CompletesRow(One())));
    const int bits = room.width();
    m_.Clocked([&](Block& b) {
      b.If(setup_, [&] { walk_data_->Begin(b, instruction_); });
      b.ElseIf(go, [&] { walk_data_->Advance(b, One()); });
      b.If(go, [&] { b.Set(position, Mux(burst_ends, Zeros(8), position + Const(8, 1))); });
      b.Set(arrives_, go);
      b.Set(arrives_last_, burst_ends);
      b.Set(arrives_mask_, mask);
      b.If(go & ~sent_, [&] { b.Set(room, room - Const(bits, 1)); });
      b.ElseIf(sent_ & ~go, [&] { b.Set(room, room + Const(bits, 1)); });
    });
    m_.Assign(m_.Output("event_wait_bank", 1), want & ~go);
  }

  void AddWriteData() {
    m_.Comment("Write data.");
    const Expr data = m_.Input("read_data", w_.beat);
    const Expr ready = m_.Input("wready", 1);
    const Expr valid = m_.Wire("write_valid", 1);
    const Expr entry = m_.Wire("write_entry", w_.beat + p_.beat_bytes() + 1);
    const Expr can_push = m_.Wire("can_push_data", 1);
    m_.Assign(sent_, valid & ready);
    m_.Instantiate(data_queue_, "write_data", {{"push", arrives_}, {"push_data", Concat({arrives_last_, arrives_mask_, data})},
                                               {"can_push", can_push}, {"valid", valid}, {"data", entry}, {"pop", sent_}});
    m_.Ignore({can_push});
    m_.Assign(m_.Output("wvalid", 1), valid);
    m_.Assign(m_.Output("wdata", w_.beat), Slice(entry, 0, w_.beat));
    m_.Assign(m_.Output("wstrb", p_.beat_bytes()), Slice(entry, w_.beat, p_.beat_bytes()));
    m_.Assign(m_.Output("wlast", 1), Bit(entry, w_.beat + p_.beat_bytes()));
    m_.Assign(m_.Output("event_wait_data", 1), valid & ~ready);
    m_.Assign(m_.Output("event_beat", 1), sent_);
  }

  void AddCompletion() {
    const Expr sent_all = m_.Name("sent_all", AllOf({active_, ~setup_, ~walk_address_->active, ~walk_data_->active}));
    m_.Assign(finish_, sent_all & Equal(in_flight_, Zeros(in_flight_.width())));
    m_.Assign(m_.Output("event_wait_response", 1), sent_all & ~finish_);
    m_.Assign(m_.Output("finished", 1), finish_);
    m_.Assign(m_.Output("finish_signals", kUnits * 4), SignalsOf(instruction_));
    m_.Assign(m_.Output("is_active", 1), active_);
    m_.Assign(m_.Output("tag", 16), Field(instruction_, Opcode::kStore, "tag"));
  }

  const AcceleratorParams& p_;
  const Widths w_;
  Module& bursts_;
  Module& data_queue_;
  Module& m_;
  Expr active_, setup_, instruction_, finish_, in_flight_, burst_valid_, burst_length_, burst_pop_, sent_, arrives_, arrives_last_,
      arrives_mask_;
  std::unique_ptr<TransferWalk> walk_address_, walk_data_;
};

}  // namespace

Module& AddLoad(Design& design, const AcceleratorParams& params) { return LoadBuilder(design, params).Build(); }
Module& AddStore(Design& design, const AcceleratorParams& params) { return StoreBuilder(design, params).Build(); }

}  // namespace heddle::hls
