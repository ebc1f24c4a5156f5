// index.html in a real browser: headless Chromium loads the page with a few lines of script added at its end, which use it as
// a reader would (click a node, sort a table, filter, change the colours) and write down what they saw. Skipped where there
// is no Chromium.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "ir/subprocess.h"
#include "report/print.h"
#include "report/sample_report.h"

namespace heddle::report {
namespace {

namespace fs = std::filesystem;

// Collects errors from the first moment on; stands before the page's own script.
constexpr const char* kWatch = "<script>window.seen = {errors: []}; onerror = function (m) { seen.errors.push(String(m)); };</script>";

constexpr const char* kUse = R"js(<script>
(function () {
  function all(selector) { return Array.from(document.querySelectorAll(selector)); }
  function column(name) { return all('#layers th').findIndex(function (th) { return th.textContent === name; }); }
  function values(name) { var c = column(name); return all('#layers tbody tr').map(function (tr) { return Number(tr.cells[c].dataset.v); }); }
  function shown() { return all('#layers tbody tr').filter(function (tr) { return !tr.hidden; }).length; }
  function press(name) { all('#layers th')[column(name)].querySelector('button').click(); }
  try {
    seen.rows = all('#layers tbody tr').length;
    seen.boxes = all('g[data-node]').length;
    seen.bars = all('#timeline rect').length;
    seen.points = all('#roofline circle').length;
    seen.opened_with = document.querySelector('#details h3').textContent;
    document.querySelector('g[data-node="1"] rect').dispatchEvent(new MouseEvent('click', {bubbles: true}));
    seen.clicked = document.querySelector('#details h3').textContent;
    seen.chosen = all('.chosen').length;
    seen.story = document.getElementById('details').textContent;
    document.dispatchEvent(new KeyboardEvent('keydown', {key: 'Escape'}));
    seen.closed = document.getElementById('details').textContent;
    seen.before = values('MACs');
    press('MACs');
    seen.down = values('MACs');
    press('MACs');
    seen.up = values('MACs');
    var filter = document.getElementById('filter');
    filter.value = 'softmax';
    filter.dispatchEvent(new Event('input'));
    seen.filtered = shown();
    filter.value = '';
    filter.dispatchEvent(new Event('input'));
    seen.unfiltered = shown();
    seen.colour = getComputedStyle(document.body).backgroundColor;
    document.getElementById('theme').click();
    seen.other_colour = getComputedStyle(document.body).backgroundColor;
    seen.fetched = performance.getEntriesByType('resource').length;
  } catch (error) { seen.errors.push(String(error)); }
  var result = document.createElement('pre');
  result.textContent = 'RESULT' + JSON.stringify(seen) + 'RESULT';
  document.body.appendChild(result);
}());
</script>)js";

std::string Chromium() {
  for (const char* name : {"chromium", "chromium-browser", "google-chrome"}) {
    for (const char* folder : {"/usr/bin/", "/usr/local/bin/"}) {
      if (fs::exists(std::string(folder) + name)) return std::string(folder) + name;
    }
  }
  return "";
}

std::string Unescaped(std::string text) {
  for (const auto& [entity, letter] : {std::pair<std::string, std::string>{"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&amp;", "&"}}) {
    for (size_t at = 0; (at = text.find(entity, at)) != std::string::npos; at += letter.size()) text.replace(at, entity.size(), letter);
  }
  return text;
}

// What the script saw; an error where the browser did not get that far.
absl::StatusOr<nlohmann::json> UsePage(const Report& report) {
  const fs::path folder = fs::path(std::getenv("TEST_TMPDIR") ? std::getenv("TEST_TMPDIR") : "/tmp") / "page";
  fs::create_directories(folder);
  std::string html = PrintHtml(report);
  html.insert(html.find("<head>") + 6, kWatch);
  html.insert(html.rfind("</body>"), kUse);
  std::ofstream(folder / "index.html") << html;
  HEDDLE_ASSIGN_OR_RETURN(const std::string output,
                          ir::RunTool({Chromium(), "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1400,1000",
                                       "--user-data-dir=" + (folder / "profile").string(), "--virtual-time-budget=5000", "--dump-dom",
                                       "file://" + (folder / "index.html").string()},
                                      {.timeout_s = 100}));
  // The script's own text has the mark too; the result is what it appended behind it.
  const size_t end = output.rfind("RESULT");
  const size_t begin = end == std::string::npos || end == 0 ? std::string::npos : output.rfind("RESULT", end - 1);
  if (begin == std::string::npos) return absl::InternalError("the page left no result: " + output.substr(0, 2000));
  nlohmann::json seen = nlohmann::json::parse(Unescaped(output.substr(begin + 6, end - begin - 6)), nullptr, false);
  if (seen.is_discarded()) return absl::InternalError("the result is no JSON: " + output.substr(begin, 2000));
  return seen;
}

class Page : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    report_ = new Report(SampleReport());
    if (Chromium().empty()) return;
    const absl::StatusOr<nlohmann::json> seen = UsePage(*report_);
    ASSERT_TRUE(seen.ok()) << seen.status();
    seen_ = new nlohmann::json(*seen);
  }
  void SetUp() override {
    if (Chromium().empty()) GTEST_SKIP() << "no Chromium on this machine (Debian's package chromium)";
    ASSERT_NE(seen_, nullptr) << "the page was not loaded";
  }
  static std::string Name(size_t node) { return report_->nodes[node].name; }

  static Report* report_;
  static nlohmann::json* seen_;
};
Report* Page::report_ = nullptr;
nlohmann::json* Page::seen_ = nullptr;

TEST_F(Page, LoadsWithoutErrorAndWithoutNetwork) {
  EXPECT_EQ((*seen_)["errors"], nlohmann::json::array());
  EXPECT_EQ((*seen_)["fetched"], 0);
}

TEST_F(Page, ShowsGraphTimelineRooflineAndTable) {
  EXPECT_EQ((*seen_)["rows"], report_->nodes.size());
  EXPECT_EQ((*seen_)["boxes"], report_->nodes.size());
  EXPECT_EQ((*seen_)["bars"], report_->timeline.size());
  EXPECT_GT((*seen_)["points"], 0);
}

TEST_F(Page, AClickOnANodeTellsItsStory) {
  EXPECT_NE((*seen_)["opened_with"], Name(1)) << "the click would change nothing";
  EXPECT_EQ((*seen_)["clicked"], Name(1));
  EXPECT_EQ((*seen_)["chosen"], 2);  // box and row
  EXPECT_NE((*seen_)["story"].get<std::string>().find(report_->nodes[1].why), std::string::npos) << (*seen_)["story"];
  EXPECT_EQ((*seen_)["closed"], "No node chosen.");
}

TEST_F(Page, AClickOnAHeadingSorts) {
  const auto down = (*seen_)["down"].get<std::vector<double>>(), up = (*seen_)["up"].get<std::vector<double>>();
  EXPECT_TRUE(std::is_sorted(down.rbegin(), down.rend())) << (*seen_)["down"];
  EXPECT_TRUE(std::is_sorted(up.begin(), up.end())) << (*seen_)["up"];
  EXPECT_NE((*seen_)["before"], (*seen_)["down"]) << "sorting would change nothing";
  EXPECT_NE((*seen_)["up"], (*seen_)["down"]);
}

TEST_F(Page, FilterAndColoursWork) {
  EXPECT_GE((*seen_)["filtered"], 1);
  EXPECT_LT((*seen_)["filtered"], (*seen_)["unfiltered"]);
  EXPECT_NE((*seen_)["colour"], (*seen_)["other_colour"]);
}

}  // namespace
}  // namespace heddle::report
