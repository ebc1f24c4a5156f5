// The memory's timing and protocol, without an accelerator: a small master reads and writes bursts.

#include "sim/harness/axi_memory.h"

#include <gtest/gtest.h>

namespace heddle::sim {
namespace {

struct ReadRun {
  std::vector<uint8_t> data;
  std::vector<uint64_t> beat_cycles;
};

ReadRun ReadBursts(AxiMemory& memory, const std::vector<std::pair<uint64_t, int>>& bursts, int beat_bytes) {
  ReadRun run;
  size_t next = 0, beats = 0;
  for (const auto& burst : bursts) beats += static_cast<size_t>(burst.second);
  for (uint64_t cycle = 0; cycle < 100000 && run.beat_cycles.size() < beats; ++cycle) {
    AxiFromMaster in;
    in.rready = true;
    const bool open = next < bursts.size();
    in.arvalid = open;
    if (open) {
      in.araddr = bursts[next].first;
      in.arlen = static_cast<uint8_t>(bursts[next].second - 1);
    }
    const bool taken = in.arvalid && memory.outputs().arready;
    if (memory.outputs().rvalid) {
      run.data.insert(run.data.end(), memory.outputs().rdata, memory.outputs().rdata + beat_bytes);
      run.beat_cycles.push_back(cycle);
    }
    memory.Clock(in);
    if (taken) ++next;
  }
  return run;
}

TEST(AxiMemory, LatenciesOfBurstsInFlightOverlap) {
  AxiMemory memory(MemoryConfig{{.latency_cycles = 30, .bytes_per_cycle = 8}, 8}, 4096);
  for (size_t i = 0; i < 4096; ++i) memory.bytes()[i] = static_cast<uint8_t>(i * 7);
  const ReadRun run = ReadBursts(memory, {{0, 16}, {128, 16}, {1024, 16}}, 8);
  ASSERT_EQ(run.beat_cycles.size(), 48u);
  EXPECT_EQ(run.beat_cycles.back() - run.beat_cycles.front(), 47u);  // one beat a cycle, no gap between bursts
  EXPECT_EQ(run.data[0], 0);
  EXPECT_EQ(run.data[17 * 8], static_cast<uint8_t>((128 + 8) * 7));
  EXPECT_EQ(memory.error(), "");
}

TEST(AxiMemory, BandwidthLimitsTheRate) {
  AxiMemory memory(MemoryConfig{{.latency_cycles = 5, .bytes_per_cycle = 2}, 8}, 4096);
  const ReadRun run = ReadBursts(memory, {{0, 64}}, 8);
  EXPECT_NEAR(static_cast<double>(run.beat_cycles.back() - run.beat_cycles.front()), 63 * 4.0, 8.0);
}

TEST(AxiMemory, RowsOpenAndRefreshCloses) {
  // 64-byte rows in two banks: the first and third burst share a bank.
  const MemoryConfig config{{.latency_cycles = 10, .bytes_per_cycle = 8, .banks = 2, .row_bytes = 64, .row_miss_cycles = 5,
                             .row_cycle_cycles = 40, .refresh_interval_cycles = 200, .refresh_cycles = 20}, 8};
  AxiMemory memory(config, 4096);
  EXPECT_EQ(ReadBursts(memory, {{0, 1}}, 8).beat_cycles.front(), 15u);           // opens a row
  memory.BeginProgram();
  const ReadRun run = ReadBursts(memory, {{0, 1}, {8, 1}, {128, 1}}, 8);
  EXPECT_EQ(run.beat_cycles[1] - run.beat_cycles[0], 1u);                        // an open row; behind the burst before
  EXPECT_EQ(run.beat_cycles[2] - run.beat_cycles[0], 40u);                       // the bank's row cycle
  EXPECT_EQ(memory.row_misses(), 3u);
  while (memory.outputs().arready && run.beat_cycles.size() < 4 && memory.row_misses() < 4) {
    const ReadRun again = ReadBursts(memory, {{128, 1}}, 8);
    if (memory.row_misses() == 4) {
      EXPECT_GE(again.beat_cycles[0], 15u);  // the refresh has closed it
    }
  }
}

TEST(AxiMemory, BackPressureChangesTimeNotData) {
  AxiMemory calm(MemoryConfig{{.latency_cycles = 3}, 8}, 4096), stalled(MemoryConfig{{.latency_cycles = 3}, 8, 0.5, 9}, 4096);
  for (size_t i = 0; i < 4096; ++i) calm.bytes()[i] = stalled.bytes()[i] = static_cast<uint8_t>(i ^ i >> 8);
  const ReadRun a = ReadBursts(calm, {{0, 256}, {2048, 10}}, 8), b = ReadBursts(stalled, {{0, 256}, {2048, 10}}, 8);
  EXPECT_EQ(a.data, b.data);
  EXPECT_GT(b.beat_cycles.back(), a.beat_cycles.back());
}

TEST(AxiMemory, BadBurstsAreReported) {
  AxiMemory outside({}, 4096), crossing({}, 16384);
  ReadBursts(outside, {{8192, 4}}, 8);
  EXPECT_NE(outside.error().find("outside"), std::string::npos);
  ReadBursts(crossing, {{4088, 4}}, 8);
  EXPECT_NE(crossing.error().find("4 KiB"), std::string::npos);
}

TEST(AxiMemory, WritesObeyStrobesAndAnswer) {
  AxiMemory memory(MemoryConfig{{.latency_cycles = 4}, 8}, 4096);
  const uint8_t data[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  bool answered = false;
  bool address_sent = false;
  int beats = 0;
  for (int cycle = 0; cycle < 100 && !answered; ++cycle) {
    AxiFromMaster in;
    in.awvalid = !address_sent;
    in.awaddr = 64;
    in.awlen = 1;
    in.wvalid = beats < 2;
    in.wdata = data;
    in.wstrb = beats == 0 ? 0x0f : 0xff;
    in.wlast = beats == 1;
    in.bready = true;
    address_sent = address_sent || memory.outputs().awready;
    if (in.wvalid && memory.outputs().wready) ++beats;
    answered = memory.outputs().bvalid;
    memory.Clock(in);
  }
  EXPECT_TRUE(answered);
  EXPECT_EQ(memory.bytes()[67], 4);
  EXPECT_EQ(memory.bytes()[68], 0);
  EXPECT_EQ(memory.bytes()[79], 8);
  EXPECT_EQ(memory.bytes_written(), 12u);
}

}  // namespace
}  // namespace heddle::sim
