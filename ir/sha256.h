// SHA-256 (FIPS 180-4): names constants in the textual IR and identifies model files in reports.
#ifndef HEDDLE_IR_SHA256_H_
#define HEDDLE_IR_SHA256_H_

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace heddle::ir {

class Sha256 {
 public:
  void Update(std::string_view bytes);
  // 64 lower-case hexadecimal digits. Call once, after the last Update.
  std::string HexDigest();

 private:
  void Block(const uint8_t* block);

  std::array<uint32_t, 8> state_ = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                    0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_ = {};
  uint64_t total_bytes_ = 0;
};

std::string Sha256Hex(std::string_view bytes);

}  // namespace heddle::ir

#endif  // HEDDLE_IR_SHA256_H_
