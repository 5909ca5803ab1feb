// SPDX-License-Identifier: Apache-2.0
#include "explain/sweep_file.h"

#include <fmt/format.h>
#include <simdjson.h>

#include <algorithm>
#include <set>
#include <stdexcept>
#include <tuple>
#include <utility>

#include "trace/input.h"
#include "trace/printable.h"
#include "trace/reader.h"

namespace explain {
namespace {

namespace dom = simdjson::dom;
using trace::json_string;

// More than any plot can show, and little enough that no file makes drawing it slow.
constexpr std::size_t kMostBytes = std::size_t{1} << 20;
constexpr std::size_t kMostQuantities = 16, kMostLines = 32, kMostRows = 1024, kMostFacts = 32;
constexpr std::size_t kMostText = 400;
constexpr double kMostValue = 1e18;

bool is_number(double value) {
  return value >= 0 && value <= kMostValue;  // neither is NaN
}

bool is_text(std::string_view text) {
  return !text.empty() && text.size() <= kMostText;
}

std::string why_no_quantities(const std::vector<SweepQuantity>& quantities) {
  if (quantities.empty() || quantities.size() > kMostQuantities)
    return fmt::format("it has {} quantities instead of 1 to {}", quantities.size(),
                       kMostQuantities);
  std::set<std::string_view> keys;
  for (const SweepQuantity& quantity : quantities) {
    if (!is_text(quantity.key) || !is_text(quantity.title) || !is_text(quantity.unit))
      return "a quantity has no key, title or unit of a sensible length";
    if (!keys.insert(quantity.key).second) return "two quantities have the same key";
    if (quantity.limit && (!is_text(quantity.limit->label) || !is_number(quantity.limit->value)))
      return "a limit has no label, or a value that is not between 0 and 1e18";
  }
  return "";
}

std::string why_no_row(const SweepRow& row, std::size_t quantities) {
  if (!is_text(row.line)) return "a row has no line of a sensible length";
  if (!is_number(row.x)) return "an x is not between 0 and 1e18";
  std::size_t values = 0;
  for (const std::optional<double>& value : row.values) {
    if (value && !is_number(*value)) return "a value is not between 0 and 1e18";
    values += value ? 1 : 0;
  }
  if (row.values.size() > quantities) return "a row has more values than there are quantities";
  if (values < quantities && row.reason.empty()) return "a value is missing without a reason";
  return row.reason.size() > kMostText ? "a reason is too long" : "";
}

std::string why_no_rows(const std::vector<SweepRow>& rows, std::size_t quantities) {
  if (rows.empty() || rows.size() > kMostRows)
    return fmt::format("it has {} rows instead of 1 to {}", rows.size(), kMostRows);
  std::set<std::string_view> lines;
  std::set<std::pair<std::string_view, double>> places;
  for (const SweepRow& row : rows) {
    if (std::string why = why_no_row(row, quantities); !why.empty()) return why;
    lines.insert(row.line);
    if (!places.emplace(row.line, row.x).second) return "a line has the same x twice";
  }
  return lines.size() > kMostLines ? fmt::format("it has more than {} lines", kMostLines) : "";
}

// "" for a sweep that can be drawn.
std::string why_not(const Sweep& sweep) {
  for (const std::string& text : {sweep.chapter, sweep.title, sweep.x})
    if (!is_text(text)) return "it has no chapter, title or x of a sensible length";
  if (sweep.facts.size() > kMostFacts) return fmt::format("it has more than {} facts", kMostFacts);
  for (const SweepFact& fact : sweep.facts)
    if (!is_text(fact.name) || fact.value.size() > kMostText)
      return "a fact has no name of a sensible length, or too long a value";
  const std::string why = why_no_quantities(sweep.quantities);
  return why.empty() ? why_no_rows(sweep.rows, sweep.quantities.size()) : why;
}

std::string json_of(const SweepQuantity& quantity) {
  std::string text =
      fmt::format("{{\"key\": {}, \"title\": {}, \"unit\": {}", json_string(quantity.key),
                  json_string(quantity.title), json_string(quantity.unit));
  if (quantity.limit)
    text += fmt::format(", \"limit\": {{\"label\": {}, \"value\": {}}}",
                        json_string(quantity.limit->label), quantity.limit->value);
  return text + '}';
}

std::string json_of(const SweepRow& row, const std::vector<SweepQuantity>& quantities) {
  std::string values;
  for (std::size_t i = 0; i < row.values.size(); ++i)
    if (row.values[i])
      values += fmt::format("{}{}: {}", values.empty() ? "" : ", ", json_string(quantities[i].key),
                            *row.values[i]);
  std::string text = fmt::format("{{\"line\": {}, \"x\": {}, \"values\": {{{}}}",
                                 json_string(row.line), row.x, values);
  if (!row.reason.empty()) text += fmt::format(", \"reason\": {}", json_string(row.reason));
  return text + '}';
}

[[noreturn]] void fail(const std::string& name, std::string_view why) {
  throw trace::ReadError(
      fmt::format("{} is no sweep: {}; a chapter's --sweep writes one", name, why));
}

// One object of the file. What is there must be of the kind asked for.
class Part {
 public:
  Part(const std::string& name, dom::element json) : name_(name) {
    if (json.get(object_) != simdjson::SUCCESS) fail(name, "something in it is no object");
  }

