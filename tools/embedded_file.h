// A text file inside the program: see tools/embed.bzl.
#ifndef HEDDLE_TOOLS_EMBEDDED_FILE_H_
#define HEDDLE_TOOLS_EMBEDDED_FILE_H_

#include <string>

namespace heddle {

struct EmbeddedFile {
  std::string name;  // without folders
  std::string text;
};

}  // namespace heddle

#endif  // HEDDLE_TOOLS_EMBEDDED_FILE_H_
