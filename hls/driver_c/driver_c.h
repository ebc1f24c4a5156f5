// The C driver of a compiled region: C99 sources for bare metal and Linux, with the program and its data.
#ifndef HEDDLE_HLS_DRIVER_C_DRIVER_C_H_
#define HEDDLE_HLS_DRIVER_C_DRIVER_C_H_

#include <cstdint>
#include <map>
#include <string>

#include "hls/program.h"

namespace heddle::hls {

// An image of more bytes than this is not printed as a C array: the user loads the region's weights.bin.
inline constexpr int64_t kLargestImageArrayBytes = 1 << 20;

// heddle_registers.h (from RegisterMap()), heddle_driver.{h,c}, heddle_uio.{h,c}: the same for every program.
std::map<std::string, std::string> DriverSources();

// NAME.h and NAME.c, which define `const heddle_program heddle_NAME`, and NAME_example_bare_metal.c and NAME_example_linux.c with a
// main() each. `name` is a C identifier ("region_000").
std::map<std::string, std::string> DriverProgramSources(const CompiledProgram& program, const std::string& name);

}  // namespace heddle::hls

#endif  // HEDDLE_HLS_DRIVER_C_DRIVER_C_H_
