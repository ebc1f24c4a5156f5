// The timeline in the Trace Event Format that Perfetto and chrome://tracing read: complete events ("ph": "X"), times in
// microseconds, one process for the run and one named thread for each resource.
#include <map>
#include <nlohmann/json.hpp>

#include "report/print.h"

namespace heddle::report {

std::string PrintTrace(const Report& report) {
  using Json = nlohmann::ordered_json;
  Json events = Json::array();
  events.push_back({{"name", "process_name"},
                    {"ph", "M"},
                    {"pid", 1},
                    {"tid", 0},
                    {"args", {{"name", report.model.path + " on " + report.target.name}}}});
  std::map<std::string, int> thread_of;
  for (const Event& event : report.timeline) {
    const auto [entry, inserted] = thread_of.try_emplace(event.resource, thread_of.size() + 1);
    if (!inserted) continue;
    events.push_back({{"name", "thread_name"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", entry->second},
                      {"args", {{"name", event.resource}}}});
    events.push_back({{"name", "thread_sort_index"},
                      {"ph", "M"},
                      {"pid", 1},
                      {"tid", entry->second},
                      {"args", {{"sort_index", entry->second}}}});
  }
  for (const Event& event : report.timeline) {
    events.push_back({{"name", event.name},
                      {"cat", event.kind},
                      {"ph", "X"},
                      {"ts", event.start_us},
                      {"dur", event.end_us - event.start_us},
                      {"pid", 1},
                      {"tid", thread_of[event.resource]}});
  }
  const Json trace = {{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}};
  return trace.dump(1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace heddle::report
