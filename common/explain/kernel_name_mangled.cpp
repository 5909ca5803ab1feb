// SPDX-License-Identifier: Apache-2.0
//
// Mangled names (Itanium C++ ABI, section 5.1) as text, well enough for the grammars. Not a
// demangler on purpose: names in traces are often cut off, which a demangler refuses, and its
// result can grow exponentially with its input.
#include <algorithm>
#include <charconv>
#include <string>
#include <string_view>
#include <utility>

#include "explain/kernel_name_parts.h"

namespace explain::names {
namespace {

class Reader {
 public:
  explicit Reader(std::string_view mangled) : rest_(mangled) {}

  std::string read() {
    eat("_Z");
    eat("L");   // static
    element();  // the name; what follows are the types of its parameters
    return std::move(out_);
  }

 private:
  static constexpr int kDeepest = 200;  // of nested brackets: bounds the recursion

  bool eat(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    return true;
  }

  char next() const { return rest_.empty() ? 'E' : rest_.front(); }

  // One name, type or template argument.
  void element() {
    if (depth_ > kDeepest || rest_.empty()) return void(rest_ = {});
    ++depth_;
    const char c = next();
    if (c >= '0' && c <= '9') {
      identifier();
      optional_arguments();
    } else if (eat("N")) {
      nested();
    } else if (eat("L")) {
      literal();
    } else if (eat("Z")) {  // something local to a function: lambdas, mostly
      element();
      out_ += '(';
      list(")");
      out_ += "::";
      element();
    } else if (eat("J")) {  // a pack of arguments
      list("");
    } else if (eat("Ul") || eat("Ut")) {
      out_ += "{lambda(";
      list(")}");
      number_and_underscore();
    } else if (eat("S")) {
      back_reference();
      optional_arguments();
    } else if (c == 'K' || c == 'P' || c == 'R' || c == 'O' || c == 'V') {  // const, pointer, ...
      rest_.remove_prefix(1);
      element();
    } else {
      builtin();
    }
    --depth_;
  }

  void nested() {
    bool is_first = true;
    while (next() != 'E') {
      if (next() == 'I') {
        optional_arguments();
      } else if (next() == 'K' || next() == 'V' || next() == 'L') {  // const, volatile, static
        rest_.remove_prefix(1);
      } else {
        const std::size_t before = out_.size();
        if (!is_first) out_ += "::";
        const std::size_t begin = out_.size();
        element();
        const bool says_nothing = out_.size() <= begin;  // an anonymous namespace
        if (says_nothing) out_.resize(before);
        is_first = is_first && says_nothing;
      }
    }
    eat("E");
  }

  void optional_arguments() {
    if (!eat("I")) return;
    out_ += '<';
    list(">");
  }

  void list(std::string_view close) {
    for (bool is_first = true; next() != 'E'; is_first = false) {
      if (!is_first) out_ += ", ";
      element();
    }
    eat("E");
    out_ += close;
  }

  // "Li128E", "Lb1E", "LNS_4EnumE0E"
  void literal() {
    const std::size_t before = out_.size();
    const bool is_bool = next() == 'b';
    element();  // the type is not shown
    out_.resize(std::min(out_.size(), before));
    std::string value;
    while (next() != 'E') {
      value += next();
      rest_.remove_prefix(1);
    }
    if (!eat("E")) return;  // cut off: 12 may have been 128
    out_ += is_bool ? (value == "1" ? "true" : "false") : value;
  }

  void identifier() {
    std::size_t length = 0;
    const auto [stop, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), length);
    rest_.remove_prefix(static_cast<std::size_t>(stop - rest_.data()));
    if (error != std::errc() || length > rest_.size()) return void(rest_ = {});  // cut off
    const std::string_view name = rest_.substr(0, length);
    rest_.remove_prefix(length);
    if (!name.starts_with("_GLOBAL__N_")) out_ += name;  // else an anonymous namespace
  }

  // "S_", "S1_", "St", "Sa", ...; only std is spelled out
  void back_reference() {
    if (eat("t")) {
      out_ += "std::";
      element();
      return;
    }
    number_and_underscore();
    out_ += kBackReference;
  }

  void number_and_underscore() {
    while (!rest_.empty() && next() != '_' &&
           ((next() >= '0' && next() <= '9') || (next() >= 'A' && next() <= 'Z'))) {
      rest_.remove_prefix(1);
    }
    eat("_");
  }

  void builtin() {
    if (eat("cl")) return void(out_ += "operator()");
    if (eat("T")) return number_and_underscore();  // a template parameter
    if (eat("Dp") || eat("C1") || eat("C2") || eat("v")) return;
    static constexpr std::pair<char, std::string_view> kBuiltins[] = {
        {'b', "bool"},          {'c', "char"},  {'a', "signed char"},  {'h', "unsigned char"},
        {'s', "short"},         {'i', "int"},   {'j', "unsigned int"}, {'l', "long"},
        {'m', "unsigned long"}, {'f', "float"}, {'d', "double"},       {'x', "long long"},
    };
    for (const auto& [letter, name] : kBuiltins) {
      if (next() == letter) out_ += name;
    }
    rest_.remove_prefix(1);
  }

  std::string_view rest_;
  std::string out_;
  int depth_ = 0;
};

}  // namespace

std::string readable(std::string_view mangled) {
  return Reader(mangled).read();
}

}  // namespace explain::names
