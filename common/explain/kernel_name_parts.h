// SPDX-License-Identifier: Apache-2.0
//
// What the grammars of kernel names share: cutting a name into its parts. Nothing here fails: a
// name that was cut off ends where it ends, and unbalanced brackets close at the end.
//
//   Symbol symbol = read_symbol("void at::native::reduce_kernel<512, 1, ReduceOp<float, ...>
//   >(...)"); symbol.function;      // "reduce_kernel" symbol.arguments[0];  // "512"
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace explain::names {

// A function's name. The views point into `text`: move it, and they are void.
struct Symbol {
  std::string raw;             // as in the file
  std::string text;            // demangled, without return type and anonymous namespaces
  std::string_view qualified;  // "at::native::reduce_kernel"
  std::string_view function;   // "reduce_kernel"
  std::vector<std::string_view> arguments;  // of the template, without casts: "(int)4" is "4"

  explicit Symbol(std::string_view name);
  Symbol(const Symbol&) = delete;
  Symbol& operator=(const Symbol&) = delete;
};

// A mangled name as text, as far as it goes: namespaces, names, template arguments, lambdas.
// Back references stand as "?". Time is linear: unlike a real demangler's result, ours cannot grow.
[[nodiscard]] std::string readable(std::string_view mangled);
inline constexpr char kBackReference = '?';

// Cuts at `separator` where no bracket is open.
[[nodiscard]] std::vector<std::string_view> split_top(std::string_view text,
                                                      std::string_view separator);
[[nodiscard]] std::vector<std::string_view> split(std::string_view text, char separator);

// The template arguments behind the first `name` in `text` that has some; empty if there is none.
[[nodiscard]] std::vector<std::string_view> arguments_of(std::string_view text,
                                                         std::string_view name);

// "bf16" for f16's many spellings and so on: "c10::BFloat16 const*", "__nv_bfloat16", "bf16". ""
// for what is no data type.
[[nodiscard]] std::string dtype_of(std::string_view text);
// The first of them that is a data type, "" if none is or a back reference comes before it.
[[nodiscard]] std::string first_dtype(const std::vector<std::string_view>& texts);

// Every integer in the text.
[[nodiscard]] std::vector<int> integers(std::string_view text);
[[nodiscard]] std::string product(const std::vector<int>& factors);  // "128x64"

// True for "128x64" with two factors, "128x128x32" with three.
[[nodiscard]] bool is_product(std::string_view text, int factors);

// The number that follows `prefix` at the start of the text: ("align8", "align") is 8.
[[nodiscard]] std::optional<int> number_after(std::string_view text, std::string_view prefix);

// The texts one behind the other. (g++ 12 warns wrongly of "literal" + std::string(...).)
template <typename... Parts>
[[nodiscard]] std::string concat(const Parts&... parts) {
  std::string text;
  (text.append(std::string_view(parts)), ...);
  return text;
}

// Behind what there is already, with the separator in between.
void append(std::string& list, std::string_view separator, std::string_view part);

[[nodiscard]] bool contains(std::string_view text, std::string_view part);
[[nodiscard]] bool is_true(std::string_view argument);  // "true" and "1"

// "rms_norm_kernel" and "RMSNormKernel" are "rms norm kernel".
[[nodiscard]] std::string words(std::string_view identifier);

}  // namespace explain::names
