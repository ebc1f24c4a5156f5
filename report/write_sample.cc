// Writes the sample report to a folder, to look at the pages: bazel run //report:write_sample -- /some/folder
#include <cstdio>
#include <fstream>
#include <string>

#include "report/print.h"
#include "report/sample_report.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("usage: write_sample FOLDER\n", stderr);
    return 2;
  }
  const heddle::report::Report report = heddle::report::SampleReport();
  const std::string folder = argv[1];
  std::ofstream(folder + "/report.txt") << heddle::report::PrintText(report);
  std::ofstream(folder + "/report.json") << heddle::report::PrintJson(report);
  std::ofstream(folder + "/index.html") << heddle::report::PrintHtml(report);
  std::ofstream(folder + "/trace.json") << heddle::report::PrintTrace(report);
  return 0;
}
