// accelerator_docs PAGE: brings the tables of docs/accelerator.md up to date, in place.

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include "hls/accelerator_docs.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: accelerator_docs docs/accelerator.md\n");
    return 2;
  }
  std::ifstream in(argv[1]);
  const std::string page((std::istreambuf_iterator<char>(in)), std::istreambuf_iterator<char>());
  const std::string current = heddle::hls::WithCurrentTables(page);
  std::ofstream(argv[1]) << current;
  return 0;
}
