// SPDX-License-Identifier: Apache-2.0
#include "explain/kernel_name_parts.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <utility>

namespace explain::names {
namespace {

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// Keeps track of open brackets. `>` closes only what `<` opened: "(8)>(0)" and "->" are no
// brackets.
class Brackets {
 public:
  void read(char c) {
    if (c == '(' || c == '[' || c == '{' || c == '<') {
      open_.push_back(c);
    } else if (!open_.empty() && closes(open_.back(), c)) {
      open_.pop_back();
    }
  }
  [[nodiscard]] bool none() const { return open_.empty(); }

 private:
  static bool closes(char open, char c) {
    return (open == '(' && c == ')') || (open == '[' && c == ']') || (open == '{' && c == '}') ||
           (open == '<' && c == '>');
  }
  std::string open_;
};

// Without what Kineto, nsys and ncu write for anonymous namespaces.
std::string without_anonymous(std::string_view name) {
  std::string text;
  for (std::size_t at = 0; at < name.size();) {
    const std::string_view rest = name.substr(at);
    bool found = false;
    for (const std::string_view anonymous : {"(anonymous namespace)::", "<unnamed>::"}) {
      if (rest.starts_with(anonymous)) {
        at += anonymous.size();
        found = true;
        break;
      }
    }
    if (!found) text += name[at++];
  }
  return text;
}

// Kernels return nothing; "std::enable_if<..., void>::type f()" is a way of writing that.
std::string without_return_type(std::string text) {
  if (text.starts_with("void ")) return text.substr(5);
  if (!text.starts_with("std::enable_if")) return text;
  const std::vector<std::string_view> words = split_top(text, " ");
  return words.size() < 2 ? text : text.substr(words[0].size() + 1);
}

// "(int)4", "(bool)1" of nsys and "int=512" of nvprof.
std::string_view without_cast(std::string_view argument) {
  argument = trim(argument);
  if (argument.starts_with('(')) {
    const std::size_t end = argument.find(')');
    if (end != std::string_view::npos && end + 1 < argument.size() && argument[end + 1] != ':') {
      return argument.substr(end + 1);
    }
  }
  const std::size_t equals = argument.find('=');
  const bool is_name =
      equals != std::string_view::npos && std::all_of(argument.begin(), argument.begin() + equals,
                                                      [](char c) { return std::islower(c) != 0; });
  return is_name ? argument.substr(equals + 1) : argument;
}

// Of the list that begins behind `text`'s opening bracket.
std::vector<std::string_view> arguments_at(std::string_view text) {
  Brackets brackets;
  std::size_t end = 0;
  for (; end < text.size() && !(brackets.none() && text[end] == '>'); ++end) {
    brackets.read(text[end]);
  }
  text = text.substr(0, end);
  if (trim(text).empty()) return {};
  std::vector<std::string_view> arguments = split_top(text, ",");
  for (std::string_view& argument : arguments) argument = without_cast(argument);
  return arguments;
}

constexpr std::size_t kLongest = 16384;  // no real name is longer; keeps a hostile file cheap

}  // namespace

Symbol::Symbol(std::string_view name) : raw(name.substr(0, kLongest)) {
  text = raw.starts_with("_Z") ? readable(raw) : without_return_type(without_anonymous(raw));
  for (const std::string_view suffix : {" [clone .kd]", ".kd"}) {
    if (text.ends_with(suffix)) text.resize(text.size() - suffix.size());
  }
  const std::string_view all = text;
  qualified = all.substr(0, all.find_first_of("<("));
  // The arguments of "cub::Scan<int>::run<4>()" would be run's; no kernel is named so.
  if (qualified.size() < all.size() && all[qualified.size()] == '<') {
    arguments = arguments_at(all.substr(qualified.size() + 1));
  }
  const std::size_t scope = qualified.rfind("::");
  function = scope == std::string_view::npos ? qualified : qualified.substr(scope + 2);
}

std::vector<std::string_view> split_top(std::string_view text, std::string_view separator) {
  std::vector<std::string_view> parts;
  Brackets brackets;
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (brackets.none() && text.substr(at).starts_with(separator)) {
      parts.push_back(text.substr(begin, at - begin));
      begin = at + separator.size();
      at = begin - 1;
    } else {
      brackets.read(text[at]);
    }
  }
  parts.push_back(text.substr(begin));
  return parts;
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::vector<std::string_view> arguments_of(std::string_view text, std::string_view name) {
  if (name.empty()) return {};
  for (std::size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at)) {
    at += name.size();
    if (at < text.size() && text[at] == '<') return arguments_at(text.substr(at + 1));
  }
  return {};
}

