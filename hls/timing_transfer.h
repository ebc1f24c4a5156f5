// Fetch, load, store and the memories' ports in time: the registers of hls/accelerator/{fetch,transfer,unit_front,
// activation_memory}.cc that decide when something happens, without data. Private to the fast model.
#ifndef HEDDLE_HLS_TIMING_TRANSFER_H_
#define HEDDLE_HLS_TIMING_TRANSFER_H_

#include <algorithm>
#include <cstdint>

#include "hls/isa.h"
#include "hls/memory/memory_timing.h"
#include "hls/params.h"
#include "hls/timing_compute.h"

namespace heddle::hls {

// Planes x rows x beats of a transfer on one side.
struct TransferWalkTiming {
  bool active = false;
  int64_t address = 0, beats_left = 0;
  int64_t row_beats = 0, rows = 0, rows_left = 0, planes_left = 0, row_address = 0, plane_address = 0, row_step = 0, plane_step = 0;
  int64_t beat_bytes = 1;

  void Begin(const TransferFields& t, bool dram, int64_t beat) {
    active = t.bytes != 0 && t.rows != 0 && t.planes != 0;
    beat_bytes = beat;
    address = row_address = plane_address = dram ? int64_t{t.dram_address} : int64_t{t.sram_address};
    row_step = dram ? t.dram_row_step : t.sram_row_step;
    plane_step = dram ? t.dram_plane_step : t.sram_plane_step;
    row_beats = beats_left = (int64_t{t.bytes} + beat - 1) / beat;
    rows = rows_left = t.rows;
    planes_left = t.planes;
  }
  bool CompletesRow(int64_t beats) const { return beats_left == beats; }
  void Advance(int64_t beats) {
    if (!CompletesRow(beats)) {
      address += beats * beat_bytes;
      beats_left -= beats;
      return;
    }
    beats_left = row_beats;
    if (rows_left != 1) {
      --rows_left;
      address = row_address += row_step;
      return;
    }
    rows_left = rows;
    address = row_address = plane_address += plane_step;
    if (--planes_left == 0) active = false;
  }
  // Beats of the next burst: to the end of the row, to the longest burst, to the next 4 KiB.
  int64_t Burst(int64_t longest) const {
    const int64_t to_page = (4096 - (address & 4095) + beat_bytes - 1) / beat_bytes;
    return std::min(beats_left, std::min(to_page, longest));
  }
};

struct FetchTiming {
  bool asking = false, complete = false, holds = false, done = false;
  int64_t address = 0, bursts_left = 0, beats_left = 0;
  int next = 0;  // instruction that is coming or complete
  int held = 0;
  int64_t burst_beats = 1, bursts = 1;
};

// The AXI read channels.
struct ReadPortTiming {
  bool valid = false;
  uint64_t address = 0;
  int64_t beats = 0;
  Ring<char> owners;  // 1: fetch
};

struct LoadTiming {
  bool waiting = false, holds = false;
  int asked = 0, written = 0;
  TransferWalkTiming ask, write;
  bool is_active() const { return holds || waiting || ask.active; }
};

struct StoreTiming {
  bool active = false, setup = false, valid = false, arrives = false;
  int instruction = 0;
  TransferWalkTiming ask, data;
  uint64_t address = 0;
  int64_t beats = 0, in_flight = 0, room = 4, position = 0, queued = 0;  // queued: beats in the write queue
  Ring<int64_t> bursts;                                                  // their lengths
};
inline constexpr int kStoreBurstQueue = 4;

// Waiting counters in front of the activation memory.
struct PatienceTiming {
  int store = 0, load = 0;
};
inline constexpr int kStorePatience = 7, kLoadPatience = 15;

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_TIMING_TRANSFER_H_
