// Where the models and test data that are not part of the project lie: tests that use them skip, saying so, without them.
#ifndef HEDDLE_TESTBENCH_DATA_PATH_H_
#define HEDDLE_TESTBENCH_DATA_PATH_H_

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace heddle::testbench {

// The folder of $HEDDLE_DATA, else shared/data beside the project: beside $BUILD_WORKSPACE_DIRECTORY under `bazel run`, and
// beside the real place of the WORKSPACE file among the runfiles under `bazel test`. nullopt where none of them exists.
inline std::optional<std::filesystem::path> DataFolder() {
  std::vector<std::filesystem::path> candidates;
  if (const char* data = std::getenv("HEDDLE_DATA"); data && *data) candidates.emplace_back(data);
  if (const char* root = std::getenv("BUILD_WORKSPACE_DIRECTORY"); root && *root) {
    candidates.push_back(std::filesystem::path(root) / "../shared/data");
  }
  std::error_code error;
  if (const auto workspace = std::filesystem::canonical("WORKSPACE", error); !error) {
    candidates.push_back(workspace.parent_path() / "../shared/data");
  }
  for (const auto& candidate : candidates) {
    if (std::filesystem::is_directory(candidate, error)) return candidate.lexically_normal();
  }
  return std::nullopt;
}

// A file or folder under DataFolder(); nullopt where it is absent.
inline std::optional<std::filesystem::path> DataPath(const std::filesystem::path& relative) {
  const auto folder = DataFolder();
  std::error_code error;
  if (!folder || !std::filesystem::exists(*folder / relative, error)) return std::nullopt;
  return *folder / relative;
}

// Files of a folder and its subfolders whose names end with `suffix`, sorted.
inline std::vector<std::filesystem::path> FilesUnder(const std::filesystem::path& folder, const std::string& suffix) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file() && entry.path().string().ends_with(suffix)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace heddle::testbench

#define HEDDLE_SKIP_WITHOUT_DATA(path) \
  if (!(path)) GTEST_SKIP() << "the test data is absent: set HEDDLE_DATA to its folder (README, section on test data)"

#endif  // HEDDLE_TESTBENCH_DATA_PATH_H_
