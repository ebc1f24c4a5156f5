// Reads the section key by key, so that a message can name the key.

#include "gpu/gpu_config.h"

#include <cmath>
#include <nlohmann/json.hpp>
#include <vector>

namespace heddle::gpu {
namespace {

using nlohmann::json;

class SectionReader {
 public:
  explicit SectionReader(const json& section) : section_(section) {
    if (section.contains("name") && section["name"].is_string()) name_ = section["name"].get<std::string>();
  }

  absl::Status Bad(const std::string& key, const std::string& expected) const {
    const std::string found = section_.contains(key) ? section_[key].dump() : "nothing";
    return ir::UserError("E-TARGET-004", fmt::format("device '{}': \"{}\" must be {}, found {}", name_, key, expected, found),
                         "See docs/targets.md for the keys of a GPU.");
  }

  absl::Status CheckKeys(const std::vector<std::string>& known) const {
    if (!section_.is_object()) return ir::UserError("E-TARGET-003", "the section of a GPU must be an object");
    std::string unknown;
    for (const auto& [key, value] : section_.items()) {
      if (std::find(known.begin(), known.end(), key) == known.end()) unknown += (unknown.empty() ? "\"" : ", \"") + key + "\"";
    }
    if (unknown.empty()) return absl::OkStatus();
    return ir::UserError("E-TARGET-003", fmt::format("device '{}': a GPU has no key {}", name_, unknown),
                         fmt::format("Known keys: {}.", fmt::join(known, ", ")));
  }

  // A finite number, positive or at least not negative.
  absl::Status Number(const std::string& key, bool positive, bool required, double& value) const {
    if (!section_.contains(key) && !required) return absl::OkStatus();
    const std::string expected = positive ? "a positive number" : "a number, 0 or more";
    if (!section_.contains(key) || !section_[key].is_number()) return Bad(key, expected);
    value = section_[key].get<double>();
    return std::isfinite(value) && (positive ? value > 0 : value >= 0) ? absl::OkStatus() : Bad(key, expected);
  }

  absl::Status Choice(const std::string& key, const std::vector<std::string>& choices, std::string& value) const {
    if (!section_.contains(key)) return absl::OkStatus();
    if (section_[key].is_string()) {
      value = section_[key].get<std::string>();
      if (std::find(choices.begin(), choices.end(), value) != choices.end()) return absl::OkStatus();
    }
    return Bad(key, fmt::format("one of \"{}\"", fmt::join(choices, "\", \"")));
  }

  const std::string& name() const { return name_; }

 private:
  const json& section_;
  std::string name_ = "gpu";
};

}  // namespace

absl::StatusOr<GpuConfig> ParseGpuConfig(const json& section) {
  const SectionReader reader(section);
  HEDDLE_RETURN_IF_ERROR(reader.CheckKeys({"name", "kind", "optional", "timing", "float_gmacs_per_s", "int8_gmacs_per_s",
                                           "other_gops_per_s", "memory_gb_per_s", "node_overhead_us", "launch_overhead_us",
                                           "opencl_device_type", "api", "emit_ptx"}));
  GpuConfig config;
  config.name = reader.name();
  std::string timing = "modelled";
  HEDDLE_RETURN_IF_ERROR(reader.Choice("timing", {"measured", "modelled"}, timing));
  config.is_measured = timing == "measured";
  const bool needs_rates = !config.is_measured;
  HEDDLE_RETURN_IF_ERROR(reader.Number("float_gmacs_per_s", true, needs_rates, config.roofline.float_gmacs_per_s));
  HEDDLE_RETURN_IF_ERROR(reader.Number("int8_gmacs_per_s", true, needs_rates, config.roofline.int8_gmacs_per_s));
  HEDDLE_RETURN_IF_ERROR(reader.Number("other_gops_per_s", true, needs_rates, config.roofline.other_gops_per_s));
  HEDDLE_RETURN_IF_ERROR(reader.Number("memory_gb_per_s", true, needs_rates, config.roofline.memory_gb_per_s));
  HEDDLE_RETURN_IF_ERROR(reader.Number("node_overhead_us", false, false, config.roofline.node_overhead_us));
  HEDDLE_RETURN_IF_ERROR(reader.Number("launch_overhead_us", false, false, config.launch_overhead_us));
  HEDDLE_RETURN_IF_ERROR(reader.Choice("opencl_device_type", {"any", "gpu", "cpu"}, config.opencl_device_type));
  HEDDLE_RETURN_IF_ERROR(reader.Choice("api", {"any", "opencl", "cuda"}, config.api));
  if (section.contains("emit_ptx")) {
    if (!section["emit_ptx"].is_boolean()) return reader.Bad("emit_ptx", "true or false");
    config.emit_ptx = section["emit_ptx"].get<bool>();
  }
  return config;
}

}  // namespace heddle::gpu
