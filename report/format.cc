// Formatting without locale: the same bytes on every machine.
#include "report/format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "report/report.h"

namespace heddle::report {
namespace {

// Three significant digits, without an exponent.
std::string Digits(double value) {
  const double size = std::abs(value);
  if (size == 0) return "0";
  if (size >= 99.95) return fmt::format("{:.0f}", value);
  if (size >= 9.995) return fmt::format("{:.1f}", value);
  if (size >= 0.9995) return fmt::format("{:.2f}", value);
  return fmt::format("{:.3f}", value);
}

// The length of the UTF-8 sequence at `at`, 0 where there is none.
size_t Utf8Length(const std::string& text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  const size_t length = byte < 0x80 ? 1 : byte >> 5 == 6 ? 2 : byte >> 4 == 14 ? 3 : byte >> 3 == 30 ? 4 : 0;
  if (length == 0 || at + length > text.size()) return 0;
  for (size_t i = 1; i < length; ++i) {
    if (static_cast<unsigned char>(text[at + i]) >> 6 != 2) return 0;
  }
  return length;
}

}  // namespace

std::string FormatUs(double us) {
  if (std::abs(us) >= 0.9995e6) return Digits(us / 1e6) + " s";
  if (std::abs(us) >= 0.9995e3) return Digits(us / 1e3) + " ms";
  return Digits(us) + " us";
}

std::string FormatUj(double uj) {
  if (std::abs(uj) >= 0.9995e6) return Digits(uj / 1e6) + " J";
  if (std::abs(uj) >= 0.9995e3) return Digits(uj / 1e3) + " mJ";
  return Digits(uj) + " uJ";
}

std::string FormatCost(const Partition& partition) {
  return partition.cost_uj ? FormatUj(*partition.cost_uj) : FormatUs(partition.cost_us);
}

std::string FormatBound(const Partition& partition) {
  return partition.lower_bound_uj ? FormatUj(*partition.lower_bound_uj) : FormatUs(partition.lower_bound_us);
}

std::string FormatCount(double count) {
  for (const auto& [size, unit] : {std::pair{1e9, " G"}, {1e6, " M"}, {1e3, " k"}}) {
    if (std::abs(count) >= 0.9995 * size) return Digits(count / size) + unit;
  }
  return fmt::format("{:.0f}", count);
}

std::string FormatBytes(double bytes) {
  for (const auto& [size, unit] : {std::pair{1e9, " GB"}, {1e6, " MB"}, {1e3, " kB"}}) {
    if (std::abs(bytes) >= 0.9995 * size) return Digits(bytes / size) + unit;
  }
  return fmt::format("{:.0f} B", bytes);
}

std::string FormatThousands(int64_t value) {
  std::string digits = std::to_string(value);
  for (int at = static_cast<int>(digits.size()) - 3; at > (value < 0 ? 1 : 0); at -= 3) digits.insert(at, ",");
  return digits;
}

std::string FormatPercent(double percent) {
  if (percent == 0) return "0 %";
  if (std::abs(percent) < 0.0005) return "< 0.001 %";
  return Digits(percent) + " %";
}

std::string FormatDeviation(double predicted, double actual) {
  if (predicted == 0) return "";
  const double percent = (actual - predicted) / predicted * 100;
  return (percent >= 0 ? "+" : "") + Digits(percent) + " %";
}

std::string Words(const std::string& counter) {
  std::string words = counter;
  std::replace(words.begin(), words.end(), '_', ' ');
  return words;
}

std::string Printable(const std::string& name) {
  std::string result = name;
  for (char& c : result) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) c = '?';
  }
  return result;
}

std::string Shorten(const std::string& name, size_t width) {
  if (name.size() <= width || width < 6) return name;
  size_t head = (width - 2) / 2;
  size_t tail = name.size() - (width - 2 - head);
  while (head > 0 && static_cast<unsigned char>(name[head]) >> 6 == 2) --head;
  while (tail < name.size() && static_cast<unsigned char>(name[tail]) >> 6 == 2) ++tail;
  return name.substr(0, head) + ".." + name.substr(tail);
}

std::string EscapeHtml(const std::string& text) {
  std::string result;
  for (size_t at = 0; at < text.size();) {
    const size_t length = Utf8Length(text, at);
    const char c = text[at];
    if (length != 1) {
      result += length == 0 ? "?" : text.substr(at, length);
    } else if (c == '&') {
      result += "&amp;";
    } else if (c == '<') {
      result += "&lt;";
    } else if (c == '>') {
      result += "&gt;";
    } else if (c == '"') {
      result += "&quot;";
    } else if (c == '\'') {
      result += "&#39;";
    } else {
      result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
    }
    at += std::max<size_t>(length, 1);
  }
  return result;
}

std::string FormatOnChip(const OnChipMemory& memory) {
  const bool bytes = memory.unit == "bytes";
  const auto amount = [&](int64_t value) { return bytes ? FormatBytes(static_cast<double>(value)) : FormatThousands(value); };
  std::string text = fmt::format("{} of {}{}", amount(memory.used), amount(memory.available), bytes ? "" : " " + Printable(memory.unit));
  if (memory.available > 0) text += fmt::format(" ({})", FormatPercent(100.0 * static_cast<double>(memory.used) / static_cast<double>(memory.available)));
  if (memory.resident > 0) text += fmt::format(", {} stay between inferences", amount(memory.resident));
  return text;
}

}  // namespace heddle::report
