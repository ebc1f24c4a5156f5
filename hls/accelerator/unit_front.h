// What the load, compute and store units have in common: they look at the head of their queue and start it when its tokens
// are there; and they walk the planes and rows of a transfer. Private to hls/accelerator.
#ifndef HEDDLE_HLS_ACCELERATOR_UNIT_FRONT_H_
#define HEDDLE_HLS_ACCELERATOR_UNIT_FRONT_H_

#include <functional>
#include <string>

#include "hls/accelerator/parts.h"

namespace heddle::hls {

inline constexpr int kTokenBits = 8;
inline constexpr int kUnits = 3;  // load, compute, store

// Ports queue_valid, queue_data, queue_pop, tokens (3 x 8 bits, from load, compute, store), start_waits, event_wait_token.
struct UnitFront {
  rtl::Expr head;   // the instruction at the head of the queue
  rtl::Expr ready;  // it is there and has its tokens
};
// `start` is driven by the caller: the unit takes the head in this cycle.
UnitFront AddUnitFront(rtl::Module& m, int instruction_bits, const rtl::Expr& start);
// The signal fields of an instruction, for the token counters.
rtl::Expr SignalsOf(const rtl::Expr& instruction);

// Walks planes x rows x beats of a transfer on the DRAM side ("dram") or the on-chip side ("sram").
class TransferWalk {
 public:
  TransferWalk(rtl::Module& m, const AcceleratorParams& params, const std::string& name, const std::string& side,
               const rtl::Expr& instruction, int address_bits);
  // Statements that begin a walk over the instruction `head` (a register's next value, hence given), and that advance it
  // by `beats` beats of the current row (24 bits).
  void Begin(rtl::Block& b, const rtl::Expr& head);
  void Advance(rtl::Block& b, const rtl::Expr& beats);

  rtl::Expr active;      // beats are left
  rtl::Expr address;     // of the next beat
  rtl::Expr beats_left;  // in this row
  // Whether `beats` beats complete the row, and the whole transfer.
  rtl::Expr CompletesRow(const rtl::Expr& beats);
  rtl::Expr CompletesAll(const rtl::Expr& beats);

 private:
  rtl::Expr RowBeats(const rtl::Expr& instruction);
  rtl::Expr Step(const std::string& field);

  const AcceleratorParams& p_;
  std::string side_;
  rtl::Expr instruction_, row_beats_, rows_left_, planes_left_, row_address_, plane_address_, next_row_, next_plane_;
};

inline constexpr int kBeatCountBits = 25;

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_ACCELERATOR_UNIT_FRONT_H_
