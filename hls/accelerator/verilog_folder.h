// Where tests of the generated Verilog keep their files.
#ifndef HEDDLE_HLS_ACCELERATOR_VERILOG_FOLDER_H_
#define HEDDLE_HLS_ACCELERATOR_VERILOG_FOLDER_H_

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "hls/accelerator/accelerator.h"

namespace heddle::hls {

// A folder of the test's own, created.
inline std::filesystem::path TestFolder(const std::string& name) {
  const char* scratch = std::getenv("TEST_TMPDIR");
  const std::filesystem::path folder = std::filesystem::path(scratch ? scratch : "/tmp") / name;
  std::filesystem::create_directories(folder);
  return folder;
}

// Writes the files of `params` into such a folder and returns it.
inline std::filesystem::path WriteFiles(const AcceleratorParams& params, const std::string& name) {
  const std::filesystem::path folder = TestFolder(name);
  for (const auto& [file, text] : GenerateVerilog(params)) std::ofstream(folder / file) << text;
  return folder;
}

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_ACCELERATOR_VERILOG_FOLDER_H_
