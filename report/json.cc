// report.json: the Report's fields in the order of the schema, written and read by the same list of names.
//
// Each struct has one Visit function that names its fields once; a writer and a reader are applied to it, so that what
// is written can be read. Strings come from models and may hold any bytes: invalid UTF-8 is replaced when written.
#include <cmath>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "ir/status.h"
#include "report/print.h"

namespace heddle::report {
namespace {

using Json = nlohmann::ordered_json;

template <typename F>
void Visit(F& f, Quantity& q) {
  f("value", q.value);
  f("provenance", q.provenance);
}
template <typename F>
void Visit(F& f, Model& m) {
  f("path", m.path);
  f("sha256", m.sha256);
  f("macs", m.macs);
  f("parameters", m.parameters);
}
template <typename F>
void Visit(F& f, Target& t) {
  f("name", t.name);
  f("description", t.description);
}
template <typename F>
void Visit(F& f, OutputCheck& o) {
  f("name", o.name);
  f("elements", o.elements);
  f("mismatches", o.mismatches);
  f("max_abs_error", o.max_abs_error);
}
template <typename F>
void Visit(F& f, Verdict& v) {
  f("compared", v.compared);
  f("bit_exact", v.bit_exact);
  f("within_bounds", v.within_bounds);
  f("compared_against", v.compared_against);
  f("outputs", v.outputs);
}
template <typename F>
void Visit(F& f, DeviceUse& d) {
  f("name", d.name);
  f("kind", d.kind);
  f("detail", d.detail);
  f("nodes", d.nodes);
  f("macs", d.macs);
  f("bytes_moved", d.bytes_moved);
  f("time_us", d.time_us);
  f("alone_us", d.alone_us);
}
template <typename F>
void Visit(F& f, LayerCycles& l) {
  f("name", l.name);
  f("region", l.region);
  f("macs", l.macs);
  f("cycles_estimated", l.cycles_estimated);
  f("cycles_simulated", l.cycles_simulated);
  f("by_cause", l.by_cause);
  f("dram_bytes", l.dram_bytes);
  f("weight_bytes", l.weight_bytes);
  f("weights_resident", l.weights_resident);
}
template <typename F>
void Visit(F& f, OnChipMemory& m) {
  f("name", m.name);
  f("unit", m.unit);
  f("used", m.used);
  f("available", m.available);
  f("resident", m.resident);
}
template <typename F>
void Visit(F& f, Accelerator& a) {
  f("clock_mhz", a.clock_mhz);
  f("macs_per_cycle_peak", a.macs_per_cycle_peak);
  f("macs", a.macs);
  f("cycles_simulated", a.cycles_simulated);
  f("cycles_estimated", a.cycles_estimated);
  f("utilisation", a.utilisation);
  f("stall_cycles", a.stall_cycles);
  f("dram_bytes_read", a.dram_bytes_read);
  f("dram_bytes_written", a.dram_bytes_written);
  f("simulated_cycles_per_second", a.simulated_cycles_per_second);
  f("estimated_cycles_per_second", a.estimated_cycles_per_second);
  f("cycles_by_cause", a.cycles_by_cause);
  f("layers", a.layers);
  f("knob", a.knob);
  f("memory_bytes_per_cycle", a.memory_bytes_per_cycle);
  f("on_chip", a.on_chip);
  f("spilled_bytes", a.spilled_bytes);
  f("spilled_tensors", a.spilled_tensors);
}
template <typename F>
void Visit(F& f, Region& r) {
  f("name", r.name);
  f("device", r.device);
  f("nodes", r.nodes);
  f("macs", r.macs);
  f("predicted_us", r.predicted_us);
  f("actual_us", r.actual_us);
  f("cycles_estimated", r.cycles_estimated);
  f("cycles_simulated", r.cycles_simulated);
}
template <typename F>
void Visit(F& f, Transfer& t) {
  f("tensor", t.tensor);
  f("from", t.from);
  f("to", t.to);
  f("bytes", t.bytes);
  f("us", t.us);
}
template <typename F>
void Visit(F& f, Partition& p) {
  f("objective", p.objective);
  f("cost_us", p.cost_us);
  f("cost_uj", p.cost_uj);
  f("latency_us", p.latency_us);
  f("period_us", p.period_us);
  f("energy_uj", p.energy_uj);
  f("node_us", p.node_us);
  f("transfer_us", p.transfer_us);
  f("launch_us", p.launch_us);
  f("lower_bound_us", p.lower_bound_us);
  f("lower_bound_uj", p.lower_bound_uj);
  f("gap_percent", p.gap_percent);
  f("solver", p.solver);
  f("solve_seconds", p.solve_seconds);
  f("regions", p.regions);
  f("transfers", p.transfers);
}
template <typename F>
void Visit(F& f, Refusal& r) {
  f("code", r.code);
  f("text", r.text);
}
template <typename F>
void Visit(F& f, Alternative& a) {
  f("device", a.device);
  f("cost_us", a.cost_us);
  f("transfer_delta_us", a.transfer_delta_us);
  f("launch_delta_us", a.launch_delta_us);
  f("delta_us", a.delta_us);
  f("delta_uj", a.delta_uj);
}
template <typename F>
void Visit(F& f, Flip& flip) {
  f("device", flip.device);
  f("text", flip.text);
  f("bandwidth_gb_s", flip.bandwidth_gb_s);
  f("cost_us", flip.cost_us);
}
template <typename F>
void Visit(F& f, Node& n) {
  f("name", n.name);
  f("op", n.op);
  f("device", n.device);
  f("region", n.region);
  f("shape", n.shape);
  f("inputs", n.inputs);
  f("sources", n.sources);
  f("fused", n.fused);
  f("macs", n.macs);
  f("parameters", n.parameters);
  f("output_bytes", n.output_bytes);
  f("costs_us", n.costs_us);
  f("provenance", n.provenance);
  f("not_on", n.not_on);
  f("why", n.why);
  f("alternatives", n.alternatives);
  f("flips_if", n.flips_if);
  f("actual_us", n.actual_us);
  f("cycles_estimated", n.cycles_estimated);
  f("cycles_simulated", n.cycles_simulated);
}
template <typename F>
void Visit(F& f, Event& e) {
  f("resource", e.resource);
  f("kind", e.kind);
  f("name", e.name);
  f("start_us", e.start_us);
  f("end_us", e.end_us);
}
template <typename F>
void Visit(F& f, SteadyState& s) {
  f("period_us", s.period_us);
  f("bound_us", s.bound_us);
  f("bottleneck", s.bottleneck);
  f("latency_us", s.latency_us);
  f("inferences", s.inferences);
  f("busy_percent", s.busy_percent);
}
template <typename F>
void Visit(F& f, Resources& r) {
  f("lut", r.lut);
  f("ff", r.ff);
  f("dsp", r.dsp);
  f("bram36", r.bram36);
  f("fmax_mhz", r.fmax_mhz);
  f("provenance", r.provenance);
  f("available", r.available);
}
template <typename F>
void Visit(F& f, Bottleneck& b) {
  f("what", b.what);
  f("share_percent", b.share_percent);
  f("knob", b.knob);
}
template <typename F>
void Visit(F& f, Report& r) {
  f("heddle_version", r.heddle_version);
  f("model", r.model);
  f("target", r.target);
  f("verdict", r.verdict);
  f("latency_us", r.latency_us);
  f("cpu_only_us", r.cpu_only_us);
  f("steady", r.steady);
  f("devices", r.devices);
  f("accelerator", r.accelerator);
  f("partition", r.partition);
  f("nodes", r.nodes);
  f("resources", r.resources);
  f("synthesis", r.synthesis);
  f("timeline", r.timeline);
  f("bottleneck", r.bottleneck);
  f("notes", r.notes);
}

struct Writer;
struct Reader;

// Absent optionals are left out. JSON has no infinity: such a number would be written as null, so it is refused early.
struct Writer {
  Json json = Json::object();