std::string dtype_of(std::string_view text) {
  static constexpr std::pair<std::string_view, std::string_view> kTypes[] = {
      {"f16", "fp16"},
      {"fp16", "fp16"},
      {"half", "fp16"},
      {"__half", "fp16"},
      {"Half", "fp16"},
      {"half_t", "fp16"},
      {"Fp16", "fp16"},
      {"_Float16", "fp16"},
      {"bf16", "bf16"},
      {"BFloat16", "bf16"},
      {"bfloat16_t", "bf16"},
      {"__nv_bfloat16", "bf16"},
      {"nv_bfloat16", "bf16"},
      {"Bfloat16", "bf16"},
      {"bfloat16", "bf16"},
      {"float16", "fp16"},
      {"float8", "fp8"},
      {"f8", "fp8"},
      {"__hip_bfloat16", "bf16"},
      {"f32", "fp32"},
      {"fp32", "fp32"},
      {"float", "fp32"},
      {"Fp32", "fp32"},
      {"f64", "fp64"},
      {"fp64", "fp64"},
      {"double", "fp64"},
      {"tf32", "tf32"},
      {"e4m3", "fp8 e4m3"},
      {"E4m3", "fp8 e4m3"},
      {"f8e4m3", "fp8 e4m3"},
      {"Float8_e4m3fn", "fp8 e4m3"},
      {"Float8_e4m3fnuz", "fp8 e4m3"},
      {"float_e4m3_t", "fp8 e4m3"},
      {"__nv_fp8_e4m3", "fp8 e4m3"},
      {"e5m2", "fp8 e5m2"},
      {"E5m2", "fp8 e5m2"},
      {"f8e5m2", "fp8 e5m2"},
      {"Float8_e5m2", "fp8 e5m2"},
      {"Float8_e5m2fnuz", "fp8 e5m2"},
      {"float_e5m2_t", "fp8 e5m2"},
      {"__nv_fp8_e5m2", "fp8 e5m2"},
      {"e2m1", "fp4 e2m1"},
      {"E2m1", "fp4 e2m1"},
      {"f4", "fp4 e2m1"},
      {"i8", "int8"},
      {"s8", "int8"},
      {"int8", "int8"},
      {"int8_t", "int8"},
      {"int8x4", "int8"},
      {"int8x32", "int8"},
      {"signed char", "int8"},
      {"u8", "uint8"},
      {"uint8", "uint8"},
      {"uint8_t", "uint8"},
      {"uint8x4", "uint8"},
      {"unsigned char", "uint8"},
      {"i16", "int16"},
      {"short", "int16"},
      {"int", "int32"},
      {"i32", "int32"},
      {"s32", "int32"},
      {"int32", "int32"},
      {"int32_t", "int32"},
      {"u32", "uint32"},
      {"unsigned int", "uint32"},
      {"uint32_t", "uint32"},
      {"long", "int64"},
      {"i64", "int64"},
      {"int64_t", "int64"},
      {"u64", "uint64"},
      {"unsigned long", "uint64"},
      {"uint64_t", "uint64"},
      {"bool", "bool"},
      {"cf32", "complex64"},
      {"cf64", "complex128"},
      {"cbf16", "complex bf16"},
      {"cf16", "complex fp16"},
      {"float2", "complex64"},
      {"double2", "complex128"},
  };
  text = trim(text);
  if (text.starts_with("const ")) text.remove_prefix(6);
  while (text.ends_with('*') || text.ends_with('&') || text.ends_with(' ') ||
         text.ends_with(" const")) {
    text.remove_suffix(text.ends_with(" const") ? 6 : 1);
  }
  const std::string_view last = split_top(text, "::").back();  // without namespaces
  if (last.starts_with("complex<")) {
    const std::string part = first_dtype(arguments_of(last, "complex"));
    return part == "fp32" ? "complex64" : part == "fp64" ? "complex128" : "complex " + part;
  }
  if (last.starts_with("OpaqueType<")) {
    const std::vector<int> size = integers(last);
    return size.empty() ? "" : std::to_string(size[0]) + "-byte values";
  }
  for (const auto& [spelling, type] : kTypes) {
    if (last == spelling) return std::string(type);
  }
  return "";
}

std::string first_dtype(const std::vector<std::string_view>& texts) {
  for (const std::string_view text : texts) {
    if (std::string type = dtype_of(text); !type.empty()) return type;
    if (text == std::string_view(&kBackReference, 1)) break;
  }
  return "";
}

std::vector<int> integers(std::string_view text) {
  std::vector<int> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    int number = 0;
    const auto [stop, error] = std::from_chars(at, end, number);
    const bool is_number = is_digit(*at) && error == std::errc();
    if (is_number) numbers.push_back(number);
    at = is_number ? stop : at + 1;
  }
  return numbers;
}

std::string product(const std::vector<int>& factors) {
  std::string text;
  for (const int factor : factors) append(text, "x", std::to_string(factor));
  return text;
}

void append(std::string& list, std::string_view separator, std::string_view part) {
  if (!list.empty()) list += separator;
  list += part;
}

bool is_product(std::string_view text, int factors) {
  const std::vector<std::string_view> parts = split(text, 'x');
  return static_cast<int>(parts.size()) == factors &&
         std::all_of(parts.begin(), parts.end(), [](std::string_view part) {
           return !part.empty() && part.size() <= 5 &&
                  std::all_of(part.begin(), part.end(), is_digit);
         });
}

std::optional<int> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  int number = 0;
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || stop != text.data() + text.size() || number < 0) return std::nullopt;
  return number;
}

bool contains(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

bool is_true(std::string_view argument) {
  return argument == "true" || argument == "1";
}

std::string words(std::string_view identifier) {
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  std::string text;
  for (std::size_t i = 0; i < identifier.size(); ++i) {
    const char c = identifier[i];
    const bool next_is_lower = i + 1 < identifier.size() && is_lower(identifier[i + 1]);
    // A new word at "x|Kernel" and at "RMS|Norm", but not inside "CUDA".
    const bool begins = is_upper(c) && i > 0 &&
                        (is_lower(identifier[i - 1]) || is_digit(identifier[i - 1]) ||
                         (is_upper(identifier[i - 1]) && next_is_lower));
    if ((begins || c == '_') && !text.empty() && text.back() != ' ') text += ' ';
    if (c != '_') text += static_cast<char>(is_upper(c) ? c - 'A' + 'a' : c);
  }
  return std::string(trim(text));
}

}  // namespace explain::names
