// The first screen: what a reader wants to know without asking, within 80 columns and about 25 lines.
#include <fmt/format.h>

#include <algorithm>

#include "report/format.h"
#include "report/print.h"

namespace heddle::report {
namespace {

constexpr size_t kLabelWidth = 16;
constexpr size_t kColumns = 80;

class Screen {
 public:
  Screen(const Report& report, const TextOptions& options) : report_(report), options_(options) {}

  std::string Print() {
    Title();
    PrintVerdict();
    Devices();
    Share();
    PrintAccelerator();
    PrintResources();
    Certificate();
    PrintBottleneck();
    for (const std::string& note : report_.notes) Labelled("note", Printable(note));
    return out_;
  }

 private:
  std::string Colored(const char* code, const std::string& text) const {
    return options_.color ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : text;
  }

  // "label         text", wrapped at spaces and indented below itself.
  void Labelled(const std::string& label, const std::string& text) {
    std::string line = "  " + label + std::string(kLabelWidth - std::min(kLabelWidth, label.size()), ' ');
    const std::string indent(2 + kLabelWidth, ' ');
    bool fresh = true;
    for (size_t at = 0; at < text.size();) {
      const size_t space = std::min(text.find(' ', at), text.size());
      const std::string word = text.substr(at, space - at);
      if (!fresh && line.size() + 1 + word.size() > kColumns) {
        out_ += line + "\n";
        line = indent;
        fresh = true;
      }
      line += (fresh ? "" : " ") + word;
      fresh = false;
      at = space + 1;
    }
    out_ += line + "\n";
  }

  void Title() {
    out_ += Colored("1", fmt::format("{} on {}", Shorten(Printable(report_.model.path), 50),
                                     Shorten(Printable(report_.target.name), 24)));
    out_ += fmt::format("\n{} MACs, {} parameters, {} nodes\n\n", FormatCount(report_.model.macs),
                        FormatCount(report_.model.parameters), report_.nodes.size());
  }

  void PrintVerdict() {
    const Verdict& verdict = report_.verdict;
    std::string against;
    for (const std::string& name : verdict.compared_against) against += (against.empty() ? "" : ", ") + Printable(name);
    int64_t elements = 0, mismatches = 0;
    double error = 0;
    for (const OutputCheck& output : verdict.outputs) {
      elements += output.elements;
      mismatches += output.mismatches;
      error = std::max(error, output.max_abs_error);
    }
    std::string text, code = "32;1";
    if (!verdict.compared) {
      text = "NOT RUN: compiled only";
      code = "33;1";
    } else if (verdict.bit_exact) {
      text = fmt::format("BIT-EXACT: all {} output elements equal in {}", FormatThousands(elements), against);
    } else if (verdict.within_bounds) {
      text = fmt::format("WITHIN BOUNDS: {} output elements, largest error {:.3g}, against {}",
                         FormatThousands(elements), error, against);
    } else {
      text = fmt::format("MISMATCH: {} of {} output elements differ, by up to {:.6g}, against {}",
                         FormatThousands(mismatches), FormatThousands(elements), error, against);
      code = "31;1";
    }
    const size_t before = out_.size();
    Labelled("verdict", text);
    if (!options_.color) return;
    const size_t colon = std::min(out_.find(':', before), out_.size());
    const size_t word = before + 2 + kLabelWidth;
    out_ = out_.substr(0, word) + Colored(code.c_str(), out_.substr(word, colon - word)) + out_.substr(colon);
  }

  void Row(const std::string& name, const std::string& nodes, const std::string& macs, const std::string& bytes,
           const std::string& time, const std::string& rest) {
    std::string line =
        fmt::format("  {:<13} {:>6} {:>9} {:>10} {:>10}  {}", Shorten(name, 13), nodes, macs, bytes, time, rest);
    line.erase(line.find_last_not_of(' ') + 1);
    out_ += line + "\n";
  }

