// The printers: a golden first screen, JSON there and back, HTML that is well formed, asks nothing of the network and
// lets no name of a model become markup, a trace that nests, and the story of a node.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <set>
#include <sstream>

#include "ir/status.h"
#include "report/format.h"
#include "report/graph_layout.h"
#include "report/print.h"
#include "report/sample_report.h"

namespace heddle::report {
namespace {

const char* const kHostile = "</script><script>alert('x')</script><!--\"onclick=\"y\x1b[2J\xff&amp;";

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// HEDDLE_UPDATE_GOLDENS=1 bazel run //report:report_test rewrites the files in the source tree.
void ExpectGolden(const std::string& path, const std::string& actual) {
  const char* tree = std::getenv("BUILD_WORKSPACE_DIRECTORY");
  if (tree != nullptr && std::getenv("HEDDLE_UPDATE_GOLDENS") != nullptr) {
    std::ofstream(std::string(tree) + "/" + path) << actual;
    return;
  }
  EXPECT_EQ(actual, ReadFile(path)) << "golden " << path;
}

Report HostileReport() {
  Report report = SampleReport();
  report.model.path = kHostile;
  report.target.name = report.target.description = kHostile;
  report.notes.push_back(kHostile);
  report.verdict.compared_against.push_back(kHostile);
  report.verdict.outputs[0].name = kHostile;
  report.accelerator->stall_cycles[kHostile] = 7;
  report.accelerator->cycles_by_cause[kHostile] = 8;
  report.accelerator->knob = kHostile;
  for (LayerCycles& layer : report.accelerator->layers) {
    layer.name = layer.region = kHostile;
    layer.by_cause[kHostile] = 9;
  }
  for (Node& node : report.nodes) {
    node.op = node.fused = node.shape = node.why = kHostile;
    for (std::string& input : node.inputs) input += kHostile;
    node.name += kHostile;
    for (auto& [device, refusal] : node.not_on) refusal = {kHostile, kHostile};
    for (Flip& flip : node.flips_if) flip.text = kHostile;
  }
  for (Event& event : report.timeline) event.name = event.resource = event.kind = kHostile;
  for (Region& region : report.partition.regions) region.name = kHostile;
  for (Transfer& transfer : report.partition.transfers) transfer.tensor = kHostile;
  return report;
}

// A strict reader of the HTML that we write: every tag closed in order, every attribute quoted, no stray '<'.
// Returns what is wrong, "" where nothing is. Collects the element names.
std::string Malformed(const std::string& html, std::set<std::string>* elements, std::set<std::string>* attributes) {
  static const std::set<std::string> kVoid = {"meta", "input", "br", "link", "img"};
  std::vector<std::string> open;
  size_t at = 0;
  auto fail = [&](const std::string& what) { return what + " near: " + html.substr(at, 80); };
  if (html.rfind("<!DOCTYPE html>", 0) != 0) return "no doctype";
  at = 15;
  while ((at = html.find('<', at)) != std::string::npos) {
    const bool closing = html[at + 1] == '/';
    size_t end = at + 1 + closing;
    while (std::isalnum(static_cast<unsigned char>(html[end]))) ++end;
    const std::string name = html.substr(at + 1 + closing, end - at - 1 - closing);
    if (name.empty()) return fail("a '<' without a tag");
    if (closing) {
      if (open.empty() || open.back() != name)
        return fail("closes " + name + " but open is " + (open.empty() ? "nothing" : open.back()));
      open.pop_back();
      at = end;
      continue;
    }
    elements->insert(name);
    while (true) {
      while (html[end] == ' ') ++end;
      if (html[end] == '>' || html.compare(end, 2, "/>") == 0) break;
      size_t attribute = end;
      while (std::isalnum(static_cast<unsigned char>(html[end])) || html[end] == '-') ++end;
      if (end == attribute) return fail("a bad attribute in " + name);
      attributes->insert(html.substr(attribute, end - attribute));
      if (html[end] != '=') continue;
      if (html[end + 1] != '"') return fail("an unquoted attribute");
      end = html.find('"', end + 2);
      if (end == std::string::npos) return fail("an open quote");
      ++end;
    }
    const bool self_closing = html[end] == '/';
    at = end + 1;
    if (self_closing || kVoid.count(name)) continue;
    open.push_back(name);
    if (name == "script" || name == "style") {
      at = html.find("</" + name, at);
      if (at == std::string::npos) return "open " + name;
    }
  }
  return open.empty() ? "" : "never closed: " + open.back();
}

TEST(Text, FirstScreenIsTheGolden) { ExpectGolden("report/testdata/report.txt", PrintText(SampleReport())); }

TEST(Text, FitsEightyColumnsAndOneScreen) {
  for (const Report& report : {SampleReport(), Report{}, HostileReport()}) {
    std::istringstream text(PrintText(report));
    int lines = 0;
    for (std::string line; std::getline(text, line); ++lines) {
      if (line.find(' ', 18) != std::string::npos && line.size() > 80 && report.model.path != kHostile) {
        ADD_FAILURE() << "wider than 80: " << line;
      }
      for (char c : line) EXPECT_GE(static_cast<unsigned char>(c), 0x20) << "a control byte reaches the terminal";
    }
    if (report.model.path != kHostile) {
      EXPECT_LE(lines, 42);
    }
  }
}

TEST(Text, TellsMismatchesAndMissingRuns) {
  Report report = SampleReport();
  report.verdict.bit_exact = report.verdict.within_bounds = false;
  report.verdict.outputs[0].mismatches = 3;
  EXPECT_NE(PrintText(report).find("MISMATCH: 3 of 10"), std::string::npos);
  report.verdict = {};
  EXPECT_NE(PrintText(report).find("NOT RUN"), std::string::npos);
  report.partition.gap_percent = 1.25;
  EXPECT_NE(PrintText(report).find("gap 1.25 %"), std::string::npos);
  EXPECT_NE(PrintText(report, {.color = true}).find("\x1b["), std::string::npos);
}

TEST(Compare, AccountsForWhatMoreLanesDidNotGive) {
  Report before, after;
  before.accelerator.emplace();
  before.accelerator->macs_per_cycle_peak = 256;
  before.accelerator->cycles_simulated = before.accelerator->cycles_estimated = 1600;
  before.accelerator->cycles_by_cause = {{"multiplying", 1280}, {"idle_output_lanes", 160}, {"fill_and_drain", 160}};
  after = before;
  after.accelerator->macs_per_cycle_peak = 4096;
  after.accelerator->cycles_simulated = after.accelerator->cycles_estimated = 540;
  after.accelerator->cycles_by_cause = {{"multiplying", 80}, {"idle_output_lanes", 300}, {"fill_and_drain", 160}};
  EXPECT_EQ(CompareAccelerators(before, after),
            "16 times the MACs a cycle (256 -> 4096) gave 2.96 times the speed: 1,600 -> 540 cycles; of the 440 above the ideal 100, "
            "290 idle output lanes, 150 fill and drain.");
  EXPECT_EQ(CompareAccelerators(before, Report()), "");
}

TEST(Text, NamesTheWorstPrediction) {
  Report report = SampleReport();
  report.accelerator->layers = {{"a", "region_000", 0, 100, 101, {}}, {"b", "region_000", 0, 1000, 1011, {}}};
  EXPECT_NE(PrintText(report).find("worst layer b: 1,011 simulated, 1,000 estimated"), std::string::npos);
  ASSERT_NE(WorstLayer(*report.accelerator), nullptr);
  EXPECT_EQ(WorstLayer(*report.accelerator)->name, "b");
}

TEST(Json, GoesThereAndBack) {
  Report report = SampleReport();
  Summarise(report);
  const std::string json = PrintJson(report);
  const absl::StatusOr<Report> read = ReadReport(json);
  ASSERT_TRUE(read.ok()) << read.status().message();
  EXPECT_TRUE(*read == report);
  EXPECT_EQ(PrintJson(*read), json);
  EXPECT_EQ(PrintText(*read), PrintText(report));
  EXPECT_EQ(PrintHtml(*read), PrintHtml(report));
}

TEST(Json, HasTheStableKeys) {
  const nlohmann::json json = nlohmann::json::parse(PrintJson(SampleReport()));
  for (const char* key :
       {"/schema_version", "/model/sha256", "/target/name", "/verdict/bit_exact", "/verdict/outputs/0/max_abs_error",
        "/latency_us/value", "/latency_us/provenance", "/devices/0/time_us/value", "/accelerator/stall_cycles",
        "/accelerator/utilisation", "/partition/gap_percent", "/partition/regions/0/nodes",
        "/partition/transfers/0/bytes", "/nodes/0/costs_us/cpu", "/nodes/0/not_on", "/nodes/0/why", "/nodes/0/flips_if",
        "/resources/fmax_mhz", "/timeline/0/start_us"}) {
    EXPECT_TRUE(json.contains(nlohmann::json::json_pointer(key))) << key;
  }
}

// Every object of the JSON has exactly the keys that the published schema lists, and all required ones.
void ExpectMatches(const nlohmann::json& value, const nlohmann::json& schema, const nlohmann::json& root,
                   const std::string& path) {
  if (schema.contains("$ref")) {
    const std::string reference = schema["$ref"];
    return ExpectMatches(value, root[nlohmann::json::json_pointer(reference.substr(1))], root, path);
  }
  const std::string type = schema.value("type", "");
  if (type == "object") {
    ASSERT_TRUE(value.is_object()) << path;
    for (const auto& key : schema.value("required", nlohmann::json::array())) {
      EXPECT_TRUE(value.contains(key)) << path << " lacks " << key;
    }
    for (const auto& [key, item] : value.items()) {
      if (schema.contains("properties") && schema["properties"].contains(key)) {
        ExpectMatches(item, schema["properties"][key], root, path + "/" + key);
      } else {
        ASSERT_TRUE(schema.contains("additionalProperties") && schema["additionalProperties"].is_object())
            << path << " has a key that the schema does not list: " << key;
        ExpectMatches(item, schema["additionalProperties"], root, path + "/" + key);
      }
    }
  } else if (type == "array") {
    ASSERT_TRUE(value.is_array()) << path;
    for (const auto& item : value) ExpectMatches(item, schema["items"], root, path + "/item");
  } else {
    EXPECT_TRUE(type == "string"    ? value.is_string()
                : type == "boolean" ? value.is_boolean()
                : type == "integer" ? value.is_number_integer()
                                    : type == "number" && value.is_number())
        << path << " is no " << type;
  }
}

TEST(Json, MatchesItsPublishedSchema) {
  const nlohmann::json schema = nlohmann::json::parse(ReadFile("docs/report.schema.json"));
  ExpectMatches(nlohmann::json::parse(PrintJson(SampleReport())), schema, schema, "");
  ExpectMatches(nlohmann::json::parse(PrintJson(Report{})), schema, schema, "");
}

TEST(Json, RefusesWhatIsNoReport) {
  for (const char* text : {"", "[]", "{", "{}", R"({"schema_version": 2})", R"({"schema_version": 1, "nodes": 3})",
                           R"({"schema_version": 1, "model": {"macs": "many"}})",
                           R"({"schema_version": 1, "nodes": [[]]})", R"({"schema_version": "1"})"}) {
    EXPECT_EQ(ir::ErrorCode(ReadReport(text).status()), "E-REPORT-001") << text;
  }
}

TEST(Json, DamagedReportsAreReadOrRefusedButNeverCrash) {
  const std::string json = PrintJson(SampleReport());
  std::mt19937 random(20261130);
  for (int round = 0; round < 300; ++round) {
    std::string damaged = json;
    for (int i = 0; i < 4; ++i) damaged[random() % damaged.size()] = static_cast<char>(random());
    const absl::StatusOr<Report> read = ReadReport(damaged);
    if (!read.ok()) continue;
    PrintText(*read);
    PrintHtml(*read);
  }
}

TEST(Html, IsWellFormedAndAsksNothingOfTheNetwork) {
  for (const Report& report : {SampleReport(), HostileReport(), Report{}}) {
    const std::string html = PrintHtml(report);
    std::set<std::string> elements, attributes;
    EXPECT_EQ(Malformed(html, &elements, &attributes), "");
    for (const char* text : {"http://", "https://", "url(", "@import"}) {
      EXPECT_EQ(html.find(text), std::string::npos) << text;
    }
    for (const char* name : {"src", "href", "onclick", "onerror"}) EXPECT_FALSE(attributes.count(name)) << name;
    for (const char* name : {"img", "link", "iframe", "object"}) EXPECT_FALSE(elements.count(name)) << name;
  }
}

TEST(Html, NamesOfAModelNeverBecomeMarkup) {
  const std::string html = PrintHtml(HostileReport());
  EXPECT_EQ(html.find("<script>alert"), std::string::npos);
  EXPECT_EQ(html.find("<!--"), std::string::npos);
  EXPECT_EQ(html.find('\x1b'), std::string::npos);
  EXPECT_EQ(html.find('\xff'), std::string::npos);
  size_t scripts = 0;
  for (size_t at = 0; (at = html.find("</script", at)) != std::string::npos; ++at) ++scripts;
  EXPECT_EQ(scripts, 2u);  // the data and ours
  EXPECT_NE(html.find("&lt;/script&gt;"), std::string::npos);
}

TEST(Html, ShowsEveryNodeInGraphAndTable) {
  const Report report = SampleReport();
  const std::string html = PrintHtml(report);
  for (size_t index = 0; index < report.nodes.size(); ++index) {
    const std::string mark = "data-node=\"" + std::to_string(index) + "\"";
    size_t count = 0;
    for (size_t at = 0; (at = html.find(mark, at)) != std::string::npos; ++at) ++count;
    EXPECT_EQ(count, 2u) << report.nodes[index].name;
  }
}

TEST(Trace, HasOneCompleteEventForEachEvent) {
  const Report report = SampleReport();
  const nlohmann::json trace = nlohmann::json::parse(PrintTrace(report));
  size_t complete = 0;
  for (const auto& event : trace["traceEvents"]) {
    if (event["ph"] != "X") continue;
    EXPECT_GE(event["dur"].get<double>(), 0);
    EXPECT_GE(event["ts"].get<double>(), 0);
    ++complete;
  }
  EXPECT_EQ(complete, report.timeline.size());
  EXPECT_FALSE(PrintTrace(HostileReport()).empty());
}

TEST(Explain, TellsCostReasonAndCounterfactual) {
  ExpectGolden("report/testdata/explain.txt",
               *PrintNode(SampleReport(), "head/conv_9x9") + *PrintNode(SampleReport(), "block1/conv_a"));
}

TEST(Explain, SuggestsNearNames) {
  const absl::Status status = PrintNode(SampleReport(), "block1/conv_A").status();
  EXPECT_EQ(ir::ErrorCode(status), "E-REPORT-002");
  EXPECT_NE(std::string(status.message()).find("'block1/conv_a'"), std::string::npos) << status.message();
}

TEST(Layout, NodesNeverOverlapAndEdgesGoDown) {
  for (unsigned seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    std::mt19937 random(seed);
    const int count = 1 + random() % 40;
    std::vector<std::pair<int, int>> edges;
    for (int to = 1; to < count; ++to) {
      for (int tries = 0; tries < 2; ++tries) edges.emplace_back(random() % to, to);
    }
    const LayoutOptions options;
    const Layout layout = LayOut(count, edges, options);
    for (int a = 0; a < count; ++a) {
      EXPECT_GE(layout.nodes[a].x, -1e-6);
      EXPECT_LE(layout.nodes[a].x + options.node_width, layout.width + 1e-6);
      for (int b = 0; b < a; ++b) {
        const bool apart = std::abs(layout.nodes[a].x - layout.nodes[b].x) >= options.node_width - 1e-6 ||
                           std::abs(layout.nodes[a].y - layout.nodes[b].y) >= options.node_height - 1e-6;
        EXPECT_TRUE(apart) << a << " over " << b;
      }
    }
    for (size_t edge = 0; edge < edges.size(); ++edge) {
      for (size_t at = 1; at < layout.edges[edge].size(); ++at) {
        EXPECT_GT(layout.edges[edge][at].y, layout.edges[edge][at - 1].y);
      }
    }
  }
}

TEST(Layout, ADenseGraphIsDrawnInReasonableTime) {
  std::vector<std::pair<int, int>> edges;
  for (int to = 0; to < 400; ++to) {
    for (int from = 0; from < to; ++from) edges.emplace_back(from, to);
  }
  EXPECT_EQ(LayOut(400, edges).edges.size(), edges.size());
}

TEST(Layout, ACycleIsDrawnWithoutHanging) { EXPECT_EQ(LayOut(3, {{0, 1}, {1, 2}, {2, 0}}).nodes.size(), 3u); }

TEST(Format, ReadsWell) {
  EXPECT_EQ(FormatUs(0), "0 us");
  EXPECT_EQ(FormatUs(12.34), "12.3 us");
  EXPECT_EQ(FormatUs(999.6), "1.00 ms");
  EXPECT_EQ(FormatCount(12500000), "12.5 M");
  EXPECT_EQ(FormatBytes(812), "812 B");
  EXPECT_EQ(FormatThousands(-1234567), "-1,234,567");
  EXPECT_EQ(FormatThousands(999), "999");
  EXPECT_EQ(FormatDeviation(100, 101.6), "+1.60 %");
  EXPECT_EQ(Shorten("layer1/block2/conv", 10), "laye..conv");
  EXPECT_EQ(Shorten("\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4\xc3\xa4", 7), "\xc3\xa4..\xc3\xa4");
}

}  // namespace
}  // namespace heddle::report
