// The run directory: written under a temporary name and renamed when it is whole, so that a failed or interrupted run
// leaves nothing that looks finished, and what an earlier run wrote is replaced only by a finished one.
#ifndef HEDDLE_DRIVER_RUN_DIRECTORY_H_
#define HEDDLE_DRIVER_RUN_DIRECTORY_H_

#include <filesystem>
#include <memory>
#include <string>

#include "ir/status.h"

namespace heddle::driver {

class RunDirectory {
 public:
  // Prepares DIR.partial beside `final_path`. E-USAGE-010 where final_path exists and is not an earlier run's directory
  // (no manifest.json in it) and not empty, E-USAGE-011 where nothing can be written there.
  static absl::StatusOr<std::unique_ptr<RunDirectory>> Create(const std::filesystem::path& final_path);
  ~RunDirectory();  // removes what was not committed

  const std::filesystem::path& path() const { return partial_; }
  const std::filesystem::path& final_path() const { return final_; }
  // Writes a file below path(), folders included.
  absl::Status Write(const std::filesystem::path& relative, const std::string& content);
  // Renames the directory to its final name, replacing an earlier run.
  absl::Status Commit();

 private:
  RunDirectory(std::filesystem::path final_path, std::filesystem::path partial)
      : final_(std::move(final_path)), partial_(std::move(partial)) {}

  std::filesystem::path final_;
  std::filesystem::path partial_;
  bool committed_ = false;
};

// From here on SIGINT and SIGTERM end the process with status 130 after killing external programs and removing the
// partial run directory. Call once, in the main
// thread, before any other is started; the main thread alone makes files.
void HandleInterrupts();

}  // namespace heddle::driver

#endif  // HEDDLE_DRIVER_RUN_DIRECTORY_H_
