// Reading target files: every key is checked here or by the device it belongs to, so that a typing error is not
// silently a default.

#include "driver/target.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "driver/presets.h"

namespace heddle::driver {
namespace {

using nlohmann::json;

constexpr int64_t kMostBytes = 1 << 20;    // of a target file
constexpr double kMostMicroseconds = 1e9;  // a quarter of an hour: a longer latency is a typing error
constexpr double kMostPicojoules = 1e9, kMostWatts = 1e6;
constexpr double kLeastGbPerS = 1e-6, kMostGbPerS = 1e6;

absl::Status Wrong(const std::string& origin, const std::string& what) {
  return ir::UserError("E-TARGET-002", fmt::format("target {}: {}", origin, what), "see docs/targets.md for the schema");
}

absl::Status CheckKeys(const json& object, const std::set<std::string>& known, const std::string& origin,
                       const std::string& where) {
  if (!object.is_object()) return Wrong(origin, fmt::format("{} is {}, expected an object", where, object.type_name()));
  for (const auto& [key, value] : object.items()) {
    if (!known.contains(key)) return Wrong(origin, fmt::format("unknown key '{}' in {}", key, where));
  }
  return absl::OkStatus();
}

// A power without a source is a number that nobody can check: it is refused.
absl::Status ReadPower(const std::string& origin, TargetDevice& device) {
  if (device.section.contains("active_w") != device.section.contains("power_source")) {
    return Wrong(origin, fmt::format("device '{}': 'active_w' and 'power_source' go together", device.name));
  }
  if (!device.section.contains("active_w")) return absl::OkStatus();
  device.active_w = device.section["active_w"].get<double>();
  device.power_source = device.section["power_source"].get<std::string>();
  if (!(*device.active_w >= 0 && *device.active_w <= kMostWatts) || device.power_source.empty()) {
    return Wrong(origin, fmt::format("device '{}': active_w must be 0 to {:g}, power_source a sentence", device.name, kMostWatts));
  }
  device.section.erase("active_w");
  device.section.erase("power_source");
  return absl::OkStatus();
}

absl::StatusOr<TargetDevice> ReadDevice(const json& section, const std::string& origin) {
  if (!section.is_object() || !section.contains("name") || !section["name"].is_string() || !section.contains("kind")) {
    return Wrong(origin, "a device needs a 'name' and a 'kind'");
  }
  TargetDevice device{section["name"], section.value("kind", ""), section.value("optional", false), std::nullopt, "", section};
  if (device.kind != "cpu" && device.kind != "gpu" && device.kind != "accelerator") {
    return Wrong(origin, fmt::format("device '{}': kind '{}' is not cpu, gpu or accelerator", device.name, device.kind));
  }
  HEDDLE_RETURN_IF_ERROR(ReadPower(origin, device));
  device.section.erase("optional");
  return device;
}

absl::StatusOr<TargetLink> ReadLink(const json& section, const Target& target, const std::string& origin) {
  HEDDLE_RETURN_IF_ERROR(CheckKeys(section, {"between", "latency_us", "gb_per_s", "pj_per_byte"}, origin, "a link"));
  const json between = section.value("between", json::array());
  if (!between.is_array() || between.size() != 2) return Wrong(origin, "a link needs 'between': [device, device]");
  TargetLink link{between[0], between[1], section.value("latency_us", 0.0), section.value("gb_per_s", 0.0),
                  section.value("pj_per_byte", 0.0)};
  for (const std::string& name : {link.from, link.to}) {
    const bool known = std::any_of(target.devices.begin(), target.devices.end(), [&](const auto& d) { return d.name == name; });
    if (!known) return Wrong(origin, fmt::format("a link names device '{}', which the target does not have", name));
  }
  if (!(link.latency_us >= 0 && link.latency_us <= kMostMicroseconds) ||
      !(link.gb_per_s >= kLeastGbPerS && link.gb_per_s <= kMostGbPerS)) {
    return Wrong(origin, fmt::format("link {}–{}: latency_us must be 0 to {:g} and gb_per_s {:g} to {:g}, found {:g} and {:g}", link.from,
                                     link.to, kMostMicroseconds, kLeastGbPerS, kMostGbPerS, link.latency_us, link.gb_per_s));
  }
  if (!(link.pj_per_byte >= 0 && link.pj_per_byte <= kMostPicojoules)) {
    return Wrong(origin, fmt::format("link {}–{}: pj_per_byte must be 0 to {:g}, found {:g}", link.from, link.to, kMostPicojoules, link.pj_per_byte));
  }
  return link;
}

// An absent list is empty.
absl::StatusOr<json> ReadList(const json& file, const char* key, const std::string& origin) {
  if (!file.contains(key)) return json::array();
  if (!file[key].is_array()) return Wrong(origin, fmt::format("'{}' is {}, expected an array", key, file[key].type_name()));
  return file[key];
}

absl::Status ReadLimits(const json& file, Target& target, const std::string& origin) {
  if (!file.contains("limits")) return absl::OkStatus();
  const json& limits = file["limits"];
  HEDDLE_RETURN_IF_ERROR(CheckKeys(limits, {"lut", "dsp", "bram36"}, origin, "'limits'"));
  if (limits.contains("lut")) target.max_lut = limits["lut"].get<int64_t>();
  if (limits.contains("dsp")) target.max_dsp = limits["dsp"].get<int64_t>();
  if (limits.contains("bram36")) target.max_bram36 = limits["bram36"].get<int64_t>();
  return absl::OkStatus();
}

absl::StatusOr<Target> ReadTarget(const json& file, const std::string& origin) {
  if (!file.is_object()) return Wrong(origin, "the file is not a JSON object");
  HEDDLE_RETURN_IF_ERROR(CheckKeys(file, {"schema_version", "name", "description", "devices", "links", "limits"}, origin, "the file"));
  if (file.value("schema_version", 0) != 1) return Wrong(origin, "schema_version must be 1");
  Target target;
  target.name = file.value("name", origin);
  target.description = file.value("description", "");
  target.json = file;
  std::set<std::string> names;
  HEDDLE_ASSIGN_OR_RETURN(const json devices, ReadList(file, "devices", origin));
  for (const json& section : devices) {
    HEDDLE_ASSIGN_OR_RETURN(TargetDevice device, ReadDevice(section, origin));
    if (!names.insert(device.name).second) return Wrong(origin, fmt::format("two devices are called '{}'", device.name));
    target.devices.push_back(std::move(device));
  }
  const bool has_cpu = std::any_of(target.devices.begin(), target.devices.end(), [](const auto& d) { return d.kind == "cpu"; });
  if (!has_cpu) return Wrong(origin, "a target needs a CPU: it is the host");
  HEDDLE_ASSIGN_OR_RETURN(const json links, ReadList(file, "links", origin));
  for (const json& section : links) {
    HEDDLE_ASSIGN_OR_RETURN(TargetLink link, ReadLink(section, target, origin));
    target.links.push_back(std::move(link));
  }
  HEDDLE_RETURN_IF_ERROR(ReadLimits(file, target, origin));
  return target;
}

std::string PresetName(const EmbeddedFile& file) { return file.name.substr(0, file.name.rfind('.')); }

const TargetLink* Direct(const std::vector<TargetLink>& links, const std::string& a, const std::string& b) {
  for (const TargetLink& link : links) {
    if ((link.from == a && link.to == b) || (link.from == b && link.to == a)) return &link;
  }
  return nullptr;
}

}  // namespace

TargetLink Target::LinkBetween(const std::string& from, const std::string& to) const {
  if (const TargetLink* link = Direct(links, from, to)) return {from, to, link->latency_us, link->gb_per_s, link->pj_per_byte};
  const auto host = std::find_if(devices.begin(), devices.end(), [](const auto& d) { return d.kind == "cpu"; });
  const TargetLink* first = Direct(links, from, host->name);
  const TargetLink* second = Direct(links, host->name, to);
  if (first && second) {
    return {from, to, first->latency_us + second->latency_us, 1 / (1 / first->gb_per_s + 1 / second->gb_per_s),
            first->pj_per_byte + second->pj_per_byte};
  }
  return {from, to, 0, 1e6, 0};  // no link named: the devices share memory and caches
}

absl::StatusOr<Target> ParseTarget(const std::string& json_text, const std::string& origin) {
  try {
    return ReadTarget(json::parse(json_text), origin);
  } catch (const json::exception& error) {
    return Wrong(origin, error.what());
  }
}

std::vector<std::string> PresetNames() {
  std::vector<std::string> names;
  for (const EmbeddedFile& file : presets::EmbeddedFiles()) names.push_back(PresetName(file));
  return names;
}

absl::StatusOr<Target> LoadTarget(const std::string& name_or_path) {
  for (const EmbeddedFile& file : presets::EmbeddedFiles()) {
    if (name_or_path == PresetName(file)) return ParseTarget(file.text, name_or_path);
  }
  std::ifstream file(name_or_path);
  if (!file) {
    return ir::UserError("E-TARGET-001", fmt::format("no target preset or file is called '{}'", name_or_path),
                         fmt::format("use one of {}, or the path of a target file", fmt::join(PresetNames(), ", ")));
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(name_or_path, error)) return Wrong(name_or_path, "is not a file");
  std::string text(kMostBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(file.gcount());
  if (text.size() > kMostBytes) return Wrong(name_or_path, fmt::format("has more than {} bytes", kMostBytes));
  return ParseTarget(text, name_or_path);
}

}  // namespace heddle::driver