  void Devices() {
    out_ += "\n";
    Row("device", "nodes", "MACs", "moved", "time", "");
    for (const DeviceUse& device : report_.devices) {
      Row(Printable(device.name), std::to_string(device.nodes), FormatCount(device.macs),
          FormatBytes(device.bytes_moved), FormatUs(device.time_us.value), device.time_us.provenance);
    }
    const Partition& partition = report_.partition;
    if (!partition.transfers.empty()) {
      double bytes = 0;
      for (const Transfer& transfer : partition.transfers) bytes += transfer.bytes;
      Row("transfers", std::to_string(partition.transfers.size()), "", FormatBytes(bytes),
          FormatUs(partition.transfer_us), "modelled");
    }
    std::string rest = report_.latency_us.provenance;
    if (report_.cpu_only_us && report_.latency_us.value > 0) {
      rest += fmt::format("; CPU only {}", FormatUs(report_.cpu_only_us->value));
    }
    Row("total", std::to_string(report_.nodes.size()), FormatCount(report_.model.macs), "",
        FormatUs(report_.latency_us.value), rest);
    out_ += "\n";
    if (report_.cpu_only_us && report_.latency_us.value > 0) {
      const double factor = report_.cpu_only_us->value / report_.latency_us.value;
      const std::string& how = report_.cpu_only_us->provenance;
      Labelled("against CPU", factor >= 1
                                  ? fmt::format("{:.3g} times faster than the CPU alone ({})", factor, how)
                                  : fmt::format("{:.3g} times slower than the CPU alone ({})", 1 / factor, how));
    }
  }

  // How much of the network really runs on each device other than the CPU.
  void Share() {
    for (const DeviceUse& device : report_.devices) {
      if (device.kind == "cpu") continue;
      const auto regions = std::count_if(report_.partition.regions.begin(), report_.partition.regions.end(),
                                         [&](const Region& region) { return region.device == device.name; });
      const double percent = report_.model.macs > 0 ? 100.0 * device.macs / report_.model.macs : 0;
      Labelled("on " + Shorten(Printable(device.name), 11),
               fmt::format("{} of the MACs, {} of {} nodes, in {} region{}", FormatPercent(percent), device.nodes,
                           report_.nodes.size(), regions, regions == 1 ? "" : "s"));
    }
  }

  // "waiting for load 812, drain 17", the largest first.
  static std::string Counts(const std::map<std::string, int64_t>& counts) {
    std::vector<std::pair<int64_t, std::string>> sorted;
    for (const auto& [cause, count] : counts) {
      if (count > 0) sorted.emplace_back(-count, Printable(cause));
    }
    std::sort(sorted.begin(), sorted.end());
    std::string text;
    for (const auto& [count, cause] : sorted) {
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", Words(cause), FormatThousands(-count));
    }
    return text;
  }

  void PrintPrediction(const Accelerator& a) {
    const LayerCycles* worst = WorstLayer(a);
    if (!worst) return;
    std::string text = fmt::format("worst layer {}: {} simulated, {} estimated", Printable(worst->name), FormatThousands(worst->cycles_simulated),
                                   FormatThousands(worst->cycles_estimated));
    if (a.estimated_cycles_per_second > 0) text += "; " + FormatCount(a.estimated_cycles_per_second) + " cycles a second";
    Labelled("fast model", text);
  }

  void PrintMemories(const Accelerator& a) {
    std::string dram = fmt::format("{} read, {} written", FormatBytes(a.dram_bytes_read), FormatBytes(a.dram_bytes_written));
    if (a.spilled_tensors > 0) {
      dram += fmt::format("; {} tensor{} ({}) off chip", FormatThousands(a.spilled_tensors), a.spilled_tensors == 1 ? "" : "s",
                          FormatBytes(static_cast<double>(a.spilled_bytes)));
    }
    Labelled("DRAM", dram);
    std::string on_chip;
    for (const OnChipMemory& memory : a.on_chip) {
      if (memory.available <= 0) continue;
      on_chip += fmt::format("{}{} {}", on_chip.empty() ? "" : ", ", Printable(memory.name), FormatPercent(100.0 * static_cast<double>(memory.used) / static_cast<double>(memory.available)));
    }
    if (!on_chip.empty()) Labelled("on chip", on_chip + " full");
  }

