// Data, protocol checks and chance around the shared timing.

#include "axi_memory.h"

#include <algorithm>

namespace heddle::sim {

AxiMemory::AxiMemory(const MemoryConfig& config, uint64_t bytes)
    : config_(config),
      bytes_(bytes),
      timing_(config, config.beat_bytes),
      read_data_(static_cast<size_t>(config.beat_bytes)),
      random_(config.seed * 0x9E3779B97F4A7C15ull + 1) {
  CopyOutputs();
}

void AxiMemory::BeginProgram() {
  timing_.Begin();
  CopyOutputs();
}

bool AxiMemory::Stall() {
  if (config_.stall_probability <= 0) return false;
  random_ ^= random_ << 13;
  random_ ^= random_ >> 7;
  random_ ^= random_ << 17;
  return static_cast<double>(random_ >> 11) * 0x1p-53 < config_.stall_probability;
}

bool AxiMemory::IsBad(uint64_t address, int beats) {
  const uint64_t size = static_cast<uint64_t>(beats) * static_cast<uint64_t>(config_.beat_bytes);
  if (address % static_cast<uint64_t>(config_.beat_bytes) != 0) Fail("burst address " + std::to_string(address) + " is not aligned to a beat");
  if (address / 4096 != (address + size - 1) / 4096) Fail("the burst at " + std::to_string(address) + " crosses a 4 KiB border");
  if (address <= bytes_.size() && size <= bytes_.size() - address) return false;
  Fail("the burst at " + std::to_string(address) + " lies outside the memory");
  return true;
}

void AxiMemory::TakeWriteBeat(const AxiFromMaster& in) {
  if (!in.wvalid || !outputs_.wready) return;
  const hls::MemoryTiming::Burst burst = timing_.write();
  if (!burst.bad) {
    for (int i = 0; i < config_.beat_bytes; ++i) {
      if (in.wstrb >> i & 1) bytes_[burst.address + static_cast<uint64_t>(i)] = in.wdata[i];
    }
  }
  bytes_written_ += static_cast<uint64_t>(__builtin_popcountll(in.wstrb));
  if (in.wlast != timing_.TakeWrite()) Fail("wlast does not match the burst's length");
}

void AxiMemory::Clock(const AxiFromMaster& in) {
  if (outputs_.rvalid && in.rready) {
    bytes_read_ += static_cast<uint64_t>(config_.beat_bytes);
    timing_.TakeRead();
  }
  if (outputs_.bvalid && in.bready) timing_.TakeResponse();
  TakeWriteBeat(in);
  if (in.arvalid && outputs_.arready) timing_.AcceptRead(in.araddr, in.arlen + 1, IsBad(in.araddr, in.arlen + 1));
  if (in.awvalid && outputs_.awready) timing_.AcceptWrite(in.awaddr, in.awlen + 1, IsBad(in.awaddr, in.awlen + 1));
  timing_.Tick([this] { return Stall(); });
  CopyOutputs();
}

void AxiMemory::CopyOutputs() {
  const hls::MemoryTiming::Outputs& now = timing_.outputs();
  if (now.rvalid) {
    const hls::MemoryTiming::Burst& burst = timing_.read();
    if (burst.bad) {
      std::fill(read_data_.begin(), read_data_.end(), uint8_t{0xdd});
    } else {
      std::memcpy(read_data_.data(), &bytes_[burst.address], read_data_.size());
    }
    outputs_.rresp = burst.bad ? 2 : 0;
    outputs_.rdata = read_data_.data();
  }
  outputs_.arready = now.arready;
  outputs_.rvalid = now.rvalid;
  outputs_.rlast = now.rlast;
  outputs_.awready = now.awready;
  outputs_.wready = now.wready;
  outputs_.bvalid = now.bvalid;
  if (now.bvalid) outputs_.bresp = now.response_bad ? 2 : 0;
}

}  // namespace heddle::sim
