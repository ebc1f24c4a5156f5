// Instruction fetch and the AXI read port that it shares with the load unit.
//
// Fetch never blocks the read channel: it asks for an instruction only when there is a place for it. So the data of a load
// behind it always come through, and a program whose order is a possible order of execution cannot lock up.

#include <bit>

#include "hls/accelerator/unit_front.h"

namespace heddle::hls {

using namespace rtl;  // NOLINT

Module& AddFetch(Design& design, const AcceleratorParams& p) {
  const Widths w(p);
  Module& m = design.Add("heddle_fetch", "Fetches instructions and hands them to the units' queues.");
  const int beats = kInstructionBytes / p.beat_bytes();
  const int burst = std::min(beats, p.burst_beats);
  const int bursts = beats / burst;
  const int all = kInstructionBytes * 8;
  const Expr start = m.Input("start", 1);
  const Expr program = m.Input("program_at", 32, "bytes from the base");
  const Expr take = m.Input("read_take", 1);
  const Expr data_valid = m.Input("data_valid", 1);
  const Expr data = m.Input("data", w.beat);

  m.Comment("Asks for the bursts of one instruction.");
  const Expr asking = m.ResetRegister("asking", 1);
  const Expr address = m.Register("address", 32);
  const Expr bursts_left = m.Register("bursts_left", BitsFor(bursts + 1));
  const Expr beats_left = m.ResetRegister("beats_left", BitsFor(beats + 1), 0, "of the instruction that is coming");
  const Expr arrived = m.Register("arrived", all);
  const Expr complete = m.ResetRegister("complete", 1, 0, "`arrived` holds an instruction");
  const Expr held = m.Register("held", w.compute_bits);
  const Expr holds = m.ResetRegister("holds", 1);
  const Expr done = m.ResetRegister("done", 1, 0, "the end was reached");
  const Expr error = m.ResetRegister("error", 1, 0, "an unknown opcode");
  const Expr dispatched = m.Wire("dispatched", 1);
  const Expr moves = m.Name("moves", complete & (~holds | dispatched));
  const Expr opcode = m.Name("opcode", Slice(arrived, 0, 4));
  const Expr is_end = m.Name("is_end", Equal(opcode, Const(4, static_cast<int>(Opcode::kEnd))));
  const Expr is_known = m.Name("is_known", Less(opcode, Const(4, 4)));
  const Expr asks_next = m.Name("asks_next", start | AllOf({moves, is_known, ~is_end}));
  m.Assign(m.Output("read_want", 1), asking);
  m.Assign(m.Output("read_address", 32), address);
  m.Assign(m.Output("read_beats", kBeatCountBits), Const(kBeatCountBits, burst));
  m.Clocked([&](Block& b) {
    b.If(start, [&] { b.Set(address, program); });
    b.ElseIf(take, [&] { b.Set(address, address + Const(32, burst * p.beat_bytes())); });
    b.If(asks_next, [&] {
      b.Set(asking, Const(1, 1));
      b.Set(bursts_left, Const(bursts_left.width(), bursts));
      b.Set(beats_left, Const(beats_left.width(), beats));
    });
    b.Else([&] {
      b.If(take, [&] {
        b.Set(bursts_left, bursts_left - Const(bursts_left.width(), 1));
        b.If(Equal(bursts_left, Const(bursts_left.width(), 1)), [&] { b.Set(asking, Const(1, 0)); });
      });
      b.If(data_valid, [&] { b.Set(beats_left, beats_left - Const(beats_left.width(), 1)); });
    });
    b.If(data_valid, [&] { b.Set(arrived, Concat({data, Slice(arrived, w.beat, all - w.beat)})); });
    b.If(data_valid & Equal(beats_left, Const(beats_left.width(), 1)), [&] { b.Set(complete, Const(1, 1)); });
    b.ElseIf(moves, [&] { b.Set(complete, Const(1, 0)); });
    b.If(moves & is_known & ~is_end, [&] {
      b.Set(held, Slice(arrived, 0, w.compute_bits));
      b.Set(holds, Const(1, 1));
    });
    b.ElseIf(dispatched, [&] { b.Set(holds, Const(1, 0)); });
    b.If(start, [&] {
      b.Set(done, Const(1, 0));
      b.Set(error, Const(1, 0));
    });
    b.ElseIf(moves, [&] {
      b.Set(done, is_end | ~is_known);
      b.Set(error, ~is_known);
    });
  });

  m.Comment("Hands the instruction to its queue.");
  std::vector<Expr> sent;
  const Expr held_opcode = m.Name("held_opcode", Slice(held, 0, 4));
  for (const auto& [name, code] : std::initializer_list<std::pair<std::string, Opcode>>{
           {"load", Opcode::kLoad}, {"compute", Opcode::kCompute}, {"store", Opcode::kStore}}) {
    const Expr can_push = m.Input(name + "_can_push", 1);
    const Expr push = m.Name(name + "_pushes", AllOf({holds, can_push, Equal(held_opcode, Const(4, static_cast<int>(code)))}));
    m.Assign(m.Output(name + "_push", 1), push);
    sent.push_back(push);
  }
  m.Assign(dispatched, AnyOf(sent));
  m.Assign(m.Output("instruction", w.compute_bits), held);
  m.Assign(m.Output("event_wait_queue", 1), holds & ~dispatched);
  m.Assign(m.Output("is_done", 1, "everything up to the end is handed out"), done & ~holds);
  m.Assign(m.Output("is_error", 1), error);
  m.Ignore({arrived});
  m.Finish();
  return m;
}

Module& AddReadPort(Design& design, const AcceleratorParams& p) {
  const Widths w(p);
  Module& owners = AddQueue(design, "heddle_owner_queue", 1, p.outstanding_reads, "Who gets the next read burst: 1 is fetch.");
  Module& m = design.Add("heddle_read_port", "The AXI read channels, shared by fetch and load; responses come in order.");
  const Expr base = m.Input("base", p.axi_address_bits);
  struct Client {
    Expr want, address, beats, take;
  };
  std::vector<Client> clients;
  for (const std::string name : {"fetch", "load"}) {
    clients.push_back({m.Input(name + "_want", 1), m.Input(name + "_address", 32), m.Input(name + "_beats", kBeatCountBits),
                       m.Output(name + "_take", 1)});
  }
  const Expr arready = m.Input("arready", 1);
  const Expr valid = m.ResetRegister("valid", 1);
  const Expr address = m.Register("address", p.axi_address_bits);
  const Expr length = m.Register("length", 8);
  const Expr can_push = m.Wire("owner_can_push", 1);
  const Expr free = m.Name("free", AllOf({can_push, ~valid | arready}));
  const Expr takes_fetch = m.Name("takes_fetch", free & clients[0].want);
  const Expr takes_load = m.Name("takes_load", free & clients[1].want & ~clients[0].want);
  m.Assign(clients[0].take, takes_fetch);
  m.Assign(clients[1].take, takes_load);
  const Expr beats = m.Name("beats_less_one", Mux(takes_fetch, clients[0].beats, clients[1].beats) - Const(kBeatCountBits, 1));
  const Expr offset = m.Name("offset", Mux(takes_fetch, clients[0].address, clients[1].address));
  m.Clocked([&](Block& b) {
    b.If(takes_fetch | takes_load, [&] {
      b.Set(valid, Const(1, 1));
      b.Set(address, base + ZeroExtend(offset, p.axi_address_bits));
      b.Set(length, Slice(beats, 0, 8));
    });
    b.ElseIf(arready, [&] { b.Set(valid, Const(1, 0)); });
  });
  m.Ignore({beats});
  m.Assign(m.Output("arvalid", 1), valid);
  m.Assign(m.Output("araddr", p.axi_address_bits), address);
  m.Assign(m.Output("arlen", 8), length);

  m.Comment("Read data go to whose burst it is.");
  const Expr rvalid = m.Input("rvalid", 1);
  const Expr rlast = m.Input("rlast", 1);
  const Expr rresp = m.Input("rresp", 2);
  const Expr load_ready = m.Input("load_data_ready", 1);
  const Expr owner_valid = m.Wire("owner_valid", 1);
  const Expr owner = m.Wire("owner", 1);
  const Expr ready = m.Name("ready", owner_valid & (owner | load_ready));
  m.Assign(m.Output("rready", 1), ready);
  m.Assign(m.Output("fetch_data_valid", 1), AllOf({rvalid, owner_valid, owner}));
  m.Assign(m.Output("load_data_valid", 1), AllOf({rvalid, owner_valid, ~owner}));
  m.Assign(m.Output("is_error", 1), AllOf({rvalid, ready, AnyBit(rresp)}));
  m.Instantiate(owners, "owners", {{"push", takes_fetch | takes_load}, {"push_data", takes_fetch}, {"can_push", can_push},
                                   {"valid", owner_valid}, {"data", owner}, {"pop", AllOf({rvalid, ready, rlast})}});
  m.Finish();
  return m;
}

}  // namespace heddle::hls
