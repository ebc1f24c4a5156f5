// The watchdog's report: a program that stops before its end stops here too, and every register says why.

#include <fmt/format.h>

#include "hls/timing_engine.h"

namespace heddle::hls {

std::string TimingEngine::Name(int instruction) const {
  const Instruction& i = At(instruction);
  const size_t tag = i.header.opcode == Opcode::kCompute ? i.compute.tag : i.transfer.tag;
  const std::string layer = tag < options_.layer_names.size() ? fmt::format("\"{}\"", options_.layer_names[tag]) : fmt::format("{}", tag);
  return fmt::format("instruction {} ({} of layer {})", instruction, kTimedUnitNames[UnitOf(i)], layer);
}

// The instruction of unit `from` that gives its `token`-th token to unit `to` (counted from 1), or -1.
int TimingEngine::GiverOf(int from, int to, int64_t token) const {
  int64_t given = 0;
  for (int i = 0; !IsEnd(i); ++i) {
    if (UnitOf(At(i)) != from) continue;
    const HeaderFields& h = At(i).header;
    const int64_t signals[kTimedUnits] = {h.signal_load, h.signal_compute, h.signal_store};
    given += signals[to];
    if (given >= token) return i;
  }
  return -1;
}

std::string TimingEngine::DescribeUnit(int unit) const {
  const bool active[kTimedUnits] = {load_.is_active(), compute_active_, store_.active};
  const int executed[kTimedUnits] = {load_.holds ? load_.written : load_.asked, compute_instruction_, store_.instruction};
  if (active[unit]) return fmt::format("executes {}", Name(executed[unit]));
  if (queues_[unit].items.empty()) return "has no instruction";
  const int head = queues_[unit].items.front();
  const int from = LacksTokensOf(unit);
  const HeaderFields& h = At(head).header;
  const int64_t waits[kTimedUnits] = {h.wait_load, h.wait_compute, h.wait_store};
  const int64_t has = given_[from][unit] - taken_[from][unit];
  const int giver = GiverOf(from, unit, taken_[from][unit] + waits[from]);
  std::string text = fmt::format("holds {}, which waits for {} token{} of the {} unit and has {}", Name(head), waits[from],
                                 waits[from] == 1 ? "" : "s", kTimedUnitNames[from], has);
  if (giver < 0) return text + "; nothing in the program gives it";
  const bool fetched = giver < fetch_.held || (giver == fetch_.held && !fetch_.holds);
  return text + fmt::format("; {} gives it, which {}", Name(giver), fetched ? "has not finished" : "has not left the fetch unit");
}

std::string TimingEngine::DescribeStop() const {
  std::string text = fmt::format("the program stops in cycle {}", cycle_);
  for (int unit = 0; unit < kTimedUnits; ++unit) text += fmt::format("; the {} unit {}", kTimedUnitNames[unit], DescribeUnit(unit));
  if (fetch_.holds) {
    const int unit = UnitOf(At(fetch_.held));
    text += fmt::format("; the fetch unit holds {}: the {} queue of {} is full", Name(fetch_.held), kTimedUnitNames[unit], queues_[unit].depth);
  }
  return text;
}

}  // namespace heddle::hls