  static Json Write(const std::string& value) { return value; }
  static Json Write(bool value) { return value; }
  static Json Write(int64_t value) { return value; }
  static Json Write(double value) { return std::isfinite(value) ? Json(value) : Json(0.0); }
  template <typename T>
  static Json Write(const std::vector<T>& values) {
    Json list = Json::array();
    for (const T& value : values) list.push_back(Write(value));
    return list;
  }
  template <typename T>
  static Json Write(const std::map<std::string, T>& values) {
    Json object = Json::object();
    for (const auto& [key, value] : values) object[key] = Write(value);
    return object;
  }
  template <typename T>
  requires std::is_class_v<T>
  static Json Write(const T& value) {
    Writer writer;
    Visit(writer, const_cast<T&>(value));  // the writer only reads
    return writer.json;
  }

  template <typename T>
  void operator()(const char* name, const T& value) {
    json[name] = Write(value);
  }
  template <typename T>
  void operator()(const char* name, const std::optional<T>& value) {
    if (value) json[name] = Write(*value);
  }
};

// Throws nlohmann's exceptions on wrong types; absent keys keep the default, unknown keys are let pass.
struct Reader {
  const Json& json;

  template <typename T>
  static void Read(const Json& json, T& value) {
    if constexpr (std::is_class_v<T> && !std::is_same_v<T, std::string>) {
      if (!json.is_object()) throw Json::type_error::create(302, "expected an object", nullptr);
      Reader reader{json};
      Visit(reader, value);
    } else {
      json.get_to(value);
    }
  }
  template <typename T>
  static void Read(const Json& json, std::vector<T>& values) {
    if (!json.is_array()) throw Json::type_error::create(302, "expected an array", nullptr);
    for (const Json& item : json) Read(item, values.emplace_back());
  }
  template <typename T>
  static void Read(const Json& json, std::map<std::string, T>& values) {
    if (!json.is_object()) throw Json::type_error::create(302, "expected an object", nullptr);
    for (const auto& [key, item] : json.items()) Read(item, values[key]);
  }
  template <typename T>
  static void Read(const Json& json, std::optional<T>& value) {
    Read(json, value.emplace());
  }

  template <typename T>
  void operator()(const char* name, T& value) {
    const auto found = json.find(name);
    if (found == json.end() || found->is_null()) return;
    try {
      Read(*found, value);
    } catch (const Json::exception& error) {
      throw std::runtime_error(std::string(name) + ": " + error.what());
    }
  }
};

absl::Status NotAReport(const std::string& found) {
  return ir::UserError("E-REPORT-001", "expected a report.json of schema_version 1, found " + found,
                       "Make it anew with `heddle run`.");
}

}  // namespace

std::string PrintJson(const Report& report) {
  Report full = report;
  Summarise(full);
  Json json = Json::object();
  json["schema_version"] = kSchemaVersion;
  const Json body = Writer::Write(full);
  for (const auto& [key, value] : body.items()) json[key] = value;
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

absl::StatusOr<Report> ReadReport(const std::string& text) {
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() || !json.is_object()) return NotAReport("no JSON object");
  const auto version = json.find("schema_version");
  if (version == json.end()) return NotAReport("no schema_version");
  if (!version->is_number_integer() || *version != kSchemaVersion) return NotAReport("version " + version->dump());
  Report report;
  try {
    Reader::Read(json, report);
  } catch (const std::exception& error) {
    return NotAReport(std::string("a wrong value at ") + error.what());
  }
  return report;
}

}  // namespace heddle::report