  [[nodiscard]] std::optional<dom::element> find(std::string_view key) const {
    dom::element element;
    if (object_.at_key(key).get(element) != simdjson::SUCCESS || element.is_null())
      return std::nullopt;
    return element;
  }

  // "" where there is none.
  [[nodiscard]] std::string text(std::string_view key) const {
    std::string_view text;
    const std::optional<dom::element> element = find(key);
    if (element && element->get(text) != simdjson::SUCCESS)
      fail(name_, fmt::format("{} is no text", key));
    return std::string(text);
  }

  [[nodiscard]] std::optional<double> number(std::string_view key) const {
    double number = 0;
    const std::optional<dom::element> element = find(key);
    if (!element) return std::nullopt;
    if (element->get(number) != simdjson::SUCCESS)
      fail(name_, fmt::format("{} is no number", trace::printable(key)));
    return number;
  }

  // Of a list, at most one more than `most`.
  [[nodiscard]] std::vector<Part> parts(std::string_view key, std::size_t most) const {
    dom::array array;
    std::vector<Part> parts;
    const std::optional<dom::element> element = find(key);
    if (!element) return parts;
    if (element->get(array) != simdjson::SUCCESS) fail(name_, fmt::format("{} is no list", key));
    for (const dom::element part : array) {
      if (parts.size() > most) break;
      parts.emplace_back(name_, part);
    }
    return parts;
  }

 private:
  const std::string& name_;
  dom::object object_;
};

SweepQuantity quantity_of(const std::string& name, const Part& part) {
  SweepQuantity quantity{
      .key = part.text("key"), .title = part.text("title"), .unit = part.text("unit")};
  if (const auto json = part.find("limit")) {
    const Part limit(name, *json);
    quantity.limit = {.label = limit.text("label"), .value = limit.number("value").value_or(-1)};
  }
  return quantity;
}

SweepRow row_of(const std::string& name, const Part& part,
                const std::vector<SweepQuantity>& quantities) {
  SweepRow row{.line = part.text("line"), .x = part.number("x").value_or(-1)};
  row.reason = part.text("reason");
  const auto json = part.find("values");
  const std::optional<Part> values = json ? std::optional(Part(name, *json)) : std::nullopt;
  for (const SweepQuantity& quantity : quantities)
    row.values.push_back(values ? values->number(quantity.key) : std::nullopt);
  return row;
}

Sweep parse(const std::string& text, const std::string& name) {
  dom::parser parser;
  dom::element json;
  if (parser.parse(text).get(json) != simdjson::SUCCESS) fail(name, "it is no whole JSON");
  const Part root(name, json);
  Sweep sweep{.chapter = root.text("chapter"), .title = root.text("title"), .x = root.text("x")};
  for (const Part& part : root.parts("facts", kMostFacts))
    sweep.facts.push_back({part.text("name"), part.text("value")});
  for (const Part& part : root.parts("quantities", kMostQuantities))
    sweep.quantities.push_back(quantity_of(name, part));
  if (sweep.quantities.size() <= kMostQuantities)
    for (const Part& part : root.parts("rows", kMostRows))
      sweep.rows.push_back(row_of(name, part, sweep.quantities));
  if (const std::string why = why_not(sweep); !why.empty()) fail(name, why);
  return sweep;
}

}  // namespace

std::string to_json(const Sweep& sweep) {
  if (const std::string why = why_not(sweep); !why.empty())
    throw std::invalid_argument("this sweep cannot be written: " + why);
  std::string text =
      fmt::format("{{\n\"chapter\": {},\n\"title\": {},\n\"x\": {},\n\"facts\": [",
                  json_string(sweep.chapter), json_string(sweep.title), json_string(sweep.x));
  const auto add = [&text](const std::string& json) {
    text += (text.ends_with('[') ? "\n" : ",\n") + json;
  };
  for (const SweepFact& fact : sweep.facts)
    add(fmt::format("{{\"name\": {}, \"value\": {}}}", json_string(fact.name),
                    json_string(fact.value)));
  text += "\n],\n\"quantities\": [";
  for (const SweepQuantity& quantity : sweep.quantities) add(json_of(quantity));
  text += "\n],\n\"rows\": [";
  for (const SweepRow& row : sweep.rows) add(json_of(row, sweep.quantities));
  return text + "\n]\n}\n";
}

Sweep read_sweep(const std::filesystem::path& path) {
  trace::Input input = trace::Input::open(path);
  return parse(trace::read_whole(input, kMostBytes), input.name());
}

Sweep parse_sweep(std::string_view text) {
  trace::Input input(text);
  return parse(trace::read_whole(input, kMostBytes), input.name());
}

}  // namespace explain
