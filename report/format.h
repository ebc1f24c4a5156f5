// Numbers and names as people read them; the same in text and HTML.
#ifndef HEDDLE_REPORT_FORMAT_H_
#define HEDDLE_REPORT_FORMAT_H_

#include <cstdint>
#include <string>

#include "report/report.h"

namespace heddle::report {

std::string FormatUs(double us);             // "3.21 us", "1.25 ms", "2.10 s"
std::string FormatUj(double uj);             // "812 uJ", "1.25 mJ", "2.10 J"
std::string FormatCount(double count);       // "812", "12.5 M"
std::string FormatBytes(double bytes);       // "812 B", "1.25 MB" (powers of 1000)
std::string FormatThousands(int64_t value);  // "48,213"
std::string FormatPercent(double percent);   // "0 %", "0.031 %", "62.1 %"

// A plan's cost in its objective, and the bound on it.
std::string FormatCost(const Partition& partition);
std::string FormatBound(const Partition& partition);

// (actual - predicted) / predicted, "+1.6 %"; "" where predicted is 0.
std::string FormatDeviation(double predicted, double actual);

// A counter's name as words: "waiting_for_load" is "waiting for load".
std::string Words(const std::string& counter);

// The name with control bytes replaced by '?', so that a model cannot write escape sequences to a terminal.
std::string Printable(const std::string& name);

// At most `width` bytes, cut in the middle: "layer1/…/conv" as "layer1..conv"; never cuts a UTF-8 sequence in two.
std::string Shorten(const std::string& name, size_t width);

// For HTML text and attribute values: & < > " '; control bytes become '?', bytes that are no UTF-8 too.
std::string EscapeHtml(const std::string& text);

// "31.2 kB of 98.3 kB (31.8 %)", "611 of 1,024 words (59.7 %), 480 stay between inferences".
struct OnChipMemory;
std::string FormatOnChip(const OnChipMemory& memory);

}  // namespace heddle::report

#endif  // HEDDLE_REPORT_FORMAT_H_