  void PrintAccelerator() {
    if (!report_.accelerator || report_.accelerator->macs == 0) return;
    const Accelerator& a = *report_.accelerator;
    std::string cycles = FormatThousands(a.cycles_estimated) + " estimated";
    if (a.cycles_simulated > 0) {
      cycles =
          fmt::format("{} simulated, {} estimated (simulation {})", FormatThousands(a.cycles_simulated),
                      FormatThousands(a.cycles_estimated), FormatDeviation(a.cycles_estimated, a.cycles_simulated));
    }
    Labelled("cycles", cycles);
    PrintPrediction(a);
    Labelled("utilisation", fmt::format("{} of {} MACs a cycle at {:.4g} MHz", FormatPercent(a.utilisation * 100),
                                        a.macs_per_cycle_peak, a.clock_mhz));
    if (const std::string text = Counts(a.cycles_by_cause); !text.empty()) Labelled("cycles go to", text);
    if (const std::string text = Counts(a.stall_cycles); !text.empty()) Labelled("stall cycles", text);
    if (!a.knob.empty()) Labelled("knob", Printable(a.knob));
    PrintMemories(a);
    if (a.simulated_cycles_per_second > 0) {
      Labelled("simulation", FormatCount(a.simulated_cycles_per_second) + " cycles a second");
    }
  }

  void PrintResources() {
    if (report_.resources) PrintResources("resources", *report_.resources);
    if (report_.synthesis) PrintResources("synthesis", *report_.synthesis);
  }
  void PrintResources(const std::string& label, const Resources& r) {
    auto of = [&](const char* name, double used) {
      const auto limit = r.available.find(name);
      if (limit == r.available.end() || limit->second <= 0) return std::string();
      return fmt::format(" ({})", FormatPercent(100 * used / limit->second));
    };
    std::string text =
        fmt::format("{} LUT{}, {} FF{}, {} DSP{}, {:.4g} BRAM36{}", FormatThousands(r.lut), of("lut", r.lut),
                    FormatThousands(r.ff), of("ff", r.ff), r.dsp, of("dsp", r.dsp), r.bram36, of("bram36", r.bram36));
    if (r.fmax_mhz > 0) text += fmt::format(", {:.4g} MHz", r.fmax_mhz);
    Labelled(label, text + ", " + r.provenance);
  }

  void Certificate() {
    const Partition& p = report_.partition;
    if (p.solver.empty()) return;
    const std::string claim =
        p.gap_percent == 0 ? "proven optimal for these costs" : "gap " + FormatPercent(p.gap_percent);
    std::string plan = fmt::format("{}; predicted latency {}, in a stream {} an inference", p.objective, FormatUs(p.latency_us), FormatUs(p.period_us));
    if (p.energy_uj) plan += fmt::format(", {}", FormatUj(*p.energy_uj));
    Labelled("objective", plan);
    Labelled("certificate", fmt::format("{} {}, lower bound {}: {} ({}, {:.3f} s)", p.objective, FormatCost(p), FormatBound(p), claim, p.solver,
                                        p.solve_seconds));
    const bool ran = std::any_of(p.regions.begin(), p.regions.end(), [](const Region& region) { return region.actual_us.has_value(); });
    if (ran && report_.latency_us.value > 0) {
      Labelled("prediction",
               fmt::format("{} predicted, {} found ({})", FormatUs(p.latency_us), FormatUs(report_.latency_us.value),
                           FormatDeviation(p.latency_us, report_.latency_us.value)));
    }
    PrintSteady();
  }

  void PrintSteady() {
    if (!report_.steady || report_.steady->period_us.value <= 0) return;
    const SteadyState& steady = *report_.steady;
    Labelled("throughput", fmt::format("{} inferences a second, one each {} ({}); {} is busy {} of it", FormatCount(1e6 / steady.period_us.value),
                                       FormatUs(steady.period_us.value), steady.period_us.provenance, Printable(steady.bottleneck),
                                       FormatPercent(100 * steady.bound_us / steady.period_us.value)));
  }

  void PrintBottleneck() {
    const Bottleneck& b = report_.bottleneck;
    if (b.what.empty()) return;
    Labelled("bottleneck", fmt::format("{}, {} of the time; {}", Printable(b.what), FormatPercent(b.share_percent),
                                       Printable(b.knob)));
  }

  const Report& report_;
  const TextOptions& options_;
  std::string out_;
};

}  // namespace

std::string PrintText(const Report& report, const TextOptions& options) {
  Report full = report;
  Summarise(full);
  return Screen(full, options).Print();
}

}  // namespace heddle::report
