// Target files: which devices a system has, how they are linked, what it may cost. Schema: docs/targets.md.
#ifndef HEDDLE_DRIVER_TARGET_H_
#define HEDDLE_DRIVER_TARGET_H_

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "ir/status.h"

namespace heddle::driver {

struct TargetLink {
  std::string from, to;  // device names; the link works both ways
  double latency_us = 0;
  double gb_per_s = 1;
  double pj_per_byte = 0;  // energy of a transfer
};

struct TargetDevice {
  std::string name;
  std::string kind;        // "cpu", "gpu" or "accelerator"
  bool optional = false;   // left out, with a word on it, where the machine cannot run it
  std::optional<double> active_w;  // power that it adds while it computes
  std::string power_source;        // where that figure comes from; not empty where there is one
  nlohmann::json section;  // the other keys: the device's own package reads them
};

struct Target {
  std::string name;
  std::string description;
  std::vector<TargetDevice> devices;  // the first CPU is the host
  std::vector<TargetLink> links;
  std::optional<int64_t> max_lut, max_dsp, max_bram36;
  nlohmann::json json;  // the whole file, for resolved_config.json

  // The link between two devices, direct or the sum of the two through the host; null parameters mean the same device.
  TargetLink LinkBetween(const std::string& from, const std::string& to) const;
};

// A preset's name or the path of a JSON file. Errors E-TARGET-001…005 name the key, what was expected and found.
absl::StatusOr<Target> LoadTarget(const std::string& name_or_path);
absl::StatusOr<Target> ParseTarget(const std::string& json_text, const std::string& origin);

std::vector<std::string> PresetNames();

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_TARGET_H_
